"""A call that goes on in a thread while the training does: only `overlap=True` starts one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Flight(Generic[Result]):
    """Runs `work` at once in a thread of its own, which does not keep the process from ending."""

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
        """Whether `land` would return at once."""
        return not self._thread.is_alive()

    def wait(self, seconds: float) -> bool:
        """Waits so long at most; whether the work is done."""
        self._thread.join(seconds)
        return self.is_over

    def land(self) -> Result:
        """Waits until the work is done, which bounds itself, and returns or raises what came of it."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]  # there was no error, so it was set
