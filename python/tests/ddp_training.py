"""One of several processes of a site: `ddp_training.py HOME RANK COUNT RENDEZVOUS MODE`, for test_distributed.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from kept_logger import Lines
from torch import nn

import mingle

home, rank, count, rendezvous, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=count)
torch.manual_seed(rank)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
steps = 0
try:
    options: dict[str, Any] = {"timeout": 90 if mode != "gone" else 0.5, "keep_optimizer": True, "log_to": Lines(Path(home) / f"rank{rank}.jsonl")}
    with mingle.join(model, optimizer, home=home, name="ddp", **options) as swarm:
        if mode == "overlap":
            mingle.join(model, optimizer, home=home, overlap=True)
        while steps < 100:
            optimizer.zero_grad()
            model(torch.randn(8, 3)).square().mean().backward()
            if mode == "nan" and steps == 3:
                with torch.no_grad():
                    model.module[0].bias.fill_(float("nan"))
            steps += 1
            optimizer.step()
except mingle.MingleError as error:
    print(f"{type(error).__name__}: {error}", flush=True)
    os._exit(3)  # gloo's threads abort a process that exits normally after the others of its group
total = sum(tensor.double().sum().item() for tensor in swarm.tensors.tensors)
swarm.save(Path(home) / "model.pt")
print(f"{steps} steps, round {swarm.round}, sum {total!r}", flush=True)
os._exit(0)
