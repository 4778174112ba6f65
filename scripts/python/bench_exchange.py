"""Milliseconds of one exchange of a model, beside copying its bytes: the cost of mingle.join to a training loop.

usage: python scripts/python/bench_exchange.py [PARAMETERS] [EXCHANGES]

The host is that of the tests, in a process of its own, which adds the change with numpy. An exchange measures the change, sends it, receives the
next vector and writes it into the model.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python/src"))

import torch  # noqa: E402

import mingle  # noqa: E402


def main(parameters: int, exchanges: int) -> None:
    torch.set_num_threads(1)
    side = int(parameters**0.5)
    model = torch.nn.Linear(side, side, bias=False)
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, str(ROOT / "python/tests/fake_host.py"), home, "1", str(exchanges + 2)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as host:
            assert host.stdout is not None
            host.stdout.readline()
            started = time.perf_counter()
            swarm = mingle.join(model, None, home=home)
            print(f"join            {1e3 * (time.perf_counter() - started):8.1f} ms")
            rows = {"exchange": [], "measure and load": [], "memcpy, once": []}
            one, other = bytearray(4 * side * side), bytearray(4 * side * side)
            for _ in range(exchanges):
                rows["memcpy, once"].append(timed(lambda: one.__setitem__(slice(None), other)))
                rows["measure and load"].append(timed(lambda: (swarm._vectors.measure(), model_load(swarm))))
                swarm._taken = 1
                rows["exchange"].append(timed(swarm.sync))
            host.kill()
    print(f"{side * side} parameters, {4e-6 * side * side:.0f} MB each way")
    for name, times in rows.items():
        print(f"{name:16}{statistics.median(times):8.1f} ms   (from {min(times):.1f} to {max(times):.1f})")


def model_load(swarm: mingle.Swarm) -> None:
    swarm.tensors.load(swarm._vectors.held)


def timed(work: object) -> float:
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return 1e3 * (time.perf_counter() - started)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000, int(sys.argv[2]) if len(sys.argv) > 2 else 15)
