"""The batches of a run: `for x, y in swarm.batches(loader):` goes through a loader again and again until the run is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from mingle.errors import MingleError

if TYPE_CHECKING:
    from mingle.swarm import Swarm

Batch = TypeVar("Batch")


class Batches(Generic[Batch]):
    """The batches of a loader, epoch after epoch, from now to the end of the run. `Swarm.batches` makes one.

    `len()` is their number by the present plan, those that were taken included: a progress bar such as tqdm takes its total from it. A sampler
    with `set_epoch` gets the number of each epoch.
    """

    def __init__(self, swarm: Swarm, loader: Iterable[Batch], accumulate: int) -> None:
        if accumulate < 1:
            raise MingleError(f"accumulate is the number of batches in an optimizer step, 1 or more, and not {accumulate}")
        self._swarm = swarm
        self._loader = loader
        self._accumulate = accumulate
        self._epoch = 0
        self._taken = 0
        self._steps_before = swarm.total_steps - swarm.steps_left

    def __len__(self) -> int:
        """Batches of the whole run. Where the peer was never reached (`alone_ok`), those of one epoch."""
        if self._swarm.rounds == 0:
            return len(self._loader)  # type: ignore[arg-type]  # a TypeError is as right here as for the loader itself
        return self._accumulate * (self._swarm.total_steps - self._steps_before)

    def __iter__(self) -> Iterator[Batch]:
        """Ends with the run, and no step raises `SwarmDone` meanwhile. A training that goes on alone ends where the run would have."""
        with self._swarm._ending_quietly():
            while not self._is_over():
                taken_before = self._taken
                if (set_epoch := getattr(getattr(self._loader, "sampler", None), "set_epoch", None)) is not None:
                    set_epoch(self._epoch)
                for batch in self._loader:
                    self._taken += 1
                    yield batch
                    if self._is_over():
                        return
                if self._taken == taken_before:
                    raise MingleError("the loader has no batch, or none any more: give swarm.batches a DataLoader or a list, and no iterator")
                self._epoch += 1
                if self._swarm.rounds == 0:
                    return

    def _is_over(self) -> bool:
        swarm = self._swarm
        return swarm.done or (swarm.rounds > 0 and swarm.alone and self._taken >= len(self))
