"""Exchanges of numpy arrays, JAX pytrees or any buffer of `f32`: `mingle.Exchange` sends the model after the local steps and returns the next."""

from __future__ import annotations

import logging
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Literal, TypeVar

from mingle.arrays import Flatten, form_of
from mingle.client import Description, Order
from mingle.errors import MingleError, NotFinite, Refused, SwarmDone
from mingle.home import Path, find_peer
from mingle.layout import Layout
from mingle.loggers import Logger, loggers_of
from mingle.recording import Recorder
from mingle.reports import Doubts, Reported, as_loss, as_metrics, evaluated, what_fits
from mingle.site_weight import factor_of
from mingle.trainer import Trainer

log = logging.getLogger("mingle")

Model = TypeVar("Model")


class Exchange(Generic[Model]):
    """A model in a swarm, for loops that hold it as a value:

        with mingle.Exchange(home, "linear", w) as swarm:
            while not swarm.done:
                w = train(swarm.model, swarm.steps)
                swarm.exchange(w)
            w = swarm.model                             # the final one

    - `home`: the home of the peer; None for `url` and `token`, MINGLE_TRAINER_URL, MINGLE_HOME, else the user's state folder.
    - `name`: the name of the task, the same on all peers.
    - `model`: the initial model: a numpy array or another buffer of f32, a dict of numpy arrays, a pytree of JAX, or a `Layout` where this
      peer has no model to offer. Models come back in the same form, so arrays of whole numbers are refused.
    - `flatten`: from a model of another form to `(vector, unflatten)`, as `jax.flatten_util.ravel_pytree` returns them.
    - `evaluate`: from a model to metrics: `{"accuracy": (0.97, 360)}`, means and the samples behind them.
    - `url`, `token`, `initial`, `samples`, `weight`, `timeout`, `log_to`: as for `mingle.join`.

    Waits for the first order. Raises `LayoutError`, `Conflict`, `TimedOut` and `NotFinite` as `mingle.join` does.
    """

    def __init__(
        self,
        home: Path | None,
        name: str,
        model: Model | Layout,
        *,
        url: str | None = None,
        token: str | None = None,
        flatten: Flatten | None = None,
        initial: Literal["offer", "take"] = "offer",
        evaluate: Callable[[Model], Mapping[str, Reported]] | None = None,
        samples: int | None = None,
        weight: str = "equal",
        timeout: float = 300.0,
        log_to: Logger | Sequence[Logger] | None = None,
    ) -> None:
        loggers = loggers_of(log_to)
        self._factor = factor_of(weight, samples)
        self._recorder = Recorder((), dict)
        self._steps_taken = 0
        self._form = form_of(model, flatten)
        if isinstance(model, Layout):
            initial, first = "take", memoryview(bytes(4 * model.dimension))
        else:
            first = memoryview(bytes(self._form.to_vector(model).cast("B")))
        _check_finite(first.cast("f"), self._form.layout, "the model", "it was not sent")
        self._evaluate = evaluate
        self._doubts = Doubts()
        self._held, self._incoming, self._change = (memoryview(bytearray(len(first))) for _ in range(3))
        description = Description(name, self._form.layout, initial, samples, evaluate is not None)
        self._trainer = Trainer(find_peer(home, url, token), description, offer=lambda: first, timeout=timeout)
        try:
            order = self._trainer.first_order(self._incoming)
            self._rounds = self._trainer.session.rounds if self._trainer.session is not None else 0
            self._recorder = Recorder(loggers, self._trainer.client.peer_status)
            self._take(order)
        except BaseException as error:
            self.close()
            if isinstance(error, MingleError):
                # The message says it all, and frames of this package would hide it.
                raise error.with_traceback(None) from None
            raise

    @property
    def model(self) -> Model:
        """The model to train from; after the end of the run, the final one. A copy, each time."""
        model: Model = self._form.from_vector(self._held.cast("f"))
        return model

    @property
    def done(self) -> bool:
        """True if the run is over, or its peer was stopped."""
        return self._order.kind == "end"

    @property
    def stopped(self) -> bool:
        """True if the peer was stopped before the last round: the run goes on when both are started again."""
        return self._order.stopped

    @property
    def round(self) -> int:
        """The round, from 0."""
        return self._order.round

    @property
    def steps(self) -> int:
        """Local steps that the plan wants."""
        return self._order.steps

    @property
    def seconds(self) -> float | None:
        """The time box: seconds after the arrival of the order from which no step should begin; None without one."""
        return self._order.seconds

    @property
    def rounds_left(self) -> int:
        """Rounds that train, from this one to the last that counts, by the present plan: the last rounds of a run only mix."""
        if self.done:
            return 0
        if self._order.rounds_left is not None:
            return self._order.rounds_left
        return max(0, self._rounds - self.round)

    @property
    def last_factor(self) -> float:
        """Factor by which the previous change was multiplied when it was added to the model: 1 as a rule, 0 where it was not used."""
        return self._order.last_factor

    def exchange(
        self, model: Model, *, steps: int | None = None, loss: float | None = None, metrics: Mapping[str, Reported] | None = None
    ) -> Model:
        """Sends the model as it is after `steps` local steps (the wanted number unless given), and returns the next one to train from.

        At the end of the run that is the final one, and `done` is true; a call after that raises `SwarmDone`. `loss` is the mean training
        loss over the steps. Raises `NotFinite` with the first tensor that holds NaN or infinity; the peer has then refused the change.
        """
        if self.done:
            raise SwarmDone(f"the run is over after round {self.round}: look at `done` before each exchange")
        steps = self.steps if steps is None else _whole(steps)
        _subtract(self._form.to_vector(model), self._base(), self._change.cast("f"), self._factor)
        change = self._change if steps else None
        sent = what_fits({}, as_metrics(metrics or {}, self._doubts), self._doubts)
        loss = None if loss is None else as_loss(loss, self._doubts)
        self._recorder.trained(self._steps_taken + steps, loss, sent)
        try:
            order = self._trainer.exchange(self._order, self._held, change, steps, self._incoming, loss=loss, metrics=sent)
        except Refused as error:
            if error.status == 400:
                what_to_do = "the peer has refused it and waits for another: train again from swarm.model"
                _check_finite(self._change.cast("f"), self._form.layout, "the change", what_to_do, error)
            raise
        self._steps_taken += 0 if order.is_answer_lost else steps
        self._take(order)
        if self.stopped:
            log.warning("the peer was stopped after %d of %d rounds: start it and this script again, and the run goes on", self.round, self._rounds)
        return self.model

    def ask_to_end(self, asks: bool = True) -> None:
        """Asks the other members to end the run before its last round, or no longer, as `Swarm.ask_to_end` does."""
        self._trainer.ask_to_end(asks)

    def still_here(self) -> None:
        """Renews the lease of the session. To be called now and then where a round takes longer than 60 s and the peer cannot observe this
        process: over TCP, or from another container. Within 20 s of the last contact it does nothing."""
        self._trainer.still_here()

    def close(self) -> None:
        """Detaches, and closes the loggers. Further calls do nothing."""
        self._trainer.detach()
        self._recorder.close()

    def __enter__(self) -> Exchange[Model]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool:
        self.close()
        return isinstance(error, SwarmDone)

    def _base(self) -> memoryview[float]:
        """The origin of the change: the vector of the order, rounded as the model rounds it, so that no rounding is sent as a change."""
        held = self._held.cast("f")
        return held if self._form.is_exact else self._form.to_vector(self._form.from_vector(held))

    def _take(self, order: Order) -> None:
        while order.kind == "evaluate":
            if self._evaluate is None:
                raise MingleError("the peer orders an evaluation, which this trainer does not offer: it has no evaluate=")
            evaluate, model = self._evaluate, self._form.from_vector(self._incoming.cast("f"))
            metrics = evaluated(lambda: evaluate(model), self._doubts)
            self._recorder.evaluated(metrics)
            order = self._trainer.evaluation(order, metrics, self._incoming)
        self._held, self._incoming = self._incoming, self._held
        self._order = order
        self._recorder.round_over(order.round, order.last_factor)
        if self.done:
            self._recorder.flush()


