"""A script that says how many rounds of its run train, as its first order has it, and trains nothing.

usage: MINGLE_HOME=HOME python training_rounds.py
"""

from array import array

import mingle

with mingle.Exchange(None, "nothing", array("f", [0.0])) as swarm:
    print("training rounds:", swarm.rounds_left, flush=True)
    while not swarm.done:
        swarm.exchange(swarm.model)
