"""An optimizer's state as bytes that the peer keeps, so that a restarted trainer goes on with its momentum."""

from __future__ import annotations

import inspect
import io
import logging
from collections.abc import Callable
from typing import Any, Literal

import torch

from mingle.errors import LayoutError

Keep = bool | Literal["bfloat16"]
BYTES_BESIDE = 65_528
"""Most bytes that a peer keeps beside those of two vectors."""
SPARE_BYTES = 16_384
SPARE_BYTES_PER_TENSOR = 512
"""Bounds of what `torch.save` writes beside the numbers, by state and by tensor."""

log = logging.getLogger("mingle")


class OptimizerState:
    """`optimizer.state_dict()` as bytes: as it is (`keep=True`), or with its tensors rounded to bfloat16 (`keep="bfloat16"`)."""

    def __init__(self, optimizer: torch.optim.Optimizer, keep: Keep) -> None:
        self.optimizer = optimizer
        self.keep = keep
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
        buffer = io.BytesIO()
        torch.save(state, buffer)
        return buffer.getvalue()

    def restore(self, data: bytes) -> None:
        """Loads what `to_bytes` returned. A state of another optimizer is not loaded, with a warning."""
        try:
            state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
            state["state"] = _mapped(state["state"], _widen)
            self.optimizer.load_state_dict(state)
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            log.warning("the optimizer begins anew, its kept state does not fit: %s", error)

    def begin_with(self, data: bytes) -> bool:
        """Loads the moments that `to_bytes` of another member returned; learning rates and other settings stay this optimizer's. Returns False,
        with a warning, for what is no state of such an optimizer."""
        try:
            theirs = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
            moments = _mapped(theirs["state"], _widen)
            check_moments(moments, self._parameters(), _moments(self.optimizer))
            self.optimizer.load_state_dict({"state": moments, "param_groups": self.optimizer.state_dict()["param_groups"]})
        except Exception as error:  # the bytes are another member's, and may be anything
            log.warning("the optimizer begins anew: the state that a member gave does not fit: %s", error)
            return False
        return True

    def _parameters(self) -> list[torch.Tensor]:
        """The parameters in the order of `state_dict()`."""
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def _expected_bytes(self) -> int | None:
        if self.optimizer.state:
            return len(self._saved()) + SPARE_BYTES
        names = _moments(self.optimizer)
        if names is None:
            return None
        moments = sum(names.values())
        parameters: list[torch.Tensor] = [parameter for group in self.optimizer.param_groups for parameter in group["params"] if parameter.requires_grad]
        widths = (2 if self.keep == "bfloat16" else parameter.element_size() for parameter in parameters)
        numbers = sum(moments * parameter.numel() * width for parameter, width in zip(parameters, widths))
        return SPARE_BYTES + (moments + 1) * SPARE_BYTES_PER_TENSOR * len(parameters) + numbers


NEVER_NEGATIVE = frozenset({"step", "exp_avg_sq", "max_exp_avg_sq", "square_avg", "acc_delta", "sum", "exp_inf", "step_size"})
"""Parts of the states of PyTorch's optimizers that are sums of squares, counts or sizes."""


def check_moments(moments: Any, parameters: list[torch.Tensor], names: dict[str, bool] | None) -> None:
    """Raises `ValueError` unless these are moments of some of the parameters, `{index: {name: value}}`, as a sound optimizer has them: shapes of the
    parameters or single numbers, finite, and not below 0 where they are sums of squares. `names` are those that the optimizer has, if known."""
    for index, values in dict(moments).items():
        if not isinstance(index, int) or not 0 <= index < len(parameters):
            raise ValueError(f"there is no parameter {index!r}")
        if names is not None and set(values) != set(names):
            raise ValueError(f"it has {', '.join(sorted(map(str, values)))} for parameter {index}, and this optimizer {', '.join(sorted(names))}")
        for name, value in values.items():
            if value is not None:
                _check_moment(f"{name} of parameter {index}", torch.as_tensor(value), parameters[index], str(name) in NEVER_NEGATIVE)


def _check_moment(what: str, value: torch.Tensor, parameter: torch.Tensor, is_never_negative: bool) -> None:
    if value.shape != parameter.shape and value.numel() != 1:
        raise ValueError(f"{what} is {list(value.shape)}, and the parameter {list(parameter.shape)}")
    if not bool(torch.isfinite(value).all()):
        raise ValueError(f"{what} is not finite")
    if is_never_negative and bool((value < 0).any()):
        raise ValueError(f"{what} is negative")


def _moments(optimizer: torch.optim.Optimizer) -> dict[str, bool] | None:
    """Names of the parts of the optimizer's state, as another one of its class has it after a step, and whether each has a parameter's shape. None
    if that fails."""
    parameter = torch.nn.Parameter(torch.zeros(3, 7))
    parameter.grad = torch.zeros_like(parameter)
    kind: Any = type(optimizer)
    try:
        taken = set(inspect.signature(kind).parameters) - {"fused", "capturable", "foreach"}
        settings = {name: value for name, value in optimizer.defaults.items() if name in taken}
        other = kind([parameter], **settings)
        other.step()
    except Exception:  # a custom optimizer: its state is measured once it exists
        return None
    state = other.state.get(parameter, {})
    return {name: isinstance(value, torch.Tensor) and value.shape == parameter.shape for name, value in state.items()}


def _narrow(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.bfloat16) if tensor.is_floating_point() and tensor.dim() > 0 else tensor


def _widen(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype == torch.bfloat16 else tensor


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(inside, change) for key, inside in value.items()}
    return value
