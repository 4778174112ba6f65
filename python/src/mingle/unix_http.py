"""One HTTP/1.1 call over a Unix socket, each on a connection of its own.

A connection for each call costs some 0.1 ms, and nothing is left open between calls: a peer that was started again is found at the
next one, and a process that forks (a `DataLoader` with workers) hands nothing on. Sockets that are open while another thread forks are
closed in the child.
"""

from __future__ import annotations

import http.client
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from mingle.errors import PeerUnreachable, ProtocolError

SLOWEST_BYTES_PER_SECOND = 20e6
ANSWER_SECONDS = 30.0
LONGEST_PATH_BYTES = 103 if sys.platform == "darwin" else 107
MOST_JSON_BYTES = 1 << 20

_open_sockets: set[socket.socket] = set()


@dataclass(frozen=True)
class Answer:
    """Status, headers and body of an answer. `body` is empty where the body was read into the caller's buffer (`into_buffer`)."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    into_buffer: bool


class UnixConnection(http.client.HTTPConnection):
    """An `HTTPConnection` to the Unix socket at `path`."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        """Connects, or raises an `OSError`."""
        if not hasattr(socket, "AF_UNIX"):
            raise OSError("this Python has no Unix sockets: use one for Linux or macOS")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        _open_sockets.add(self.sock)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def close(self) -> None:
        """Closes the socket, where it is open."""
        if self.sock is not None:
            _open_sockets.discard(self.sock)
        super().close()


def call(
    path: str,
    method: str,
    target: str,
    *,
    headers: Mapping[str, str],
    body: bytes | memoryview | None = None,
    into: memoryview | None = None,
    wait_s: float = 0.0,
) -> Answer:
    """Sends a request and reads the whole answer.

    `body` is sent as it is. A raw body of the answer (`application/octet-stream`) is read into `into`, `[bytes]`, where that is given,
    and must fill it. The call ends within some 30 s, beside `wait_s` that the peer may wait and the time that the bytes take.

    Raises `PeerUnreachable` where no whole answer came, and `ProtocolError` where it is not HTTP or has another length than `into`.
    """
    if len(os.fsencode(path)) > LONGEST_PATH_BYTES:
        raise ProtocolError(f"{path} is too long for a Unix socket ({LONGEST_PATH_BYTES} bytes at most): use a home with a shorter path")
    moved_bytes = (len(body) if body is not None else 0) + (len(into) if into is not None else 0)
    connection = UnixConnection(path, wait_s + ANSWER_SECONDS + moved_bytes / SLOWEST_BYTES_PER_SECOND)
    try:
        response = _send(connection, method, target, body, headers)
        return _read(response, into)
    except (OSError, http.client.IncompleteRead, http.client.RemoteDisconnected) as error:
        raise PeerUnreachable(f"{method} {target.partition('?')[0]} at {path}: {error or type(error).__name__}") from error
    except http.client.HTTPException as error:
        raise ProtocolError(f"{path} does not speak HTTP: {error!r}") from error
    finally:
        connection.close()


def _send(
    connection: UnixConnection, method: str, target: str, body: bytes | memoryview | None, headers: Mapping[str, str]
) -> http.client.HTTPResponse:
    length = {} if body is None and method == "GET" else {"Content-Length": str(0 if body is None else len(body))}
    connection.connect()
    try:
        connection.request(method, target, body, {**headers, **length, "Connection": "close"})
    except (BrokenPipeError, ConnectionResetError):
        pass  # The peer may have answered without reading the body: then the answer says why.
    return connection.getresponse()


def _read(response: http.client.HTTPResponse, into: memoryview | None) -> Answer:
    headers = {name.lower(): value for name, value in response.getheaders()}
    is_raw = headers.get("content-type", "application/octet-stream").startswith("application/octet-stream")
    if into is None or response.status != 200 or not is_raw:
        if not is_raw and (response.length or 0) > MOST_JSON_BYTES:
            raise ProtocolError(f"the peer answered {response.length} bytes of {headers.get('content-type', 'no content type')}")
        return Answer(response.status, headers, response.read(), False)
    if response.length is not None and response.length != len(into):
        raise ProtocolError(f"the peer sent {response.length} bytes where the vector has {len(into)}")
    read = 0
    while read < len(into):
        count = response.readinto(into[read:])
        if count == 0:
            raise http.client.IncompleteRead(b"", len(into) - read)
        read += count
    return Answer(response.status, headers, b"", True)


def _close_in_child() -> None:
    for inherited in list(_open_sockets):
        inherited.close()
    _open_sockets.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
