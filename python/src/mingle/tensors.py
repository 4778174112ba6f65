"""The exchanged tensors of a PyTorch model, and their conversion to a vector of `f32` and back.

Exchanged are the parameters with `requires_grad` and the buffers of floating point that `state_dict` has, such as the running means of
batch normalisation. Not exchanged: frozen parameters, integer buffers, and tensors that `local` names. A tensor that is used twice occurs
once.

Where tensors are sharded, all ranks call `load`, `store` and `difference` together, and ranks other than 0 have None for a vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch

from mingle.errors import LayoutError, NotFinite
from mingle.layout import Layout
from mingle.shards import check_modules, check_sharding, is_sharded, reshard, scatter, whole
from mingle.wrappers import plain_names, unwrapped

MOST_NAMED = 5
EXACT = (torch.float32, torch.float64)
"""Types that hold any f32."""


class ModelTensors:
    """The exchanged tensors of `model`. Vectors are `torch.float32` on the processor, `[dimension]`.

    `sharded` permits tensors that `fully_shard` has split over the processes of the default group. Raises `LayoutError` where a tensor cannot be exchanged, which it names, where none is left, and where a glob of `local` matches no tensor.
    """

    def __init__(self, model: torch.nn.Module, local: Sequence[str] = (), *, sharded: bool = False) -> None:
        if isinstance(local, str):
            raise LayoutError(f"local={local!r} is one word: give a list, [{local!r}]")
        self.model = unwrapped(model)
        check_modules(self.model)
        reshard(self.model)
        self._local = tuple(local)
        chosen = list(_chosen(self.model, local))
        self.names = [name for name, _ in chosen]
        parts = [tensor.path.rpartition(".") for _, tensor in chosen]
        self._owners = [(self.model.get_submodule(module), attribute) for module, _, attribute in parts]
        self._modules = [module for module, _, _ in parts]
        self._are_parameters = [isinstance(found.tensor, torch.nn.Parameter) for _, found in chosen]
        parameters = [index for index, is_parameter in enumerate(self._are_parameters) if is_parameter]
        self._ends = [parameters[0], parameters[-1]] if parameters else []
        if not chosen:
            raise LayoutError("there is nothing to exchange: no parameter with requires_grad is left, nor a buffer of floating point")
        self._parts_here = [found.tensor if is_sharded(found.tensor) else None for _, found in chosen]
        self.is_sharded = any(part is not None for part in self._parts_here)
        """True if a tensor is split over the processes of the site."""
        if self.is_sharded and not sharded:
            first = next(name for name, part in zip(self.names, self._parts_here) if part is not None)
            raise LayoutError(f"`{first}` is sharded over processes (DTensor), which only mingle.join supports: give the model as it is before fully_shard")
        self.layout = Layout((name, found.tensor.shape) for name, found in chosen)
        self.is_exact = all(tensor.dtype in EXACT for tensor in self.tensors)
        """True if the tensors hold any vector of f32 without rounding."""

    @property
    def tensors(self) -> list[torch.Tensor]:
        """The present tensors of the model, in the order of the layout: `model.to(device)` replaces buffers.

        Of a sharded tensor it is the part of this process, which the whole one takes the place of during a forward pass.
        """
        found = zip(self._owners, self._parts_here)
        return [part if part is not None else getattr(module, attribute) for (module, attribute), part in found]

    @property
    def unsharded(self) -> list[torch.Tensor]:
        """Those of the present tensors that are whole on each process."""
        return [tensor for tensor, part in zip(self.tensors, self._parts_here) if part is None]

    def check_layout(self) -> None:
        """Raises `LayoutError` where a module or a tensor of the layout is no longer part of the model, has another shape, or was cast to a
        type that rounds.

        The exchanged tensors would then not be the trained ones. A parameter that is computed from others since, as by weight normalisation or
        pruning, is replaced too: what is written into it is lost.
        """
        reshard(self.model)
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
        narrow = next((tensor.dtype for tensor in self.tensors if self.is_exact and tensor.dtype not in EXACT), None)
        if narrow is not None:
            raise LayoutError(
                f"the model was cast to {str(narrow).removeprefix('torch.')} since mingle.join, so that its rounding would be sent as training:"
                " cast it before mingle.join, or train in torch.autocast"
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

    def names_of(self, optimizer: torch.optim.Optimizer) -> list[str]:
        """Names of the parameters of an optimizer, in the order of its `state_dict()`. Raises `LayoutError` for one that is not exchanged: its moments
        would be shown to others."""
        known = {id(tensor): name for name, tensor in self.parameters()}
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        names = [known.get(id(parameter), "") for parameter in parameters]
        if "" in names:
            shape = list(parameters[names.index("")].shape)
            raise LayoutError(
                f"share_optimizer would show others the moments of a parameter of shape {shape} that stays here: the optimizer has it, and it is not"
                " exchanged. Leave share_optimizer out, or give that parameter an optimizer of its own"
            )
        return names

    def parameters(self) -> list[tuple[str, torch.nn.Parameter]]:
        """Names and tensors of the exchanged parameters, as the model has them now; buffers are left out."""
        return [(name, tensor) for name, tensor in zip(self.names, self.tensors) if isinstance(tensor, torch.nn.Parameter)]

    def ends(self) -> list[torch.Tensor]:
        """The first and the last exchanged parameter, as the model has them now; empty where it has none."""
        present = (self._parts_here[index] if self._parts_here[index] is not None else getattr(*self._owners[index], None) for index in self._ends)
        return [tensor for tensor in present if isinstance(tensor, torch.Tensor)]

    def load(self, vector: torch.Tensor | None) -> None:
        """Writes the vector into the tensors, in place; it is rounded where their type is narrower."""
        reshard(self.model)
        with torch.no_grad():
            for tensor, part in self._parts(vector):
                if is_sharded(tensor):
                    scatter(tensor, part)
                elif part is not None:
                    tensor.copy_(part)

    def store(self, vector: torch.Tensor | None) -> None:
        """Writes the tensors into the vector."""
        with torch.no_grad():
            for tensor, part in self._parts(vector):
                tensor = whole(tensor)
                if part is not None:
                    part.copy_(tensor)

    def difference(self, base: torch.Tensor | None, change: torch.Tensor | None) -> None:
        """Writes the tensors minus `base` into `change`."""
        with torch.no_grad():
            for (tensor, before), (_, part) in zip(self._parts(base), self._parts(change)):
                tensor = whole(tensor)
                if before is None or part is None:
                    continue
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
                assert part is not None
                tensor.copy_(tensor.to(torch.promote_types(tensor.dtype, torch.float32)) + part.to(tensor.device))

    def copies(self) -> list[torch.Tensor]:
        """Copies of the tensors, for `put_back`."""
        return [tensor.detach().clone() for tensor in self.tensors]

    def put_back(self, copies: Sequence[torch.Tensor]) -> None:
        """Restores the tensors from what `copies` returned."""
        reshard(self.model)
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

    def _parts(self, vector: torch.Tensor | None) -> Iterator[tuple[torch.Tensor, torch.Tensor | None]]:
        for tensor, entry in zip(self.tensors, self.layout):
            yield tensor, vector[entry.offset : entry.offset + entry.size].view(entry.shape) if vector is not None else None


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
    if is_sharded(tensor):
        return False  # tied parameters are one object, and parts of several may have no memory here
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
    if is_sharded(tensor):
        check_sharding(name, tensor)
