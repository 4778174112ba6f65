"""Train a model of your own in a Mingle swarm: `swarm = mingle.join(model, optimizer)`.

`mingle.follow(model, ticket)` gets the model of a swarm that is trained, without taking part.
`mingle.plan(graph)` plans a swarm, `mingle.compare(graph)` shows all designs, and `mingle.simulate(plan)` tries one.

The peer, `mingle run --trainer`, is a process of its own; this package talks to it over the socket in its home. It needs the standard
library alone: `mingle.join` uses the PyTorch of the model that it is given and `mingle.load` writes a final model into one, `mingle.Exchange`
takes numpy, JAX, or any buffer of f32.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from mingle import loggers as loggers
from mingle.errors import (
    Conflict,
    LayoutError,
    MingleError,
    NotFinite,
    NothingThere,
    PeerFailed,
    PeerUnreachable,
    PlanError,
    ProtocolError,
    Refused,
    SwarmDone,
    TimedOut,
)
from mingle.exchange import Exchange
from mingle.layout import Layout
from mingle.version import VERSION

if TYPE_CHECKING:
    from mingle.following import FollowedModel as FollowedModel
    from mingle.following import Follower as Follower
    from mingle.following import follow as follow
    from mingle.loading import load as load
    from mingle.torch import Swarm as Swarm
    from mingle.planning import Plan as Plan
    from mingle.planning import compare as compare
    from mingle.planning import plan as plan
    from mingle.planning import simulate as simulate
    from mingle.torch import join as join

__version__ = VERSION

__all__ = [
    "Conflict",
    "Exchange",
    "FollowedModel",
    "Follower",
    "Layout",
    "LayoutError",
    "MingleError",
    "NotFinite",
    "NothingThere",
    "PeerFailed",
    "PeerUnreachable",
    "Plan",
    "PlanError",
    "ProtocolError",
    "Refused",
    "Swarm",
    "SwarmDone",
    "TimedOut",
    "compare",
    "follow",
    "join",
    "load",
    "loggers",
    "plan",
    "simulate",
]

_LATE = {
    "FollowedModel": "mingle.following",
    "Follower": "mingle.following",
    "Plan": "mingle.planning",
    "Swarm": "mingle.torch",
    "compare": "mingle.planning",
    "follow": "mingle.following",
    "join": "mingle.torch",
    "load": "mingle.loading",
    "plan": "mingle.planning",
    "simulate": "mingle.planning",
}
"""Names that are imported on first use, by module: PyTorch takes seconds to import, and a user of numpy may not have it."""


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name]), name)
    raise AttributeError(f"module 'mingle' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
