#!/usr/bin/env python3
"""What a round costs: how much of its communication training hides, and whether a peer pays for the size of the swarm.

Nothing here has a rival; the second number of a row is what the first should be compared with: the strict wait policy, or
the smallest swarm.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
from pathlib import Path

from processes import family
from report import head, row
from systems import HIDDEN, START_S, Mingle

# Models are of 1.66 million parameters, more than the caches hold, whether there are few peers or many.
ROUNDS = (5, 35)
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def run(mingle, *arguments, folder=None):
    """The standard output of a command of the program."""
    command = [mingle, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout


def hidden(mingle, wait):
    """Percentage of the time with parcels on their way that 4 peers spent training: 6.6 MB, four local steps of 64 samples."""
    with tempfile.TemporaryDirectory() as folder:
        said = run(mingle, "demo", "--json", "--peers", "4", "--model", f"mlp:hidden={HIDDEN}", "--batch-size", "64",
                   "--local-steps", "4", "--rounds", "40", "--learning-rate", "0.05", "--evaluate-every", "40",
                   "--no-comparison", "--wait", wait, "--timeline", "on", "--output", f"{folder}/demo")
        return 100 * json.loads(said.splitlines()[-1])["communication_hidden"]


def processor_seconds(process):
    """Processor time of a process and all its descendants, in seconds."""
    total = 0
    for member in family(process):
        fields = Path(f"/proc/{member}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / CLOCK_TICKS


def peer_ms(mingle, count):
    """Processor milliseconds that a peer takes for a round, on a ring, where each sends to two neighbours."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        peers = []
        try:
            Mingle(mingle, "off", topology="ring", method="sgp-uniform").start(count, folder, False, peers_of(peers))
            total = lambda: sum(processor_seconds(peer.process.pid) for peer in peers)
            begin, end = ROUNDS
            wait_for_round(peers[0], begin)
            before = total()
            wait_for_round(peers[0], end)
            return 1e3 * (total() - before) / (count * (end - begin))
        finally:
            for peer in peers:
                peer.end()


def peers_of(swarm):
    """A function that adds each peer that joins to this list."""
    def join(peer):
        swarm.append(peer)
        return peer
    return join


def wait_for_round(peer, round_number):
    """Waits until the peer has finished this round."""
    while peer.wait_for("round", START_S)[1]["round"] < round_number:
        pass


def table(path):
    """Writes points of two classes, enough for each of ten thousand nodes to have some."""
    dice = random.Random(1)
    with open(path, "w", encoding="utf-8") as rows:
        rows.write("a,b,c,d,label\n")
        for label in [0, 1] * 20_000:
            point = ",".join(f"{dice.gauss(label, 1):.3f}" for _ in range(4))
            rows.write(f"{point},{label}\n")


def simulated_us(mingle, folder, nodes):
    """Processor microseconds that a simulated node takes for a round, from the difference that further rounds make."""
    few, many = 2, 2 + max(20, 100_000 // nodes)
    times = []
    for rounds in (few, many):
        before = os.times()
        run(mingle, "simulate", "--topology", f"ring:n={nodes}", "--method", "sgp-uniform", "--data", "csv:rows.csv",
            "--model", "softmax", "--batch-size", "4", "--rounds", str(rounds), "--test-samples", "50",
            "--evaluate-every", "100000", "--threads", "1", folder=folder)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return 1e6 * (times[1] - times[0]) / (nodes * (many - few))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mingle", metavar="BINARY", required=True)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    mingle = str(Path(arguments.mingle).resolve())
    head("round")

    pairs = [(hidden(mingle, "bounded:4"), hidden(mingle, "sync")) for _ in range(arguments.turns)]
    report("communication hidden, 4 peers, bounded:4", "the same with sync", "%", pairs, larger_is_better=True)
    for count in (8, 16, 24):
        pairs = [(peer_ms(mingle, count), peer_ms(mingle, 4)) for _ in range(arguments.turns)]
        report(f"processor time of one of {count} peers", "one of 4 peers", "ms", pairs)
    with tempfile.TemporaryDirectory() as folder:
        table(f"{folder}/rows.csv")
        for nodes in (1_000, 10_000):
            pairs = [(simulated_us(mingle, folder, nodes), simulated_us(mingle, folder, 100)) for _ in range(arguments.turns)]
            report(f"processor time of one of {nodes:,} simulated nodes", "one of 100", "us", pairs)


def report(what, rival, unit, pairs, larger_is_better=False):
    """Adds a row of medians over turns to the report."""
    ours, theirs = (statistics.median(column) for column in zip(*pairs))
    ratios = [mine / other if larger_is_better else other / mine for mine, other in pairs]
    row("round", what, rival, unit, ours, theirs, ratios)


if __name__ == "__main__":
    main()
