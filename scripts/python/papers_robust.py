"""The experiments of DRFL (Bai et al., section 6): models of three sites under noise on the test data."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from papers_run import Line, Run, spread

SITES = 3
DRAWS = 10
"""Draws of the noise for each test row."""
NAMES = {"robust": "DRFL", "usual": "Standard"}
"""Names in the paper of the models that `mingle solve --compare` reports; the others have the same."""

Sample = tuple[list[float], str]
Noise = tuple[float, float]
"""Mean and standard deviation."""


@dataclass
class Samples:
    """Scaled columns from -1 to 1 and targets, as cells of a table."""

    rows: list[Sample]
    labels: tuple[str, str] | None


def heart(run: Run) -> Samples:
    lines = (run.root / "methods/solver/data/heart.csv").read_text().splitlines()[1:]
    cells = [line.split(",") for line in lines]
    return Samples(scaled([([float(cell) for cell in row[:-1]], row[-1]) for row in cells]), ("0", "1"))


def breast_cancer(run: Run) -> Samples:
    """Wolberg's patients without those with a missing cell: 683 with nine columns."""
    lines = run.published("tables/breast-cancer-wisconsin.data").read_text().split()
    cells = [line.split(",") for line in lines if "?" not in line]
    return Samples(scaled([([float(cell) for cell in row[1:-1]], row[-1]) for row in cells]), ("2", "4"))


def abalone(run: Run) -> Samples:
    cells = [line.split(",") for line in run.published("tables/abalone.data").read_text().split()]
    rows = [([float("MFI".index(row[0])), *map(float, row[1:-1])], row[-1]) for row in cells]
    return Samples(scaled(rows), None)


DATA = {"heart": heart, "breast-cancer": breast_cancer, "abalone": abalone}


def scaled(rows: list[Sample]) -> list[Sample]:
    """The rows with each column brought to -1 to 1."""
    columns = list(zip(*(row for row, _ in rows), strict=True))
    ranges = [(min(column), max(column)) for column in columns]
    unit = [[2 * (value - least) / (most - least) - 1 for value, (least, most) in zip(row, ranges, strict=True)] for row, _ in rows]
    return [(row, target) for row, (_, target) in zip(unit, rows, strict=True)]


def noise(run: Run, settings: dict[str, Any]) -> list[Line]:
    """Accuracy or mean squared error of all methods under noise, over splits of the data."""
    samples = DATA[settings["data"]](run)
    run.of_mingle("plan", "make", "--topology", f"complete:n={SITES}", "--method", "clique-phi", "-o", run.folder / "plan.json")
    (run.folder / "problem.toml").write_text(problem_file(settings, samples))
    scores: dict[str, dict[str, list[float]]] = {}
    for seed in range(settings["splits"]):
        test = deal(run.folder, samples, settings, seed)
        for sweep, points in settings["sweeps"].items():
            for mean, deviation in points:
                write_tests(run.folder, test, (mean, deviation), seed)
                by_model = scores.setdefault(f"{sweep}: mean {mean:g}, SD {deviation:g}", {})
                for name, score in compared(run).items():
                    by_model.setdefault(name, []).append(score)
    digits = 3 if samples.labels else 2
    return [
        Line(what, "; ".join(f"{NAMES.get(name, name)} {spread(values, digits)}" for name, values in reversed(by_model.items())))
        for what, by_model in scores.items()
    ]


def problem_file(settings: dict[str, Any], samples: Samples) -> str:
    lines = ['kind = "robust-classification"', f"labels = {json.dumps(samples.labels)}", 'support = "box"', "clip = true"]
    if not samples.labels:
        lines = ['kind = "robust-regression"', 'loss = "huber"', "epsilon = 1.35", 'support = "unbounded"']
    lines += ['data = "train-{node}.csv"', 'target = "target"', 'scaling = "none"', 'averaging = "exact"']
    lines += [f"{key} = {json.dumps(settings[key])}" for key in ("radius", "kappa", "theta", "intercept")]
    return "\n".join(lines) + "\n"


def deal(folder: Path, samples: Samples, settings: dict[str, Any], seed: int) -> list[list[Sample]]:
    """Writes the training tables of the sites, the first of which measures with noise, and returns their test rows."""
    dice = random.Random(seed)
    rows = samples.rows[:]
    dice.shuffle(rows)
    split = round(0.6 * len(rows))
    for site in range(SITES):
        own = rows[:split][site::SITES]
        if settings.get("imbalanced") and site < 2:
            own = with_half_of_the_minority(own, dice)
        if site == 0:
            own = [(off(row, settings["training_noise"], dice), target) for row, target in own]
        write(folder / f"train-node-{site}.csv", own)
    return [rows[split:][site::SITES] for site in range(SITES)]


def with_half_of_the_minority(rows: list[Sample], dice: random.Random) -> list[Sample]:
    labels = [target for _, target in rows]
    rare = min(sorted(set(labels)), key=labels.count)
    minority = [row for row in rows if row[1] == rare]
    return [row for row in rows if row[1] != rare] + dice.sample(minority, len(minority) // 2)


def off(row: list[float], by: Noise, dice: random.Random) -> list[float]:
    return [value + dice.gauss(by[0], by[1]) for value in row]


def write_tests(folder: Path, test: list[list[Sample]], by: Noise, seed: int) -> None:
    dice = random.Random(f"{seed} {by[0]:g} {by[1]:g}")
    for site, rows in enumerate(test):
        write(folder / f"test-node-{site}.csv", [(off(row, by, dice), target) for row, target in rows for _ in range(DRAWS)])


def write(path: Path, rows: list[Sample]) -> None:
    names = [f"column-{at}" for at in range(len(rows[0][0]))]
    lines = [",".join([*names, "target"])] + [",".join([*map(repr, row), target]) for row, target in rows]
    path.write_text("\n".join(lines) + "\n")


def compared(run: Run) -> dict[str, float]:
    """The score of each model on the test tables as they are."""
    found = run.folder / "found"
    given = ["--problem", str(run.folder / "problem.toml"), "--plan", str(run.folder / "plan.json")]
    run.of_mingle("solve", *given, "--compare", str(run.folder / "test-{node}.csv"), "-o", str(found))
    comparison = json.loads((found / "comparison.json").read_text())
    as_it_is = comparison["noises"].index({"mean": 0.0, "deviation": 0.0})
    return {model["name"]: model["mean"][as_it_is] for model in comparison["models"]}
