"""A trainer for the peer in MINGLE_HOME. With the argument `stall` it pauses after ten exchanges until that peer has ended; for test_swarm.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from conftest import wait_until

import mingle

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
socket = Path(os.environ["MINGLE_HOME"]) / "mingle.sock"
with mingle.join(model, optimizer, name="line", timeout=60) as swarm:
    while not swarm.done:
        if swarm.exchanges == 10 and "stall" in sys.argv:
            wait_until(lambda: not socket.exists(), "the peer has ended", 120)
        optimizer.zero_grad()
        (model(torch.ones(1, 2)) - 3).square().mean().backward()
        optimizer.step()
print(f"done {swarm.done}, round {swarm.round}")
