"""One HTTP/1.1 call to a peer, each on a connection of its own.

A connection for each call costs some 0.1 ms, and nothing is left open between calls. So a restarted peer is found at the next call, and a
process that forks (a `DataLoader` with workers) passes on no connection.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from mingle.endpoint import SocketEndpoint
from mingle.errors import MingleError, PeerUnreachable, ProtocolError

SLOWEST_BYTES_PER_SECOND = 20e6
ANSWER_SECONDS = 30.0
MOST_JSON_BYTES = 1 << 20


@dataclass(frozen=True)
class Answer:
    """Status, headers and body of an answer. `body` is empty where the body was read into the caller's buffer (`into_buffer`)."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    into_buffer: bool


def call(
    endpoint: SocketEndpoint,
    method: str,
    target: str,
    *,
    headers: Mapping[str, str],
    body: bytes | memoryview | None = None,
    into: memoryview | None = None,
    wait_s: float = 0.0,
    answer_s: float = ANSWER_SECONDS,
) -> Answer:
    """Sends a request and reads the whole answer.

    `body` is sent as it is. A raw body of the answer (`application/octet-stream`) is read into `into`, `[bytes]`, where that is given,
    and must fill it. The call ends within some `answer_s`, beside `wait_s` that the peer may wait and the time that the bytes take.

    Raises `PeerUnreachable` where no whole answer came, `ProtocolError` where it is not HTTP or has another length than `into`, and
    `MingleError` where this user lacks the permission to call.
    """
    moved_bytes = (len(body) if body is not None else 0) + (len(into) if into is not None else 0)
    connection = endpoint.connection(wait_s + answer_s + moved_bytes / SLOWEST_BYTES_PER_SECOND)
    try:
        response = _send(connection, method, target, body, {**headers, **endpoint.headers()})
        return _read(response, into)
    except PermissionError as error:
        raise MingleError(f"{endpoint} is open to its owner alone: run this as the user whose peer it is") from error
    except (OSError, http.client.IncompleteRead, http.client.RemoteDisconnected) as error:
        raise PeerUnreachable(f"{method} {target.partition('?')[0]} at {endpoint}: {error or type(error).__name__}") from error
    except http.client.HTTPException as error:
        raise ProtocolError(f"{endpoint} does not speak HTTP: {error!r}") from error
    finally:
        connection.close()


def _send(
    connection: http.client.HTTPConnection, method: str, target: str, body: bytes | memoryview | None, headers: Mapping[str, str]
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
    return received(response.status, headers, response.length, response, into)


class Source(Protocol):
    """The bytes of a body."""

    def read(self) -> bytes:
        """All that are left."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fills a part of the buffer, and returns its length; 0 at the end."""


def received(status: int, headers: Mapping[str, str], length: int | None, source: Source, into: memoryview | None) -> Answer:
    """Reads the body of an answer, with `length` bytes where that is known, into `into` where it is a vector."""
    is_raw = headers.get("content-type", "application/octet-stream").startswith("application/octet-stream")
    if into is None or status != 200 or not is_raw:
        if not is_raw and (length or 0) > MOST_JSON_BYTES:
            raise ProtocolError(f"the peer answered {length} bytes of {headers.get('content-type', 'no content type')}")
        return Answer(status, headers, source.read(), False)
    if length is not None and length != len(into):
        raise ProtocolError(f"the peer sent {length} bytes where the vector has {len(into)}")
    read = 0
    while read < len(into):
        count = source.readinto(into[read:])
        if not count:
            raise http.client.IncompleteRead(b"", len(into) - read)
        read += count
    return Answer(status, headers, b"", True)