def _whole(steps: int) -> int:
    try:
        whole = -1 if isinstance(steps, bool) else operator.index(steps)
    except TypeError:
        whole = -1
    if whole < 0:
        raise MingleError(f"steps={steps!r}: give the number of local steps that were taken, a whole number; 0 where nothing was trained")
    return whole


def _subtract(minuend: memoryview[float], subtrahend: memoryview[float], into: memoryview[float], factor: float) -> None:
    """Writes `factor * (minuend - subtrahend)` into `into`, with numpy where that is loaded."""
    if (numpy := sys.modules.get("numpy")) is not None:
        difference = _as_numpy(into)
        numpy.subtract(_as_numpy(minuend), _as_numpy(subtrahend), out=difference)
        if factor != 1.0:
            difference *= numpy.float32(factor)
        return
    for index, (one, other) in enumerate(zip(minuend, subtrahend)):
        into[index] = factor * (one - other)


def _check_finite(vector: memoryview[float], layout: Layout, what: str, outcome: str, cause: Refused | None = None) -> None:
    """Raises `NotFinite` with the first number that is not finite, and with `outcome`: whether it was sent."""
    if (numpy := sys.modules.get("numpy")) is not None:
        bad = numpy.flatnonzero(~numpy.isfinite(_as_numpy(vector)))
        first = int(bad[0]) if len(bad) else None
    else:
        first = next((index for index, number in enumerate(vector) if number - number != 0.0), None)
    if first is None:
        return
    entry = next(entry for entry in layout if entry.offset <= first < entry.offset + entry.size)
    raise NotFinite(f"{what} is not finite in `{entry.name}`, number {first - entry.offset} of {entry.size}; {outcome}") from cause


def _as_numpy(vector: memoryview[float]) -> Any:
    return sys.modules["numpy"].frombuffer(vector, dtype="<f4")
