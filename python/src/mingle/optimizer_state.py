"""An optimizer's state as bytes that the peer keeps, so that a restarted trainer goes on with its momentum."""

from __future__ import annotations

import inspect
import io
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch

from mingle.errors import LayoutError

Keep = bool | Literal["bfloat16"]
NAMES = "mingle_names"
"""The entry of a shared state with the names of the parameters."""
BYTES_BESIDE = 65_528
"""Most bytes that a peer keeps beside those of two vectors."""
SPARE_BYTES = 16_384
SPARE_BYTES_PER_TENSOR = 512
"""Bounds of what `torch.save` writes beside the numbers, by state and by tensor."""

log = logging.getLogger("mingle")


class OptimizerState:
    """`optimizer.state_dict()` as bytes: as it is (`keep=True`), or with its tensors rounded to bfloat16 (`keep="bfloat16"`)."""

    def __init__(self, optimizer: torch.optim.Optimizer, keep: Keep, names: Sequence[str] | None = None) -> None:
        self.optimizer = optimizer
        self.keep = keep
        self.names = list(names) if names is not None else None
        """Names of the optimizer's parameters in the model, in the order of `state_dict()`, where the state is shared with other sites."""
        self._most_bytes: int | None = None

    def room_wanted(self, dimension: int) -> int:
        """The bytes to request from the peer, for a vector of `dimension` numbers: the expected size of the state, or the most that a peer keeps
        where that is unknown. Raises `LayoutError` where no peer would keep so much."""
        most = BYTES_BESIDE + 8 * dimension
        self.check_room(most)
        expected = self._expected_bytes()
        return most if expected is None else expected

    def check_room(self, most_bytes: int) -> None:
        """Sets the limit to `most_bytes`. Raises `LayoutError`, with both sizes, where the state will be larger: estimated before the first step."""
        self._most_bytes = most_bytes
        self._check(self._expected_bytes() or 0)

    @property
    def most_bytes(self) -> int:
        """The limit of `check_room`."""
        return self._most_bytes or 0

    def _check(self, expected: int) -> None:
        if self._most_bytes is None or expected <= self._most_bytes:
            return
        most_bytes = self._most_bytes
        other = "" if self.keep == "bfloat16" else ', or keep_optimizer="bfloat16" which takes half of it or less'
        raise LayoutError(
            f"the state of {type(self.optimizer).__name__} takes about {expected} bytes, and the peer keeps at most {most_bytes}:"
            f" use keep_optimizer=False{other}"
        )

    def to_bytes(self) -> bytes:
        """The state as `torch.save` writes it. Raises `LayoutError` where it is larger than the limit of `check_room`."""
        data = self._saved()
        self._check(len(data))
        return data

    def _saved(self) -> bytes:
        state = self.optimizer.state_dict()
        if self.keep == "bfloat16":
            state = {**state, "state": _mapped(state["state"], _narrow)}
        if self.names is not None:
            state = {**state, NAMES: self.names}
        buffer = io.BytesIO()
        torch.save(state, buffer)
        return buffer.getvalue()

    def restore(self, data: bytes) -> None:
        """Loads what `to_bytes` returned. A state of another optimizer is not loaded, with a warning."""
        try:
            state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
            state.pop(NAMES, None)
            state["state"] = widened(state["state"])
            self.optimizer.load_state_dict(state)
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            log.warning("the optimizer begins anew, its kept state does not fit: %s", error)

    def _expected_bytes(self) -> int | None:
        if self.optimizer.state:
            return len(self._saved()) + SPARE_BYTES
        total = SPARE_BYTES
        for group in self.optimizer.param_groups:
            parts = kept_parts(self.optimizer, group)
            if parts is None:
                return None
            moments = sum(parts.values())
            parameters: list[torch.Tensor] = [parameter for parameter in group["params"] if parameter.requires_grad]
            widths = (2 if self.keep == "bfloat16" else parameter.element_size() for parameter in parameters)
            numbers = sum(moments * parameter.numel() * width for parameter, width in zip(parameters, widths))
            total += (moments + 1) * SPARE_BYTES_PER_TENSOR * len(parameters) + numbers
        return total


def kept_parts(optimizer: torch.optim.Optimizer, group: Mapping[str, Any]) -> dict[str, bool] | None:
    """Names of the parts of the state of a parameter of this group, as another optimizer of its class has them after a step, and whether each has
    the parameter's shape. None if that fails."""
    parameter = torch.nn.Parameter(torch.zeros(3, 7))
    parameter.grad = torch.zeros_like(parameter)
    kind: Any = type(optimizer)
    try:
        taken = set(inspect.signature(kind).parameters) - {"fused", "capturable", "foreach"}
        settings = {name: value for name, value in {**optimizer.defaults, **group}.items() if name in taken and name != "params"}
        other = kind([parameter], **settings)
        other.step()
    except Exception:  # a custom optimizer: its state is measured once it exists
        return None
    state = other.state.get(parameter, {})
    return {name: isinstance(value, torch.Tensor) and value.shape == parameter.shape for name, value in state.items()}


def _narrow(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.bfloat16) if tensor.is_floating_point() and tensor.dim() > 0 else tensor


def widened(state: Any) -> Any:
    """The state with its tensors of bfloat16 as float32."""
    return _mapped(state, lambda tensor: tensor.float() if tensor.dtype == torch.bfloat16 else tensor)


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(inside, change) for key, inside in value.items()}
    return value
