#!/usr/bin/env python3
"""Averages a vector of 1.66 million parameters among processes on this machine, with Mingle, hivemind and p2pfl.

Prints one JSON object a system:

  start_s      from the start of the first process until every peer has taken part in a round
  round_s      median seconds of a round, with round_s_min and round_s_max; a round ends when the first peer says so;
               null if no round was whole
  partial      how many of the rounds lacked some peer's vector (null where the system does not tell); they do not count
               in round_s
  mb_per_round what the loopback interface carried in a round, in megabytes, over all peers
  mb_per_peer  memory of the largest peer with its child processes, in megabytes
  frozen_s     longest round of any other peer after one was stopped by SIGSTOP; null if it took longer than --stuck-s
  frozen_left  how many peers' vectors were in each other peer's last round after that
  killed_s, killed_left   the same after SIGKILL
  rounds_stuck, frozen_stuck, killed_stuck   instead of those numbers, where peers came to a halt, or were
               not together any more, with nothing done to them

Nothing is trained. Peers begin with different vectors where the system lets them; Mingle's do not, which changes nothing
about the time a round takes.
"""

import argparse
import contextlib
import json
import signal
import statistics
import sys
import tempfile
import time

from processes import Stuck, loopback_bytes
from report import head, row
from systems import START_S, Hivemind, Mingle, P2pfl

ROUNDS_BEFORE = 12
ROUNDS_AFTER = 6
OF_ROUNDS = {"round_s": statistics.median, "round_s_min": min, "round_s_max": max}


@contextlib.contextmanager
def swarm_of(system, peers, faulty):
    """Peers that have all finished a round, and the seconds that took. None of them outlives the block."""
    swarm = []

    def join(peer):
        swarm.append(peer)
        return peer

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            began = time.monotonic()
            system.start(peers, folder, faulty, join)
            for peer in swarm:
                peer.wait_for("round", START_S)
            yield swarm, time.monotonic() - began
        finally:
            for peer in swarm:
                peer.end()


def next_rounds(peer, count, stuck_s):
    """The ends of the next rounds of a peer, and the number of peers that took part in each, where it is reported."""
    said = [peer.wait_for("round", stuck_s) for _ in range(count)]
    return [when for when, _ in said], [rest.get("members") for _, rest in said]


def gaps(times):
    """The differences between successive times."""
    return [later - earlier for earlier, later in zip(times, times[1:])]


def measure_rounds(system, peers, count, stuck_s):
    """The cost of a round without faults."""
    with swarm_of(system, peers, faulty=False) as (swarm, start_s):
        skip_what_was_said(swarm[0])
        [began], _ = next_rounds(swarm[0], 1, stuck_s)
        before = loopback_bytes()
        times, members = next_rounds(swarm[0], count, stuck_s)
        carried = (loopback_bytes() - before) / count
        memory = max(peer.memory_bytes() for peer in swarm)
    whole = [gap for gap, taking_part in zip(gaps([began, *times]), members) if taking_part in (None, peers)]
    return {
        "start_s": round(start_s, 2),
        **{name: round(of(whole), 3) if whole else None for name, of in OF_ROUNDS.items()},
        "partial": None if members[0] is None else count - len(whole),
        "mb_per_round": round(carried / 1e6, 1),
        "mb_per_peer": round(memory / 1e6),
    }


def measure_fault(system, peers, name, number, stuck_s):
    """The rounds of the other peers after the last peer has received this signal."""
    with swarm_of(system, peers, faulty=True) as (swarm, _):
        *others, last = swarm
        _, members = next_rounds(others[0], ROUNDS_BEFORE, stuck_s)
        if members[-1] not in (None, peers):
            raise Stuck(f"the last round before had {members[-1]} peers in it")
        for peer in others:
            skip_what_was_said(peer)
        last.signal(number)
        since = time.monotonic()
        try:
            after = [next_rounds(peer, ROUNDS_AFTER, stuck_s) for peer in others]
        except Stuck:
            return {f"{name}_s": None, f"{name}_left": None}
    longest = max(max(gaps([since, *times])) for times, _ in after)
    return {f"{name}_s": round(longest, 3), f"{name}_left": [members[-1] for _, members in after]}


def skip_what_was_said(peer):
    """Discards the events of rounds that are over."""
    while not peer.said.empty():
        peer.said.get()


def measure(system, peers, count, stuck_s):
    """All measurements of a system, one after the other."""
    yield {"system": system.name(), "peers": peers}
    measurements = {
        "rounds": lambda: measure_rounds(system, peers, count, stuck_s),
        "frozen": lambda: measure_fault(system, peers, "frozen", signal.SIGSTOP, stuck_s),
        "killed": lambda: measure_fault(system, peers, "killed", signal.SIGKILL, stuck_s),
    }
    for name, measurement in measurements.items():
        try:
            yield measurement()
        except Stuck as stuck:
            yield {f"{name}_stuck": str(stuck)}


def chosen_systems(arguments):
    """The systems for which a program is given, in the order in which they are measured."""
    if arguments.mingle:
        yield Mingle(arguments.mingle, "on")
        yield Mingle(arguments.mingle, "off")
    if arguments.hivemind:
        yield Hivemind(arguments.hivemind)
    if arguments.p2pfl:
        yield P2pfl(arguments.p2pfl, "hurried")
        yield P2pfl(arguments.p2pfl, "as installed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mingle", metavar="BINARY", help="measure this program")
    parser.add_argument("--hivemind", metavar="PYTHON", help="measure the hivemind that this Python has")
    parser.add_argument("--p2pfl", metavar="PYTHON", help="measure the p2pfl that this Python has")
    parser.add_argument("--peers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=16, help="take the median of so many")
    parser.add_argument("--stuck-s", type=float, default=60.0, help="a round that takes longer counts as stuck")
    arguments = parser.parse_args()
    # Exits by an exception, so that peers are ended here too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    measured = []
    for system in chosen_systems(arguments):
        pieces = measure(system, arguments.peers, arguments.rounds, arguments.stuck_s)
        measured.append({name: value for piece in pieces for name, value in piece.items()})
        print(json.dumps(measured[-1]), flush=True)
    compare(measured)


def compare(measured):
    """Adds rows to the report: Mingle with durability on beside each other system."""
    ours, *others = [one for one in measured if one.get("round_s") and "durability off" not in one["system"]] or [None]
    if not others or not ours["system"].startswith("mingle"):
        return
    head(f"{ours['peers']} peers, {ours['system']}")
    for other in others:
        for name, unit, what in [("round_s", "s", "a round"), ("start_s", "s", "from nothing to the first round"),
                                 ("mb_per_peer", "MB", "memory of a peer"), ("frozen_s", "s", "longest round after a freeze"),
                                 ("killed_s", "s", "longest round after a kill")]:
            if ours.get(name) and other.get(name):
                row("rivals", f"{what}, {ours['peers']} peers", other["system"], unit, ours[name], other[name],
                    [other[name] / ours[name]])


if __name__ == "__main__":
    main()
