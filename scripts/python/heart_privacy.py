#!/usr/bin/env python3
"""Trains a logistic regression over masked sums at four hospitals, with noise that hides each patient, beside published results.

usage: scripts/python/heart_privacy.py [-h] [SPLITS]

The data are UCI Heart Disease, prepared as FLamby (Ogier du Terrail et al., NeurIPS 2022) publishes it: columns 10 to 12 dropped, rows
with a gap dropped, columns 2 and 6 one-hot without their first level, 66 % of each hospital to train on, features standardised by each
hospital's own training part. SPLITS (5) splits are drawn, with the seeds of the published runs (42, 43, ...), which had one split.

For each epsilon and delta of the published curve (MINGLE_HEART/published_dp.csv, where the metric is the mean of the accuracies at the four
hospitals) it prints the mean over seeds, the least and the most, of that curve and of this training.

  MINGLE_HEART=DIR   the folder with processed.*.data and published_dp.csv (../shared/data/flamby/heart)
  MINGLE_BIN=PATH    the program (mingle)
"""

from __future__ import annotations

import csv
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEART = Path(os.environ.get("MINGLE_HEART", ROOT / "../shared/data/flamby/heart"))
MINGLE = os.environ.get("MINGLE_BIN", "mingle")
HOSPITALS = ["cleveland", "hungarian", "switzerland", "va"]
FIRST_SEED = 42
PROBLEM = """kind = "training"
data = "csv:{{node}}.csv"
card = "card.json"
model = "softmax"
rounds = {rounds}
local_steps = 1
learning_rate = {rate}
evaluate_every = {rounds}
seed = {seed}
{privacy}"""
PRIVACY = """
[privacy]
protects = "sample"
clip = 1.0
epsilon_max = {epsilon}
delta = {delta}
"""
ROUNDS = 4
RATE = 2.0

Row = list[float]


def rows_of(hospital: str) -> list[tuple[Row, int]]:
    """The patients of a hospital without gaps: features and label."""
    rows = []
    with open(HEART / f"processed.{hospital}.data", newline="") as file:
        for cells in csv.reader(file):
            kept = [cell for place, cell in enumerate(cells) if not 10 <= place <= 12]
            if "?" in kept or "" in kept or "age" in kept:
                continue
            *features, label = (float(cell) for cell in kept)
            plain = [value for place, value in enumerate(features) if place not in (2, 6)]
            pain = [float(features[2] == level) for level in (2, 3, 4)]
            electrical = [float(features[6] == level) for level in (1, 2)]
            rows.append((plain + pain + electrical, int(label > 0)))
    return rows


def split(rows: list[tuple[Row, int]], seed: int) -> tuple[list[tuple[Row, int]], list[tuple[Row, int]]]:
    """Two thirds to train on and the rest, of each label, standardised by the former."""
    dice = random.Random(seed)
    train, test = [], []
    for label in (0, 1):
        of_label = [row for row in rows if row[1] == label]
        dice.shuffle(of_label)
        cut = round(0.66 * len(of_label))
        train += of_label[:cut]
        test += of_label[cut:]
    columns = list(zip(*(features for features, _ in train)))
    means = [statistics.fmean(column) for column in columns]
    deviations = [statistics.pstdev(column) or 1.0 for column in columns]

    def standardised(part: list[tuple[Row, int]]) -> list[tuple[Row, int]]:
        scale = lambda row: [(value - mean) / by for value, mean, by in zip(row, means, deviations)]  # noqa: E731
        return [(scale(features), label) for features, label in part]

    return standardised(train), standardised(test)


def write(path: Path, rows: list[tuple[Row, int]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"x{place}" for place in range(len(rows[0][0]))] + ["ill"])
        writer.writerows([*features, label] for features, label in rows)


def mingle(folder: Path, *arguments: str) -> str:
    return subprocess.run([MINGLE, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def prepare(folder: Path, seed: int) -> None:
    """The files of all hospitals, a plan, and a card that says nothing of any patient."""
    width = 0
    for hospital in HOSPITALS:
        train, test = split(rows_of(hospital), seed)
        write(folder / f"{hospital}.csv", train)
        write(folder / f"test-{hospital}.csv", test)
        width = len(train[0][0])
    # Columns of plus and minus one: the card then scales by about one, as the features need.
    dice = random.Random(0)
    made_up = [([dice.choice((-1.0, 1.0)) for _ in range(width)], place % 2) for place in range(4_000)]
    write(folder / "made-up.csv", made_up)
    mingle(folder, "data", "card", "--data", "csv:made-up.csv", "-o", "card.json")
    (folder / "links.txt").write_text("".join(
        f"{one} {other}\n" for place, one in enumerate(HOSPITALS) for other in HOSPITALS[place + 1 :]
    ))
    mingle(folder, "plan", "make", "--topology", "links.txt", "-o", "plan.json")


def accuracy(folder: Path) -> float:
    """The mean of the accuracies at the four hospitals."""
    accuracies = []
    for hospital in HOSPITALS:
        labels = [line[-1] for line in csv.reader(open(folder / f"test-{hospital}.csv"))][1:]
        out = mingle(folder, "predict", "found/model.safetensors", "--data", f"csv:test-{hospital}.csv")
        lines = list(csv.reader(out.splitlines()))
        place = 0
        found = [line[place] for line in lines[1:]]
        accuracies.append(statistics.fmean(one == other for one, other in zip(labels, found, strict=True)))
    return statistics.fmean(accuracies)


def train(folder: Path, seed: int, epsilon: str, delta: str) -> float:
    privacy = PRIVACY.format(epsilon=epsilon, delta=delta) if epsilon else ""
    # Without privacy each hospital's change is one step on all of its samples.
    text = PROBLEM.format(rounds=ROUNDS, rate=RATE, seed=seed, privacy=privacy)
    (folder / "problem.toml").write_text(text if epsilon else text + "batch_size = 4096\n")
    mingle(folder, "solve", "--problem", "problem.toml", "--plan", "plan.json", "-o", "found")
    return accuracy(folder)


def spread(values: list[float]) -> str:
    return f"{statistics.fmean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def main() -> None:
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return
    splits = int(sys.argv[1]) if sys.argv[1:] else 5
    published: dict[tuple[str, str], list[float]] = {}
    with open(HEART / "published_dp.csv", newline="") as file:
        for row in csv.DictReader(file):
            published.setdefault((row["e"], row["d"]), []).append(float(row["perf"]))
    found: dict[tuple[str, str], list[float]] = {key: [] for key in published}
    for seed in range(FIRST_SEED, FIRST_SEED + splits):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepare(folder, seed)
            for epsilon, delta in published:
                found[epsilon, delta].append(train(folder, seed, epsilon, delta))
    print("| epsilon | delta | published | over masked sums |\n| --- | --- | --- | --- |")
    for (epsilon, delta), values in published.items():
        print(f"| {epsilon or 'none'} | {delta or '-'} | {spread(values)} | {spread(found[epsilon, delta])} |")


if __name__ == "__main__":
    main()
