"""Endpoints of a peer: the Unix socket in its home, a TCP address with a token, or a folder that a bridge serves.

Sockets that are open while another thread forks are closed in the child.
"""

from __future__ import annotations

import http.client
import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import urlsplit

from mingle.errors import MingleError, ProtocolError
from mingle.folder import Beats, new_id

LONGEST_PATH_BYTES = 103 if sys.platform == "darwin" else 107
LONGEST_NAMED_BYTES = 256
USUAL_PORT = 80
FOLDER_SCHEME = "folder:"

_open_sockets: set[socket.socket] = set()


@dataclass(frozen=True)
class UnixEndpoint:
    """The socket at `path`; or at the path in the file `path`.path, for a home whose path is too long or whose file system has no sockets."""

    path: str

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        """A connection that is not open yet. Raises `ProtocolError` where the path is too long for a socket."""
        path = _named_elsewhere(self.path) or self.path
        if len(os.fsencode(path)) > LONGEST_PATH_BYTES:
            raise ProtocolError(
                f"{path} is too long for a Unix socket ({LONGEST_PATH_BYTES} bytes at most), and {path}.path does not say where another is: "
                "is the peer up? A home with a shorter path has its socket in it"
            )
        return _UnixConnection(path, timeout)

    def headers(self) -> Mapping[str, str]:
        """The headers that each request needs."""
        return {}

    def __str__(self) -> str:
        return self.path


def _named_elsewhere(path: str) -> str | None:
    try:
        with open(f"{path}.path", "rb") as file:
            named = file.read(LONGEST_NAMED_BYTES)
    except OSError:
        return None
    return os.fsdecode(named[:-1]) if named.endswith(b"\n") else None


@dataclass(frozen=True)
class TcpEndpoint:
    """The TCP address of a peer that runs with `--trainer-tcp`, and its token."""

    host: str
    port: int
    token: str = field(repr=False)

    @classmethod
    def parse(cls, url: str, token: str) -> TcpEndpoint:
        """Parses `http://HOST:PORT`. Raises `MingleError` where that is no such address, or the token cannot be one."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise MingleError(f"{url!r} is no address of a peer, such as http://127.0.0.1:7718: {error}") from error
        if parts.scheme != "http" or not host or parts.path not in ("", "/") or parts.query or parts.username is not None:
            secure = "; a peer speaks no HTTPS, a tunnel may" if parts.scheme == "https" else ""
            raise MingleError(f"{url!r} is no address of a peer, such as http://127.0.0.1:7718{secure}")
        token = token.strip()
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise MingleError("the token is one word: the `token` of trainer-tcp.json in the home of the peer")
        return cls(host, USUAL_PORT if port is None else port, token)

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        """A connection that is not open yet."""
        return _TcpConnection(self.host, self.port, timeout=timeout)

    def headers(self) -> Mapping[str, str]:
        """The headers that each request needs."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def address(self) -> str:
        """`HOST:PORT`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"http://{self.address}"


@dataclass(frozen=True)
class FolderEndpoint:
    """A folder on a file system that this machine shares with that of the peer, where `python -m mingle bridge` forwards requests to it."""

    path: str
    script: str = field(default_factory=new_id, compare=False)
    """The id of this process among the users of the folder."""
    numbers: Iterator[int] = field(default_factory=count, compare=False, repr=False)
    beats: Beats = field(init=False, compare=False, repr=False)
    lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "beats", Beats(f"script-{self.script}"))

    @classmethod
    def parse(cls, url: str) -> FolderEndpoint:
        """Parses `folder:PATH`. Raises `MingleError` where there is no path, or one that depends on the folder that a process works in."""
        path = os.path.expanduser(url.removeprefix(FOLDER_SCHEME))
        if not os.path.isabs(path):
            raise MingleError(f"{url!r} has no whole path, such as folder:/scratch/ana/mingle")
        return cls(os.path.normpath(path))

    @property
    def start_bridge(self) -> str:
        """The advice to start the bridge, for messages."""
        return f"start `python -m mingle bridge {self.path} --home HOME` on the machine of the peer"

    def __str__(self) -> str:
        return f"{FOLDER_SCHEME}{self.path}"


SocketEndpoint = UnixEndpoint | TcpEndpoint
Endpoint = SocketEndpoint | FolderEndpoint


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        """Connects, or raises an `OSError`."""
        if not hasattr(socket, "AF_UNIX"):
            raise OSError("this Python has no Unix sockets: start the peer with --trainer-tcp, and say url= and token= here")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        _open_sockets.add(self.sock)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def close(self) -> None:
        """Closes the socket, where it is open."""
        _forget(self.sock)
        super().close()


class _TcpConnection(http.client.HTTPConnection):
    def connect(self) -> None:
        """Connects, or raises an `OSError`."""
        super().connect()
        _open_sockets.add(self.sock)

    def close(self) -> None:
        """Closes the socket, where it is open."""
        _forget(self.sock)
        super().close()


def _forget(sock: socket.socket | None) -> None:
    if sock is not None:
        _open_sockets.discard(sock)


def _close_in_child() -> None:
    for inherited in list(_open_sockets):
        inherited.close()
    _open_sockets.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
