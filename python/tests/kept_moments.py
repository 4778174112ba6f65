"""A trainer with AdamW, whose moments its peer keeps: it prints the steps that they have seen, at the first order and at the end.

usage: MINGLE_HOME=HOME python kept_moments.py SITE [share]
"""

import sys

import torch
from torch import nn

import mingle

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]))
target = float(sys.argv[1])
model = nn.Linear(1, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)


def seen() -> str:
    """Steps that the moments have seen, and the length of the second ones."""
    states = list(optimizer.state.values())
    steps = {int(state["step"]) for state in states} or {0}
    return f"{max(steps)} steps, second moments {sum(float(state['exp_avg_sq'].sum()) for state in states):.6f}"


with mingle.join(model, optimizer, name="four numbers", keep_optimizer=True, share_optimizer="share" in sys.argv) as swarm:
    print(f"begins in round {swarm.round} of {swarm.rounds} with {seen()}", flush=True)
    while True:
        optimizer.zero_grad()
        (model(torch.ones(8, 1)) - target).square().mean().backward()
        optimizer.step()
print(f"ends after round {swarm.round} with {seen()}", flush=True)
