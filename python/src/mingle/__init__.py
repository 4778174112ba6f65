"""Train a model of your own in a Mingle swarm: `swarm = mingle.join(model, optimizer)`.

The peer, `mingle run --trainer`, is a process of its own; this package talks to it over the socket in its home. It needs the standard
library alone: `mingle.join` uses the PyTorch of the model that it is given, `mingle.Exchange` takes numpy, JAX, or any buffer of f32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mingle.errors import (
    Conflict,
    LayoutError,
    MingleError,
    NotFinite,
    NothingThere,
    PeerFailed,
    PeerUnreachable,
    ProtocolError,
    Refused,
    SwarmDone,
    TimedOut,
)
from mingle.exchange import Exchange
from mingle.layout import Layout
from mingle.version import VERSION

if TYPE_CHECKING:
    from mingle.torch import Swarm as Swarm
    from mingle.torch import join as join

__version__ = VERSION

__all__ = [
    "Conflict",
    "Exchange",
    "Layout",
    "LayoutError",
    "MingleError",
    "NotFinite",
    "NothingThere",
    "PeerFailed",
    "PeerUnreachable",
    "ProtocolError",
    "Refused",
    "Swarm",
    "SwarmDone",
    "TimedOut",
    "join",
]


def __getattr__(name: str) -> Any:
    # PyTorch takes seconds to import, and who uses numpy does not have it.
    if name in ("join", "Swarm"):
        from mingle import torch

        return getattr(torch, name)
    raise AttributeError(f"module 'mingle' has no attribute {name!r}")
