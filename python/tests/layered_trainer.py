"""A trainer of a network with a hidden layer of WIDTH, which learns the sine from samples of its site's half of the range.

usage: MINGLE_HOME=HOME python layered_trainer.py SITE WIDTH [compiled]

It prints the time at which an error of the swarm ends it. With `compiled` the hidden layer alone is compiled, as in regional compilation.
"""

import sys
import time

import torch
from torch import nn

import mingle

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]))
site, width = int(sys.argv[1]), int(sys.argv[2])
x = torch.rand(500, 1) * 3 - 3 * (1 - site)
y = torch.sin(x)
model = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1))
if "compiled" in sys.argv:
    model[0] = torch.compile(model[0], backend="eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
try:
    with mingle.join(model, optimizer, name="sine"):
        while True:
            chosen = torch.randint(len(x), (32,))
            optimizer.zero_grad()
            (model(x[chosen]) - y[chosen]).square().mean().backward()
            optimizer.step()
except mingle.MingleError:
    print(f"ended at {time.time():.1f}", flush=True)
    raise
everywhere = torch.linspace(-3, 3, 100).unsqueeze(1)
print(f"mean squared error from -3 to 3: {(model(everywhere) - torch.sin(everywhere)).square().mean():.4f}")
