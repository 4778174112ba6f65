"""The `Swarm` that `mingle.join` returns: it counts local steps, and exchanges the model after as many as the plan wants."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

import torch

from mingle.batches import Batch, Batches
from mingle.client import Description, Order
from mingle.distributed import Ranks
from mingle.errors import LayoutError, MingleError, NotFinite, PeerFailed, PeerUnreachable, Refused, SwarmDone, TimedOut
from mingle.flight import Flight
from mingle.home import Path, Whereabouts
from mingle.loggers import Logger
from mingle.optimizer_state import Keep, OptimizerState
from mingle.recording import Recorder
from mingle.reports import Reported, Reports
from mingle.round_vectors import OtherRank, RoundVectors, Steps
from mingle.shards import whole
from mingle.shared_moments import begin_with
from mingle.tensors import ModelTensors
from mingle.trainer import Trainer
from mingle.watch import Watch, check_optimizer, warn_of_silence

Evaluate = Callable[[], Mapping[str, Reported]]
GONE = (TimedOut, PeerFailed, PeerUnreachable)
CLOSE_SECONDS = 30.0
"""Longest time that `close` waits for an exchange that is under way."""

log = logging.getLogger("mingle")


@dataclass(frozen=True)
class Options:
    """Options of `mingle.join`, which documents them."""

    evaluate: Evaluate | None
    timeout: float
    overlap: bool
    alone_ok: bool
    keep_optimizer: Keep
    share_optimizer: bool
    raise_when_done: bool
    loggers: Sequence[Logger]
    factor: float
    """The weight of the site: its changes are multiplied by it."""


class Swarm:
    """A model in a swarm; `mingle.join` makes one. A context manager: it detaches at the end, and suppresses `SwarmDone`."""

    def __init__(self, tensors: ModelTensors, optimizer: torch.optim.Optimizer | None, options: Options) -> None:
        self._ranks = Ranks()
        if options.overlap and self._ranks.count > 1:
            raise LayoutError("overlap=True does not work with several processes of torch.distributed: leave it out")
        if options.keep_optimizer and tensors.is_sharded:
            raise LayoutError("keep_optimizer does not work with a sharded model: leave it out, and save the optimizer with torch.distributed.checkpoint")
        if options.keep_optimizer and optimizer is None:
            raise LayoutError("keep_optimizer needs the optimizer: give it to mingle.join")
        if options.share_optimizer and not options.keep_optimizer:
            raise LayoutError("share_optimizer shares what keep_optimizer keeps: give both")
        self._options = options
        if optimizer is not None:
            check_optimizer(tensors, optimizer)
        self._optimizer = optimizer
        names = tensors.names_of(optimizer) if options.share_optimizer and optimizer is not None else None
        self._state = OptimizerState(optimizer, options.keep_optimizer, names) if options.keep_optimizer and optimizer is not None else None
        self._watch = Watch(tensors, optimizer)
        self._reports = Reports()
        self._recorder = Recorder((), dict)
        self._trainer: Trainer | None = None
        self._hook: Any = None
        self._flight: Flight[Order] | None = None
        self._order: Order | None = None
        self._description: Description | None = None
        self._rounds = 0
        self._taken = 0
        self._taken_before = 0
        self._began = 0.0
        self._raises_when_done = options.raise_when_done
        self.tensors = tensors
        """The exchanged tensors of the model."""
        self.done = False
        """True if the run is over, or its peer was stopped; the model is then the final one, or that of the last round."""
        self.stopped = False
        """True if the peer was stopped before the last round: the run goes on when both are started again."""
        self.alone = False
        """True if the peer is gone and the training goes on without it (`alone_ok`)."""
        self.exchanges = 0
        """Number of changes that were answered."""
        self._is_open = False
        self._steps: Steps = OtherRank(tensors)
        if self._ranks.is_first:
            self._steps = self._vectors = RoundVectors(tensors, options.overlap, options.factor)

    # For users

    @property
    def round(self) -> int:
        """The round of the present weights, from 0."""
        return self._order.round if self._order else 0

    @property
    def steps(self) -> int:
        """Local steps that the plan wants in this round."""
        return self._order.steps if self._order else 0

    @property
    def rounds(self) -> int:
        """Rounds of the whole run, as set with `--rounds` on its peers; 0 where the peer was not reached."""
        return self._rounds

    @property
    def total_steps(self) -> int:
        """Local steps that this script takes from `join` to the end of the run, by the present plan: for the length of a learning-rate schedule.

        It is less than `rounds * steps`, for the last rounds only mix, and less for a script that came later. Where a new plan of a swarm with an
        operator has other steps in a round, it stays the same to within a round.
        """
        return self._taken_before + self._taken + self.steps_left

    @property
    def steps_left(self) -> int:
        """Local steps from now to the last that counts, by the present plan: the last rounds of a run only mix."""
        rounds_left = self._order.rounds_left if self._order is not None else None
        if rounds_left is None:
            rounds_left = self._rounds - self.round
        if self._flight is not None:
            rounds_left -= 1  # that of the order is on its way
        return max(0, rounds_left * self.steps - self._taken)

    @property
    def name(self) -> str:
        """The name of the task, the same on all peers."""
        return self._description.name if self._description is not None else ""

    @property
    def is_attached(self) -> bool:
        """True while the swarm trains with its peer: after `join`, and before `close` or the end of the run. On rank 0 alone."""
        return self._trainer is not None

    def trains_other_than(self, description: Description) -> bool:
        """Returns True if the name or the layout of the task differs."""
        own = self._description
        return own is not None and (own.name, own.layout) != (description.name, description.layout)

    @property
    def last_factor(self) -> float:
        """Factor by which the previous change was multiplied when it was added to the model: 1 as a rule, 0 where it was not used."""
        return self._order.last_factor if self._order else 1.0

    def report(self, /, **values: Reported) -> None:
        """Reports metrics to the peer with the next change: `report(val_accuracy=(0.97, 360))`, a mean and the samples behind it.

        `loss` is the training loss of a step: the mean over those of a round is sent. Values that are no number or not finite are left out, with
        one warning for each name.
        """
        self._reports.add(values)

    def batches(self, loader: Iterable[Batch], *, accumulate: int = 1) -> Batches[Batch]:
        """The batches of `loader`, epoch after epoch, until the run is over: `for x, y in tqdm(swarm.batches(loader)):`.

        Their number is known, for progress bars. It assumes that every batch, or every `accumulate` batches, bring one step. The loop ends with the
        run, without `SwarmDone`.
        """
        return Batches(self, loader, accumulate)

    def step(self) -> None:
        """Counts one local step, and exchanges after the last one of the round. The optimizer's hook calls this."""
        if self.alone or self._order is None:
            return
        if self.done:
            self.load_final()
            self._tell_end()
            return
        self._taken += 1
        self._watch.counted()
        if self._is_round_over():
            self._guarded(self._turn)
        elif self._flight is not None:
            if self._flight.is_over:
                self._guarded(self._land)
        elif self._trainer is not None:
            self._trainer.still_here()

    def ask_to_end(self, asks: bool = True) -> None:
        """Asks the other members to end the run before its last round, as early stopping does; `asks=False` takes that back.

        The run ends once more than half of the members ask, after some last rounds that bring the models together. Until then the training goes on
        as before. Raises `Refused` where the swarm has no operator, whose peer counts. To be called on all ranks or on rank 0.
        """
        if self._trainer is not None and not self.done and not self.alone:
            self._trainer.ask_to_end(asks)

    def sync(self) -> None:
        """Exchanges now, with the steps taken so far, and returns with the next weights loaded. To be called on all ranks or none."""
        if self.done or self.alone or self._order is None:
            return

        def exchange_now() -> None:
            self._land()
            if not self.done:
                self._exchange()

        self._guarded(exchange_now)

    def reset(self) -> None:
        """Restores the weights of the present round, and discards the steps taken since, such as after `NotFinite`."""
        with self._watch.paused():
            self._land()
            self._together(self._steps.reset)
        self._taken = 0

    def load_final(self) -> None:
        """Loads the final weights again, where steps were taken after the end of the run. Does nothing before the end."""
        if self.done:
            self._together(self._steps.load_held)

    def save(self, path: Path) -> None:
        """Writes the model's `state_dict()` with `torch.save`, on rank 0. Where the model is sharded all ranks call this, and it is gathered."""
        if not self.tensors.is_sharded:
            if self._ranks.is_first:
                torch.save(self.tensors.model.state_dict(), os.fspath(path))
            return
        gathered = {}
        for name, tensor in self.tensors.model.state_dict().items():
            numbers = whole(tensor.detach()) if isinstance(tensor, torch.Tensor) else tensor
            if self._ranks.is_first:
                gathered[name] = numbers.cpu() if isinstance(numbers, torch.Tensor) else numbers
        if self._ranks.is_first:
            torch.save(gathered, os.fspath(path))

    def close(self, *, send_rest: bool = True) -> None:
        """Sends the steps since the last exchange unless `send_rest` is false, without waiting for the next order, and detaches. Idempotent."""
        self._close(send_rest)
        self._end_recording()

    def __enter__(self) -> Swarm:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool:
        self._close(send_rest=kind is None)
        self._end_recording()
        return isinstance(error, SwarmDone)

    # Begin and end

    def _begin(self, peer: Whereabouts, description: Description) -> None:
        self._description = description

        def offer() -> memoryview:
            # A sharded model was gathered, and is in `held`: later that is the vector of the order.
            return self._vectors.held_bytes if self.tensors.is_sharded else self._vectors.model_bytes()

        def attach() -> tuple[Order, int, bytes | None, bytes | None]:
            self.tensors.check_finite(torch.frombuffer(offer(), dtype=torch.float32), "the model")
            timeout = self._options.timeout
            trainer = self._trainer = Trainer(peer, description, offer=offer, timeout=timeout)
            session = trainer.attach()
            self._recorder = Recorder(self._options.loggers, trainer.client.peer_status)
            if self._state is not None:
                self._state.check_room(session.most_state_bytes)
            order = trainer.first_order(self._vectors.incoming_bytes)
            kept = trainer.kept_state() if self._state is not None else None
            given = trainer.kept_state(of_member=True) if self._options.share_optimizer and kept is None else None
            return order, session.rounds, kept, given

        def begin() -> None:
            if self.tensors.is_sharded:
                self._steps.hold_model()
            first, self._rounds, kept, given = self._ranks.lead(attach)
            self._is_open = True
            order = self._settle(lambda: first)
            if self._state is not None and kept is not None:
                self._state.restore(kept)
            elif self._state is not None and given is not None and begin_with(self._state, given, self._state.most_bytes):
                log.info("the optimizer begins with the state of a member's")
            self._load(order)

        try:
            self._or_alone(begin)
        except BaseException:
            self.close(send_rest=False)
            raise
        if self.alone:
            return
        self._watch.start()
        if self._optimizer is not None:
            self._hook = self._optimizer.register_step_post_hook(lambda *_: self.step())

    def _close(self, send_rest: bool) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        self._watch.stop()
        was_open, self._is_open = self._is_open, False
        if self._trainer is None and not (self.tensors.is_sharded and was_open):
            return
        if self._trainer is not None and self._trainer.is_forked:
            self._trainer = None
            return
        if send_rest and not self.done and not self.alone:
            if not self.exchanges and not self._taken and self._flight is None and self._ranks.is_first:
                warn_of_silence()
            try:
                self._send_rest()
            except MingleError as error:
                log.warning("the last %d steps are lost: %s", self._taken, error)
        trainer, self._trainer = self._trainer, None
        if trainer is None:
            return
        trainer.detach()
        self._recorder.flush()

    def _end_recording(self) -> None:
        """Records the metrics that no exchange took along, and closes the loggers."""
        self._recorder.rest(self.round, self._reports.take()[1])
        self._recorder.close()

    def _send_rest(self) -> None:
        """Sends the steps since the last exchange: on rank 0, and on all ranks where the model has to be gathered."""
        if self._flight is not None and not self._flight.wait(CLOSE_SECONDS):
            raise TimedOut(f"the exchange that is under way was not answered within {CLOSE_SECONDS:g} s")
        is_overwritten = self._watch.is_overwritten
        if self._taken and (self._ranks.lead(is_overwritten) if self.tensors.is_sharded else is_overwritten()):
            self._flight = None
            log.warning(
                "the last %d steps are not sent: the model was written to after them, as load_state_dict() does, and that jump is no training."
                " Call swarm.sync() before",
                self._taken,
            )
            return
        self._land()
        if self._taken and self._order is not None and not self.done:
            self._measure()
            if self._trainer is None:
                return
            self._watch.before_exchange(self._vectors.change, self._taken)
            state = self._state.to_bytes() if self._state is not None else None
            self._trainer.leave(self._order, self._vectors.change_bytes, self._taken, self._vectors.incoming_bytes, state=state)

    @contextmanager
    def _ending_quietly(self) -> Iterator[None]:
        """No step raises `SwarmDone` inside: the caller looks at `done` after each."""
        before, self._raises_when_done = self._raises_when_done, False
        try:
            yield
        finally:
            self._raises_when_done = before

    def _guarded(self, work: Callable[[], None]) -> None:
        self._or_alone(work)
        if self.done:
            self._tell_end()

    def _or_alone(self, work: Callable[[], None]) -> None:
        """Does the work. Where the peer is gone, the training goes on alone if `alone_ok` is set."""
        try:
            with self._watch.paused():
                work()
        except GONE as error:
            if not self._options.alone_ok:
                raise
            self.alone = True
            self._flight = None
            self._close(send_rest=False)
            warnings.warn(f"the training goes on alone, without its swarm: {error}", RuntimeWarning, stacklevel=4)

    def _tell_end(self) -> None:
        self._close(send_rest=False)
        if self._raises_when_done:
            what_to_do = "put the training into `with mingle.join(...):`, or catch mingle.SwarmDone"
            what = "the peer was stopped after" if self.stopped else "the run is over after"
            which = "its model" if self.stopped else "the final model"
            raise SwarmDone(f"{what} round {self.round}, and {which} is loaded: {what_to_do}")

    # Rounds

    def _is_round_over(self) -> bool:
        assert self._order is not None
        over = self._taken >= self._order.steps
        if self._order.seconds is None:
            return over
        # No step begins that would end after the time box, judged by the mean time of those before.
        took = time.monotonic() - self._began
        late = took + took / max(1, self._taken) >= self._order.seconds
        # The clocks of ranks differ, and all must agree: that of rank 0 decides.
        return self._ranks.lead(lambda: over or late)

    def _turn(self) -> None:
        if not self._options.overlap:
            self._exchange()
            return
        self._land()
        if not self.done:
            self._launch()

    def _exchange(self) -> None:
        if self.tensors.is_sharded:
            self._measure()
        self._load(self._settle(lambda: self._measured()()))

    def _measure(self) -> None:
        """Measures the change: on rank 0, and on all ranks where the model has to be gathered."""
        self.tensors.check_layout()
        self._steps.measure()

    def _together(self, step: Callable[[], None]) -> None:
        """Takes a step that writes the model, after which all ranks hold that of rank 0."""
        if self._ranks.is_first or self.tensors.is_sharded:
            step()
        self._ranks.copy_from_first(self.tensors.unsharded)

    def _load(self, order: Order) -> None:
        """Loads the weights of a `train` or `end` order, which are in `incoming` on rank 0."""
        self._together(self._steps.load)
        self._follow(order)
        self._restart_count()

    def _launch(self) -> None:
        """Sends the change in a thread; steps are taken meanwhile."""
        self._flight = Flight(self._measured())
        self._restart_count()

    def _land(self) -> None:
        """Waits for the answer to a launched change, and shifts the weights by the difference that the swarm made."""
        if self._flight is None:
            return
        flight, self._flight = self._flight, None
        order = self._settled(flight.land())
        if order.kind == "end":
            self._vectors.load()
        else:
            self._vectors.shift()
        self._follow(order)

    def _follow(self, order: Order) -> None:
        self.exchanges += self._order is not None and not order.is_answer_lost
        self._order = order
        self.done = order.kind == "end"
        self.stopped = order.stopped
        if self.stopped:
            log.warning("the peer was stopped after %d of %d rounds: start it and this script again, and the run goes on", order.round, self._rounds)
        self._recorder.round_over(order.round, order.last_factor)

    def _restart_count(self) -> None:
        self._taken_before += self._taken
        self._taken = 0
        self._began = time.monotonic()

    def _measured(self) -> Callable[[], Order]:
        """Measures the change, and returns a function that sends it and leaves the vector of the next order in `incoming`."""
        assert self._trainer is not None and self._order is not None
        trainer, order, taken, vectors = self._trainer, self._order, self._taken, self._vectors
        if not self.tensors.is_sharded:
            self._measure()
        self._watch.before_exchange(vectors.change, taken)
        state = self._state.to_bytes() if self._state is not None else None
        loss, metrics = self._reports.take()
        self._recorder.trained(self._taken_before + taken, loss, metrics)
        change = vectors.change_bytes if taken else None

        def send() -> Order:
            try:
                return trainer.exchange(
                    order, vectors.held_bytes, change, taken, vectors.incoming_bytes, loss=loss, metrics=metrics, state=state
                )
            except Refused as error:
                if error.status == 400:
                    self._explain(error)
                raise

        return send

    def _explain(self, refused: Refused) -> None:
        """Raises `NotFinite` with the tensors at fault, where the peer has refused the change for them."""
        try:
            self.tensors.check_finite(self._vectors.change, "the change")
        except NotFinite as error:
            what_to_do = "lower the learning rate or clip gradients; swarm.reset() puts the swarm's weights back"
            raise NotFinite(f"{error}, so the peer has refused it: {what_to_do}") from refused

    def _settle(self, ask: Callable[[], Order]) -> Order:
        """The next order that is none to evaluate, on all ranks. Rank 0 asks for it, and its vector is in `incoming` there.

        The forward pass of a sharded model needs all ranks, which then evaluate together.
        """
        if not self.tensors.is_sharded:
            return self._ranks.lead(lambda: self._settled(ask()))
        order = self._ranks.lead(ask)
        while order.kind == "evaluate":
            order = self._ranks.lead(partial(self._evaluation, order, self._evaluated()))
        return order

    def _settled(self, order: Order) -> Order:
        """Answers orders to evaluate until one of another kind comes; its vector is then in `incoming`."""
        while order.kind == "evaluate":
            order = self._evaluation(order, self._evaluated())
        return order

    def _evaluation(self, order: Order, metrics: dict[str, tuple[float, float]]) -> Order:
        assert self._trainer is not None
        self._recorder.evaluated(metrics)
        return self._trainer.evaluation(order, metrics, self._vectors.incoming_bytes)

    def _evaluated(self) -> dict[str, tuple[float, float]]:
        """Metrics of the model in `incoming`."""
        if self._options.evaluate is None:
            raise MingleError("the peer orders an evaluation, which this trainer does not offer: it has no evaluate=")
        kept = self.tensors.copies()
        modes = [(module, module.training) for module in self.tensors.model.modules()]
        try:
            self._steps.load_incoming()
            self.tensors.model.eval()
            with torch.no_grad():
                return self._reports.evaluation(self._options.evaluate)
        finally:
            self.tensors.put_back(kept)
            for module, was_training in modes:
                module.training = was_training
