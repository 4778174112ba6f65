#!/usr/bin/env python3
"""Measures what --overlap is worth on slow links: real peers in network namespaces whose links have a rate (tc, tbf).

usage: scripts/python/overlap.py [-h] [--peers N] [--rate RATE] [--parameters N] [--training SECONDS,...] [--overlaps CHOICE,...] [--rounds N]

Needs root, `ip` and `tc`. N peers (4) average a model of N parameters (4,000,000) exactly over a plan for wires, for N rounds (20), over links
of a rate (50mbit) in both directions. A round's training sleeps for so many seconds (0.5,1,2): machines of their own would compute that long, and
this one does not compute for all peers at once. For each time and choice (off,on), by turns, prints the mean seconds of a round, without
the first four, the part of the time in which peers trained, the rounds that were trained while the one before was mixed, and what `mingle audit`
says. Ends only what it started. What it is worth to the loss, `mingle simulate --overlap on` shows.

  MINGLE_BIN=PATH   use this binary, and do not build one
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/src"))

from mingle.client import Client, Description, Order  # noqa: E402
from mingle.endpoint import UnixEndpoint  # noqa: E402
from mingle.errors import MingleError  # noqa: E402
from mingle.layout import Layout  # noqa: E402

PORT = 7700
PATIENCE = 1800
WARM_UP = 4


def run(*command: str) -> str:
    """The output of a command, which has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def binary() -> str:
    if given := os.environ.get("MINGLE_BIN"):
        return str(Path(given).resolve())
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT, check=True)
    return str(ROOT / "target/release/mingle")


def address(node: int) -> str:
    return f"10.97.0.{node + 1}"


@contextmanager
def network(peers: int, rate: str) -> Iterator[list[str]]:
    """Namespaces, one for each peer, on a bridge in a namespace of its own; each link sends and receives at this rate."""
    hub = f"ovl{os.getpid()}"
    spaces = [f"{hub}-{node}" for node in range(peers)]
    limit = ("rate", rate, "burst", "64kb", "latency", "200ms")
    made: list[str] = []
    try:
        for space in [hub, *spaces]:
            run("ip", "netns", "add", space)
            made.append(space)
        run("ip", "-n", hub, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", hub, "link", "set", "bridge", "up")
        for node, space in enumerate(spaces):
            run("ip", "-n", hub, "link", "add", f"port{node}", "type", "veth", "peer", "name", "wire", "netns", space)
            run("ip", "-n", hub, "link", "set", f"port{node}", "master", "bridge", "up")
            run("ip", "-n", space, "address", "add", f"{address(node)}/24", "dev", "wire")
            for device in ("lo", "wire"):
                run("ip", "-n", space, "link", "set", device, "up")
            run("tc", "-n", space, "qdisc", "add", "dev", "wire", "root", "tbf", *limit)
            run("tc", "-n", hub, "qdisc", "add", "dev", f"port{node}", "root", "tbf", *limit)
        yield spaces
    finally:
        for space in made:
            subprocess.run(["ip", "netns", "delete", space], check=False)


def homes_with_plan(mingle: str, folder: Path, options: argparse.Namespace) -> list[Path]:
    """A home for each peer, and a plan that names them."""
    homes = [folder / "peers" / str(node) for node in range(options.peers)]
    plan = str(folder / "plan.json")
    topology = ["--topology", f"complete:n={options.peers}", "--medium", "point-to-point", "--method", "exact-average"]
    run(mingle, "plan", "make", *topology, "-o", plan)
    for node, home in enumerate(homes):
        run(mingle, "init", "--home", str(home))
        peer = run(mingle, "id", "--home", str(home)).strip()
        run(mingle, "plan", "bind", plan, "--peer", f"{node}={peer}")
    return homes


class SleepingTrainer(threading.Thread):
    """A trainer whose rounds take a given time, and which changes nothing."""

    def __init__(self, home: Path, parameters: int, seconds: float) -> None:
        super().__init__(daemon=True)
        self.client = Client(UnixEndpoint(str(home / "mingle.sock")))
        self.parameters = parameters
        self.seconds = seconds
        self.began: list[float] = []

    def run(self) -> None:
        session = self.attached()
        model, change = bytearray(4 * self.parameters), memoryview(bytes(4 * self.parameters))
        self.client.put_initial(session, memoryview(model))
        order = self.client.order(session, 60, memoryview(model))
        while not isinstance(order, Order) or order.kind != "end":
            if not isinstance(order, Order):
                order = self.client.order(session, 60, memoryview(model))
                continue
            self.began.append(time.monotonic())
            time.sleep(self.seconds)
            order = self.client.exchange(session, order.number, order.steps, change, 60, memoryview(model))

    def attached(self) -> str:
        """The session, once the peer is up."""
        layout = Layout([("weight", (self.parameters,))])
        while True:
            try:
                return self.client.attach(Description(name="sleeps", layout=layout)).id
            except MingleError:
                time.sleep(0.1)


def measure(mingle: str, seconds: float, overlap: str, options: argparse.Namespace) -> list[str]:
    """One run of all peers: a row of the table."""
    with tempfile.TemporaryDirectory() as made, network(options.peers, options.rate) as spaces:
        folder = Path(made)
        homes = homes_with_plan(mingle, folder, options)
        listening = [f"/ip4/{address(node)}/tcp/{PORT}" for node in range(options.peers)]
        processes = []
        for node, (space, home) in enumerate(zip(spaces, homes, strict=True)):
            others = [f"--bootstrap={other}" for other in listening if other != listening[node]]
            settings = ["--trainer=attach", f"--rounds={options.rounds}", f"--overlap={overlap}", "--evaluate-every=1000000"]
            command = [mingle, "run", f"--home={home}", f"--plan={folder / 'plan.json'}", f"--listen={listening[node]}"]
            command = ["ip", "netns", "exec", space, *command, *others, *settings]
            processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        trainers = [SleepingTrainer(home, options.parameters, seconds) for home in homes]
        for trainer in trainers:
            trainer.start()
        try:
            codes = [process.wait(PATIENCE) for process in processes]
        finally:
            for process in processes:
                process.kill()
        if any(codes):
            sys.exit(f"peers ended with {codes}")
        summary = json.loads((homes[0] / "summary.json").read_text())
        verdict = json.loads(run(mingle, "audit", "--json", str(folder / "peers")))["verdict"]
    began = trainers[0].began[WARM_UP:]
    usual = (began[-1] - began[0]) / (len(began) - 1)
    ahead = summary.get("overlap", {}).get("rounds", 0)
    return [str(seconds), overlap, f"{usual:.2f}", f"{seconds / usual:.2f}", str(ahead), verdict]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--rate", default="50mbit")
    parser.add_argument("--parameters", type=int, default=4_000_000)
    parser.add_argument("--training", default="0.5,1,2")
    parser.add_argument("--overlaps", default="off,on")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    mingle = binary()
    print("| training, s | overlap | a round, s | training's part | trained ahead | audit |")
    print("| ---: | --- | ---: | ---: | ---: | --- |")
    for seconds in options.training.split(","):
        for overlap in options.overlaps.split(","):
            print("| " + " | ".join(measure(mingle, float(seconds), overlap, options)) + " |", flush=True)


if __name__ == "__main__":
    main()
