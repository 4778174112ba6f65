"""A small convolutional network on handwritten digits: digits.py of python/examples, in a swarm of hivemind.

usage: python digits_hivemind.py SITE SITES

With local updates, so that a site takes steps of its own between averages, as Mingle's does. The sites average their parameters in the
background at the end of each epoch of hivemind, which is TARGET_BATCH_SIZE samples of all sites together. Forming a group takes
matchmaking_time; its documentation advises 3 to 5 s for small local runs and that shorter times suit a quick network, and on loopback 1 s
is enough. request_timeout is below it, as hivemind warns that it should be. An epoch that is shorter than a group takes to
form makes every site wait for the one under way: TARGET_BATCH_SIZE should be several seconds' worth of samples.
"""

import os
import sys

import hivemind
import torch
from digits_data import load
from torch import nn
from torch.utils.data import DataLoader

train_digits, test_digits = load(site=int(sys.argv[1]), sites=int(sys.argv[2]))
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 16, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
dht = hivemind.DHT(
    initial_peers=os.environ.get("HIVEMIND_PEERS", "").split(), host_maddrs=["/ip4/127.0.0.1/tcp/0"], start=True
)
print("listening", *dht.get_visible_maddrs(), flush=True)
optimizer = hivemind.Optimizer(
    dht=dht, run_id="digits-cnn", optimizer=optimizer, use_local_updates=True, batch_size_per_step=32,
    target_batch_size=int(os.environ["TARGET_BATCH_SIZE"]), matchmaking_time=1.0, averaging_timeout=10.0,
    averager_opts={"request_timeout": 0.5},
)


def train(epochs):
    for _ in range(epochs):
        for images, labels in DataLoader(train_digits, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()


def test():
    images, labels = test_digits.tensors
    with torch.no_grad():
        return {"accuracy": ((model.eval()(images).argmax(1) == labels).float().mean().item(), len(labels))}


train(epochs=1_000_000)
print(test())
