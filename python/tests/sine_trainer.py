"""The training of one of several sites that learn the sine together, as peers or simulated: `python sine_trainer.py SITE SITES`."""

from __future__ import annotations

import sys
from collections.abc import Callable

import mingle
import torch
from torch import nn


def make_trainer(site: int, sites: int) -> tuple[nn.Module, Callable[[], object]]:
    """The model of a site, and a step on its part of the range from -3 to 3. Momentum and batches are the site's own."""
    torch.manual_seed(site)
    ends = torch.linspace(-3, 3, sites + 1)
    x = torch.rand(200, 1) * (ends[site + 1] - ends[site]) + ends[site]
    y = torch.sin(x)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    batches = torch.Generator().manual_seed(site)

    def step() -> None:
        chosen = torch.randint(len(x), (16,), generator=batches)
        optimizer.zero_grad()
        (model(x[chosen]) - y[chosen]).square().mean().backward()
        optimizer.step()

    model.optimizer = optimizer  # type: ignore[assignment]
    return model, step


def error(model: nn.Module) -> dict[str, float]:
    """The mean squared error over the whole range."""
    x = torch.linspace(-3, 3, 101).unsqueeze(1)
    return {"error": (model(x) - torch.sin(x)).square().mean().item()}


def main() -> None:
    torch.set_num_threads(1)
    site, sites = (int(word) for word in sys.argv[1:])
    model, step = make_trainer(site, sites)
    with mingle.join(model, model.optimizer, name="sine"):  # type: ignore[arg-type]
        while True:
            step()


if __name__ == "__main__":
    main()
