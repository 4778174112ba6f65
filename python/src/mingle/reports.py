"""What a training reports beside its change: metrics, and the training loss averaged over the steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mingle.client import metrics_json

Reported = Any
"""A number, or `(number, samples behind it)`. Numbers may be tensors with one element."""


class Reports:
    """Collects what is reported until it is sent."""

    def __init__(self) -> None:
        self._losses: Any = 0.0
        self._loss_count = 0
        self._metrics: dict[str, tuple[float, float]] = {}

    def add(self, values: Mapping[str, Reported]) -> None:
        """`loss` is the training loss of a step, of which the mean is sent; of all others the last value is.

        Raises `ValueError` for numbers that are not finite, weights that are not positive, and more than 8 KiB of metrics.
        """
        values = dict(values)
        if "loss" in values:
            loss = values.pop("loss")
            # A tensor stays one until the loss is sent: reading it now would make every step wait for its device.
            self._losses = self._losses + (loss.detach() if hasattr(loss, "detach") else float(loss))
            self._loss_count += 1
        self._metrics.update(as_metrics(values))
        metrics_json(self._metrics)

    def take(self) -> tuple[float | None, dict[str, tuple[float, float]]]:
        """The mean loss, None where none was reported or it is not finite, and the metrics; both begin anew."""
        loss = float(self._losses) / self._loss_count if self._loss_count else None
        metrics, self._metrics, self._losses, self._loss_count = self._metrics, {}, 0.0, 0
        return (loss if loss is not None and math.isfinite(loss) else None), metrics


def as_metrics(values: Mapping[str, Reported]) -> dict[str, tuple[float, float]]:
    """Means with the samples behind them, 1 where that was not said. Raises `ValueError` for what the peer would refuse."""
    metrics = {}
    for name, value in values.items():
        mean, weight = value if isinstance(value, (tuple, list)) else (value, 1.0)
        mean, weight = float(mean), float(weight)
        if not math.isfinite(mean) or not math.isfinite(weight) or weight <= 0:
            raise ValueError(f"metric `{name}` is {mean} over {weight} samples: both must be finite, and the samples more than 0")
        metrics[name] = (mean, weight)
    return metrics
