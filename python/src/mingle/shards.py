"""Tensors that `fully_shard` splits over the processes of a site (DTensor): gathered and scattered one at a time, by all ranks together.

A rank other than 0 holds one whole tensor at a time; the whole vector is on rank 0 alone.
"""

from __future__ import annotations

from typing import Any, cast

import torch

from mingle.errors import LayoutError

USE_FULLY_SHARD = "shard with torch.distributed.fsdp.fully_shard(module) over all processes of the site, or use DistributedDataParallel"


def is_sharded(tensor: torch.Tensor) -> bool:
    """Returns True if the tensor is a part of one that lies on several processes."""
    return hasattr(tensor, "full_tensor")


def check_sharding(name: str, tensor: torch.Tensor) -> None:
    """Raises `LayoutError` where the tensor lies on other processes than those of the default group, in the order of their ranks."""
    mesh, placements = cast(Any, tensor).device_mesh, cast(Any, tensor).placements
    ranks = mesh.mesh.flatten().tolist()
    if mesh.ndim != 1:
        raise LayoutError(f"`{name}` is sharded over a mesh of {mesh.ndim} dimensions, as for tensor parallelism, which is not supported: {USE_FULLY_SHARD}")
    if ranks != list(range(torch.distributed.get_world_size())):
        raise LayoutError(f"`{name}` is sharded over the ranks {ranks} of {torch.distributed.get_world_size()}, which is not supported: {USE_FULLY_SHARD}")
    if any(placement.is_partial() for placement in placements):
        raise LayoutError(f"`{name}` is a sum over processes that was not taken ({placements}), which is not supported: {USE_FULLY_SHARD}")


def check_modules(model: torch.nn.Module) -> None:
    """Raises `LayoutError` for the first kind of FSDP, whose parameters do not show their shapes."""
    if any(kind.__name__ == "FullyShardedDataParallel" for module in model.modules() for kind in type(module).__mro__):
        raise LayoutError(f"FullyShardedDataParallel is not supported, its parameters are flat parts of several layers: {USE_FULLY_SHARD}")


def plain_class(model: torch.nn.Module) -> str:
    """The name of the class of the model, without the `FSDP` that `fully_shard` puts before it."""
    kinds = type(model).__mro__
    if any(kind.__name__ == "FSDPModule" for kind in kinds[1:2]):
        return kinds[2].__name__
    return kinds[0].__name__


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """The whole of a sharded tensor, on all ranks, which call this together; another tensor as it is."""
    return cast(torch.Tensor, cast(Any, tensor).full_tensor()) if is_sharded(tensor) else tensor


def scatter(tensor: torch.Tensor, numbers: torch.Tensor | None) -> None:
    """Writes the numbers of rank 0 into the parts of a sharded tensor, in place. All ranks call this together; others than 0 have None."""
    from torch.distributed.tensor import distribute_tensor

    split = cast(Any, tensor)
    part = split.to_local()
    full = torch.empty(tensor.shape, dtype=part.dtype, device=part.device) if numbers is None else numbers.to(part.device, part.dtype)
    tensor.copy_(distribute_tensor(full.contiguous(), split.device_mesh, split.placements))


def reshard(model: torch.nn.Module) -> None:
    """Frees the whole tensors that a forward pass without a backward pass left in the model: they would hide what is written into the parts."""
    for module in model.modules():
        if hasattr(module, "reshard") and hasattr(module, "unshard"):
            cast(Any, module).reshard()
