"""Measures the round times of other peers while one trainer is stopped.

usage: MINGLE_BIN=... python frozen_trainer.py [METHOD [SECONDS]]
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from conftest import wait_until
from swarm import LocalSwarm

PEERS = 4
ROUND_S = 0.1
WARM_UP_ROUNDS = 30


def measure(folder: Path, method: str, seconds: float) -> None:
    """Lets all trainers train for `seconds`, then all but one, and prints the round times of the others in both."""
    with LocalSwarm(folder, PEERS, rounds=10_000_000, method=method) as swarm:
        for node in range(PEERS):
            swarm.start_peer(node)
        scripts = [
            swarm.start_script(node, Path(__file__).with_name("slow_trainer.py"), str(node), str(swarm.progress(node)), str(ROUND_S))
            for node in range(PEERS)
        ]
        for node in range(PEERS):
            swarm.wait_for_round(node, WARM_UP_ROUNDS)
        _print("all train", _rounds_within(swarm, seconds))
        scripts[0].send_signal(signal.SIGSTOP)
        _print("one stands still", _rounds_within(swarm, seconds))
        scripts[0].send_signal(signal.SIGCONT)
        before = swarm.progress(0).stat().st_size
        wait_until(lambda: swarm.progress(0).stat().st_size > before, "the trainer that stood still exchanges again", 60)


def _rounds_within(swarm: LocalSwarm, seconds: float) -> list[list[int]]:
    """The times in ms of the rounds that the peers 1, 2, ... begin and end within `seconds`, by peer."""
    files = [swarm.folder / f"peer{node}.out" for node in range(1, PEERS)]
    begun = [os.path.getsize(file) for file in files]
    time.sleep(seconds)  # what is measured
    return [_round_times(file.read_bytes()[begin:]) for file, begin in zip(files, begun)]


def _round_times(events: bytes) -> list[int]:
    told = [json.loads(line) for line in events.split(b"\n")[1:-1]]
    ends = [event["at_ms"] for event in told if event["event"] == "round"]
    return [after - before for before, after in zip(ends, ends[1:])]


def _print(what: str, times: list[list[int]]) -> None:
    every = [time for peer in times for time in peer]
    counts = ", ".join(str(len(peer)) for peer in times)
    print(f"{what}: {counts} rounds; a round takes {statistics.median(every):.0f} ms at the median, {max(every)} ms at most", flush=True)


if __name__ == "__main__":
    method = sys.argv[1] if len(sys.argv) > 1 else "nguyen-he"
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
    with tempfile.TemporaryDirectory(prefix="mingle-frozen-") as name:
        measure(Path(name), method, seconds)
