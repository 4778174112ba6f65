"""Detection of steps that the swarm does not count, so that no training silently runs without its swarm.

After `check_optimizer`, nothing here stops a training. Each finding is logged once, by the logger `mingle`:

- another optimizer steps over the parameters of the joined one: it was made anew, or is inside a wrapper
- only optimizers of other models step: the loop trains a copy of the joined model
- weights move for some seconds, or until an exchange, without a counted step
- counted steps move nothing: the optimizer trains another model
- tensors are trainable and not in the layout: they were unfrozen or added later

`is_overwritten` tells a model that was loaded after its last step from a trained one: what it differs by is no change of a training.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from mingle.errors import LayoutError
from mingle.tensors import ModelTensors, listed

TICK_SECONDS = 1.0
PATIENCE_SECONDS = 6.0
"""Seconds that weights may move without a counted step before a warning. Only times in which they move count, so that an evaluation does not."""
MOVES = 3
"""Number of looks in which one parameter must have moved before that warning, and more where a counted step takes more moves by itself.

So it comes after three uncounted steps where these take more than 3 s each. An average of weights that stands in during an evaluation moves them
twice; several optimizers in turn, or optimizers within the backward pass, move each parameter once.
"""
FOREIGN_STEPS = 20
"""Steps of optimizers of other models, without a counted one, before a warning. It needs `PATIENCE_SECONDS` too."""
COPY_STEPS = 2
"""The same of an optimizer whose parameters have the shapes of the model's."""
IDLE_ROUNDS = 3
"""Exchanges with steps and without a change, from the first on, before a warning. A schedule may begin with a rate of 0."""

log = logging.getLogger("mingle")


def check_optimizer(tensors: ModelTensors, optimizer: torch.optim.Optimizer) -> None:
    """Raises `LayoutError` where the optimizer has parameters, but none of the model; warns where it has others and lacks exchanged ones."""
    of_model = {id(parameter) for parameter in tensors.model.parameters()}
    has = _parameters_of(optimizer)
    kind = type(optimizer).__name__
    if has and not has & of_model:
        raise LayoutError(
            f"none of the {len(has)} parameters of the {kind} is one of the model that was given to mingle.join: make the optimizer from the parameters"
            " of this model. Where it holds copies of them, give mingle.join(model, None) and call swarm.step() after each step"
        )
    lacks = [f"`{name}`" for name, parameter in tensors.parameters() if id(parameter) not in has]
    if has - of_model and lacks:
        log.warning(
            "the %s has %d parameters that are not in the model, and none of these, which are: %s. Was a layer replaced after the optimizer was made?",
            kind,
            len(has - of_model),
            listed(lacks),
        )


def warn_of_silence() -> None:
    """Warns that a training has ended without an exchange."""
    log.warning(
        "0 exchanges: no step was counted between mingle.join and the end, so the swarm got nothing of this training. Give mingle.join the optimizer"
        " whose step() the loop calls, or None and call swarm.step() after each step"
    )


