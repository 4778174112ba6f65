"""One of several processes of a site whose model is sharded: `fsdp_training.py HOME RANK COUNT RENDEZVOUS MODE`, for test_sharded.py.

With COUNT 1 the same model trains whole, on the batches of all processes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import mingle

home, rank, count, rendezvous, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
GLOBAL_BATCH = 8


def make_model() -> nn.Sequential:
    """A model with a bias of one number, so that a process has no part of it."""
    torch.manual_seed(7)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 5), nn.LayerNorm(5), nn.Linear(5, 1))


def sharded(model: nn.Sequential) -> nn.Sequential:
    """The model over all processes."""
    if mode == "tensor-parallel":
        mesh = init_device_mesh("cpu", (count, 1), mesh_dim_names=("shard", "tensor"))
        fully_shard(model, mesh=mesh)
        return model
    if mode == "old":
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(model, device_id=torch.device("cpu"))  # type: ignore[return-value]
    mesh = init_device_mesh("cpu", (count,))
    layers = [] if mode == "root" else [model[0], model[2]]
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def main() -> None:
    """Trains to the end of the run, and prints the sum of the model."""
    torch.set_num_threads(1)
    if count > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=count)
    model = make_model()
    if mode == "half":
        model.to(torch.bfloat16)
    if count > 1:
        model = sharded(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    dtype = next(iter(model.parameters())).dtype
    held_out = torch.linspace(-1, 1, 12, dtype=dtype).view(4, 3)

    def evaluate() -> dict[str, Any]:
        return {"output": (model(held_out).float().mean().item(), 4)}

    options: dict[str, Any] = {"evaluate": evaluate} if mode in ("train", "root") else {}
    if mode == "keep":
        options["keep_optimizer"] = True
    chance = torch.Generator().manual_seed(3)
    steps, most = 0, {"rest": 6}.get(mode, 100)
    with mingle.join(model, optimizer, home=home, timeout=60, **options) as swarm:
        before = [parameter for parameter in model.parameters()]
        while steps < most:
            x = torch.randn(GLOBAL_BATCH, 3, generator=chance).to(dtype)
            mine = x.chunk(count)[rank]
            optimizer.zero_grad()
            (model(mine).sum(1) - mine.sum(1)).square().mean().backward()
            if mode == "nan" and steps == 5:
                with torch.no_grad():
                    model[2].bias.fill_(float("nan"))
            if mode == "dies" and steps == 6 and rank == count - 1:
                os._exit(9)
            steps += 1
            optimizer.step()
            if mode == "root" and steps == 10:
                with torch.no_grad():
                    model(held_out)  # leaves the whole tensors in a model that is sharded at its root alone
            if mode in ("reset", "root") and steps == 10:
                swarm.reset()
        assert all(one is other for one, other in zip(before, model.parameters())), "the parameters of the optimizer stay those of the model"
    parts = [swarm.tensors.layout.dimension, *(part.numel() for part in (getattr(p, "_local_tensor", p) for p in model.parameters()))]
    swarm.save(Path(home) / "model.pt")
    total = sum(getattr(parameter, "full_tensor", lambda p=parameter: p)().double().sum().item() for parameter in model.parameters())
    if mode == "root":
        mingle.load(model, Path(home) / "begin.safetensors")
        total = sum(getattr(parameter, "full_tensor", lambda p=parameter: p)().double().sum().item() for parameter in model.parameters())
    print(f"{steps} steps, round {swarm.round}, sum {total!r}, {sum(parts[1:])} of {parts[0]} numbers here", flush=True)


try:
    main()
except mingle.MingleError as error:
    print(f"{type(error).__name__}: {error}", flush=True)
    os._exit(3)  # gloo's threads abort a process that exits normally after the others of its group
except RuntimeError as error:
    print(f"RuntimeError: {error}", flush=True)
    os._exit(4)
os._exit(0)
