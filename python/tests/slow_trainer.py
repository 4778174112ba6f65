"""A trainer for the kill campaign: it pulls eight numbers towards its own, in some milliseconds a round, and notes each exchange.

usage: MINGLE_HOME=HOME python slow_trainer.py SITE PROGRESS_FILE
"""

import sys
import time
from array import array

import mingle

site, progress = int(sys.argv[1]), sys.argv[2]
target = [float(site + index) for index in range(8)]
with mingle.Exchange(None, "kill campaign", array("f", bytes(32))) as swarm, open(progress, "a", buffering=1) as log:
    while not swarm.done:
        time.sleep(0.005)
        moved = array("f", (value + 0.05 * (wanted - value) for value, wanted in zip(swarm.model, target)))
        swarm.exchange(moved)
        log.write(f"{swarm.round}\n")
