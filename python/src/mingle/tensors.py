"""The tensors of a PyTorch model that are exchanged, and how they become a vector of `f32` and back.

Exchanged are the parameters with `requires_grad` and the buffers of floating point that `state_dict` has, such as the running means of
batch normalisation. Not exchanged: frozen parameters, integer buffers, and what `local` names. A tensor that is used twice occurs once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import torch

from mingle.errors import LayoutError, NotFinite
from mingle.layout import Layout

MOST_NAMED = 5


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The model inside `DistributedDataParallel`, `DataParallel` and `torch.compile`, so that names are the same with and without."""
    wrappers = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
    while (inside := wrappers.get(type(model).__name__)) is not None:
        model = getattr(model, inside)
    return model


class ModelTensors:
    """What is exchanged of `model`. Vectors are `torch.float32` on the processor, `[dimension]`.

    Raises `LayoutError`, which names the tensor, where one cannot be exchanged or none is left, and where a glob of `local` fits nothing.
    """

    def __init__(self, model: torch.nn.Module, local: Sequence[str] = ()) -> None:
        if isinstance(local, str):
            raise LayoutError(f"local={local!r} is one word: give a list, [{local!r}]")
        self.model = unwrapped(model)
        chosen = list(_chosen(self.model, local))
        self.names = [name for name, _ in chosen]
        parts = (name.rpartition(".") for name in self.names)
        self._owners = [(self.model.get_submodule(module), attribute) for module, _, attribute in parts]
        if not chosen:
            raise LayoutError("there is nothing to exchange: no parameter with requires_grad is left, nor a buffer of floating point")
        self.layout = Layout((name, tensor.shape) for name, tensor in chosen)
        self.is_exact = all(tensor.dtype in (torch.float32, torch.float64) for tensor in self.tensors)
        """Whether the tensors hold any vector of f32 without rounding."""

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The tensors, in the order of the layout, as the model has them now: `model.to(device)` puts other buffers in their places."""
        return [getattr(module, attribute) for module, attribute in self._owners]

    def load(self, vector: torch.Tensor) -> None:
        """Writes the vector into the tensors, in place; it is rounded where their type is narrower."""
        with torch.no_grad():
            for tensor, part in self._parts(vector):
                tensor.copy_(part)

    def store(self, vector: torch.Tensor) -> None:
        """Writes the tensors into the vector."""
        with torch.no_grad():
            for tensor, part in self._parts(vector):
                part.copy_(tensor)

    def difference(self, base: torch.Tensor, change: torch.Tensor) -> None:
        """Writes the tensors minus `base` into `change`."""
        with torch.no_grad():
            for (tensor, before), (_, part) in zip(self._parts(base), self._parts(change)):
                if tensor.dtype == torch.float32 and tensor.device == part.device:
                    torch.sub(tensor, before, out=part)
                elif tensor.dtype == torch.float64:
                    part.copy_(tensor - before.to(tensor))
                else:
                    part.copy_(tensor)
                    part.sub_(before)

    def shift(self, by: torch.Tensor) -> None:
        """Adds the vector to the tensors."""
        with torch.no_grad():
            for tensor, part in self._parts(by):
                tensor.copy_(tensor.to(torch.promote_types(tensor.dtype, torch.float32)) + part.to(tensor.device))

    def copies(self) -> list[torch.Tensor]:
        """Copies of the tensors, for `put_back`."""
        return [tensor.detach().clone() for tensor in self.tensors]

    def put_back(self, copies: Sequence[torch.Tensor]) -> None:
        """Writes what `copies` returned into the tensors again."""
        with torch.no_grad():
            for tensor, copy in zip(self.tensors, copies):
                tensor.copy_(copy)

    def check_finite(self, vector: torch.Tensor, what: str) -> None:
        """Raises `NotFinite` with the first tensors that hold NaN or infinity, and how many of their numbers are."""
        bad = []
        for entry in self.layout:
            count = int((~torch.isfinite(vector[entry.offset : entry.offset + entry.size])).sum())
            if count:
                bad.append(f"`{entry.name}` ({count} of {entry.size})")
        if bad:
            more = f" and {len(bad) - MOST_NAMED} more tensors" if len(bad) > MOST_NAMED else ""
            raise NotFinite(f"{what} is not finite in {', '.join(bad[:MOST_NAMED])}{more}")

    def _parts(self, vector: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for tensor, entry in zip(self.tensors, self.layout):
            yield tensor, vector[entry.offset : entry.offset + entry.size].view(entry.shape)


def _chosen(model: torch.nn.Module, local: Sequence[str]) -> Iterator[tuple[str, torch.Tensor]]:
    seen: set[tuple[object, ...]] = set()
    unused = set(local)
    for name, tensor in _candidates(model):
        fitting = {glob for glob in local if fnmatchcase(name, glob)}
        unused -= fitting
        if fitting:
            continue
        _check_supported(name, tensor)
        where = (tensor.data_ptr(), tensor.numel(), tensor.dtype) if tensor.numel() else (id(tensor),)
        if where not in seen:
            seen.add(where)
            yield name, tensor
    if unused:
        raise LayoutError(f"local={sorted(unused)} fits no tensor of the model: names are like those of state_dict()")


def _candidates(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            yield name, parameter
    for prefix, module in model.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            kept = name not in module._non_persistent_buffers_set
            if kept and (buffer.is_floating_point() or buffer.is_complex()):
                yield f"{prefix}.{name}" if prefix else name, buffer


def _check_supported(name: str, tensor: torch.Tensor) -> None:
    leave_out = f'or leave it out with local=["{name}"]'
    if isinstance(tensor, (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer)):
        raise LayoutError(f"`{name}` has no shape yet: run one batch through the model before mingle.join")
    if tensor.is_complex():
        raise LayoutError(f"`{name}` is complex: keep its real and imaginary parts as two tensors (torch.view_as_real), {leave_out}")
    if tensor.layout != torch.strided:
        raise LayoutError(f"`{name}` is sparse ({tensor.layout}): make it dense with to_dense(), {leave_out}")
    if tensor.device.type == "meta":
        raise LayoutError(f"`{name}` has no data (device meta): load or initialise the model before mingle.join")
    if hasattr(tensor, "full_tensor"):
        raise LayoutError(f"`{name}` is sharded over processes (DTensor), which is not supported: use DistributedDataParallel")
