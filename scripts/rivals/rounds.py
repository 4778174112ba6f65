#!/usr/bin/env python3
"""Averages a model of 1.66 million parameters among processes on this machine, with Mingle and with hivemind.

Prints one JSON object a system: seconds until all peers have taken part once, the median seconds of a round, megabytes per
round over all peers, resident memory of a peer, and the rounds of the others after one peer was killed or frozen. Nothing
is trained. Peers begin with different models where the system lets them; Mingle's do not, which changes nothing about the
time a round takes.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PARAMETERS = 1_659_985  # 75 for each of 22,133 hidden units on 8 x 8 images, and 10
HIDDEN = 22_133
ROUNDS = 24
ROUNDS_WITHOUT = 12
# A round that takes longer than this counts as stuck.
STUCK_S = 60.0


def loopback_bytes():
    """Bytes that the loopback interface has carried so far."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[0])
    raise RuntimeError("there is no loopback interface")


def resident_bytes(process):
    """Memory of a process now; what it shares with others counts in part."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {process} tells no memory")


class MinglePeer:
    """A peer process and what it says."""

    def __init__(self, binary, home, plan, bootstrap, durability, deadline_ms):
        arguments = [binary, "run", "--json", "--stop-with-stdin", "--home", home, "--plan", plan, "--wait", "sync"]
        arguments += ["--model", f"mlp:hidden={HIDDEN}", "--rounds", "1000000", "--evaluate-every", "1000000"]
        arguments += ["--listen", "/ip4/127.0.0.1/tcp/0", "--durability", durability]
        arguments += ["--deadline-ms", str(deadline_ms)]
        arguments += [part for address in bootstrap for part in ("--bootstrap", address)]
        environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True
        )

    def wait_for(self, event):
        for line in self.process.stdout:
            said = json.loads(line)
            if "error" in said:
                raise RuntimeError(said["error"]["message"])
            if said["event"] == event:
                return said
        raise RuntimeError(f"a peer ended before it said {event}")

    def rounds(self, count):
        """Times when the next rounds are over, on the clock of this script."""
        times = []
        for _ in range(count):
            self.wait_for("round")
            times.append(time.monotonic())
        return times


def gaps(times):
    return [later - earlier for earlier, later in zip(times, times[1:])]


def mingle_swarm(binary, peers, durability, deadline_ms, folder):
    """Peers that have all been through a round, and the seconds that took."""
    os.mkdir(folder)
    plan = f"{folder}/plan.json"
    run = lambda *arguments: subprocess.run([binary, *arguments], check=True, capture_output=True, text=True).stdout
    run("plan", "make", "--topology", f"complete:n={peers}", "--medium", "point-to-point", "--method", "exact-average",
        "--local-steps", "0", "-o", plan)
    homes = [f"{folder}/{node}" for node in range(peers)]
    for node, home in enumerate(homes):
        run("plan", "bind", plan, "--peer", f"{node}={run('init', '--home', home).strip()}")
    began = time.monotonic()
    first = MinglePeer(binary, homes[0], plan, [], durability, deadline_ms)
    address = first.wait_for("listening")["addresses"][0]
    swarm = [first] + [MinglePeer(binary, home, plan, [address], durability, deadline_ms) for home in homes[1:]]
    for peer in swarm:
        peer.wait_for("round")
    return swarm, time.monotonic() - began


def kill_all(swarm):
    for peer in swarm:
        peer.process.kill()
        peer.process.wait()


def mingle(binary, peers, durability, folder):
    # As it is set up unless told otherwise: nobody is given up, and every round is whole.
    swarm, start = mingle_swarm(binary, peers, durability, 2000, f"{folder}/usual")
    swarm[0].rounds(1)
    before, times = loopback_bytes(), swarm[0].rounds(ROUNDS + 1)
    # The first of these events ends a round that began before.
    carried = (loopback_bytes() - before) * ROUNDS / (ROUNDS + 1)
    memory = max(resident_bytes(peer.process.pid) for peer in swarm)
    kill_all(swarm)
    # Where peers answer at once, a neighbour that does not can be given up early.
    swarm, _ = mingle_swarm(binary, peers, durability, 300, f"{folder}/eager")
    swarm[0].rounds(ROUNDS_WITHOUT)
    swarm[-1].process.send_signal(signal.SIGSTOP)
    frozen = max(gaps(swarm[0].rounds(ROUNDS_WITHOUT)))
    swarm[-1].process.send_signal(signal.SIGCONT)
    swarm[0].rounds(ROUNDS_WITHOUT)
    swarm[-1].process.kill()
    killed = max(gaps(swarm[0].rounds(ROUNDS_WITHOUT)))
    kill_all(swarm)
    version = subprocess.run([binary, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    return report(f"mingle {version}, durability {durability}", peers, start, gaps(times), carried, memory, frozen, killed)


def report(system, peers, start, rounds, carried, memory, frozen, killed):
    limit = lambda seconds: None if seconds is None or seconds >= STUCK_S else round(seconds, 3)
    return {
        "system": system,
        "peers": peers,
        "start_s": round(start, 2),
        "round_s": round(statistics.median(rounds), 3),
        "round_s_min": round(min(rounds), 3),
        "round_s_max": round(max(rounds), 3),
        "mb_per_round": round(carried / len(rounds) / 1e6, 1),
        "mb_per_peer": round(memory / 1e6),
        "slowest_round_frozen_s": limit(frozen),
        "slowest_round_killed_s": limit(killed),
    }


def hivemind_peer(initial, peers, orders, answers):
    """One peer in a process of its own: a round for each order."""
    import hivemind
    import torch

    torch.set_num_threads(1)
    dht = hivemind.DHT(initial_peers=initial, host_maddrs=["/ip4/127.0.0.1/tcp/0"], start=True)
    answers.put(("address", [str(address) for address in dht.get_visible_maddrs()]))
    averager = hivemind.averaging.DecentralizedAverager(
        [torch.randn(PARAMETERS)], dht, start=True, prefix="rounds", target_group_size=peers,
        min_matchmaking_time=1.0, request_timeout=1.0,
    )
    answers.put(("ready", averager.pid))
    while orders.get():
        began = time.monotonic()
        try:
            averager.step(timeout=STUCK_S)
        except Exception:  # whatever it is, the round did not come about
            pass
        answers.put(("round", time.monotonic() - began))


def hivemind_system(peers):
    import multiprocessing

    import hivemind

    # Its own processes are forked too, and cannot be from one that was not.
    context = multiprocessing.get_context("fork")
    began = time.monotonic()
    processes, initial = [], []
    for _ in range(peers):
        orders, answers = context.Queue(), context.Queue()
        process = context.Process(target=hivemind_peer, args=(initial, peers, orders, answers))
        process.start()
        kind, addresses = answers.get(timeout=120)
        initial = initial or addresses
        processes.append((process, orders, answers))
    averagers = [answers.get(timeout=120)[1] for _, _, answers in processes]

    def one_round(members):
        for _, orders, _ in members:
            orders.put(True)
        return max(answers.get(timeout=2 * STUCK_S)[1] for _, _, answers in members)

    one_round(processes)
    start = time.monotonic() - began
    before = loopback_bytes()
    rounds = [one_round(processes) for _ in range(ROUNDS)]
    carried = loopback_bytes() - before
    memory = max(
        sum(resident_bytes(child) for child in family(process.pid)) for process, _, _ in processes
    )
    rest, last = processes[:-1], processes[-1][0]
    # The last peer goes just as the others begin a round, as it would in a training.
    victims = family(last.pid)
    for victim in victims:
        os.kill(victim, signal.SIGSTOP)
    frozen = max(one_round(rest) for _ in range(3))
    for victim in victims:
        os.kill(victim, signal.SIGKILL)
    killed = max(one_round(rest) for _ in range(3))
    for process, _, _ in processes:
        for member in family(process.pid):
            try:
                os.kill(member, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.join()
    return report(f"hivemind {hivemind.__version__}", peers, start, rounds, carried, memory, frozen, killed)


def family(process):
    """The process and all that come from it."""
    children = Path(f"/proc/{process}/task/{process}/children")
    try:
        ids = [int(child) for child in children.read_text().split()]
    except FileNotFoundError:
        return []
    return [process] + [member for child in ids for member in family(child)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mingle", metavar="BINARY", help="measure this program")
    parser.add_argument("--durability", default="on", choices=["on", "off"])
    parser.add_argument("--hivemind", action="store_true", help="measure hivemind, which this Python must have")
    parser.add_argument("--peers", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.mingle:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(mingle(arguments.mingle, arguments.peers, arguments.durability, folder)), flush=True)
    if arguments.hivemind:
        print(json.dumps(hivemind_system(arguments.peers)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
