"""TCP ports for tests that name them before they use them."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from functools import cache

PORTS = range(16_384, 32_768)
"""Ports below those that a system gives to whoever asks for no particular one: no connection takes one of them before its use."""


def free_ports(count: int) -> list[int]:
    """TCP ports in a row, on loopback, on which no process listens at present. No other call, of no worker, returns one of them soon."""
    while True:
        ports = [next(_ports()) for _ in range(count)]
        if ports[-1] - ports[0] == count - 1 and all(map(_is_free, ports)):
            return ports


@cache
def _ports() -> Iterator[int]:
    """The ports of this worker of pytest-xdist in turn, from one by chance: other programs may run these tests at the same time."""
    worker, workers = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    size = len(PORTS) // workers
    own = PORTS[worker * size : (worker + 1) * size]
    first = random.SystemRandom().randrange(size)

    def forever() -> Iterator[int]:
        while True:
            yield from own[first:]
            yield from own[:first]

    return forever()


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
