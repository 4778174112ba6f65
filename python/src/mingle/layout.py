"""The layout of a vector: names and shapes of its tensors, one after the other, each in row-major order."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mingle.errors import LayoutError

MOST_JSON_BYTES = 1_000_000
"""Most bytes of a layout as JSON: the peer accepts 1 MiB for the whole body of `attach`."""


@dataclass(frozen=True)
class Entry:
    """One tensor: its name, its shape (`()` is a single number), and its offset in the vector."""

    name: str
    shape: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class Layout:
    """Names and shapes of tensors in the order of the vector.

    Raises `LayoutError` where there is no tensor or no element, two have the same name, or names and shapes take more than 1 MB.
    """

    def __init__(self, tensors: Iterable[tuple[str, Iterable[int]]]) -> None:
        entries: list[Entry] = []
        offset = 0
        for name, shape in tensors:
            entry = Entry(name, tuple(int(length) for length in shape), offset)
            entries.append(entry)
            offset += entry.size
        self.entries = tuple(entries)
        self.dimension = offset
        """Number of elements of the vector."""
        self._check()

    def _check(self) -> None:
        if self.dimension == 0:
            raise LayoutError("there is nothing to train: no tensor, or none with an element")
        seen = set()
        for entry in self.entries:
            if entry.name in seen:
                raise LayoutError(f"two tensors are called `{entry.name}`: each needs a name of its own")
            seen.add(entry.name)
        length = len(json.dumps(self.to_json()))
        if length > MOST_JSON_BYTES:
            raise LayoutError(f"names and shapes of {len(self.entries)} tensors take {length} bytes, more than {MOST_JSON_BYTES}: join tensors or shorten names")

    @classmethod
    def flat(cls, dimension: int, name: str = "x") -> Layout:
        """A layout of one tensor with `dimension` elements."""
        return cls([(name, (dimension,))])

    def to_json(self) -> list[list[object]]:
        """The layout in the form that `attach` sends: `[["weight", [10, 64]], ["bias", [10]]]`."""
        return [[entry.name, list(entry.shape)] for entry in self.entries]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        return f"Layout({len(self.entries)} tensors, dimension {self.dimension})"
