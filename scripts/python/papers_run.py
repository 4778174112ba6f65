"""One run of a table or figure: its folder, its data and its commands."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any


class MissingData(Exception):
    """A file of published data that is not there."""


class CommandFailed(Exception):
    """A command that did not succeed."""


@dataclass
class Line:
    """A line of a result."""

    what: str
    here: str


@dataclass
class Run:
    """The surroundings of a measure."""

    mingle: str
    root: Path
    data: Path
    folder: Path
    commands: list[str] = field(default_factory=list)

    def published(self, name: str) -> Path:
        """A file or folder of published data; with a prefix of several files, such as planetoid/cora, the prefix."""
        path = self.data / name
        if not path.exists() and not list(path.parent.glob(path.name + ".*")):
            raise MissingData(f"{path} is missing: docs/papers.md has its origin; --data names another folder")
        return path

    def source(self, name: str) -> str:
        """A topology: a generator, or a file of the repository."""
        return name if ":" in name else str(self.root / name)

    def of_mingle(self, *arguments: str | Path) -> str:
        """The standard output of the program."""
        return self.output([self.mingle, *map(str, arguments)])

    def of_example(self, package: str, example: str, *arguments: str | Path) -> str:
        """The standard output of an example of the workspace."""
        built = os.environ.get("EXAMPLES")
        cargo = ["cargo", "run", "--release", "--locked", "--quiet", "--package", package, "--example", example, "--"]
        return self.output([*([f"{built}/{example}"] if built else cargo), *map(str, arguments)])

    def output(self, command: list[str]) -> str:
        shown = shlex.join(["mingle" if part == self.mingle else part for part in command])
        self.commands.append(shown)
        print(f"$ {shown}", file=sys.stderr, flush=True)
        done = subprocess.run(command, cwd=self.root, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise CommandFailed(f"exit status {done.returncode} from: {shown}")
        return done.stdout

    def version(self) -> str:
        return subprocess.run([self.mingle, "--version"], capture_output=True, text=True, check=False).stdout.strip()

    def plan(self, name: str, topology: str, method: str, *options: str) -> dict[str, Any]:
        """A plan, which is left in the folder, as an object."""
        path = self.folder / f"{name}.json"
        self.of_mingle("plan", "make", "--topology", self.source(topology), "--method", method, *options, "-o", path)
        plan: dict[str, Any] = json.loads(path.read_text())
        return plan


def slots_of_round(plan: dict[str, Any]) -> float:
    """Slots from one training to the next."""
    rounds: float = len(plan["steps"]) / plan["round_length"]
    slots: float = plan["forecast"]["slots_per_period"] / rounds
    return slots


def spread(values: list[float], digits: int) -> str:
    """The mean, and the deviation where there are several values."""
    mean = f"{fmean(values):.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {stdev(values):.{digits}f}"
