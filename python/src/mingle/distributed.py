"""Several processes at one site, as with `DistributedDataParallel`: rank 0 calls the peer, and the others receive its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from mingle import errors
from mingle.errors import MingleError

Result = TypeVar("Result")


class Ranks:
    """The processes of the default group of `torch.distributed`; one alone where that was not initialised."""

    def __init__(self) -> None:
        started = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.count = torch.distributed.get_world_size() if started else 1
        self.is_first = not started or torch.distributed.get_rank() == 0

    def lead(self, work: Callable[[], Result]) -> Result:
        """Does `work` on rank 0, and returns its result on all ranks. An exception of it is raised on all ranks too."""
        if self.count == 1:
            return work()
        failure: Exception | None = None
        box: list[object] = [None, None, None]
        if self.is_first:
            try:
                box[0] = work()
            except Exception as error:  # raised again below, once the others know
                failure, box[1:] = error, [type(error).__name__, str(error)]
        torch.distributed.broadcast_object_list(box, src=0)
        if failure is not None:
            raise failure
        if box[1] is not None:
            raise _of_rank_0(str(box[1]), str(box[2]))
        return box[0]  # type: ignore[return-value]  # what rank 0's work returned

    def copy_from_first(self, tensors: Sequence[torch.Tensor]) -> None:
        """Overwrites the tensors with those of rank 0, in place."""
        if self.count == 1:
            return
        with torch.no_grad():
            for tensor in tensors:
                dense = tensor.detach().contiguous()
                torch.distributed.broadcast(dense, src=0)
                if dense.data_ptr() != tensor.data_ptr():
                    tensor.copy_(dense)


def _of_rank_0(name: str, message: str) -> MingleError:
    kind = getattr(errors, name, None)
    known = isinstance(kind, type) and issubclass(kind, MingleError)
    return kind(f"rank 0: {message}") if known else MingleError(f"rank 0: {name}: {message}")  # type: ignore[misc]  # it is a class
