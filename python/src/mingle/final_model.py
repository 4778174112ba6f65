"""The final model that a peer left in its home, for a trainer that was still at work when the run ended.

A peer whose run is over hands its model out for some seconds and ends. `model.safetensors` is written before that: eight bytes with the length
of a JSON object, that object with type, shape and place of each tensor, and the tensors.
"""

from __future__ import annotations

import json
import os
import time

from mingle.client import Order
from mingle.layout import Layout

LONGEST_HEADER_BYTES = 100_000_000


def run_ended_s_ago(home: str) -> float | None:
    """How long ago, in seconds, a run in this home came to its end; None where none has. Its summary is what a peer writes last."""
    try:
        return max(0.0, time.time() - os.stat(os.path.join(home, "summary.json")).st_mtime)
    except OSError:
        return None


def read_final_model(home: str, layout: Layout, since: float, into: memoryview) -> Order | None:
    """Reads the model into `into`, `[4 * dimension]`, and returns the order `end`.

    None where the home has no model that was written after `since`, in seconds of `time.time()`, or one of another layout.
    """
    try:
        with open(os.path.join(home, "model.safetensors"), "rb") as file:
            if os.fstat(file.fileno()).st_mtime < since or run_ended_s_ago(home) is None:
                return None
            length = int.from_bytes(file.read(8), "little")
            if length > LONGEST_HEADER_BYTES:
                return None
            header = json.loads(file.read(length))
            for entry in layout:
                found = header[entry.name]
                if found["dtype"] != "F32" or tuple(found["shape"]) != entry.shape:
                    return None
                file.seek(8 + length + found["data_offsets"][0])
                part = into[4 * entry.offset : 4 * (entry.offset + entry.size)]
                if file.readinto(part) != len(part):
                    return None
        with open(os.path.join(home, "summary.json"), "rb") as summary:
            rounds = int(json.load(summary)["rounds"])
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    return Order(0, "end", rounds, 0, None, 1.0)
