"""One peer of p2pfl, which takes orders on standard input (`connect ADDRESS`, `start`) and ends with it.

Arguments: the number of parameters, the number of peers, the index of this one, and settings as JSON. Nothing is trained: a
learner of p2pfl's own interface returns a vector that is different on each peer, so that an average shows whose vectors are
in it. That needs none of the frameworks p2pfl works with.
"""

import json
import os
import sys

from p2pfl.settings import Settings

PARAMETERS, PEERS, NODE = (int(argument) for argument in sys.argv[1:4])
# Set before anything else of p2pfl is loaded: some modules read the settings only then.
Settings.general.DISABLE_RAY = True
Settings.general.LOG_LEVEL = "CRITICAL"
Settings.set_from_dict(json.loads(sys.argv[4]))

import numpy  # noqa: E402
from datasets import Dataset, DatasetDict  # noqa: E402
from p2pfl.learning.dataset.p2pfl_dataset import P2PFLDataset  # noqa: E402
from p2pfl.learning.frameworks.learner import Learner  # noqa: E402
from p2pfl.learning.frameworks.p2pfl_model import P2PFLModel  # noqa: E402
from p2pfl.node import Node  # noqa: E402

FRAMEWORK = "numpy"


def say(event, **rest):
    """Writes an event as a line of JSON."""
    print(json.dumps({"event": event, **rest}), flush=True)


def vector_of(node):
    """The vector of a peer in each average: no two sets of peers have the same mean."""
    return [numpy.full(PARAMETERS, 2.0**node, dtype=numpy.float32)]


def members_of(average):
    """The number of peers whose vectors are in an average: the sum has as many ones in binary."""
    for members in range(1, PEERS + 1):
        total = average * members
        if abs(total - round(total)) < 1e-3 and round(total).bit_count() == members:
            return members
    return 0


class Vector(P2PFLModel):
    """A model of one vector."""

    def get_parameters(self):
        return self.parameters

    def set_parameters(self, params):
        if isinstance(params, bytes):
            params, _ = self.decode_parameters(params)
        self.parameters = params

    def get_framework(self):
        return FRAMEWORK


class Idle(Learner):
    """A learner that learns nothing, and reports when the average with its vector arrives."""

    handed_out = False

    def set_model(self, model):
        super().set_model(model)
        if self.handed_out:
            self.handed_out = False
            say("round", members=members_of(float(self.get_model().get_parameters()[0][0])))

    def fit(self):
        model = self.get_model()
        model.set_parameters(vector_of(NODE))
        model.set_contribution([self.addr], 1)
        self.handed_out = True
        return model

    def interrupt_fit(self):
        """Does nothing: there is no training to interrupt."""

    def evaluate(self):
        return {}

    def get_framework(self):
        return FRAMEWORK


def main():
    row = Dataset.from_dict({"x": [0]})
    data = P2PFLDataset(DatasetDict({"train": row, "test": row}))
    node = Node(Vector(FRAMEWORK, params=vector_of(NODE)), data, addr="127.0.0.1", learner=Idle())
    node.start()
    say("listening", address=node.addr)
    for order in sys.stdin:
        match order.split():
            case ["connect", address]:
                node.connect(address)
                say("connected")
            case ["start"]:
                node.set_start_learning(rounds=1_000_000, epochs=1, trainset_size=PEERS)
    os._exit(0)  # its threads would go on


if __name__ == "__main__":
    main()
