"""Numbers of a training by round, and their way to the loggers that `mingle.join(log_to=...)` was given.

    swarm/train/loss         mean training loss over the steps of the round
    swarm/reported/NAME      the last value given to `Swarm.report`
    swarm/evaluation/NAME    metrics of `evaluate`
    swarm/steps              local steps since `join`
    swarm/last_factor        factor by which the change of the round was multiplied when it was added to the model
    swarm/disagreement and others: from the status of the peer (`OF_STATUS`)

The round is the number of rounds of the whole run that are done. A logger writes in a thread of its own, so no round waits for one.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mingle.errors import MingleError
from mingle.loggers import Logger

MOST_WAITING = 1000
"""Records that wait for a logger; those beyond are left out."""
FLUSH_SECONDS = 10.0
"""Longest time that the end of a training waits for each logger."""

OF_STATUS: Mapping[str, tuple[tuple[str, ...], float]] = {
    "swarm/disagreement": (("disagreement",), 1.0),
    "swarm/contraction": (("contraction", "observed"), 1.0),
    "swarm/weight": (("weight", "value"), 1.0),
    "swarm/weight_share": (("weight", "share"), 1.0),
    "swarm/sent_megabytes": (("sent_bytes",), 1e6),
    "swarm/received_megabytes": (("received_bytes",), 1e6),
    "swarm/privacy_epsilon": (("privacy", "epsilon"), 1.0),
}
"""Place of each number in the status of a peer, and its divisor. A number that the peer does not know is left out."""

log = logging.getLogger("mingle")


class Recorder:
    """The numbers of a training, for its loggers. It does nothing without loggers."""

    def __init__(self, loggers: Sequence[Logger], status: Callable[[], Mapping[str, Any]]) -> None:
        self._outlets = [outlet for logger in loggers if (outlet := Outlet.opened(logger)) is not None]
        self._status = status
        self._trained: dict[str, float] = {}
        self._evaluated: dict[str, float] = {}
        self._process = os.getpid()
        if self._outlets:
            atexit.register(self.close)

    def trained(self, steps: int, loss: float | None, metrics: Mapping[str, tuple[float, float]]) -> None:
        """Adds to the present round: local steps since `join`, the mean loss, and reported metrics, means with the samples behind them."""
        self._trained = {"swarm/steps": float(steps), **_named("swarm/reported", metrics)}
        if loss is not None:
            self._trained["swarm/train/loss"] = loss

    def evaluated(self, metrics: Mapping[str, tuple[float, float]]) -> None:
        """Adds to the present round: an evaluation of the model after it. The peer orders one before it orders the next round."""
        self._evaluated = _named("swarm/evaluation", metrics)

    def round_over(self, round: int, last_factor: float) -> None:
        """Records the present round, after which `round` rounds are done, and the status of the peer."""
        if not self._outlets:
            return
        trained, self._trained = self._trained, {}
        evaluated, self._evaluated = self._evaluated, {}
        if trained:
            trained["swarm/last_factor"] = last_factor
        status = self._peer_status()
        shown = status.get("round", round)  # a peer that did not wait for this script may be further
        of_status = _numbers_of(status)
        self._record({**trained, **evaluated, **(of_status if shown == round else {})}, round)
        if shown != round:
            self._record(of_status, shown)

    def rest(self, round: int, metrics: Mapping[str, tuple[float, float]]) -> None:
        """Records reported metrics that came after the last exchange, and an evaluation that no order followed."""
        self._record({**_named("swarm/reported", metrics), **self._evaluated}, round)

    def flush(self) -> None:
        """Waits until everything is written, for `FLUSH_SECONDS` for each logger at most."""
        for outlet in self._outlets:
            outlet.flush()

    def close(self) -> None:
        """Waits as `flush`, and closes the loggers. Further calls do nothing, and neither do those of a forked process, which has no threads."""
        atexit.unregister(self.close)
        if os.getpid() != self._process:
            return
        outlets, self._outlets = self._outlets, []
        for outlet in outlets:
            outlet.close()

    def _record(self, values: Mapping[str, float], round: int) -> None:
        if values:
            for outlet in self._outlets:
                outlet.put(values, round)

    def _peer_status(self) -> Mapping[str, Any]:
        try:
            return self._status()
        except MingleError as error:
            log.debug("no status of the peer for the loggers: %s", error)
            return {}


class Outlet:
    """A logger in a thread of its own, with the records that wait for it."""

    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self._records: queue.Queue[tuple[Mapping[str, float], int] | None] = queue.Queue(MOST_WAITING)
        self._has_told = False
        threading.Thread(target=self._run, name="mingle-logger", daemon=True).start()

    @classmethod
    def opened(cls, logger: Logger) -> Outlet | None:
        """The outlet of a logger that could be opened; None, with a warning, for another."""
        try:
            logger.open()
        except Exception:
            log.warning("%s cannot be opened, and the training goes on without it", _shown(logger), exc_info=True)
            return None
        return cls(logger)

    def put(self, values: Mapping[str, float], round: int) -> None:
        """Hands numbers to the thread. They are left out, with one warning, where `MOST_WAITING` wait already."""
        try:
            self._records.put_nowait((values, round))
        except queue.Full:
            self._tell("%s is too slow: of the rounds since round %d some are left out there", round)

    def flush(self) -> bool:
        """Waits until all is written. Returns False, with a warning, where that takes longer than `FLUSH_SECONDS`."""
        records = self._records
        with records.all_tasks_done:
            if records.all_tasks_done.wait_for(lambda: not records.unfinished_tasks, FLUSH_SECONDS):
                return True
        self._tell("%s has not written everything within %g s", FLUSH_SECONDS)
        return False

    def close(self) -> None:
        """Waits until all is written, and closes the logger; one that is stuck is left alone."""
        if not self.flush():
            return
        self._records.put(None)
        try:
            self._logger.close()
        except Exception:
            self._tell("%s could not be closed", exc_info=True)

    def _run(self) -> None:
        while (record := self._records.get()) is not None:
            try:
                self._logger.log(*record)
            except Exception:
                self._tell("%s has failed in round %d, and the training goes on", record[1], exc_info=True)
            finally:
                self._records.task_done()

    def _tell(self, what: str, *values: float, exc_info: bool = False) -> None:
        """Warns the first time; what comes later is of interest for debugging alone."""
        log.log(logging.DEBUG if self._has_told else logging.WARNING, what, _shown(self._logger), *values, exc_info=exc_info)
        self._has_told = True


def _named(group: str, metrics: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    return {f"{group}/{name}": mean for name, (mean, _) in metrics.items()}


def _numbers_of(status: Mapping[str, Any]) -> dict[str, float]:
    found = {name: (_number_at(status, path), divisor) for name, (path, divisor) in OF_STATUS.items()}
    return {name: number / divisor for name, (number, divisor) in found.items() if number is not None}


def _number_at(status: Any, path: Sequence[str]) -> float | None:
    for key in path:
        status = status.get(key) if isinstance(status, Mapping) else None
    is_number = isinstance(status, (int, float)) and not isinstance(status, bool)
    return float(status) if is_number and math.isfinite(status) else None


def _shown(logger: Logger) -> str:
    return f"the logger {type(logger).__name__.lstrip('_')}"
