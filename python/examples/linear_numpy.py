"""Linear regression in numpy, over sites that keep their samples: all find the weights that fit the samples of all.

usage: MINGLE_HOME=HOME python linear_numpy.py SITE SITES
"""

import sys

import numpy as np

import mingle

site, sites = int(sys.argv[1]), int(sys.argv[2])
random = np.random.default_rng(site)
true_weights = np.arange(1, 9, dtype=np.float32)
# Each site sees some of the features only: alone, none of them can find all weights.
x = random.normal(size=(200, 8)).astype(np.float32) * (np.arange(8) % sites == site)
y = x @ true_weights + 0.01 * random.normal(size=200).astype(np.float32)


def train(weights, steps):
    for _ in range(steps):
        weights = weights - 0.1 * x.T @ (x @ weights - y) / len(y)
    return weights


with mingle.Exchange(None, "linear regression", np.zeros(8, dtype=np.float32), samples=len(y)) as swarm:
    while not swarm.done:
        weights = train(swarm.model, swarm.steps)
        swarm.exchange(weights, loss=float(np.mean((x @ weights - y) ** 2)))
print(f"largest error of a weight: {np.abs(swarm.model - true_weights).max():.4f}")
