"""A trainer that survives restarts of its peer: it attaches, answers orders, and attaches again after a restart.

It guarantees that a change is never counted twice, and that every wait ends. The recovery of a broken call:

    exchange ── no answer, 409 ──► ask for the order
                                      │ the same session and number: it was not answered, send the change again
                                      │ another number: the change was taken, and this is the next order
                                      │ 404, 409: the session is over ──► attach, ask for the order
                                      │                  the vector is that of the order before, byte by byte: send the change again
                                      │                  another vector: go on from it without the change
                                      ▼
                                  next order

In the last case, another vector, the peer may or may not have applied the change; its vector shows what it holds either way. At most the
steps of one round are lost. A peer that cannot be reached any more may have ended its run: the final model is then in its home.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from mingle.client import Client, Description, Metrics, Order, Session, Waiting
from mingle.endpoint import TcpEndpoint
from mingle.errors import Conflict, MingleError, NothingThere, PeerUnreachable, ProtocolError, Refused, TimedOut
from mingle.final_model import read_final_model, run_ended_s_ago
from mingle.home import Whereabouts

WAIT_SECONDS = 25.0
"""Longest time that the peer may hold a call before it answers that there is no order yet."""
PAUSE_SECONDS = (0.05, 1.0)
"""The first and the longest back-off between two attempts to reach a peer."""
WARNING_SECONDS = 8.0
"""Time without an answer of the peer, or without a first order, after which a warning is logged."""
SILENCE_SECONDS = 20.0
"""Time since the last contact after which a trainer at work renews its lease."""
MOST_REFUSED_SENDS = 3
BUSY_SECONDS = 2.0
"""Time that another trainer, whose process runs, is given to end: it may be the same script before its restart."""
DETACH_SECONDS = 5.0

log = logging.getLogger("mingle")

Send = Callable[[str, int, float, memoryview], "Order | Waiting"]
"""A call that sends an answer: session, number of the order, seconds to wait, buffer for the next vector."""


@dataclass
class _Open:
    """An answer to an order, until it is known whether the peer has it."""

    order: Order
    session: str
    send: Send
    held: memoryview | None
    """The vector of the order; None where the answer must not be sent in another session."""
    steps: int = 0
    """The steps that it brings."""
    refused: int = 0


class Trainer:
    """The orders of a peer, and the answers to them. Vectors are buffers of bytes, `[4 * dimension]`.

    `offer` returns the initial vector; it is called where the peer needs one. `timeout` is the longest time, in seconds, that a call may go
    on without an order: then it raises `TimedOut`. A session may be used by one thread at a time, and not by a process that was forked later.
    """

    def __init__(self, peer: Whereabouts, description: Description, *, offer: Callable[[], memoryview], timeout: float) -> None:
        self.client = Client(peer.endpoint)
        self.peer = peer
        self.description = description
        self.timeout = timeout
        self.session: Session | None = None
        self._offer = offer
        self._attached_at: float | None = None
        self._heard_at = time.monotonic()
        self._is_closed = False
        self._asks_to_end = False
        self._process = os.getpid()

    @property
    def is_forked(self) -> bool:
        """True in a process that was forked from the one that attached: the session is not its own."""
        return os.getpid() != self._process

    def attach(self) -> Session:
        """Attaches, and waits for the peer where it is not there yet."""
        deadline = _Deadline(self.timeout, self.peer, is_first=True)
        while self.session is None:
            self._try_to_attach(deadline)
        return self.session

    def first_order(self, into: memoryview) -> Order:
        """Waits for the first order, and attaches before where needed."""
        return self._settle(None, into)

    def exchange(
        self,
        order: Order,
        held: memoryview,
        change: memoryview | None,
        steps: int,
        into: memoryview,
        *,
        loss: float | None = None,
        metrics: Metrics | None = None,
        state: bytes | memoryview | None = None,
    ) -> Order:
        """Answers a `train` order, whose vector is `held`, and waits for the next one, whose vector is written into `into`.

        `change` may be None with `steps` 0. Raises `Refused` where the peer rejects the change; the order is then still open.
        """

        def send(session: str, number: int, wait_s: float, into: memoryview) -> Order | Waiting:
            if state is not None:
                self.client.put_state(session, number, state)
            return self.client.exchange(session, number, steps, change, wait_s, into, loss=loss, metrics=metrics)

        return self._settle(self._opened(order, send, held, steps), into)

    def evaluation(self, order: Order, metrics: Metrics, into: memoryview) -> Order:
        """Answers an `evaluate` order and waits for the next one."""

        def send(session: str, number: int, wait_s: float, into: memoryview) -> Order | Waiting:
            return self.client.evaluation(session, number, metrics, wait_s, into)

        return self._settle(self._opened(order, send, None), into)

    def still_here(self) -> None:
        """Renews the lease of the session after `SILENCE_SECONDS` without contact. A call that fails is logged, and has no other effect."""
        if self.session is None or time.monotonic() - self._heard_at < SILENCE_SECONDS:
            return
        self._heard_at = time.monotonic()
        try:
            self.client.still_here(self.session.id)
        except (PeerUnreachable, Refused) as error:
            log.info("the peer was not told that the training goes on: %s", error)

    def ask_to_end(self, asks: bool) -> None:
        """Asks the swarm to end before its last round, or no longer; the wish is told again to a peer that has restarted.

        Raises `Refused` where the swarm has no operator."""
        self._asks_to_end = asks
        if self.session is not None:
            self._tell_wish(self.session)

    def _tell_wish(self, session: Session) -> None:
        try:
            self.client.ask_to_end(session.id, self._asks_to_end)
        except (PeerUnreachable, Conflict, NothingThere) as error:
            log.info("the peer was not told whether the run may end, and will be once it is there: %s", error)

    def kept_state(self, *, of_member: bool = False) -> bytes | None:
        """The state that the peer keeps, also from before its restart, or the one that another member gave; None where there is none. To be
        called after the first order."""
        try:
            return self.client.get_state(self.session.id, of_member=of_member) if self.session is not None else None
        except (PeerUnreachable, Conflict) as error:
            log.warning("what the peer has kept is not there: %s", error)
            return None

    def leave(
        self, order: Order, change: memoryview, steps: int, into: memoryview, *, state: bytes | memoryview | None = None
    ) -> None:
        """Sends the last change without waiting for the next order. Where that fails, the change is lost, with a warning."""
        if self.session is None:
            return
        try:
            if state is not None:
                self.client.put_state(self.session.id, order.number, state)
            self.client.exchange(self.session.id, order.number, steps, change, 0.0, into)
        except (PeerUnreachable, Conflict, NothingThere) as error:
            log.warning("the last %d steps are lost: %s", steps, error)

    def detach(self) -> None:
        """Ends the session. A peer that does not answer is waited for for `DETACH_SECONDS` at most."""
        self._is_closed = True
        session, self.session = self.session, None
        if session is None or self.is_forked:
            return
        worker = threading.Thread(target=self._detach, args=(session.id,), daemon=True)
        worker.start()
        worker.join(DETACH_SECONDS)

    def _detach(self, session: str) -> None:
        try:
            self.client.detach(session)
        except Exception as error:  # the peer detects the absence by itself
            log.debug("detach: %s", error)

    def _opened(self, order: Order, send: Send, held: memoryview | None, steps: int = 0) -> _Open:
        return _Open(order, self.session.id if self.session else "", send, held, steps)

    def _settle(self, answer: _Open | None, into: memoryview) -> Order:
        if self.is_forked:
            raise MingleError("this process was forked from the one that joined the swarm: train there, or join here, after the fork")
        deadline = _Deadline(self.timeout, self.peer, is_first=answer is None)
        sending = answer is not None and self.session is not None
        while True:
            if self._is_closed:
                raise MingleError("the trainer was detached while it waited")
            if deadline.is_peer_away and (end := self._ended(into)) is not None:
                return end if answer is None else _after_refusal(answer, end, is_away=True)
            if self.session is None:
                self._try_to_attach(deadline)
                continue
            if sending and answer is not None:
                order = self._send(answer, deadline, into)
            else:
                order = self._ask(deadline, into)
                if order is not None and answer is not None and self._is_unanswered(answer, order, into):
                    sending, order = True, None
                    continue
            if order is not None:
                self._heard_at = time.monotonic()
                return order if sending or answer is None else _after_refusal(answer, order)
            sending = False

    def _send(self, answer: _Open, deadline: _Deadline, into: memoryview) -> Order | None:
        assert self.session is not None
        try:
            received = answer.send(self.session.id, answer.order.number, deadline.wait_s(), into)
        except PeerUnreachable as error:
            deadline.pause(str(error), is_peer_away=True)
            return None
        except (Conflict, NothingThere) as error:
            answer.refused += 1
            if answer.refused >= MOST_REFUSED_SENDS:
                raise
            log.info("order %d: %s", answer.order.number, error)
            return None
        return self._order(received, deadline)

    def _ask(self, deadline: _Deadline, into: memoryview) -> Order | None:
        assert self.session is not None
        try:
            received = self.client.order(self.session.id, deadline.wait_s(), into)
        except PeerUnreachable as error:
            deadline.pause(str(error), is_peer_away=True)
            return None
        except (Conflict, NothingThere) as error:
            log.info("the session is over, attaching again: %s", error)
            self.session = None
            deadline.pause(str(error))
            return None
        return self._order(received, deadline)

    def _ended(self, into: memoryview) -> Order | None:
        if self._attached_at is None or self.peer.home is None:
            return None
        return read_final_model(self.peer.home, self.description.layout, self._attached_at, into)

    def _order(self, received: Order | Waiting, deadline: _Deadline) -> Order | None:
        if isinstance(received, Waiting):
            deadline.waiting_for(received.waiting_for)
            return None
        return received

    def _is_unanswered(self, answer: _Open, order: Order, into: memoryview) -> bool:
        assert self.session is not None
        if order.kind != answer.order.kind:
            return False
        if self.session.id == answer.session:
            return order.number == answer.order.number
        if answer.held is None or not _same_bytes(into, answer.held):
            log.warning("the peer was started again: the last steps are trained again from the model that it holds")
            return False
        answer.session, answer.order = self.session.id, order
        return True

    def _try_to_attach(self, deadline: _Deadline) -> None:
        try:
            if isinstance(self.peer.endpoint, TcpEndpoint):
                self.client.status()  # a wrong token is refused here, before a long layout is sent in vain
            session = self.client.attach(self.description)
            if session.dimension != self.description.layout.dimension:
                raise ProtocolError(f"the peer counts {session.dimension} numbers, this trainer {self.description.layout.dimension}")
            if session.needs_initial:
                self.client.put_initial(session.id, self._offer())
        except PeerUnreachable as error:
            deadline.pause(f"{error}{self.peer.advice}", is_peer_away=True)
        except Conflict as error:
            if not _may_pass(error) or (error.reason == "busy" and deadline.is_busy_for_long()):
                raise
            deadline.pause(str(error))
        else:
            log.info("attached to peer %s, %d numbers", session.peer, session.dimension)
            self._attached_at = self._attached_at or time.time()
            self.session = session
            if self._asks_to_end:
                self._tell_wish(session)


def _after_refusal(answer: _Open, order: Order, *, is_away: bool = False) -> Order:
    """The order that came in place of one whose answer the peer has refused, or was stopped before it took; warns where steps are lost."""
    is_lost = answer.refused > 0 or (is_away and order.stopped)
    if order.kind != "end" or not is_lost or answer.steps == 0:
        return order
    how = "the peer was stopped" if order.stopped else "the run ended"
    log.warning("%s in round %d: the last %d steps are lost", how, answer.order.round, answer.steps)
    return replace(order, is_answer_lost=True)


def _same_bytes(one: memoryview, other: memoryview) -> bool:
    pieces = range(0, len(one), 1 << 20)  # memoryviews compare number by number, bytes as a whole
    return all(bytes(one[at : at + (1 << 20)]) == bytes(other[at : at + (1 << 20)]) for at in pieces)


def _may_pass(refused: Conflict) -> bool:
    """Returns True if the reason may pass: another trainer may be about to end, or has died without detection by the peer, or no member of the
    swarm has told the peer the number of rounds yet."""
    return refused.reason in ("busy", "unseen", "rounds")


class _Deadline:
    """The deadline of a wait, with the back-off between attempts and the reason of the wait. `is_first` is set for that at the beginning, in
    which a peer that has no order yet is worth a warning; later it may wait for a slow neighbour in any round."""

    def __init__(self, timeout: float, peer: Whereabouts, is_first: bool) -> None:
        self._timeout = timeout
        self._is_first = is_first
        self._home = peer.home
        self._began = time.monotonic()
        self._ends = self._began + timeout
        self._pause = PAUSE_SECONDS[0]
        self._reason = str(peer)
        self._told = False
        self._warned = False
        self._busy_since: float | None = None
        self.is_peer_away = False
        """True if the last attempt did not reach the peer."""

    def wait_s(self) -> float:
        """Seconds that the peer may hold the next call: until the first warning is due at most, whose reason is in the answer."""
        now = time.monotonic()
        due_s = self._began + WARNING_SECONDS - now
        return min(due_s if self._is_first and due_s > 0 else WAIT_SECONDS, max(0.0, self._ends - now))

    def waiting_for(self, what: str) -> None:
        """Handles an answer that there is no order yet. The peer has held the call for a while, so the pause is short."""
        self._pause = PAUSE_SECONDS[0]
        self.pause(what)

    def pause(self, why: str, is_peer_away: bool = False) -> None:
        """Sleeps before the next attempt, longer each time, or raises `TimedOut`."""
        self.is_peer_away = is_peer_away
        self._tell(why)
        self.check()
        time.sleep(min(self._pause, max(0.0, self._ends - time.monotonic())))
        self._pause = min(2 * self._pause, PAUSE_SECONDS[1])

    def is_busy_for_long(self) -> bool:
        """Returns True once `BUSY_SECONDS` have passed since its first call: another trainer has had the time to end."""
        now = time.monotonic()
        if self._busy_since is None:
            self._busy_since = now
        return now - self._busy_since >= BUSY_SECONDS

    def check(self) -> None:
        """Raises `TimedOut` once the deadline has passed."""
        if time.monotonic() >= self._ends:
            raise TimedOut(f"no order within {self._timeout:g} s, waiting for: {self._reason}")

    def _tell(self, reason: str) -> None:
        if reason != self._reason or not self._told:
            log.info("waiting for: %s", reason)
        self._reason, self._told = reason, True
        waited_s = time.monotonic() - self._began
        if self._warned or waited_s < WARNING_SECONDS or not (self.is_peer_away or self._is_first):
            return
        self._warned = True
        if not self.is_peer_away:
            log.warning("no order yet after %.0f s, of %g s that are waited, waiting for: %s", waited_s, self._timeout, reason)
            return
        ended_s = run_ended_s_ago(self._home) if self._home is not None else None
        over = f" (a run in this home ended {ended_s:.0f} s ago)" if ended_s is not None else ""
        log.warning("no peer answers since %.0f s, of %g s that are waited: %s%s", waited_s, self._timeout, reason, over)
