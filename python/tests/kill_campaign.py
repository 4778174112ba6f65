"""Kills trainers, peers, and both, again and again, and audits the weights in between.

usage: MINGLE_BIN=... python kill_campaign.py [KILLS [SEED]]
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from conftest import wait_until
from swarm import LocalSwarm, kill

PEERS = 3
KILLS_BETWEEN_AUDITS = 10
LONG_S = 60.0
Process = subprocess.Popen[bytes]


def campaign(folder: Path, kills: int, seed: int) -> Counter[str]:
    """Kills `kills` times, in an order that the seed determines, and returns the counts by target. Raises where an audit finds an unexplained
    weight, or the swarm does not go on."""
    chance, counts = random.Random(seed), Counter[str]()
    with LocalSwarm(folder, PEERS, rounds=10_000_000) as swarm:
        peers = [swarm.start_peer(node) for node in range(PEERS)]
        scripts = [_start_script(swarm, node) for node in range(PEERS)]
        for number in range(1, kills + 1):
            node, what = chance.randrange(PEERS), chance.choice(["trainer", "peer", "both"])
            _wait_for_exchanges(swarm, node)
            time.sleep(chance.uniform(0.0, 0.3))  # anywhere in a round, which is the point of the test
            if what != "peer":
                kill(scripts[node])
            if what != "trainer":
                kill(peers[node])
                peers[node] = swarm.start_peer(node)
            if what != "peer":
                scripts[node] = _start_script(swarm, node)
            counts[what] += 1
            if number % KILLS_BETWEEN_AUDITS == 0 or number == kills:
                _wait_for_exchanges(swarm, node)
                for process in scripts + peers:
                    kill(process)
                swarm.audit()
                print(f"{number} kills, seed {seed}: {dict(counts)}, the weights add up to {PEERS} exactly", flush=True)
                peers = [swarm.start_peer(each) for each in range(PEERS)]
                scripts = [_start_script(swarm, each) for each in range(PEERS)]
    return counts


def _start_script(swarm: LocalSwarm, node: int) -> Process:
    swarm.progress(node).unlink(missing_ok=True)
    return swarm.start_script(node, Path(__file__).with_name("slow_trainer.py"), str(node), str(swarm.progress(node)))


def _wait_for_exchanges(swarm: LocalSwarm, node: int) -> None:
    """Waits until the trainer of a peer has exchanged with it."""
    progress = swarm.progress(node)
    wait_until(lambda: progress.exists() and progress.stat().st_size > 0, f"trainer {node} exchanges\n{swarm.output(f'script{node}')[-2000:]}", LONG_S)


if __name__ == "__main__":
    kills, seed = (int(word) for word in (sys.argv[1:] + ["100", "0"][len(sys.argv) - 1 :])[:2])
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mingle-kills-") as name:
        campaign(Path(name), kills, seed)
    print(f"{kills} kills in {time.monotonic() - began:.0f} s, seed {seed}: every audit was exact, and the swarm went on after each")
