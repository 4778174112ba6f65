"""Milliseconds of one exchange of a model, beside copying its bytes: the cost of mingle.join to a training loop.

usage: python scripts/python/bench_exchange.py [PARAMETERS] [EXCHANGES] [FOLDER]

With a FOLDER, such as one on a file system that nodes share, also the same through it and a bridge.

The host is that of the tests, in a process of its own, which adds the change with numpy. An exchange measures the change, sends it, receives the
next vector and writes it into the model.
"""

from __future__ import annotations

import os
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


def main(parameters: int, exchanges: int, folder: str | None = None) -> None:
    if folder is not None:
        main(parameters, exchanges)
    torch.set_num_threads(1)
    side = int(parameters**0.5)
    model = torch.nn.Linear(side, side, bias=False)
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, str(ROOT / "python/tests/fake_host.py"), home, "1", str(exchanges + 2)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as host:
            assert host.stdout is not None
            host.stdout.readline()
            where: dict[str, str] = {"home": home}
            if folder is not None:
                environment = os.environ | {"PYTHONPATH": str(ROOT / "python/src")}
                bridge = subprocess.Popen([sys.executable, "-m", "mingle", "bridge", folder, "--home", home], env=environment)
                where = {"url": f"folder:{folder}"}
                while not list(Path(folder).glob("bridge-*")):
                    time.sleep(0.01)
            started = time.perf_counter()
            swarm = mingle.join(model, None, **where)
            print(f"join            {1e3 * (time.perf_counter() - started):8.1f} ms")
            rows = {"exchange": [], "measure and load": [], "memcpy, once": []}
            one, other = bytearray(4 * side * side), bytearray(4 * side * side)
            for _ in range(exchanges):
                rows["memcpy, once"].append(timed(lambda: one.__setitem__(slice(None), other)))
                rows["measure and load"].append(timed(lambda: (swarm._vectors.measure(), model_load(swarm))))
                swarm._taken = 1
                rows["exchange"].append(timed(swarm.sync))
            host.kill()
            if folder is not None:
                bridge.terminate()
                bridge.wait()
    print(f"{side * side} parameters, {4e-6 * side * side:.0f} MB each way by {folder or 'the socket'}")
    for name, times in rows.items():
        print(f"{name:16}{statistics.median(times):8.1f} ms   (from {min(times):.1f} to {max(times):.1f})")


def model_load(swarm: mingle.Swarm) -> None:
    swarm.tensors.load(swarm._vectors.held)


def timed(work: object) -> float:
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return 1e3 * (time.perf_counter() - started)


if __name__ == "__main__":
    words = [*sys.argv[1:], *["10000000", "15"][len(sys.argv) - 1 :]]
    main(int(words[0]), int(words[1]), *words[2:3])
