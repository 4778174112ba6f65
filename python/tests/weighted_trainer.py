"""A site that draws one number to its own target: `python weighted_trainer.py TARGET SAMPLES WEIGHT`. It prints the number of the final model."""

from __future__ import annotations

import sys

import mingle
import torch


def main() -> None:
    torch.set_num_threads(1)
    target, samples, weight = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    model = torch.nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    with mingle.join(model, optimizer, name="number", samples=samples, weight=weight):
        while True:
            optimizer.zero_grad()
            (model.weight - target).square().sum().backward()
            optimizer.step()
    print(f"number {model.weight.item():.6f}")


if __name__ == "__main__":
    main()
