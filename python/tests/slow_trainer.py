"""A trainer that pulls eight numbers towards its own, in SECONDS a round, and writes the round of each exchange to PROGRESS_FILE.

usage: MINGLE_HOME=HOME python slow_trainer.py SITE PROGRESS_FILE [SECONDS]
"""

import signal
import sys
import time
from array import array

import mingle

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what runs in the background without it
site, progress = int(sys.argv[1]), sys.argv[2]
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.005
target = [float(site + index) for index in range(8)]
with mingle.Exchange(None, "eight numbers", array("f", bytes(32))) as swarm, open(progress, "a", buffering=1) as log:
    while not swarm.done:
        time.sleep(seconds)
        moved = array("f", (value + 0.05 * (wanted - value) for value, wanted in zip(swarm.model, target)))
        swarm.exchange(moved)
        log.write(f"{swarm.round}\n")
