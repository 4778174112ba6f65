"""Where the peer is: the folder that `mingle run --home` was started with."""

from __future__ import annotations

import os

from mingle.errors import MingleError

Path = str | os.PathLike[str]


def home_or_default(home: Path | None) -> str:
    """`home`, or the variable MINGLE_HOME, which a peer sets for the trainer that it starts."""
    found = os.fspath(home) if home is not None else os.environ.get("MINGLE_HOME", "")
    if not found:
        raise MingleError("which peer? Say home=..., or set MINGLE_HOME to the home of `mingle run --home HOME --trainer attach`")
    return found
