"""Where the peer is: the folder that `mingle run --home` was started with."""

from __future__ import annotations

import os

from mingle.errors import MingleError

Path = str | os.PathLike[str]


def home_or_default(home: Path | None) -> str:
    """`home`; else the variable MINGLE_HOME, which a peer sets for the trainer that it starts; else the user's state folder, which is the
    home of a peer that was started without `--home`.

    Raises `MingleError` where that does not exist.
    """
    if home is not None:
        return os.fspath(home)
    if found := os.environ.get("MINGLE_HOME"):
        return found
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    usual = os.path.join(state, "mingle")
    if not os.path.isdir(usual):
        raise MingleError(f"which peer? There is none in {usual}: say home=..., or set MINGLE_HOME to the home of `mingle run --home HOME`")
    return usual
