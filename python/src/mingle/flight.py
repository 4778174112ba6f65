"""A call in a thread beside the training, which only `overlap=True` starts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Flight(Generic[Result]):
    """Runs `work` at once in a daemon thread, which does not keep the process from ending."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._result: Result | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="mingle-exchange", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # raised in the thread that lands
            self._error = error

    @property
    def is_over(self) -> bool:
        """True if `land` would return at once."""
        return not self._thread.is_alive()

    def wait(self, seconds: float) -> bool:
        """Waits for `seconds` at most, and returns True if the work is done."""
        self._thread.join(seconds)
        return self.is_over

    def land(self) -> Result:
        """Waits until the work is done, which has its own timeout, and returns its result or raises its exception."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # there was no error, so it was set
