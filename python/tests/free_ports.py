"""TCP ports for tests that name them before they use them."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from functools import cache

PORTS = range(16_384, 32_768)
"""Ports below the ephemeral ones, from 32768 on in Linux and from 49152 on elsewhere, which connections and listeners on port 0 get."""


def free_ports(count: int) -> list[int]:
    """Consecutive TCP ports of loopback without a listener. Later calls, and those of other workers, return others until all were returned once."""
    while True:
        ports = [next(_ports()) for _ in range(count)]
        if ports[-1] - ports[0] == count - 1 and all(map(_is_free, ports)):
            return ports


@cache
def _ports() -> Iterator[int]:
    """The part of `PORTS` of this pytest-xdist worker, in turn from a random one: a second run of the tests on the machine begins elsewhere."""
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
