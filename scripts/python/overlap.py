#!/usr/bin/env python3
"""Measures what --overlap is worth on slow links: real peers in network namespaces whose links have a rate (tc, tbf).

usage: scripts/python/overlap.py [-h] [--peers N] [--rates RATE,...] [--overlaps CHOICE,...] [--rounds N] [--steps N] [--model MODEL] [--seed N]

Needs root, `ip` and `tc`. N peers (4) average exactly over a plan for wires and train a built-in model (mlp:hidden=16384, 1.2 million
parameters) with N local steps (20) in a round, for N rounds (40), with each choice (off,on), by turns, over links of each rate
(50mbit,200mbit) in both directions. For each run prints the seconds from the first to the last round, the rounds that were trained while the
one before was mixed, the loss and accuracy of node 0 on the test samples, and what `mingle audit` says. Ends only what it started.

  MINGLE_BIN=PATH   use this binary, and do not build one
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PORT = 7700
PATIENCE = 1800


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
            run("ip", "-n", hub, "link", "add", f"port{node}", "type", "veth", "peer", "name", "link", "netns", space)
            run("ip", "-n", hub, "link", "set", f"port{node}", "master", "bridge", "up")
            run("ip", "-n", space, "address", "add", f"{address(node)}/24", "dev", "link")
            for device in ("lo", "link"):
                run("ip", "-n", space, "link", "set", device, "up")
            run("tc", "-n", space, "qdisc", "add", "dev", "link", "root", "tbf", *limit)
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
    run(mingle, "plan", "make", *topology, "--local-steps", str(options.steps), "-o", plan)
    for node, home in enumerate(homes):
        run(mingle, "init", "--home", str(home))
        peer = run(mingle, "id", "--home", str(home)).strip()
        run(mingle, "plan", "bind", plan, "--peer", f"{node}={peer}")
    return homes


def times_of_rounds(home: Path) -> list[float]:
    """Seconds at which evaluations were reported, from the start of the process."""
    events = (json.loads(line) for line in (home / "events.jsonl").read_text().splitlines())
    return [event["t_s"] for event in events if event["event"] == "evaluated"]


def measure(mingle: str, rate: str, overlap: str, options: argparse.Namespace) -> dict:
    """One run of all peers."""
    with tempfile.TemporaryDirectory() as made, network(options.peers, rate) as spaces:
        folder = Path(made)
        homes = homes_with_plan(mingle, folder, options)
        listening = [f"/ip4/{address(node)}/tcp/{PORT}" for node in range(options.peers)]
        processes = []
        for node, (space, home) in enumerate(zip(spaces, homes)):
            others = [f"--bootstrap={other}" for other in listening if other != listening[node]]
            training = [f"--model={options.model}", "--split=dirichlet:0.3", f"--rounds={options.rounds}", f"--seed={options.seed}"]
            settings = ["--evaluate-every=10", "--threads=1", "--learning-rate=0.05", f"--overlap={overlap}"]
            command = [mingle, "run", f"--home={home}", f"--plan={folder / 'plan.json'}", f"--listen={listening[node]}"]
            command = ["ip", "netns", "exec", space, *command, *others, *training, *settings]
            processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        try:
            codes = [process.wait(PATIENCE) for process in processes]
        finally:
            for process in processes:
                process.kill()
        if any(codes):
            sys.exit(f"peers ended with {codes}")
        summary = json.loads((homes[0] / "summary.json").read_text())
        audit = json.loads(run(mingle, "audit", "--json", str(folder / "peers")))
        times = times_of_rounds(homes[0])
        return {
            "seconds": times[-1] - times[0],
            "ahead": summary.get("overlap", {}).get("rounds", 0),
            "metrics": summary["metrics"],
            "verdict": audit["verdict"],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--rates", default="50mbit,200mbit")
    parser.add_argument("--overlaps", default="off,on")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--model", default="mlp:hidden=16384")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    mingle = binary()
    print("| rate | overlap | seconds | trained ahead | loss | accuracy | audit |")
    print("| --- | --- | ---: | ---: | ---: | ---: | --- |")
    for rate in options.rates.split(","):
        for overlap in options.overlaps.split(","):
            found = measure(mingle, rate, overlap, options)
            metrics = found["metrics"]
            row = [rate, overlap, f"{found['seconds']:.1f}", str(found["ahead"]), f"{metrics['loss']:.4f}", f"{metrics['accuracy']:.4f}"]
            print("| " + " | ".join([*row, found["verdict"]]) + " |", flush=True)


if __name__ == "__main__":
    main()
