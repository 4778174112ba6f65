"""The calls of the trainer protocol, one method each (docs/trainer-protocol.md). No state, no retries: `mingle.trainer` has those."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import urlencode

from mingle import folder_call, http_call
from mingle.endpoint import Endpoint, FolderEndpoint
from mingle.errors import Conflict, NothingThere, PeerFailed, ProtocolError, Refused
from mingle.layout import Layout
from mingle.version import VERSION

PROTOCOL = 1
CLIENT = f"mingle-train {VERSION}"
MOST_METRICS_BYTES = 8192
LONGEST_WAIT_SECONDS = 60.0
SHORT_SECONDS = 5.0

Kind = Literal["train", "evaluate", "end"]
Metrics = Mapping[str, tuple[float, float]]
"""Means by name, each with the number of samples behind it."""


@dataclass(frozen=True)
class Description:
    """A trainer's description of its task and itself, for `attach`."""

    name: str
    layout: Layout
    initial: Literal["offer", "take"] = "offer"
    samples: int | None = None
    evaluates: bool = False
    state_bytes: int = 0
    """Most bytes that the trainer will send with `put_state`."""
    shares_state: bool = False
    """True if members that join may have the trainer's state, and it begins with a member's when it joins."""

    def to_json(self) -> dict[str, object]:
        """The body of `attach`."""
        said: dict[str, object] = {
            "protocol": PROTOCOL,
            "name": self.name,
            "layout": self.layout.to_json(),
            "initial": self.initial,
            "evaluates": self.evaluates,
            "state_bytes": self.state_bytes,
            "shares_state": self.shares_state,
            "pid": os.getpid(),
            "client": CLIENT,
        }
        if self.samples is not None:
            said["samples"] = self.samples
        return said


@dataclass(frozen=True)
class Session:
    """The answer of the peer to `attach`."""

    id: str
    dimension: int
    needs_initial: bool
    most_state_bytes: int
    peer: str
    rounds: int


@dataclass(frozen=True)
class Order:
    """An order of the peer. Its vector is in the buffer that the call was given."""

    number: int
    kind: Kind
    round: int
    steps: int
    """Local steps that the plan wants (0 unless `kind` is `train`)."""
    seconds: float | None
    """The time box: seconds after the arrival of the order from which no step should begin; None without one."""
    last_factor: float
    """Factor by which the previous change was multiplied when it was added to the model."""
    stopped: bool = False
    """With `end`: True if the peer was stopped before the last round, and goes on when it is started again."""
    is_answer_lost: bool = False
    """With `end`: True if the answer before it was not taken, because the peer had withdrawn its order."""
    rounds_left: int | None = None
    """Rounds that train from this one on, this one included, by the present plan; None where the peer does not report it."""


@dataclass(frozen=True)
class Waiting:
    """An answer without an order: there is none yet."""

    waiting_for: str


