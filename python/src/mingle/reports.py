"""Reports of a training beside its change: metrics, and the training loss averaged over the steps.

A metric never ends a training: values that the peer would refuse are left out, with one warning for each name.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

from mingle.client import MOST_METRICS_BYTES, metrics_bytes
from mingle.errors import MingleError

Reported = Any
"""A number, or a tuple `(number, samples behind it)`. Numbers may be tensors with one element."""

LONGEST_NAME = 100
MOST_REMEMBERED = 1000
FULL = "metric `%s` and those after it are left out: all together would take more than %d bytes, so report fewer at a time"

log = logging.getLogger("mingle")


class Reports:
    """Losses and metrics that are collected until they are sent."""

    def __init__(self) -> None:
        self._losses: Any = 0.0
        self._loss_count = 0
        self._metrics: dict[str, tuple[float, float]] = {}
        self._doubts = Doubts()

    def add(self, values: Mapping[str, Reported]) -> None:
        """Adds values: of `loss`, the training loss of a step, the mean is sent; of all others the last value.

        Left out, with one warning for each name: values that are no number or not finite, and those over a number of samples that is not positive.
        Metrics beyond 8 KiB in all are left out with a single warning.
        """
        values = dict(values)
        if "loss" in values:
            self._add_loss(values.pop("loss"))
        self._metrics = what_fits(self._metrics, as_metrics(values, self._doubts), self._doubts)

    def evaluation(self, evaluate: Callable[[], Mapping[str, Reported]]) -> dict[str, tuple[float, float]]:
        """The metrics of an evaluation in the form of the protocol."""
        return evaluated(evaluate, self._doubts)

    def take(self) -> tuple[float | None, dict[str, tuple[float, float]]]:
        """Takes the mean loss, None where none was reported or it is not finite, and the metrics; both begin anew."""
        loss = float(self._losses) / self._loss_count if self._loss_count else None
        metrics, self._metrics, self._losses, self._loss_count = self._metrics, {}, 0.0, 0
        return (loss if loss is not None and math.isfinite(loss) else None), metrics

    def _add_loss(self, loss: Any) -> None:
        # A tensor stays one until the loss is sent: reading it now would make every step wait for its device.
        if hasattr(loss, "detach"):
            if loss.numel() != 1:
                self._doubts.tell("loss", f"it is a tensor of {loss.numel()} numbers, not of one")
                return
            number: Any = loss.detach().reshape(())
        else:
            known = as_loss(loss, self._doubts)
            if known is None:
                return
            number = known
        self._losses = self._losses + number
        self._loss_count += 1


class Doubts:
    """Warnings of metrics that are left out, one for each of `MOST_REMEMBERED` names."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._is_full_told = False
        self._has_told_of_failure = False

    def tell(self, name: str, why: str) -> None:
        """Warns with the reason `why`, the first time for each name."""
        if name not in self._told and len(self._told) < MOST_REMEMBERED:
            self._told.add(name)
            log.warning("metric `%s` is left out, here and whenever that is so: %s", name, why)


    def tell_full(self, name: str) -> None:
        """Warns, the first time, that there is no room for the metric `name` and those after it."""
        log.log(logging.DEBUG if self._is_full_told else logging.WARNING, FULL, name, MOST_METRICS_BYTES)
        self._is_full_told = True

    def tell_failure(self) -> None:
        """Warns of the exception of an evaluation, which is being handled; the first time with its traceback."""
        is_first, self._has_told_of_failure = not self._has_told_of_failure, True
        log.warning("the evaluation has failed, so its metrics are left out, and the training goes on", exc_info=is_first)


def evaluated(evaluate: Callable[[], Mapping[str, Reported]], doubts: Doubts) -> dict[str, tuple[float, float]]:
    """The metrics that a user's function returns, in the form of the protocol. What it raises is logged: no metric ends a training."""
    try:
        values = evaluate()
    except MingleError:
        raise
    except Exception:
        doubts.tell_failure()
        return {}
    if not isinstance(values, Mapping):
        doubts.tell("evaluate", f'{_shown(values)} is no dict of metrics, such as {{"accuracy": (0.97, 360)}}')
        return {}
    return what_fits({}, as_metrics(values, doubts), doubts)


def what_fits(
    metrics: Mapping[str, tuple[float, float]], new: Mapping[str, tuple[float, float]], doubts: Doubts
) -> dict[str, tuple[float, float]]:
    """The metrics with the new ones, as many of these as the peer accepts."""
    together = {**metrics, **new}
    if metrics_bytes(together) <= MOST_METRICS_BYTES:
        return together
    together = dict(metrics)
    for name, metric in new.items():
        if metrics_bytes({**together, name: metric}) > MOST_METRICS_BYTES:
            doubts.tell_full(name)
            break
        together[name] = metric
    return together


def as_loss(loss: Any, doubts: Doubts) -> float | None:
    """A loss as a number; None, with a warning, where it is none."""
    try:
        return float(loss)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        doubts.tell("loss", f"{_shown(loss)} is no number")
        return None


def as_metrics(values: Mapping[str, Reported], doubts: Doubts | None = None) -> dict[str, tuple[float, float]]:
    """Means with the samples behind them, 1 unless given. Values that the peer would refuse are left out, with a warning by `doubts`."""
    doubts = doubts or Doubts()
    metrics: dict[str, tuple[float, float]] = {}
    for key, value in values.items():
        name = str(key)
        if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
            doubts.tell(name[:LONGEST_NAME], f"a name has 1 to {LONGEST_NAME} printable characters")
        elif isinstance(metric := _metric(value), str):
            doubts.tell(name, metric)
        else:
            metrics[name] = metric
    return metrics


def _metric(value: Reported) -> tuple[float, float] | str:
    """A mean and its samples, or the reason why the value has none."""
    if isinstance(value, tuple) and len(value) != 2:
        return f"{_shown(value)} is no number, and no tuple of a mean and the samples behind it"
    mean, weight = value if isinstance(value, tuple) else (value, 1.0)
    try:
        mean, weight = float(mean), float(weight)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # RuntimeError: a tensor with more than one element
        return f"{_shown(value)} is no number: give one, or a tuple of a mean and the samples behind it, (0.97, 360)"
    if not math.isfinite(mean):
        return f"it is {mean}"
    if not math.isfinite(weight) or weight <= 0:
        return f"it is over {weight} samples, and these must be more than 0"
    return mean, weight


def _shown(value: object) -> str:
    if hasattr(value, "shape") and tuple(value.shape):
        return f"a {type(value).__name__} of shape {list(value.shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
