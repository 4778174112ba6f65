"""Softmax regression on the embedded digits in numpy: the built-in model `softmax`, trained by another program.

usage: MINGLE_HOME=HOME python softmax_digits.py SITE SITES
"""

import gzip
import sys
from pathlib import Path

import numpy as np

import mingle

COUNT, CLASSES, TEST_COUNT, BATCH = 1797, 10, 360, 32
LEARNING_RATE = 0.1

packed = np.frombuffer(gzip.decompress((Path(__file__).parents[2] / "models/data/digits.bin.gz").read_bytes()), dtype=np.uint8)
labels, images = packed[:COUNT].astype(int), packed[COUNT:].reshape(COUNT, 64).astype(np.float32) / 16
order = np.random.default_rng(0).permutation(COUNT)
test, train = order[:TEST_COUNT], order[TEST_COUNT:][int(sys.argv[1]) :: int(sys.argv[2])]
random = np.random.default_rng(int(sys.argv[1]))


def probabilities(model, x):
    logits = x @ model[: 64 * CLASSES].reshape(64, CLASSES) + model[64 * CLASSES :]
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def local_steps(model, count):
    for _ in range(count):
        chosen = random.choice(train, BATCH, replace=False)
        error = (probabilities(model, images[chosen]) - np.eye(CLASSES)[labels[chosen]]) / BATCH
        gradient = np.concatenate([(images[chosen].T @ error).ravel(), error.sum(axis=0)]).astype(np.float32)
        model = model - LEARNING_RATE * gradient
    return model


def evaluate(model):
    return {"accuracy": (float((probabilities(model, images[test]).argmax(axis=1) == labels[test]).mean()), TEST_COUNT)}


with mingle.Exchange(None, "softmax", np.zeros(65 * CLASSES, dtype=np.float32), samples=len(train), evaluate=evaluate) as swarm:
    while not swarm.done:
        swarm.exchange(local_steps(swarm.model, swarm.steps))