class Client:
    """The calls to a peer. Vectors are buffers of bytes: `f32`, little-endian, `[4 * dimension]`.

    All calls raise `PeerUnreachable` where no answer came, `ProtocolError` where it makes no sense, and `Refused` or its
    subclasses where the peer refuses.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        if sys.byteorder != "little":
            raise ProtocolError("this machine is big-endian, which is not supported: the vectors of the protocol are little-endian")
        self.endpoint = endpoint

    def status(self) -> dict[str, Any]:
        """The attached trainer, the task and what is waited for."""
        return self._json("GET", "/v1/trainer")

    def peer_status(self) -> dict[str, Any]:
        """The status of the peer, `mingle.status/1`, as `mingle status --json` prints it. Ends within some 5 s."""
        return _object(self._call("GET", "/v1/status", None, answer_s=SHORT_SECONDS).body)

    def still_here(self, session: str) -> None:
        """Renews the lease of the trainer, which a peer that cannot observe its process ends after 60 s of silence. Ends within some 5 s."""
        self._call("GET", "/v1/trainer", session, answer_s=SHORT_SECONDS)

    def attach(self, description: Description) -> Session:
        """Attaches under a new session. Raises `Conflict` where another trainer is attached, or the peer trains another model."""
        said = self._json("POST", "/v1/trainer/attach", body=json.dumps(description.to_json()).encode())
        try:
            return Session(
                id=str(said["session"]),
                dimension=int(said["dimension"]),
                needs_initial=said["needs"] == "initial",
                most_state_bytes=int(said["most_state_bytes"]),
                peer=str(said["peer"]),
                rounds=int(said["rounds"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ProtocolError(f"the answer to attach lacks {error}: {said}") from error

    def put_initial(self, session: str, vector: memoryview) -> None:
        """Sends the initial vector."""
        self._call("PUT", "/v1/trainer/initial", session, body=vector)

    def order(self, session: str, wait_s: float, into: memoryview) -> Order | Waiting:
        """Requests the next order, which the peer waits for up to `wait_s`, 60 s at most; its vector is written into `into`."""
        wait_s = min(wait_s, LONGEST_WAIT_SECONDS)
        return _order(self._call("GET", "/v1/trainer/order", session, {"wait": _number(wait_s)}, into=into, wait_s=wait_s))

    def exchange(
        self,
        session: str,
        number: int,
        steps: int,
        change: memoryview | None,
        wait_s: float,
        into: memoryview,
        *,
        loss: float | None = None,
        metrics: Metrics | None = None,
    ) -> Order | Waiting:
        """Answers a `train` order with the change after `steps` local steps, None for none; the next vector is written into `into`.

        `loss` is the mean training loss over the steps. Raises `Refused` (400) where a number is not finite, and `Conflict` where the order is
        not the present one.
        """
        headers = {}
        if loss is not None and math.isfinite(loss):
            headers["Mingle-Loss"] = repr(loss)
        if metrics:
            headers["Mingle-Metrics"] = metrics_json(metrics)
        wait_s = min(wait_s, LONGEST_WAIT_SECONDS)
        query = {"order": str(number), "steps": str(steps), "wait": _number(wait_s)}
        return _order(self._call("POST", "/v1/trainer/exchange", session, query, headers, body=change, into=into, wait_s=wait_s))

    def evaluation(self, session: str, number: int, metrics: Metrics, wait_s: float, into: memoryview) -> Order | Waiting:
        """Answers an `evaluate` order; the next vector is written into `into`."""
        wait_s = min(wait_s, LONGEST_WAIT_SECONDS)
        body = _evaluation_text(metrics).encode()
        query = {"order": str(number), "wait": _number(wait_s)}
        return _order(self._call("POST", "/v1/trainer/evaluation", session, query, body=body, into=into, wait_s=wait_s))

    def put_state(self, session: str, number: int, state: bytes | memoryview) -> None:
        """Sends the trainer's state that belongs to the answer to the order, at most `most_state_bytes`."""
        self._call("PUT", "/v1/trainer/state", session, {"order": str(number)}, body=state)

    def get_state(self, session: str, *, of_member: bool = False) -> bytes | None:
        """The state that the peer keeps, or None; with `of_member` the one that another member gave. State from before a restart of the peer
        is there once it has given its first order, as is that of a member."""
        try:
            return self._call("GET", "/v1/trainer/state", session, {"of": "member"} if of_member else None).body
        except NothingThere:
            return None

    def ask_to_end(self, session: str, asks: bool) -> None:
        """Asks the swarm to end its training before its last round, or no longer."""
        self._call("POST", "/v1/trainer/end", session, {"asks": "true" if asks else "false"})

    def detach(self, session: str) -> None:
        """Ends the session."""
        self._call("POST", "/v1/trainer/detach", session)

    def _json(self, method: str, target: str, body: bytes | None = None) -> dict[str, Any]:
        return _object(self._call(method, target, None, body=body).body)

    def _call(
        self,
        method: str,
        target: str,
        session: str | None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        body: bytes | memoryview | None = None,
        into: memoryview | None = None,
        wait_s: float = 0.0,
        answer_s: float = http_call.ANSWER_SECONDS,
    ) -> http_call.Answer:
        sent = dict(headers or {})
        if session is not None:
            sent["Mingle-Session"] = session
        where = f"{target}?{urlencode(query)}" if query else target
        answer = _transported(self.endpoint, method, where, headers=sent, body=body, into=into, wait_s=wait_s, answer_s=answer_s)
        if answer.status >= 300:
            raise _refusal(answer)
        return answer


