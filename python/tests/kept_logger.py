"""Loggers for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mingle.loggers import Logger


class Kept(Logger):
    """A logger that keeps what it gets."""

    def __init__(self) -> None:
        self.records: list[tuple[int, dict[str, float]]] = []
        self.calls: list[str] = []

    def open(self) -> None:
        self.calls.append("open")

    def log(self, values: Mapping[str, float], round: int) -> None:
        self.records.append((round, dict(values)))

    def close(self) -> None:
        self.calls.append("close")

    def of(self, name: str) -> dict[int, float]:
        """The values of this name by round."""
        return {round: values[name] for round, values in self.records if name in values}


class Lines(Logger):
    """A logger that appends lines `[round, values]` to a file, for another process to read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def log(self, values: Mapping[str, float], round: int) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps([round, values]) + "\n")


def read_lines(path: Path) -> dict[int, dict[str, list[float]]]:
    """The values that a `Lines` wrote, by round and name; a name may have several where a peer was ahead of its script."""
    found: dict[int, dict[str, list[float]]] = {}
    for line in path.read_text().splitlines():
        round, values = json.loads(line)
        for name, value in values.items():
            found.setdefault(round, {}).setdefault(name, []).append(value)
    return found
