#!/usr/bin/env python3
"""Measures how often momentum across rounds raises the loss, over optimizers, learning rates and local steps.

usage: scripts/python/momentum.py [-h] [SEEDS] [MOMENTUM...]

Simulates 60 rounds of 8 nodes (digits, mlp:hidden=32) with each of SEEDS seeds (2), without momentum and with each MOMENTUM (0.3 0.4 0.5):
4 plans, data dealt by iid and by dirichlet:0.3, SGD, SGD with momentum 0.9 and AdamW, each with 3 rates and 1, 4 and 20 local steps, which is
216 pairs of runs a seed. For each momentum prints the pairs, in how many the worst node's loss is more than 1 % higher with it, the median of
the loss with it over that without, and the pairs in which it raised the loss most.

  MINGLE_BIN=PATH   use this binary, and do not build one
"""

from __future__ import annotations

import itertools
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/src"))

import mingle  # noqa: E402

PLANS = [("complete:n=8", "exact-average"), ("complete:n=8", "one-peer-exponential"), ("ring:n=8", "d-psgd"), ("complete:n=8", "nguyen-he")]
SPLITS = ["iid", "dirichlet:0.3"]
TRAININGS = [
    *(("sgd", {}, rate) for rate in (0.05, 0.2, 0.5)),
    *(("sgd 0.9", {"momentum": 0.9}, rate) for rate in (0.005, 0.02, 0.1)),
    *(("adamw", {"optimizer": "adamw"}, rate) for rate in (0.001, 0.003, 0.01)),
]
LOCAL_STEPS = [1, 4, 20]
MOST_NAMED = 5


def worst_loss(pair: tuple, momentum: str) -> float:
    """The loss of the worst node after the last round."""
    seed, (topology, method), split, (_, optimizer, rate), steps = pair
    simulation = mingle.simulate(
        mingle.plan(topology, method, local_steps=steps, seed=0),
        rounds=60,
        model="mlp:hidden=32",
        learning_rate=rate,
        split=split,
        seed=seed,
        momentum_across_rounds=momentum,
        evaluate_every=60,
        options={"last_rounds": "train", **optimizer},
    )
    return simulation.rows[-1]["worst_loss"]


def main() -> None:
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return
    seeds = int((sys.argv[1:2] or ["2"])[0])
    momenta = sys.argv[2:] or ["0.3", "0.4", "0.5"]
    if "MINGLE_BIN" not in os.environ:
        subprocess.run(["cargo", "build", "--release", "--locked", "-p", "mingle"], cwd=ROOT, check=True)
        os.environ["MINGLE_BIN"] = str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/mingle")
    pairs = list(itertools.product(range(seeds), PLANS, SPLITS, TRAININGS, LOCAL_STEPS))
    without = [worst_loss(pair, "off") for pair in pairs]
    print("momentum  pairs  higher  median")
    for momentum in momenta:
        ratios = [worst_loss(pair, momentum) / loss for pair, loss in zip(pairs, without)]
        higher = sorted(((ratio, pair) for ratio, pair in zip(ratios, pairs) if ratio > 1.01), key=lambda found: -found[0])
        print(f"{momentum:8} {len(pairs):6} {len(higher):7} {statistics.median(ratios):7.3f}")
        for ratio, (seed, (_, method), split, (optimizer, _, rate), steps) in higher[:MOST_NAMED]:
            print(f"          {ratio:.3f}: {method}, {split}, {optimizer} at {rate}, {steps} local steps, seed {seed}")


if __name__ == "__main__":
    main()