def _transported(endpoint: Endpoint, method: str, target: str, **how: Any) -> http_call.Answer:
    """One call by the transport of the endpoint."""
    if isinstance(endpoint, FolderEndpoint):
        return folder_call.call(endpoint, method, target, **how)
    return http_call.call(endpoint, method, target, **how)


def metrics_json(metrics: Metrics) -> str:
    """The header `Mingle-Metrics`. Raises `ValueError` where it is longer than the 8 KiB that the peer accepts."""
    text = _metrics_text(metrics)
    if len(text) > MOST_METRICS_BYTES:
        raise ValueError(f"{len(metrics)} metrics take {len(text)} bytes, more than {MOST_METRICS_BYTES}: report fewer at a time")
    return text


def metrics_bytes(metrics: Metrics) -> int:
    """Length of the body of an evaluation, in bytes, which is a little more than that of the header `Mingle-Metrics`."""
    return len(_evaluation_text(metrics))


def _metrics_text(metrics: Metrics) -> str:
    return json.dumps({name: list(value) for name, value in metrics.items()})


def _evaluation_text(metrics: Metrics) -> str:
    return json.dumps({"metrics": {name: list(value) for name, value in metrics.items()}})


def _order(answer: http_call.Answer) -> Order | Waiting:
    if answer.status == 202:
        return Waiting(str(_object(answer.body).get("waiting_for", "the peer")))
    if not answer.into_buffer:
        raise ProtocolError(f"an order without its vector: status {answer.status}, {answer.headers.get('content-type', 'no content type')}")
    headers = answer.headers
    try:
        kind = headers["mingle-kind"]
        if kind not in ("train", "evaluate", "end"):
            raise ProtocolError(f"an order of kind {kind!r}, which this client does not know: use a newer one")
        return Order(
            number=int(headers.get("mingle-order", "0") if kind == "end" else headers["mingle-order"]),  # an end is not answered
            kind=cast(Kind, kind),
            round=int(headers["mingle-round"]),
            steps=int(headers.get("mingle-steps", "0")),
            seconds=float(headers["mingle-seconds"]) if "mingle-seconds" in headers else None,
            last_factor=float(headers.get("mingle-last-factor", "1")),
            stopped=headers.get("mingle-stopped") == "true",
            rounds_left=int(headers["mingle-rounds-left"]) if "mingle-rounds-left" in headers else None,
        )
    except (KeyError, ValueError) as error:
        raise ProtocolError(f"the headers of an order make no sense: {error}") from error


def _refusal(answer: http_call.Answer) -> Refused:
    try:
        error = _object(answer.body)["error"]
        message, hint = str(error["message"]), str(error.get("hint") or "")
        code, kind = int(error.get("code") or 0), str(error.get("kind") or "")
    except (ProtocolError, KeyError, TypeError, ValueError, AttributeError):
        message, hint, code, kind = f"status {answer.status} without a reason", "", 0, ""
    known: dict[int, type[Refused]] = {404: NothingThere, 409: Conflict, 410: PeerFailed}
    refusal = known.get(answer.status, Refused)
    return refusal(message, status=answer.status, code=code, kind=kind, hint=hint, reason=answer.headers.get("mingle-reason", ""))


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError as error:
        raise ProtocolError(f"the peer answered what is not JSON: {body[:80]!r}") from error
    if not isinstance(value, dict):
        raise ProtocolError(f"the peer answered JSON that is no object: {body[:80]!r}")
    return value


def _number(value: float) -> str:
    return f"{max(0.0, value):g}"
