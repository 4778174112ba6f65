"""The moments of an optimizer that another site has sent: checked, and loaded whole or not at all."""

from __future__ import annotations

import io
import logging
import math
import zipfile
from collections.abc import Mapping
from typing import Any

import torch

from mingle.optimizer_state import NAMES, OptimizerState, kept_parts, widened

NEVER_NEGATIVE = frozenset({"exp_avg_sq", "max_exp_avg_sq", "square_avg", "acc_delta", "sum", "exp_inf", "step_size"})
"""Parts of the states of PyTorch's optimizers that are sums of squares or sizes."""
MOST_STEPS = 1e12
SPARE = 1.1
"""Factor for rounding of moments to bfloat16."""

log = logging.getLogger("mingle")


def begin_with(state: OptimizerState, data: bytes, most_bytes: int) -> bool:
    """Loads the moments that `to_bytes` of another site returned, of at most `most_bytes`; learning rates and other settings stay those of the
    optimizer. Returns False, with a warning, and leaves the optimizer as it was, for what is no state of such an optimizer."""
    optimizer = state.optimizer
    try:
        check_archive(data, most_bytes)
        theirs = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        moments = _ordered(widened(theirs["state"]), theirs[NAMES], state.names or [])
        checked = check_moments(moments, optimizer)
    except Exception as error:  # the bytes are another site's, and may be anything
        return _left_out(error)
    before = {parameter: dict(values) for parameter, values in optimizer.state.items()}
    try:
        optimizer.load_state_dict({"state": checked, "param_groups": optimizer.state_dict()["param_groups"]})
    except Exception as error:
        optimizer.state.clear()
        optimizer.state.update(before)
        return _left_out(error)
    return True


def _left_out(error: Exception) -> bool:
    reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
    log.warning("the optimizer begins anew: the state that a member gave does not fit: %s", reason)
    return False


def check_archive(data: bytes, most_bytes: int) -> None:
    """Raises `ValueError` unless this is an archive as `torch.save` writes it, without compression, that unpacks to at most `most_bytes`."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("it is compressed")
    if sum(entry.file_size for entry in entries) > most_bytes:
        raise ValueError(f"it unpacks to more than {most_bytes} bytes")


def _ordered(moments: Mapping[Any, Any], theirs: Any, ours: list[str]) -> dict[int, Any]:
    """The moments by the numbers that the parameters of these names have here."""
    if not isinstance(theirs, list) or sorted(map(str, theirs)) != sorted(ours):
        raise ValueError("it is of an optimizer of other parameters")
    if any(not isinstance(index, int) or not 0 <= index < len(theirs) for index in moments):
        raise ValueError("it has moments of a parameter without a name")
    return {ours.index(theirs[index]): values for index, values in moments.items()}


def check_moments(moments: Mapping[int, Any], optimizer: torch.optim.Optimizer) -> dict[int, dict[str, Any]]:
    """Copies of moments, `{index: {name: value}}`, as this optimizer keeps them after a step. Raises `ValueError` for others: other names or
    shapes, numbers that are not finite in the parameter's precision, squares below 0, means that no such squares go with."""
    if not moments:
        raise ValueError("it has seen no step")
    found: dict[int, dict[str, Any]] = {}
    first = 0
    for group in optimizer.param_groups:
        parts = kept_parts(optimizer, group)
        if parts is None:
            raise ValueError(f"what {type(optimizer).__name__} keeps is not known")
        for index, parameter in enumerate(group["params"], first):
            if index in moments:
                found[index] = _checked(index, dict(moments[index]), parameter, parts, group)
        first += len(group["params"])
    return found


def _checked(
    index: int, values: dict[str, Any], parameter: torch.Tensor, parts: Mapping[str, bool], group: Mapping[str, Any]
) -> dict[str, Any]:
    if set(values) != set(parts):
        has, keeps = (", ".join(sorted(map(str, names))) or "nothing" for names in (values, parts))
        raise ValueError(f"it has {has} for parameter {index}, and this optimizer {keeps}")
    checked = {name: _part(f"{name} of parameter {index}", values[name], parameter, parts[name]) for name in parts}
    for name in NEVER_NEGATIVE & set(parts):
        if bool((torch.as_tensor(checked[name]) < 0).any()):
            raise ValueError(f"{name} of parameter {index} is negative")
    if {"exp_avg", "exp_avg_sq"} <= set(parts):
        _check_means(index, checked["exp_avg"], checked["exp_avg_sq"], group.get("betas", (0.9, 0.999)))
    return checked


def _part(what: str, value: Any, parameter: torch.Tensor, has_shape: bool) -> Any:
    """A copy of a part of the state, which has the shape of the parameter or is one number."""
    if not has_shape:
        tensor = torch.as_tensor(value, dtype=torch.float64)
        if tensor.numel() != 1 or not 0 <= float(tensor) <= MOST_STEPS:
            raise ValueError(f"{what} is no count")
        return value.clone() if isinstance(value, torch.Tensor) else value
    if not isinstance(value, torch.Tensor) or value.shape != parameter.shape:
        shape = list(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        raise ValueError(f"{what} is {shape}, and the parameter {list(parameter.shape)}")
    copy = value.to(parameter.dtype).contiguous().clone()
    if not bool(torch.isfinite(copy).all()):
        raise ValueError(f"{what} is not finite")
    return copy


def _check_means(index: int, mean: torch.Tensor, square: torch.Tensor, betas: tuple[float, float]) -> None:
    """Raises `ValueError` for means of gradients that are larger than their squares allow (the inequality of Cauchy and Schwarz)."""
    short, long = (float(beta) for beta in betas)
    if short**2 >= long:
        return
    most = (1 - short) / math.sqrt((1 - long) * (1 - short**2 / long))
    if bool((mean.abs() > SPARE * most * square.sqrt() + 1e-15).any()):
        raise ValueError(f"exp_avg of parameter {index} is larger than its squares allow")
