"""Models of a stranger's making, each in a training loop of the usual kind.

usage: MINGLE_HOME=HOME python own_models.py KIND SITE SITES
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

import mingle

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from digits_data import load

TEXTS = [
    "the quick brown fox jumps over the lazy dog and runs away from it. ",
    "a stitch in time saves nine, and a bird in the hand is worth two in the bush. ",
    "all work and no play makes jack a dull boy, said the king to the queen. ",
]
LETTERS = sorted(set("".join(TEXTS)))
CONTEXT = 16
Metrics = dict[str, tuple[float, int]]


@dataclass
class OwnModel:
    """A model, its evaluation, and its training, which joins the swarm."""

    model: nn.Module
    evaluate: Callable[[], Metrics]
    train: Callable[[], None]


class CharacterModel(nn.Module):
    """A GPT of one block over characters, whose output layer has the weights of its embedding."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), width)
        self.position = nn.Parameter(torch.zeros(CONTEXT, width))
        self.block = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(width, len(LETTERS), bias=False)
        self.head.weight = self.embedding.weight
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.register_buffer("mask", torch.triu(torch.ones(CONTEXT, CONTEXT, dtype=torch.bool), 1), persistent=False)

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        """Scores of the next letters, `[samples, CONTEXT, letters]`."""
        return self.head(self.block(self.embedding(letters) + self.position, src_mask=self.mask))


def windows(text: str, count: int, generator: torch.Generator | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Pieces of a text, and those one letter further, `[count, CONTEXT]` both."""
    letters = torch.tensor([LETTERS.index(letter) for letter in text])
    starts = torch.randint(len(letters) - CONTEXT, (count,), generator=generator)
    return (torch.stack([letters[s : s + CONTEXT] for s in starts]), torch.stack([letters[s + 1 : s + CONTEXT + 1] for s in starts]))


def character_gpt(site: int, sites: int) -> OwnModel:
    """Tied weights, AdamW with two groups, clipped gradients, and a cosine schedule over the run; each site has a text of its own."""
    model = CharacterModel()
    held_out = windows("".join(2 * text for text in TEXTS), 256, torch.Generator().manual_seed(1))

    def evaluate() -> Metrics:
        loss = functional.cross_entropy(model(held_out[0]).flatten(0, 1), held_out[1].flatten())
        return {"val_loss": (loss.item(), 256)}

    def train() -> None:
        matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
        others = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
        optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}], lr=3e-3)
        with mingle.join(model, optimizer, evaluate=evaluate) as swarm:
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, swarm.total_steps, eta_min=3e-4)
            while True:
                letters, following = windows(2 * TEXTS[site], 32)
                loss = functional.cross_entropy(model(letters).flatten(0, 1), following.flatten())
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                swarm.report(loss=loss)
                optimizer.step()
                schedule.step()

    return OwnModel(model, evaluate, train)


def network_with_batch_norm() -> nn.Sequential:
    """A small convolutional network with batch normalisation."""
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 10)),
    )


class Digits:
    """The digits of a site, some labels more than others, and the test digits."""

    def __init__(self, site: int, sites: int) -> None:
        train, self.test = load(0, 1)
        images, labels = train.tensors
        chosen = labels.argsort(stable=True).chunk(sites)[site]
        self.images, self.labels = images[chosen], labels[chosen]

    def batch(self, count: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
        """Random digits of the site."""
        chosen = torch.randint(len(self.labels), (count,))
        return self.images[chosen], self.labels[chosen]

    def accuracy(self, model: nn.Module) -> Metrics:
        """The metric of a model."""
        images, labels = self.test.tensors
        return {"accuracy": ((model(images).argmax(1) == labels).float().mean().item(), len(labels))}


def batch_norm(site: int, sites: int) -> OwnModel:
    """Running means, gradients of four batches in a step, and SGD."""
    digits, model = Digits(site, sites), network_with_batch_norm()

    def train() -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with mingle.join(model, optimizer, name="cnn", evaluate=lambda: digits.accuracy(model)):
            batches = 0
            while True:
                images, labels = digits.batch()
                (functional.cross_entropy(model(images), labels) / 4).backward()
                batches += 1
                if batches % 4 == 0:
                    optimizer.step()
                    optimizer.zero_grad()

    return OwnModel(model, lambda: digits.accuracy(model), train)


class Adapter(nn.Module):
    """A frozen linear layer and a trained matrix of rank 4 beside it, as in LoRA."""

    def __init__(self, base: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The base layer and the adapter, added."""
        return self.base(x) + x @ self.a.T @ self.b.T


def adapters(site: int, sites: int) -> OwnModel:
    """Adapters above frozen layers, which are the same everywhere, with Adam."""
    torch.manual_seed(7)
    base = [nn.Linear(64, 64), nn.Linear(64, 10)]
    torch.manual_seed(site)
    digits = Digits(site, sites)
    model = nn.Sequential(nn.Flatten(), Adapter(base[0]), nn.ReLU(), Adapter(base[1]))

    def train() -> None:
        optimizer = torch.optim.Adam([parameter for parameter in model.parameters() if parameter.requires_grad], lr=3e-3)
        with mingle.join(model, optimizer, name="adapters", evaluate=lambda: digits.accuracy(model)):
            while True:
                images, labels = digits.batch()
                optimizer.zero_grad()
                functional.cross_entropy(model(images), labels).backward()
                optimizer.step()

    return OwnModel(model, lambda: digits.accuracy(model), train)


KINDS = {make.__name__: make for make in (character_gpt, batch_norm, adapters)}

if __name__ == "__main__":
    torch.set_num_threads(1)
    kind, site, sites = sys.argv[1:]
    torch.manual_seed(int(site))
    KINDS[kind](int(site), int(sites)).train()
