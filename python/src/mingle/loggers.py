"""Loggers of a training: `mingle.join(model, optimizer, log_to=mingle.loggers.tensorboard("runs/site0"))`, and the same of `mingle.Exchange`.

    tensorboard(folder)    torch.utils.tensorboard
    wandb(**options)       Weights & Biases
    mlflow(**options)      MLflow
    Logger                 the base class of loggers of your own

A library is imported where its function is called. The numbers and their names are those of `mingle.recording`.
"""

from __future__ import annotations

import importlib
import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mingle.errors import MingleError
from mingle.home import Path

__all__ = ["Logger", "mlflow", "tensorboard", "wandb"]

ROUND = "swarm/round"
"""Name of the round where a library has no steps of our own: Weights & Biases counts the calls of the whole script."""


class Logger:
    """A destination of the numbers of a training. A subclass has `log`, and `open` and `close` where it needs them.

    An exception of any of the three is logged as a warning once, and ends no training.
    """

    def open(self) -> None:
        """Prepares for a training, in the thread that joins, once the peer has answered. After an exception nothing is logged here."""

    def log(self, values: Mapping[str, float], round: int) -> None:
        """Writes numbers by name, `round` being the rounds of the run that are done. Called in a thread beside the training."""
        raise NotImplementedError

    def close(self) -> None:
        """Finishes, in the thread that closes the training, after the last call of `log`."""


def tensorboard(folder: Path | None = None, *, writer: Any = None) -> Logger:
    """Scalars by round for TensorBoard, in an event file in `folder`, or by a `SummaryWriter` that the script has, which stays open.

    `folder` is `runs/DATE_HOST` unless given, as for a `SummaryWriter`. Raises `MingleError` where the package tensorboard is missing.
    """
    if writer is not None and folder is not None:
        raise MingleError("mingle.loggers.tensorboard takes either a folder or writer=..., not both")
    library = _library("torch.utils.tensorboard", package="tensorboard") if writer is None else None
    return _TensorBoard(library, folder, writer)


def wandb(run: Any = None, **options: Any) -> Logger:
    """A run of Weights & Biases, with `swarm/round` as the axis of all its numbers.

    It is `run`, else the present run of the process, such as that of a Hugging Face `Trainer`; it stays open. Where there is none, `join` makes
    one, `wandb.init(**options)`, which ends with the training. Raises `MingleError` where the package wandb is missing.
    """
    return _WeightsAndBiases(_library("wandb") if run is None else None, run, options)


def mlflow(run_id: str | None = None, **options: Any) -> Logger:
    """Metrics of a run of MLflow, with the round as their step.

    It is the run `run_id`, else the active one, such as that of a Hugging Face `Trainer`; it stays open. Where there is none, `join` makes one,
    `mlflow.start_run(**options)`, which ends with the training. Raises `MingleError` where the package mlflow is missing.
    """
    return _MLflow(_library("mlflow"), run_id, options)


def loggers_of(log_to: Logger | Sequence[Logger] | None) -> Sequence[Logger]:
    """The loggers of an option `log_to`. Raises `MingleError` for anything else."""
    if log_to is None:
        return ()
    loggers = log_to if isinstance(log_to, (list, tuple)) else (log_to,)
    if other := [logger for logger in loggers if not isinstance(logger, Logger)]:
        wanted = "log_to takes loggers, such as mingle.loggers.tensorboard(folder), and classes derived from mingle.loggers.Logger"
        raise MingleError(f"{wanted}: this is a {type(other[0]).__name__}")
    return loggers


def _library(module: str, package: str = "") -> Any:
    package = package or module
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MingleError(f"mingle.loggers.{package} needs the package {package}, which is not there ({error}): pip install {package}") from None


class _TensorBoard(Logger):
    def __init__(self, library: Any, folder: Path | None, writer: Any) -> None:
        self._library = library
        self._folder = folder
        self._writer = writer

    def open(self) -> None:
        if self._library is not None:
            self._writer = self._library.SummaryWriter(None if self._folder is None else os.fspath(self._folder))

    def log(self, values: Mapping[str, float], round: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, round)
        self._writer.flush()

    def close(self) -> None:
        if self._library is not None:
            self._writer.close()


class _WeightsAndBiases(Logger):
    def __init__(self, library: Any, run: Any, options: Mapping[str, Any]) -> None:
        self._library = library
        self._given = run
        self._options = options
        self._run: Any = None
        self._is_own = False

    def open(self) -> None:
        self._run = self._given if self._given is not None else self._library.run
        self._is_own = self._run is None
        if self._is_own:
            self._run = self._library.init(**self._options)
        self._run.define_metric(ROUND)
        self._run.define_metric("swarm/*", step_metric=ROUND)

    def log(self, values: Mapping[str, float], round: int) -> None:
        self._run.log({**values, ROUND: round})

    def close(self) -> None:
        if self._is_own:
            self._run.finish()


class _MLflow(Logger):
    def __init__(self, library: Any, run_id: str | None, options: Mapping[str, Any]) -> None:
        self._library = library
        self._given = run_id
        self._options = options
        self._run_id = run_id
        self._is_own = False

    def open(self) -> None:
        if self._given is not None:
            return
        active = self._library.active_run()
        self._is_own = active is None
        run = self._library.start_run(**self._options) if active is None else active
        self._run_id = run.info.run_id

    def log(self, values: Mapping[str, float], round: int) -> None:
        self._library.log_metrics({_name_for_mlflow(name): value for name, value in values.items()}, step=round, run_id=self._run_id)

    def close(self) -> None:
        active = self._library.active_run() if self._is_own else None
        if active is not None and active.info.run_id == self._run_id:
            self._library.end_run()


def _name_for_mlflow(name: str) -> str:
    """The name as a metric of MLflow, which has letters, digits, blanks and `_-./`, and is a path."""
    return posixpath.normpath(re.sub(r"[^\w\-./ ]", "_", name))
