#!/usr/bin/env python3
"""Measures how many fewer bytes reach the loss of today's simplest way: exact averages in every round, in f32, without momentum.

usage: scripts/python/savings.py [-h] [SEEDS] [ROUNDS] [SPLIT...]

Simulates 8 nodes (digits, mlp:hidden=32 with 2,410 parameters, 20 local steps of SGD at 0.05 in a round) for ROUNDS rounds (40) with each of
SEEDS seeds (3), on data dealt by each SPLIT (iid dirichlet:0.3). For each way prints, over seeds: the first round that ends with an exact
average and in which the worst node has at most the loss that the simplest way has after all its rounds, the loss of the worst node there over
that of the mean, and the bytes of the simplest way over those sent until then.

  MINGLE_BIN=PATH   use this binary, and do not build one
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/src"))

import mingle  # noqa: E402

SIMPLEST = ("exact-average", "f32", "off", 1)
PERIODIC = "periodic-average:inner=one-peer-exponential,k=3"
WAYS = [
    ("exact-average", "int4", "0.8", 1),
    ("exact-average", "int3", "0.8", 1),
    (PERIODIC, "int4", "0.8", 4),
    (PERIODIC, "int3", "0.8", 4),
]


def rows_of(way: tuple[str, str, str, int], split: str, seed: int, rounds: int) -> list[dict[str, float]]:
    """The rounds of a training that end with an exact average."""
    method, codec, momentum, period = way
    plan = mingle.plan("complete:n=8", method, local_steps=20, seed=0)
    simulation = mingle.simulate(
        plan,
        rounds=rounds,
        model="mlp:hidden=32",
        learning_rate=0.05,
        split=split,
        seed=seed,
        codec=codec,
        momentum_across_rounds=momentum,
        evaluate_every=period,
        options={"last_rounds": "train"},
    )
    return simulation.rows


def main() -> None:
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return
    seeds, rounds = (int(word) for word in (sys.argv[1:3] + ["3", "40"][len(sys.argv[1:3]) :]))
    if "MINGLE_BIN" not in os.environ:
        subprocess.run(["cargo", "build", "--release", "--locked", "-p", "mingle"], cwd=ROOT, check=True)
        os.environ["MINGLE_BIN"] = str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/mingle")
    print("split            way                       rounds          worst/mean  times fewer bytes (least to most)")
    for split in sys.argv[3:] or ["iid", "dirichlet:0.3"]:
        ends = [rows_of(SIMPLEST, split, seed, rounds)[-1] for seed in range(seeds)]
        for way in WAYS:
            reached = []
            for seed, end in enumerate(ends):
                row = next((row for row in rows_of(way, split, seed, rounds) if row["worst_loss"] <= end["loss"]), None)
                reached.append(row and (row["round"], row["worst_loss"] / row["loss"], end["link_bytes"] / row["link_bytes"]))
            print(f"{split:15}  {way[0].partition(':')[0]:16} {way[1]:5} {way[2]:3} {told(reached)}")


def told(reached: list[tuple[float, float, float] | None]) -> str:
    """What was reached over seeds, in words."""
    if None in reached:
        return f"not reached in {reached.count(None)} of {len(reached)} runs"
    rounds, worst, fewer = zip(*filter(None, reached))
    return f"{', '.join(map(str, rounds)):15} {max(worst):10.3f}  {statistics.median(fewer):.1f} ({min(fewer):.1f} to {max(fewer):.1f})"


if __name__ == "__main__":
    main()
