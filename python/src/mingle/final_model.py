"""The final model that a peer left in its home, for a trainer that was still at work when the run ended.

A peer whose run is over serves its model for some seconds and ends. It writes `model.safetensors` before that: eight bytes with the length
of a JSON object, that object with type, shape and offsets of each tensor, and the tensors.
"""

from __future__ import annotations

import json
import math
import os
import time

from mingle.client import Order
from mingle.layout import Layout

LONGEST_HEADER_BYTES = 100_000_000
WIDTHS = {"F32": 4, "BF16": 2}
"""Bytes of a number, by its type."""


def run_ended_s_ago(home: str) -> float | None:
    """Seconds since a run in this home ended; None where none has. The summary is the last file that a peer writes."""
    try:
        return max(0.0, time.time() - os.stat(os.path.join(home, "summary.json")).st_mtime)
    except OSError:
        return None


class ModelFile:
    """A file in the format of safetensors whose tensors are all f32, or all bf16 where a follower wanted that.

    Raises `OSError` where it cannot be read, `ValueError`, `KeyError` or `TypeError` where it is no such file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > LONGEST_HEADER_BYTES:
                raise ValueError("its header has no sensible length")
            try:
                header = json.loads(file.read(length))
            except ValueError:
                raise ValueError("it does not begin with a header of safetensors; a file of torch.save is read by torch.load") from None
        if not isinstance(header, dict):
            raise ValueError("its header is no JSON object")
        self.metadata: dict[str, str] = dict(header.pop("__metadata__", None) or {})
        """What the header says beside the tensors."""
        if other := [name for name, found in header.items() if found["dtype"] not in WIDTHS]:
            raise ValueError(f"`{other[0]}` is {header[other[0]]['dtype']}, where runs write F32 or BF16")
        self.dtypes: dict[str, str] = {name: found["dtype"] for name, found in header.items()}
        """Type of each tensor, F32 or BF16, by its name."""
        self._begins = {name: 8 + length + int(found["data_offsets"][0]) for name, found in header.items()}
        self.shapes: dict[str, tuple[int, ...]] = {name: tuple(int(n) for n in found["shape"]) for name, found in header.items()}
        """Shape of each tensor, by its name."""

    def read_into(self, name: str, part: memoryview) -> None:
        """Reads a tensor into `part`, which has its length in bytes."""
        with open(self._path, "rb") as file:
            file.seek(self._begins[name])
            if file.readinto(part) != len(part):
                raise ValueError(f"it ends within `{name}`")

    def read(self, name: str) -> bytearray:
        """The bytes of a tensor."""
        part = bytearray(WIDTHS[self.dtypes[name]] * math.prod(self.shapes[name]))
        self.read_into(name, memoryview(part))
        return part


def read_final_model(home: str, layout: Layout, since: float, into: memoryview) -> Order | None:
    """Reads the model into `into`, `[4 * dimension]`, and returns the order `end`.

    None where the home has no model that was written after `since`, in seconds of `time.time()`, or one of another layout.
    """
    path = os.path.join(home, "model.safetensors")
    try:
        if os.stat(path).st_mtime < since or run_ended_s_ago(home) is None:
            return None
        file = ModelFile(path)
        for entry in layout:
            if file.shapes[entry.name] != entry.shape or file.dtypes[entry.name] != "F32":
                return None
            file.read_into(entry.name, into[4 * entry.offset : 4 * (entry.offset + entry.size)])
        with open(os.path.join(home, "summary.json"), "rb") as file_of_summary:
            summary = json.load(file_of_summary)
        rounds = int(summary["rounds"])
        is_early = rounds < int(summary.get("rounds_wanted", rounds))
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    return Order(0, "end", rounds, 0, None, 1.0, stopped=is_early)
