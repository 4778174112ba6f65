#!/usr/bin/env python3
"""Averages a model of 1.66 million parameters among processes on this machine with p2pfl. Prints one JSON object.

Nothing is trained (no epochs). A round is what p2pfl counts as one: voting, sending of models, aggregation.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time

from rounds import STUCK_S, loopback_bytes, resident_bytes

HIDDEN = 22_133
ROUNDS = 6


def peer(address):
    """One node: takes orders on standard input, and tells each round on standard output."""
    import torch
    from p2pfl.examples.mnist.model.mlp_pytorch import model_build_fn
    from p2pfl.learning.dataset.p2pfl_dataset import P2PFLDataset
    from p2pfl.node import Node
    from p2pfl.settings import Settings

    torch.set_num_threads(1)
    Settings.general.DISABLE_RAY = True
    Settings.general.LOG_LEVEL = "ERROR"
    images = [{"image": [[0.0] * 8] * 8, "label": label % 10} for label in range(40)]
    data = P2PFLDataset.from_generator(lambda: iter(images)).generate_train_test_split(test_size=0.5, seed=0)
    node = Node(model_build_fn(input_size=64, hidden_sizes=[HIDDEN]), data, addr=address)
    node.start()
    say = lambda **words: print("SAY " + json.dumps(words), flush=True)
    say(event="ready")
    for line in sys.stdin:
        order = json.loads(line)
        if "connect" in order:
            say(event="connected", done=node.connect(order["connect"]))
        if "neighbours" in order:
            while len(node.get_neighbors(only_direct=False)) < order["neighbours"]:
                time.sleep(0.05)
            say(event="neighbours")
        if "rounds" in order:
            node.set_start_learning(rounds=order["rounds"], epochs=0)
        if "watch" in order:
            last = None
            while True:
                now = node.state.round
                if now != last:
                    say(event="round", round=now)
                    last = now
                time.sleep(0.01)


class Peer:
    def __init__(self, address):
        self.address = address
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--peer", address],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )

    def tell(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def wait_for(self, event):
        for line in self.process.stdout:
            if line.startswith("SAY "):
                said = json.loads(line[4:])
                if said["event"] == event:
                    return said
        raise RuntimeError(f"a peer ended before it said {event}")


def next_rounds(peer, count):
    """Times at which the next rounds begin; fewer if one is stuck."""
    signal.alarm(int(STUCK_S))
    times = []
    try:
        while len(times) < count:
            if peer.wait_for("round")["round"] is not None:
                times.append(time.monotonic())
                signal.alarm(int(STUCK_S))
    except TimeoutError:
        pass
    signal.alarm(0)
    return times


def stuck(*_):
    raise TimeoutError


def slowest(times, count):
    if len(times) < count:
        return None
    return round(max(later - earlier for earlier, later in zip(times, times[1:])), 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", metavar="ADDRESS")
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--kill", choices=["STOP", "KILL"], default="KILL", help="what happens to the last peer")
    arguments = parser.parse_args()
    if arguments.peer:
        peer(arguments.peer)
        return
    signal.signal(signal.SIGALRM, stuck)
    began = time.monotonic()
    peers = [Peer(f"127.0.0.1:{27_300 + os.getpid() % 1000 * 8 + index}") for index in range(arguments.peers)]
    for one in peers:
        one.wait_for("ready")
    for one in peers[1:]:
        for other in peers[: peers.index(one)]:
            one.tell(connect=other.address)
            one.wait_for("connected")
    for one in peers:
        one.tell(neighbours=arguments.peers - 1)
        one.wait_for("neighbours")
    peers[0].tell(rounds=100)
    peers[0].tell(watch=True)
    next_rounds(peers[0], 1)
    start = time.monotonic() - began
    before = loopback_bytes()
    times = next_rounds(peers[0], ROUNDS)
    carried = loopback_bytes() - before
    memory = max(resident_bytes(one.process.pid) for one in peers)
    peers[-1].process.send_signal(getattr(signal, f"SIG{arguments.kill}"))
    without = slowest(next_rounds(peers[0], 4), 4)
    for one in peers:
        one.process.kill()
    rounds = [later - earlier for earlier, later in zip(times, times[1:])]
    print(json.dumps({
        "system": "p2pfl 0.4.4",
        "peers": arguments.peers,
        "start_s": round(start, 2),
        "round_s": round(statistics.median(rounds), 3) if rounds else None,
        "mb_per_round": round(carried / max(len(rounds), 1) / 1e6, 1),
        "mb_per_peer": round(memory / 1e6),
        f"slowest_round_{arguments.kill.lower()}_s": without,
    }))


if __name__ == "__main__":
    main()
