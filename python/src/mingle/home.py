"""The location of a peer: the home that `mingle run --home` was started with, an address with a token, or a folder with a bridge."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from mingle.endpoint import FOLDER_SCHEME, Endpoint, FolderEndpoint, TcpEndpoint, UnixEndpoint
from mingle.errors import MingleError

Path = str | os.PathLike[str]
SOCKET = "mingle.sock"


@dataclass(frozen=True)
class Whereabouts:
    """The location of a peer."""

    endpoint: Endpoint
    home: str | None
    """The home of the peer; None where it is reached by an address."""

    @classmethod
    def of_home(cls, home: Path) -> Whereabouts:
        """The location of the peer behind the socket in a home."""
        home = os.fspath(home)
        return cls(UnixEndpoint(os.path.join(os.path.abspath(home), SOCKET)), home)

    @property
    def key(self) -> str:
        """A key that is equal for the same home or address."""
        if isinstance(self.endpoint, FolderEndpoint):
            return f"{FOLDER_SCHEME}{os.path.realpath(self.endpoint.path)}"
        return str(self.endpoint) if self.home is None else os.path.realpath(self.home)

    @property
    def advice(self) -> str:
        """The end of a message that no peer answers: how to start it. Empty for a folder, where the bridge or its absence gives the advice."""
        if isinstance(self.endpoint, FolderEndpoint):
            return ""
        where = f"--home {self.home} --trainer attach"
        if isinstance(self.endpoint, TcpEndpoint):
            where = f"--trainer attach --trainer-tcp {self.endpoint.address}"
        return f": start the peer with `mingle run {where}`"

    def __str__(self) -> str:
        return f"the peer at {self.endpoint}" if self.home is None else f"the peer in {self.home}"


def find_peer(home: Path | None = None, url: str | None = None, token: str | None = None) -> Whereabouts:
    """The peer at `url`, which may be `folder:PATH`, or that in `home`. Where neither is given, that at MINGLE_TRAINER_URL, else that in MINGLE_HOME, else that in the
    user's state folder.

    A peer sets MINGLE_HOME for the trainer that it starts, and MINGLE_TRAINER_URL where it serves trainers over TCP. The state folder is the
    home of a peer that was started without `--home`. The token of a URL is `token`, else MINGLE_TRAINER_TOKEN.

    Raises `MingleError` where that determines no peer, or there is no token for a URL.
    """
    if home is not None and (url is not None or token is not None):
        raise MingleError("say either home=..., or url=... and token=...")
    if home is not None:
        return Whereabouts.of_home(home)
    if (found := url or os.environ.get("MINGLE_TRAINER_URL")) is not None and found:
        if found.startswith(FOLDER_SCHEME):
            if token is not None:
                raise MingleError(f"{found} wants no token: its owner alone can use a folder")
            return Whereabouts(FolderEndpoint.parse(found), None)
        shown = token or os.environ.get("MINGLE_TRAINER_TOKEN")
        if not shown:
            raise MingleError(f"{found} wants a token: say token=..., or set MINGLE_TRAINER_TOKEN; it is in trainer-tcp.json in the home of the peer")
        return Whereabouts(TcpEndpoint.parse(found, shown), None)
    if token is not None:
        raise MingleError("a token without an address: say url=..., or set MINGLE_TRAINER_URL")
    named = os.environ.get("MINGLE_HOME")
    if not named and not hasattr(socket, "AF_UNIX"):
        raise MingleError("which peer? This Python has no Unix sockets: start the peer with --trainer-tcp, and say url=... and token=... here")
    return Whereabouts.of_home(named or usual_home())


def usual_home() -> str:
    """The home in the user's state folder. Raises `MingleError` where there is none."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    usual = os.path.join(state, "mingle")
    if not os.path.isdir(usual):
        raise MingleError(f"which peer? There is none in {usual}: say home=..., or set MINGLE_HOME to the home of `mingle run --home HOME`")
    return usual
