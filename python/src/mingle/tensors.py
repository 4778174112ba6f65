"""The exchanged tensors of a PyTorch model, and their conversion to a vector of `f32` and back.

Exchanged are the parameters with `requires_grad` and the buffers of floating point that `state_dict` has, such as the running means of
batch normalisation. Not exchanged: frozen parameters, integer buffers, and tensors that `local` names. A tensor that is used twice occurs
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch

from mingle.errors import LayoutError, NotFinite
from mingle.layout import Layout
from mingle.wrappers import plain_names, unwrapped

MOST_NAMED = 5


class ModelTensors:
    """The exchanged tensors of `model`. Vectors are `torch.float32` on the processor, `[dimension]`.

    Raises `LayoutError` where a tensor cannot be exchanged, which it names, where none is left, and where a glob of `local` matches no tensor.
    """

    def __init__(self, model: torch.nn.Module, local: Sequence[str] = ()) -> None:
        if isinstance(local, str):
            raise LayoutError(f"local={local!r} is one word: give a list, [{local!r}]")
        self.model = unwrapped(model)
        self._local = tuple(local)
        chosen = list(_chosen(self.model, local))
        self.names = [name for name, _ in chosen]
        parts = [tensor.path.rpartition(".") for _, tensor in chosen]
        self._owners = [(self.model.get_submodule(module), attribute) for module, _, attribute in parts]
        self._modules = [module for module, _, _ in parts]
        self._are_parameters = [isinstance(found.tensor, torch.nn.Parameter) for _, found in chosen]
        parameters = [owner for owner, is_parameter in zip(self._owners, self._are_parameters) if is_parameter]
        self._ends = [parameters[0], parameters[-1]] if parameters else []
        if not chosen:
            raise LayoutError("there is nothing to exchange: no parameter with requires_grad is left, nor a buffer of floating point")
        self.layout = Layout((name, found.tensor.shape) for name, found in chosen)
        self.is_exact = all(tensor.dtype in (torch.float32, torch.float64) for tensor in self.tensors)
        """True if the tensors hold any vector of f32 without rounding."""

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The present tensors of the model, in the order of the layout: `model.to(device)` replaces buffers."""
        return [getattr(module, attribute) for module, attribute in self._owners]

    def check_layout(self) -> None:
        """Raises `LayoutError` where a module or a tensor of the layout is no longer part of the model, or has another shape.

        The exchanged tensors would then not be the trained ones. A parameter that is computed from others since, as by weight normalisation or
        pruning, is replaced too: what is written into it is lost.
        """
        gone = []
        for entry, module, (owner, attribute), was_parameter in zip(self.layout, self._modules, self._owners, self._are_parameters):
            try:
                tensor = getattr(owner, attribute)
                is_there = self.model.get_submodule(module) is owner and isinstance(tensor, torch.Tensor)
                is_there = is_there and isinstance(tensor, torch.nn.Parameter) == was_parameter
            except AttributeError:
                is_there = False
            if not is_there:
                gone.append(f"`{entry.name}` (removed or replaced)")
            elif tensor.shape != entry.shape:
                gone.append(f"`{entry.name}` (now {list(tensor.shape)}, was {list(entry.shape)})")
        if gone:
            raise LayoutError(
                f"the model has changed since mingle.join, so that what is exchanged is not what is trained: {listed(gone)}."
                " Change the layers of a model before mingle.join"
            )

    def not_exchanged(self) -> list[str]:
        """Names of tensors that are trainable now and neither in the layout nor `local`: unfrozen or added since."""
        ours = {_memory(tensor) for tensor in self.tensors}
        known = set(self.names)
        candidates = ((name, found.tensor) for name, found in _candidates(self.model) if name not in known)
        return [
            name
            for name, tensor in candidates
            if not any(fnmatchcase(name, glob) for glob in self._local) and _memory(tensor) not in ours
        ]

    def parameters(self) -> list[tuple[str, torch.nn.Parameter]]:
        """Names and tensors of the exchanged parameters, as the model has them now; buffers are left out."""
        return [(name, tensor) for name, tensor in zip(self.names, self.tensors) if isinstance(tensor, torch.nn.Parameter)]

    def ends(self) -> list[torch.Tensor]:
        """The first and the last exchanged parameter, as the model has them now; empty where it has none."""
        return [tensor for owner, attribute in self._ends if isinstance(tensor := getattr(owner, attribute, None), torch.Tensor)]

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
        """Restores the tensors from what `copies` returned."""
        with torch.no_grad():
            for tensor, copy in zip(self.tensors, copies):
                tensor.copy_(copy)

    def check_finite(self, vector: torch.Tensor, what: str) -> None:
        """Raises `NotFinite`, naming the first tensors of the vector that hold NaN or infinity, with the count of such numbers in each."""
        bad = []
        for entry in self.layout:
            count = int((~torch.isfinite(vector[entry.offset : entry.offset + entry.size])).sum())
            if count:
                bad.append(f"`{entry.name}` ({count} of {entry.size})")
        if bad:
            raise NotFinite(f"{what} is not finite in {listed(bad)}")

    def _parts(self, vector: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for tensor, entry in zip(self.tensors, self.layout):
            yield tensor, vector[entry.offset : entry.offset + entry.size].view(entry.shape)


def listed(names: Sequence[str]) -> str:
    """The first `MOST_NAMED` names, and the number of further ones."""
    more = f" and {len(names) - MOST_NAMED} more tensors" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


@dataclass(frozen=True)
class _Found:
    """A tensor, and its path through all modules, including wrappers."""

    path: str
    tensor: torch.Tensor


def _chosen(model: torch.nn.Module, local: Sequence[str]) -> Iterator[tuple[str, _Found]]:
    seen: set[tuple[object, ...]] = set()
    unused = set(local)
    for name, found in _candidates(model):
        fitting = {glob for glob in local if fnmatchcase(name, glob)}
        unused -= fitting
        if fitting:
            continue
        _check_supported(name, found.tensor)
        where = _memory(found.tensor)
        if where not in seen:
            seen.add(where)
            yield name, found
    if unused:
        raise LayoutError(f"local={sorted(unused)} fits no tensor of the model: names are like those of state_dict()")


def _memory(tensor: torch.Tensor) -> tuple[object, ...]:
    """A key of the memory of a tensor, equal for tensors that share it."""
    return (tensor.data_ptr(), tensor.numel(), tensor.dtype) if _has_memory(tensor) else (id(tensor),)


def _has_memory(tensor: torch.Tensor) -> bool:
    lazy = isinstance(tensor, (torch.nn.parameter.UninitializedParameter, torch.nn.parameter.UninitializedBuffer))
    return not lazy and tensor.layout == torch.strided and tensor.device.type != "meta" and tensor.numel() > 0


def _candidates(model: torch.nn.Module) -> Iterator[tuple[str, _Found]]:
    plain = plain_names(model)
    for path, parameter in model.named_parameters():
        if parameter.requires_grad:
            yield plain(path), _Found(path, parameter)
    for prefix, module in model.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            kept = name not in module._non_persistent_buffers_set
            if kept and (buffer.is_floating_point() or buffer.is_complex()):
                path = f"{prefix}.{name}" if prefix else name
                yield plain(path), _Found(path, buffer)


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
