"""A linear regression of a site that prints the hash of its final model.

usage: MINGLE_HOME=HOME python hashed_model.py SITE
"""

import hashlib
import sys

import numpy as np

import mingle

random = np.random.default_rng(int(sys.argv[1]))
x = random.normal(size=(50, 8)).astype(np.float32)
y = x @ random.normal(size=8).astype(np.float32)

with mingle.Exchange(None, "linear regression", np.zeros(8, dtype=np.float32), samples=len(y)) as swarm:
    while not swarm.done:
        weights = swarm.model
        for _ in range(swarm.steps):
            weights = weights - 0.1 * x.T @ (x @ weights - y) / len(y)
        swarm.exchange(weights, loss=float(np.mean((x @ weights - y) ** 2)))
print("final model", hashlib.sha256(swarm.model.tobytes()).hexdigest(), flush=True)
