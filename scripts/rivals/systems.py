"""The start of a swarm of each system: peers that average the same vector repeatedly, and report each `round`."""

import json
import os
import subprocess
from pathlib import Path

from processes import Peer

HERE = Path(__file__).parent
HIDDEN = 22_133
PARAMETERS = 75 * HIDDEN + 10  # of a perceptron with one hidden layer, on 8 x 8 images in 10 classes
# Timeout for the start of a peer, which loads gigabytes of libraries for some systems.
START_S = 120.0
# One thread for the vector arithmetic of each peer: there are as many peers as cores, or more.
ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Mingle:
    """The program of this repository, with `--wait sync`: every round is whole."""

    def __init__(self, binary, durability, topology="complete", method="exact-average"):
        self.binary, self.durability = str(Path(binary).resolve()), durability
        self.topology, self.method = topology, method

    def name(self):
        """The system and its settings, for the report."""
        return f"mingle {self._run('--version').split()[-1]}, durability {self.durability}"

    def start(self, count, folder, faulty, join):
        """Starts peers and hands each to `join`. Where peers will be `faulty`, a late neighbour is given up early."""
        plan = f"{folder}/plan.json"
        self._run("plan", "make", "--topology", f"{self.topology}:n={count}", "--medium", "point-to-point",
                  "--method", self.method, "--local-steps", "0", "-o", plan)
        homes = [f"{folder}/{node}" for node in range(count)]
        for node, home in enumerate(homes):
            self._run("plan", "bind", plan, "--peer", f"{node}={self._run('init', '--home', home).strip()}")
        deadline_ms = 300 if faulty else 2000
        first = join(self._peer(homes[0], plan, deadline_ms, []))
        address = first.wait_for("listening", START_S)[1]["addresses"][0]
        for home in homes[1:]:
            join(self._peer(home, plan, deadline_ms, ["--bootstrap", address]))

    def _peer(self, home, plan, deadline_ms, bootstrap):
        command = [self.binary, "run", "--json", "--stop-with-stdin", "--home", home, "--plan", plan, "--wait", "sync",
                   "--model", f"mlp:hidden={HIDDEN}", "--rounds", "1000000", "--evaluate-every", "1000000",
                   "--listen", "/ip4/127.0.0.1/tcp/0", "--durability", self.durability,
                   "--deadline", f"{deadline_ms}ms", *bootstrap]
        return Peer(command, home, ONE_THREAD)

    def _run(self, *arguments):
        return subprocess.run([self.binary, *arguments], check=True, capture_output=True, text=True).stdout


class Hivemind:
    """The averager of hivemind, with waiting times short enough for peers on one machine."""

    def __init__(self, python):
        self.python = python

    def name(self):
        """The system and its settings, for the report."""
        return f"hivemind {version_of('hivemind', self.python)}"

    def start(self, count, folder, faulty, join):
        """Starts peers and hands each to `join`; they are the same whether some will be `faulty` or not."""
        command = [self.python, str(HERE / "hivemind_peer.py"), str(PARAMETERS), str(count)]
        first = join(Peer(command, folder, ONE_THREAD))
        addresses = first.wait_for("listening", START_S)[1]["addresses"]
        for _ in range(count - 1):
            join(Peer([*command, *addresses], folder, ONE_THREAD))


class P2pfl:
    """The nodes of p2pfl, all connected with each other by gRPC and all in the train set."""

    # Settings of p2pfl, by section. Heartbeats keep their default: with faster ones a busy machine lost peers for good.
    SETTINGS = {
        "as installed": {},
        "hurried": {
            "general": {"GRPC_TIMEOUT": 2},
            "gossip": {"PERIOD": 0.05, "MODELS_PERIOD": 0.1, "MODELS_PER_ROUND": 4},
            "training": {"VOTE_TIMEOUT": 10, "AGGREGATION_TIMEOUT": 10},
        },
    }

    def __init__(self, python, settings):
        self.python, self.settings = python, settings

    def name(self):
        """The system and its settings, for the report."""
        return f"p2pfl {version_of('p2pfl', self.python)}, {self.settings}"

    def start(self, count, folder, faulty, join):
        """Starts peers and hands each to `join`; they are the same whether some will be `faulty` or not."""
        settings = json.dumps(self.SETTINGS[self.settings])
        swarm, addresses = [], []
        for node in range(count):
            command = [self.python, str(HERE / "p2pfl_peer.py"), str(PARAMETERS), str(count), str(node), settings]
            os.mkdir(f"{folder}/{node}")  # each writes its logs to its working folder
            swarm.append(join(Peer(command, f"{folder}/{node}", ONE_THREAD)))
        for peer in swarm:
            address = peer.wait_for("listening", START_S)[1]["address"]
            for other in addresses:
                peer.tell("connect", other)
                peer.wait_for("connected", START_S)
            addresses.append(address)
        swarm[0].tell("start")


def version_of(package, python):
    """The installed version of a package of this Python."""
    asking = f"import importlib.metadata as m; print(m.version('{package}'))"
    return subprocess.run([python, "-c", asking], check=True, capture_output=True, text=True).stdout.strip()
