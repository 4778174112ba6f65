"""Checks of swarms that `mingle demo` runs: do the final models agree, and what does a wait policy cost? See scripts/check-learning --help.

usage: python check_learning.py MINGLE agreement|waiting|images SEED...
       images needs FASHION_MNIST, the folder of its four files
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from statistics import fmean, median
from typing import Any

REMAINING = 0.1
"""Largest disagreement in the last round, as a part of that while the swarm trained: what peers report, so with their neighbours."""
BELOW_MEAN_MODEL = 0.02
"""Largest distance of the worst accuracy below that of the mean of all models: 7 of 360 digits."""
BELOW_TRAINING = 0.01
"""Largest loss of accuracy of a peer against its last evaluations: on 360 digits two such numbers differ by so much by chance."""
BELOW_SYNC = 0.015
SLOWEST_OF_SYNC = 0.9
"""Least parcels in a second, relative to sync."""
TURNS = 3
"""Runs by each policy to measure that: two equal runs on a busy machine differ by a fifth."""
POLICIES = ("sync", "bounded:4", "async")
SORTED = ("--split", "label-sorted", "--local-steps", "5")
AGREEMENT = (("label-sorted", 600, SORTED), ("64 peers", 100, ("--peers", "64", "--evaluate-every", "10")))
"""Runs by name, with their rounds and options."""
IMAGES = ("--peers", "4", "--model", "cnn", "--learning-rate", "0.05", "--evaluate-every", "5", *SORTED)
IMAGE_ROUNDS = 60
PYTHON = Path(__file__).parents[2] / "python"
PACKAGE = PYTHON / "src"
TRAINING_ROUNDS = PYTHON / "tests/training_rounds.py"
IMAGE_COUNTS = {"train": 6000, "t10k": 500}
"""Images that are trained on and tested with: the first ones of each file."""


@dataclass
class Demo:
    """A run of `mingle demo` in a folder, after its end."""

    mingle: str
    folder: Path
    rounds: int
    data: str = "digits"

    @property
    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return summary

    def homes(self) -> list[Path]:
        return sorted((self.folder / "peers").iterdir(), key=lambda home: int(home.name))

    def evaluations(self, home: Path) -> list[dict[str, Any]]:
        """A peer's evaluations."""
        events = [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
        return [event for event in events if event["event"] == "evaluated"]

    def while_training(self, home: Path) -> list[dict[str, Any]]:
        """A peer's evaluations while it trained: without those after rounds that only mix."""
        return [event for event in self.evaluations(home) if event["round"] <= self.training_rounds]

    @cached_property
    def training_rounds(self) -> int:
        """The number of rounds that train, before those that only mix: what scripts are told in a simulated run of the same plan. Both wait as by
        default."""
        script = f"PYTHONPATH={shlex.quote(str(PACKAGE))} exec {shlex.quote(sys.executable)} {shlex.quote(str(TRAINING_ROUNDS))}"
        plan = str(self.homes()[0] / "plan.json")
        command = [self.mingle, "simulate", "--plan", plan, "--rounds", str(self.rounds), "--trainer", script]
        ended = subprocess.run(command, capture_output=True, text=True)
        found = set(re.findall(r"training rounds: (\d+)", ended.stderr))
        if ended.returncode or len(found) != 1:
            sys.exit(f"{shlex.join(command)} ended with {ended.returncode}: {ended.stderr}")
        return int(found.pop())

    def final_accuracies(self) -> list[float]:
        return [json.loads((home / "summary.json").read_text())["metrics"]["accuracy"] for home in self.homes()]

    def mean_model_accuracy(self, seed: str) -> float:
        """Accuracy of the mean of all final models, on the same held-out samples."""
        files = [(home / "model.safetensors").read_bytes() for home in self.homes()]
        heads = [8 + struct.unpack("<Q", file[:8])[0] for file in files]
        models = [array("f", file[head:]) for file, head in zip(files, heads, strict=True)]
        averaged = array("f", (fmean(column) for column in zip(*models, strict=True)))
        file = self.folder / "mean.safetensors"
        file.write_bytes(files[0][: heads[0]] + averaged.tobytes())
        output = run(self.mingle, "eval", "--json", "--seed", seed, "--data", self.data, str(file))
        accuracy: float = json.loads(output)["accuracy"]
        return accuracy


def run(mingle: str, *arguments: str) -> str:
    """Runs a command of the program to its end, and returns what it prints."""
    ended = subprocess.run([mingle, *arguments], capture_output=True, text=True)
    if ended.returncode:
        sys.exit(f"{mingle} {' '.join(arguments)} ended with {ended.returncode}: {ended.stderr}")
    return ended.stdout


def demo(mingle: str, folder: Path, rounds: int, *options: str, data: str = "digits") -> Demo:
    run(mingle, "demo", "--json", "--no-comparison", "--rounds", str(rounds), "--data", data, "--output", str(folder), *options)
    return Demo(mingle, folder, rounds, data)


def root_mean_square(numbers: list[float]) -> float:
    return sqrt(fmean(number * number for number in numbers))


def told(holds: bool) -> str:
    return "yes" if holds else "NO"


def heads_of_images(source: Path, into: Path) -> Path:
    """Writes the first images of Fashion-MNIST, or of another folder with the file names of MNIST, into a new folder."""
    into.mkdir()
    for name, count in IMAGE_COUNTS.items():
        for kind, head, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            with gzip.open(source / f"{name}-{kind}-ubyte.gz") as file:
                whole = file.read(head + count * size)
            (into / f"{name}-{kind}-ubyte").write_bytes(whole[:4] + struct.pack(">I", count) + whole[8:])
    return into


def check_images(mingle: str, folder: Path, seeds: list[str]) -> bool:
    """A network of 1.66 million parameters at four sites, each with two or three of the ten classes."""
    source = os.environ.get("FASHION_MNIST")
    if source is None:
        sys.exit("images needs FASHION_MNIST, the folder of the four files of Fashion-MNIST")
    data = f"idx:{heads_of_images(Path(source), folder / 'images')}"
    return check_runs(mingle, folder, seeds, (("images", IMAGE_ROUNDS, IMAGES),), data)


def check_agreement(mingle: str, folder: Path, seeds: list[str]) -> bool:
    """Swarms on digits."""
    return check_runs(mingle, folder, seeds, AGREEMENT, "digits")


def check_runs(mingle: str, folder: Path, seeds: list[str], runs: Sequence[tuple[str, int, tuple[str, ...]]], data: str) -> bool:
    """Prints a row for each run; returns True if all end in agreement."""
    print("| run | seed | before: accuracy, disagreement | final: mean, worst, of the mean model | disagreement | of the files | holds |")
    print("| --- | ---: | --- | --- | ---: | ---: | --- |", flush=True)
    every = True
    for name, rounds, options in runs:
        for seed in seeds:
            swarm = demo(mingle, folder / "demo", rounds, "--seed", seed, *options, data=data)
            latest = [swarm.while_training(home)[-2:] for home in swarm.homes()]
            before = [fmean(event["metrics"]["accuracy"] for event in of_peer) for of_peer in latest]
            disagreement = root_mean_square([of_peer[-1]["disagreement"] for of_peer in latest])
            remaining = root_mean_square([swarm.evaluations(home)[-1]["disagreement"] for home in swarm.homes()])
            final, of_mean = swarm.final_accuracies(), swarm.mean_model_accuracy(seed)
            holds = (
                remaining <= REMAINING * disagreement
                and min(final) >= of_mean - BELOW_MEAN_MODEL
                and all(after >= earlier - BELOW_TRAINING for after, earlier in zip(final, before, strict=True))
            )
            print(
                f"| {name} | {seed} | {fmean(before):.3f}, {disagreement:.1e} | {fmean(final):.3f}, {min(final):.3f}, {of_mean:.3f} "
                f"| {remaining:.1e} | {swarm.summary['swarm']['disagreement']:.1e} | {told(holds)} |",
                flush=True,
            )
            every = every and holds
    return every


def parcels_a_second(swarm: Demo) -> float:
    seconds: float = swarm.summary["seconds"] - swarm.summary["joined"]["seconds"]
    parcels: int = sum(swarm.summary["encoding"]["parcels"].values())
    return parcels / seconds


def rates_of_policies(mingle: str, folder: Path, seed: str) -> dict[str, float]:
    """Parcels a second by each policy: the median of short runs that take turns, since other programs may be at work."""
    rates: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    for _ in range(TURNS):
        for policy in POLICIES:
            swarm = demo(mingle, folder / "demo", 80, "--seed", seed, "--wait", policy, *SORTED)
            rates[policy].append(parcels_a_second(swarm))
    return {policy: median(of_policy) for policy, of_policy in rates.items()}


def check_waiting(mingle: str, folder: Path, seeds: list[str]) -> bool:
    """Prints a row for each policy and seed; returns True if all hold."""
    print("| seed | --wait | accuracy mean, worst | final disagreement | parcels a second | holds |")
    print("| ---: | --- | --- | ---: | ---: | --- |", flush=True)
    every = True
    for seed in seeds:
        rates = rates_of_policies(mingle, folder, seed)
        by_sync: tuple[float, float] | None = None
        for policy in POLICIES:
            found = demo(mingle, folder / "demo", 400, "--seed", seed, "--wait", policy, *SORTED).summary["swarm"]
            accuracy, worst = found["mean_accuracy"], found["worst_accuracy"]
            by_sync = by_sync or (accuracy, worst)
            is_as_good = accuracy >= by_sync[0] - BELOW_SYNC and worst >= by_sync[1] - BELOW_SYNC
            holds = is_as_good and rates[policy] >= SLOWEST_OF_SYNC * rates["sync"]
            print(
                f"| {seed} | {policy} | {accuracy:.3f}, {worst:.3f} | {found['disagreement']:.1e} | {rates[policy]:.0f} | {told(holds)} |",
                flush=True,
            )
            every = every and holds
    return every


CHECKS = {"agreement": check_agreement, "waiting": check_waiting, "images": check_images}


def main() -> int:
    mingle, check, *seeds = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="mingle-learning-") as name:
        return 0 if CHECKS[check](mingle, Path(name), seeds) else 1


if __name__ == "__main__":
    sys.exit(main())
