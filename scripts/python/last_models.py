#!/usr/bin/env python3
"""Measures how a model swings from round to round where all sites take part in an exact average, and what a mean of the last models is worth.

usage: scripts/python/last_models.py [-h] [SEEDS]

Trains the small convolutional network of the tests on digits, sorted by label over three sites, in this process: five local steps in a round,
sixty rounds, for each of SEEDS seeds (3) and several optimizers and normalisations. Each round of the last thirty is taken for the end of a
run. For means of the last 1, 2, 3, 4, 5 and 8 models prints in how many of these ends the mean is worse than the mean of the evaluations
four and fourteen rounds before by more than four of 360 digits, and the worst difference.

Needs PyTorch and numpy, and no peer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python/src"), str(ROOT / "python/tests"), str(ROOT / "python/examples")]

from own_models import Digits, network_with_batch_norm  # noqa: E402

SITES, STEPS, ROUNDS = 3, 5, 60
MEANS = (1, 2, 3, 4, 5, 8)
NOISE = 4 / 360
WAYS = [
    ("batch", 0.05, 0.9),
    ("none", 0.05, 0.9),
    ("group", 0.05, 0.9),
    ("batch", 0.1, 0.9),
    ("batch", 0.5, 0.0),
]
State = dict[str, torch.Tensor]


def network(norm: str) -> nn.Module:
    """The network with another normalisation, or none."""
    layers = list(network_with_batch_norm())
    if norm == "none":
        layers = [layer for layer in layers if not isinstance(layer, nn.BatchNorm2d)]
    elif norm == "group":
        layers = [nn.GroupNorm(4, layer.num_features) if isinstance(layer, nn.BatchNorm2d) else layer for layer in layers]
    return nn.Sequential(*layers)


def mean(states: list[State]) -> State:
    """The mean of models, normalisation's running means and variances among them."""
    return {name: torch.stack([state[name].float() for state in states]).mean(0).to(tensor.dtype) for name, tensor in states[0].items()}


def rounds(norm: str, rate: float, momentum: float, sites: list[Digits]) -> Iterator[State]:
    """The mean model after each round."""
    models = [network(norm) for _ in sites]
    optimizers = [torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum) for model in models]
    state = models[0].state_dict()
    for _ in range(ROUNDS):
        for site, model, optimizer in zip(sites, models, optimizers, strict=True):
            model.load_state_dict(state)
            for _ in range(STEPS):
                images, labels = site.batch()
                optimizer.zero_grad()
                functional.cross_entropy(model(images), labels).backward()
                optimizer.step()
        state = mean([{name: tensor.clone() for name, tensor in model.state_dict().items()} for model in models])
        yield state


def differences(states: list[State], model: nn.Module, digits: Digits) -> dict[int, list[float]]:
    """By the number of models in the mean, the accuracy at each end less that of the evaluations before."""

    def accuracy(state: State) -> float:
        model.load_state_dict(state)
        model.eval()
        with torch.no_grad():
            return digits.accuracy(model)["accuracy"][0]

    accuracies = [accuracy(state) for state in states]
    found: dict[int, list[float]] = {models: [] for models in MEANS}
    for end in range(ROUNDS // 2, ROUNDS):
        before = (accuracies[end - 4] + accuracies[end - 14]) / 2
        for models in MEANS:
            found[models].append(accuracy(mean(states[end + 1 - models : end + 1])) - before)
    return found


def main() -> None:
    """Prints the table."""
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__)
        return
    torch.set_num_threads(1)
    sites = [Digits(site, SITES) for site in range(SITES)]
    print("normalisation, rate, momentum | " + " | ".join(f"mean of {models}" for models in MEANS))
    for norm, rate, momentum in WAYS:
        found: dict[int, list[float]] = {models: [] for models in MEANS}
        for seed in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
            torch.manual_seed(seed)
            for models, gains in differences(list(rounds(norm, rate, momentum, sites)), network(norm), sites[0]).items():
                found[models].extend(gains)
        cells = [f"{sum(gain < -NOISE for gain in gains)} of {len(gains)}, {min(gains):+.3f}" for gains in found.values()]
        print(f"{norm}, {rate}, {momentum} | " + " | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
