"""Endpoints of a peer: the Unix socket in its home, or a TCP address with a token.

Sockets that are open while another thread forks are closed in the child.
"""

from __future__ import annotations

import http.client
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mingle.errors import MingleError, ProtocolError

LONGEST_PATH_BYTES = 103 if sys.platform == "darwin" else 107
LONGEST_NAMED_BYTES = 256
USUAL_PORT = 80

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


Endpoint = UnixEndpoint | TcpEndpoint


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
