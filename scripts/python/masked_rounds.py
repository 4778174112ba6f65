#!/usr/bin/env python3
"""Seconds of a round of training over masked sums beside one over plain sums: eight peers as processes on this machine.

usage: scripts/python/masked_rounds.py [TURNS]

The model has 1.66 million parameters, and each member takes one gradient step in a round, so that a round is little more than
its sum. Both ways take turns. Prints the median over turns (5) of the median round of node 0, and the least and largest ratio.

  MINGLE_BIN=PATH    the program (mingle)
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

PROGRAM = os.environ.get("MINGLE_BIN", "mingle")
PEERS = 8
PROBLEM = """kind = "training"
data = "digits"
model = "mlp:hidden=22133"
rounds = 12
local_steps = 1
evaluate_every = 100
learning_rate = 0.01
"""


def run(*arguments):
    """The output of a command of the program."""
    return subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True).stdout


def addresses():
    """Addresses on loopback, one for each peer."""
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(PEERS)]
        return [f"/ip4/127.0.0.1/tcp/{one.getsockname()[1]}" for one in bound]


def seconds_of_a_round(topology, *options):
    """The median over the rounds of one run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan, problem = str(folder / "plan.json"), folder / "problem.toml"
        problem.write_text(PROBLEM)
        run("plan", "make", "--topology", topology, "--medium", "point-to-point", "--method", "clique-phi", "-o", plan)
        homes = [str(folder / f"peer{node}") for node in range(PEERS)]
        for node, home in enumerate(homes):
            run("plan", "bind", plan, "--peer", f"{node}={run('init', '--home', home).split()[0]}")
        listen = addresses()
        peers = []
        for node, home in enumerate(homes):
            others = ",".join(address for other, address in enumerate(listen) if other != node)
            command = [PROGRAM, "run", "--json", "--home", home, "--plan", plan, "--problem", str(problem)]
            command += ["--listen", listen[node], "--bootstrap", others, *options]
            with open(f"{home}.out", "w") as out:
                peers.append(subprocess.Popen(command, stdout=out, stderr=out))
        if any([peer.wait(600) for peer in peers]):
            sys.exit(Path(f"{homes[0]}.out").read_text()[-2000:])
        events = map(json.loads, Path(f"{homes[0]}.out").read_text().splitlines())
        ends = [event["at_ms"] for event in events if event["event"] == "measured"]
        return statistics.median(after - before for before, after in zip(ends, ends[1:])) / 1000


def main():
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for topology in ("ring:n=8", "complete:n=8"):
        pairs = [(seconds_of_a_round(topology, "--plain-sums"), seconds_of_a_round(topology)) for _ in range(turns)]
        plain, masked = (statistics.median(side) for side in zip(*pairs))
        ratios = sorted(masked / plain for plain, masked in pairs)
        print(f"{topology:<13} plain {plain:.3f} s, masked {masked:.3f} s, ratio {masked / plain:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)


if __name__ == "__main__":
    main()