class Watch:
    """A monitor of the model, from `start` to `stop`. `counted` is called at each counted step, `paused` surrounds the swarm's own work.

    `clock` returns seconds.
    """

    def __init__(
        self, tensors: ModelTensors, optimizer: torch.optim.Optimizer | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tensors = tensors
        self._optimizer = optimizer
        self._clock = clock
        self._hooks: list[Any] = []
        self._disjoint: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._over = threading.Event()
        self._depth = 0
        self._in_step = False
        self._has_told_of_other = False
        self._has_told_of_drop = False
        self._has_counted = False
        self._foreign_steps = 0
        self._counted_at = clock()
        self._ends: list[int] = []
        self._uncounted = _Moves()
        self._moves_in_step = 0
        self._idle_rounds: int | None = 0
        self._told_names: set[str] = set()
        self._trained = self._names_in_optimizer()

    def start(self) -> None:
        """Registers the hooks, and starts the thread that looks at the model."""
        this = weakref.ref(self)

        def any_step(optimizer: torch.optim.Optimizer, *_: object) -> None:
            if (watch := this()) is not None:
                watch._another_step(optimizer)

        def own_step(*_: object) -> None:
            if (watch := this()) is not None:
                watch._in_step = True

        self._counted_at = self._clock()
        if self._optimizer is not None:
            self._hooks = [register_optimizer_step_post_hook(any_step), self._optimizer.register_step_pre_hook(own_step)]
        threading.Thread(target=_look, args=(this, self._over), name="mingle-watch", daemon=True).start()

    def stop(self) -> None:
        """Removes the hooks and ends the thread. Further calls do nothing."""
        self._over.set()
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def counted(self) -> None:
        """Records a counted step."""
        self._has_counted = True
        self._moves_in_step = max(self._moves_in_step, self._uncounted.most)
        self._counted_at, self._in_step, self._uncounted = self._clock(), False, _Moves()
        self._ends = self._version_of_ends()

    def is_overwritten(self) -> bool:
        """Returns True if the first and the last parameter were written to since the last counted step, as `load_state_dict` does."""
        return bool(self._ends) and all(one != other for one, other in zip(self._ends, self._version_of_ends()))

    def _version_of_ends(self) -> list[int]:
        """The versions of two parameters: few enough to be read at each step."""
        return [_version(tensor) for tensor in self._tensors.ends()]

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Suspends the monitor while the swarm writes into the model, or waits."""
        self._depth += 1
        try:
            yield
        finally:
            self._uncounted = _Moves()
            self._counted_at = self._clock()
            self._ends = self._version_of_ends()
            self._depth -= 1

    def before_exchange(self, change: torch.Tensor, steps: int) -> None:
        """Compares the trainable tensors with the layout, and the change with the counted steps."""
        new = [name for name in self._tensors.not_exchanged() if name not in self._told_names]
        if new:
            self._told_names.update(new)
            log.warning(
                "not exchanged, though trainable: %s. They were frozen or not there at mingle.join: unfreeze and add layers before it,"
                " or name what stays on this site in local=[...]",
                listed([f"`{name}`" for name in new]),
            )
        self._check_parameters()
        if steps == 0 and not self._has_told_of_drop:
            self._look_at_drop(change)
        if steps and self._idle_rounds is not None:
            self._idle_rounds = self._look_at_idleness(change, self._idle_rounds + 1)

    def _names_in_optimizer(self) -> dict[str, int]:
        """The exchanged parameters that the optimizer has, by name, with their identities."""
        if self._optimizer is None:
            return {}
        has = _parameters_of(self._optimizer)
        return {name: id(parameter) for name, parameter in self._tensors.parameters() if id(parameter) in has}

    def _check_parameters(self) -> None:
        """Raises `LayoutError` where a parameter that the optimizer trains is no longer the model's, as after `load_state_dict(..., assign=True)`."""
        if self._optimizer is None:
            return
        now = self._names_in_optimizer()
        ids = {name: id(parameter) for name, parameter in self._tensors.parameters()}
        replaced = [name for name, before in self._trained.items() if name not in now and ids.get(name) != before]
        self._trained = now | {name: before for name, before in self._trained.items() if name in replaced}
        if replaced:
            raise LayoutError(
                f"parameters were replaced since mingle.join, and the optimizer trains the former ones: {listed([f'`{name}`' for name in replaced])}."
                " Write new values into a parameter (load_state_dict without assign=True), or replace it before mingle.join"
            )

    def _look_at_drop(self, change: torch.Tensor) -> None:
        if moved := self._moved(change):
            self._has_told_of_drop = True
            log.warning(
                "the weights have moved and no step was counted, so this is not sent, and the next weights take its place: %s. Call swarm.step()"
                " after each step, or give mingle.join the optimizer whose step() the loop calls",
                listed([f"`{name}`" for name in moved]),
            )

    def _moved(self, change: torch.Tensor) -> list[str]:
        """Names of the parameters whose part of the change is not 0."""
        ours = {name for name, _ in self._tensors.parameters()}
        return [e.name for e in self._tensors.layout if e.name in ours and bool(change[e.offset : e.offset + e.size].any())]

    def _look_at_idleness(self, change: torch.Tensor, rounds: int) -> int | None:
        """The number of rounds in which nothing moved; None once a parameter has moved or the warning was given."""
        names = [name for name, _ in self._tensors.parameters()]
        if not names or self._moved(change):
            return None
        if rounds < IDLE_ROUNDS:
            return rounds
        log.warning(
            "steps are counted and nothing moves: no parameter has changed in %d exchanges (%s). Is this the model that the loop trains?",
            rounds,
            listed([f"`{name}`" for name in names]),
        )
        return None

    def _another_step(self, optimizer: torch.optim.Optimizer) -> None:
        own = self._optimizer
        if self._has_told_of_other or own is None or optimizer is own or self._in_step or self._depth:
            return
        if optimizer in self._disjoint:
            self._note_foreign_step(optimizer, own)
            return
        has = _parameters_of(optimizer)
        skipped = set(self._tensors.not_exchanged())
        moved = [name for name, parameter in self._tensors.model.named_parameters() if id(parameter) in has]
        if not has & _parameters_of(own) and not skipped & set(moved):
            self._disjoint.add(optimizer)
            self._note_foreign_step(optimizer, own)
            return
        self._has_told_of_other = True
        log.warning(
            "steps of another optimizer are not counted, and nothing of them is sent by themselves: a %s moved %s, while mingle.join was given a %s."
            " Give mingle.join the optimizer whose step() the loop calls, made before; or None, and call swarm.step() once after each step",
            type(optimizer).__name__,
            listed([f"`{name}`" for name in moved]),
            type(own).__name__,
        )

    def _note_foreign_step(self, optimizer: torch.optim.Optimizer, own: torch.optim.Optimizer) -> None:
        """Warns once of steps of an optimizer of another model, where none was counted."""
        if self._has_counted or _parameters_of(optimizer) & {id(parameter) for parameter in self._tensors.model.parameters()}:
            return
        self._foreign_steps += 1
        waited_s = self._clock() - self._counted_at
        is_copy = _shapes_of(optimizer) == _shapes_of(own)
        if self._foreign_steps < (COPY_STEPS if is_copy else FOREIGN_STEPS) or waited_s < PATIENCE_SECONDS:
            return
        self._has_counted = True  # said once
        log.warning(
            "no step was counted for %.0f s, while a %s steps over parameters that are not in the model: mingle.join was given a %s of the model. Is a"
            " copy of the model trained? The swarm gets nothing of it: give mingle.join the model and the optimizer of the loop",
            waited_s,
            type(optimizer).__name__,
            type(own).__name__,
        )

    def look(self) -> bool:
        """Warns where weights move without a counted step. Returns True once they do: no further look is needed."""
        if self._depth or self._in_step:
            return False
        now, moves = self._clock(), self._uncounted
        parameters = self._tensors.parameters()
        moved = moves.look(now, [_version(tensor) for _, tensor in parameters])
        if not moved or moves.most < max(MOVES, self._moves_in_step + MOVES - 1) or now - moves.since < PATIENCE_SECONDS:
            return False
        if self._in_step or self._uncounted is not moves:  # a step that began or was counted meanwhile
            return False
        if not self._has_told_of_other:
            log.warning(
                "the weights have moved for %.0f s without a counted step, so nothing was exchanged: %s. Each step() of the optimizer that was given to"
                " mingle.join counts; a loop that steps otherwise calls swarm.step() after each step",
                now - moves.since,
                listed([f"`{parameters[index][0]}`" for index in moved]),
            )
        return True


class _Moves:
    """The moves of parameters since the last counted step, as seen in looks at their versions."""

    def __init__(self) -> None:
        self.most = 0
        """Looks in which the parameter that moved most often had moved."""
        self.since = 0.0
        """The time of the look before the first in which one had."""
        self._versions: list[int] | None = None
        self._counts: list[int] = []

    def look(self, now: float, versions: list[int]) -> list[int]:
        """Counts the parameters that moved since the look before, and returns their indices. Without one of as many parameters it begins anew."""
        before, self._versions = self._versions, versions
        if before is None or len(before) != len(versions):
            self._counts, self.most, self.since = [0] * len(versions), 0, now
            return []
        moved = [index for index, (one, other) in enumerate(zip(before, versions)) if one != other]
        for index in moved:
            self._counts[index] += 1
            self.most = max(self.most, self._counts[index])
        if self.most == 0:
            self.since = now
        return moved


def _look(this: weakref.ref[Watch], over: threading.Event) -> None:
    # Only version counters of tensors are read, without a lock or a device: a process that forks or captures a graph is not disturbed.
    while not over.wait(TICK_SECONDS):
        watch = this()
        if watch is None or watch.look():
            return
        del watch


def _version(tensor: torch.Tensor) -> int:
    """The number of in-place writes to the tensor."""
    try:
        return tensor._version
    except RuntimeError:  # tensors of inference mode do not count
        return 0


def _shapes_of(optimizer: torch.optim.Optimizer) -> list[torch.Size]:
    return [parameter.shape for group in optimizer.param_groups for parameter in group["params"]]


def _parameters_of(optimizer: torch.optim.Optimizer) -> set[int]:
    return {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
