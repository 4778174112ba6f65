"""Milliseconds that a peer takes to hand out an order and to take a change, beside copying as many bytes.

usage: MINGLE_BIN=target/release/mingle python scripts/python/bench_peer.py [PARAMETERS] [ROUNDS]

Two peers on loopback, each with a trainer in a process of its own that does nothing but exchange. An order is asked for once more when it is
there, and a change is answered without waiting for the next order: the time of neighbours and disks is not in these numbers.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "python/src"), str(ROOT / "python/tests")]

from mingle.client import Client, Description, Waiting  # noqa: E402
from mingle.home import Whereabouts  # noqa: E402
from mingle.layout import Layout  # noqa: E402
from swarm import LocalSwarm  # noqa: E402

LONGEST_WAIT_S = 25.0


def exchange(home: Path, dimension: int, rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Seconds of each order, change and copy."""
    client, buffer = Client(Whereabouts.of_home(home).endpoint), memoryview(bytearray(4 * dimension))
    session = client.attach(Description(name="bench", layout=Layout.flat(dimension)))
    if session.needs_initial:
        client.put_initial(session.id, memoryview(bytes(4 * dimension)))
    orders, changes, copies = [], [], []
    change = memoryview(bytes(4 * dimension))
    for _ in range(rounds):
        while isinstance(client.order(session.id, LONGEST_WAIT_S, buffer), Waiting):
            pass
        began = time.perf_counter()
        order = client.order(session.id, LONGEST_WAIT_S, buffer)
        orders.append(time.perf_counter() - began)
        assert not isinstance(order, Waiting)
        began = time.perf_counter()
        answer = client.exchange(session.id, order.number, order.steps, change, 0.0, buffer)
        if isinstance(answer, Waiting):  # otherwise that time includes the next order
            changes.append(time.perf_counter() - began)
        began = time.perf_counter()
        bytes(change)
        copies.append(time.perf_counter() - began)
    return orders, changes, copies


def main() -> None:
    dimension, rounds = int((sys.argv[1:] or ["10000000"])[0]), int((sys.argv[2:] or ["20"])[0])
    with tempfile.TemporaryDirectory() as folder, LocalSwarm(Path(folder), 2, rounds=1_000_000) as swarm:
        for node in range(2):
            swarm.start_peer(node)
        while not all((swarm.home(node) / "mingle.sock").exists() for node in range(2)):
            time.sleep(0.01)
        with get_context("spawn").Pool(2) as pool:
            measured = pool.starmap(exchange, [(swarm.home(node), dimension, rounds) for node in range(2)])
    print(f"{dimension} parameters, {4 * dimension / 1e6:.0f} MB each way, {rounds} rounds on two peers; medians")
    for what, times in zip(("an order", "a change", "a copy of as many bytes"), zip(*measured)):
        print(f"{what:<24}{statistics.median([seconds for each in times for seconds in each]) * 1e3:7.1f} ms")


if __name__ == "__main__":
    main()
