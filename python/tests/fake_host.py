"""A host of the trainer protocol with one node, for tests: docs/trainer-protocol.md to the letter, and faults on demand.

The node has no neighbours: its next vector is the present one plus the change. A restart loses sessions and the numbering of orders, and
keeps the vector and the state, as a peer's records do.
"""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import socketserver
import sys
import threading
from array import array
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from free_ports import free_ports

MOST_ATTACH_BYTES = 1 << 20
MOST_METRICS_BYTES = 8192
STATE_SLACK_BYTES = 65_528

Fault = str
"""A fault of the next call of its kind:

- `close`: the connection is closed before the call is handled
- `close after`: the call is handled, and the connection is closed without an answer
- `cut`: the call is handled, and the connection is closed in the middle of the answer
- `restart`: as `close`, and the host has lost its sessions
- `restart after`: as `close after`, and the host has lost its sessions
"""


class Refusal(Exception):
    """An error that the host answers."""

    def __init__(self, status: int, message: str, hint: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.body = {"error": {"code": 4, "kind": "refused", "message": message, "hint": hint}}


@dataclass
class Node:
    """The state that survives a restart."""

    vector: array[float] | None = None
    layout: list[Any] = field(default_factory=list)
    name: str = ""
    round: int = 0
    state: bytes = b""


@dataclass
class Call:
    """A received call, for tests to look at."""

    name: str
    query: dict[str, str]
    headers: dict[str, str]
    size: int


class FakeHost:
    """A host in a thread. It orders `rounds` rounds of `steps` local steps each, then the end.

    `drift` is added to each number of the vector in each round, as neighbours would. Every `evaluate_every` rounds, an evaluation is ordered
    of trainers that offer it. With a `token` the host is served over TCP too. The last `closing` rounds mix without orders to train; None: the
    host says nothing of the rounds that are left. `plans` has the steps and the rounds of further plans, by the round in which each begins.
    """

    def __init__(
        self,
        home: Path,
        *,
        steps: int = 4,
        rounds: int = 5,
        drift: float = 0.0,
        seconds: float | None = None,
        evaluate_every: int = 0,
        closing: int | None = None,
        plans: Mapping[int, tuple[int, int]] | None = None,
        model: list[float] | None = None,
        most_state_bytes: int | None = None,
        token: str | None = None,
    ) -> None:
        self.home, self.steps, self.rounds, self.drift = home, steps, rounds, drift
        self.seconds, self.evaluate_every, self._most_state_bytes = seconds, evaluate_every, most_state_bytes
        self.closing, self.plans = closing, dict(plans or {})
        self.node = Node()
        self._model = array("f", model) if model is not None else None
        self.calls: list[Call] = []
        self.faults: dict[str, deque[Fault]] = {}
        self.waiting_for: str | None = None
        self.has_operator = True
        self.asked_to_end: list[bool] = []
        self.failed: str | None = None
        self.was_stopped = False
        self.changes: list[array[float]] = []
        self.evaluations: list[dict[str, Any]] = []
        self.losses: list[float] = []
        self.metrics: dict[str, Any] = {}
        self.status: dict[str, Any] = {}
        self.attached: dict[str, Any] | None = None
        self.busy_reason = "busy"
        self.sessions = 0
        self._session = ""
        self.given_state = b""
        self._order = 0
        self._kind = "train"
        self._evaluated = -1
        self._lock = threading.Condition()
        self.token = token
        self._server: _Server | None = None
        self._tcp: _TcpServer | None = None
        self._port = free_ports(1)[0] if token is not None else 0

    # For tests

    def start(self) -> FakeHost:
        """Starts to listen. A socket that was left behind is replaced."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        self._server = _Server(str(self.socket), _Handler)
        self._server.host = self
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        if self.token is not None:
            self._tcp = _TcpServer(("127.0.0.1", self._port), _Handler)
            self._tcp.host = self
            self._port = self._tcp.server_address[1]
            threading.Thread(target=self._tcp.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    @property
    def url(self) -> str:
        """The URL of the host over TCP, which stays the same after a restart."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def socket(self) -> Path:
        """The path of the host's Unix socket."""
        return self.home / "mingle.sock"

    def stop(self, leave_socket: bool = False) -> None:
        """Stops listening, and loses sessions. A killed peer leaves its socket behind: `leave_socket`."""
        if self._server is not None:
            server, self._server = self._server, None
            server.shutdown()
            server.server_close()
        if self._tcp is not None:
            tcp, self._tcp = self._tcp, None
            tcp.shutdown()
            tcp.server_close()
        self.forget()
        if not leave_socket:
            self.socket.unlink(missing_ok=True)

    def finish(self) -> None:
        """Ends the run, writes the final model into the home, and stops, as a peer whose trainer does not ask in time."""
        assert self.node.vector is not None
        header: dict[str, Any] = {"__metadata__": {"mingle.rounds": str(self.node.round)}}
        at = 0
        for name, shape in self.node.layout:
            size = 4 * math.prod(shape)
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
            at += size
        text = json.dumps(header).encode()
        (self.home / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + self.node.vector.tobytes())
        (self.home / "summary.json").write_text(json.dumps({"rounds": self.node.round}))
        self.stop()

    def interrupt(self) -> None:
        """Ends the run before its last round, as a peer that `mingle stop` ends: the open order is withdrawn."""
        with self._lock:
            self.was_stopped, self._kind = True, "end"
            self._order += 1

    def forget(self) -> None:
        """Loses sessions and the numbering of orders, as a restart does."""
        with self._lock:
            self.attached, self._session, self._order = None, "", 0

    def fail_next(self, call: str, *faults: Fault) -> None:
        """Plants faults for the next calls called `attach`, `initial`, `order`, `exchange`, `evaluation`, `state` or `detach`."""
        self.faults.setdefault(call, deque()).extend(faults)

    def wait(self, reason: str | None) -> None:
        """Holds orders back from now on, with this reason; None: there are orders again."""
        with self._lock:
            self.waiting_for = reason
            self._lock.notify_all()

    def __enter__(self) -> FakeHost:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # The protocol

    @property
    def dimension(self) -> int:
        """Number of elements of the vector."""
        return sum(math.prod(shape) for _, shape in self.node.layout)

    @property
    def most_state_bytes(self) -> int:
        """The limit given to the host, else 65,528 bytes or the trainer's `state_bytes`, whichever is more."""
        asked = self.attached.get("state_bytes", 0) if self.attached is not None else 0
        return self._most_state_bytes if self._most_state_bytes is not None else max(STATE_SLACK_BYTES, asked)

    def answer(self, call: str, method: str, request: _Handler) -> tuple[int, dict[str, str], bytes]:
        """Handles a call, and returns status, headers and body."""
        if self.failed is not None:
            raise Refusal(410, self.failed)
        if call == "trainer":
            if "Mingle-Session" in request.headers:
                self._check_session(request)
            return 200, {}, _json({"attached": self.attached is not None, "waiting_for": self.waiting_for or "a trainer"})
        if call == "status":
            return 200, {}, _json({"schema": "mingle.status/1", "round": self.node.round} | self.status)
        if call == "attach":
            return self._attach(request)
        self._check_session(request)
        known = {
            ("PUT", "initial"): self._initial,
            ("GET", "order"): self._order_call,
            ("POST", "exchange"): self._exchange,
            ("POST", "evaluation"): self._evaluation,
            ("PUT", "state"): self._put_state,
            ("GET", "state"): self._get_state,
            ("POST", "end"): self._end,
            ("POST", "detach"): self._detach,
        }
        if (method, call) not in known:
            raise Refusal(404, f"there is no {method} {call}")
        return known[method, call](request)

    def _attach(self, request: _Handler) -> tuple[int, dict[str, str], bytes]:
        said = json.loads(request.body(MOST_ATTACH_BYTES))
        if said.get("protocol") != 1:
            raise Refusal(400, "the protocol is 1")
        if not 1 <= len(said["name"]) <= 100 or said["initial"] not in ("offer", "take"):
            raise Refusal(400, "the name or initial makes no sense")
        layout = said["layout"]
        if not all(isinstance(name, str) and all(isinstance(n, int) and n >= 0 for n in shape) for name, shape in layout):
            raise Refusal(400, "the layout makes no sense")
        dimension = sum(math.prod(shape) for _, shape in layout)
        if said.get("state_bytes", 0) > 8 * dimension + STATE_SLACK_BYTES:
            raise Refusal(400, "the trainer would keep more than a record holds")
        if self.attached is not None and self.attached.get("pid") != said.get("pid") and _is_alive(self.attached.get("pid")):
            raise Refusal(409, f"another trainer is attached, process {self.attached.get('pid')}", reason=self.busy_reason)
        if self.node.layout and layout != self.node.layout:
            raise Refusal(409, f"{_first_difference(self.node.layout, layout)}", reason="task")
        if self.node.name and self.node.name != said["name"]:
            raise Refusal(409, f"the name is `{said['name']}` here and `{self.node.name}` in the swarm", reason="task")
        self.attached, self.node.layout, self.node.name = said, layout, said["name"]
        self.sessions += 1
        self._session = f"{self.sessions:016x}"
        if self.node.vector is None and self._model is not None:
            self.node.vector = self._model[:]
        needs = "initial" if self.node.vector is None else "nothing"
        return 200, {}, _json(
            {
                "protocol": 1,
                "session": self._session,
                "dimension": self.dimension,
                "needs": needs,
                "most_state_bytes": self.most_state_bytes,
                "peer": "12D3KooWfake",
                "rounds": self.rounds,
            }
        )

    def _check_session(self, request: _Handler) -> None:
        if self.attached is None:
            raise Refusal(404, "no trainer is attached", "attach first")
        if request.headers.get("Mingle-Session") != self._session:
            raise Refusal(409, "the session is over", reason="session")

    def _initial(self, request: _Handler) -> tuple[int, dict[str, str], bytes]:
        self.node.vector = self._vector_of(request.body(4 * self.dimension))
        return 204, {}, b""

    def _order_call(self, request: _Handler) -> tuple[int, dict[str, str], bytes]:
        return self._present_order(request)

    def _present_order(self, request: _Handler) -> tuple[int, dict[str, str], bytes]:
        with self._lock:
            wait_s = min(60.0, float(request.query.get("wait", "25")))
            self._lock.wait_for(lambda: self.waiting_for is None, wait_s)
            if self.waiting_for is not None:
                return 202, {}, _json({"waiting_for": self.waiting_for})
            if self.node.vector is None:
                return 202, {}, _json({"waiting_for": "the vector to begin with"})
            if self._order == 0:
                self._order = 1
            self._kind = self._kind_of_order()
            headers = {"Mingle-Order": str(self._order), "Mingle-Kind": self._kind, "Mingle-Round": str(self.node.round)}
            if self._kind == "train":
                headers |= {"Mingle-Steps": str(self.steps), "Mingle-Last-Factor": "1"}
                if self.closing is not None:
                    headers["Mingle-Rounds-Left"] = str(self.rounds - self.closing - self.node.round)
                if self.seconds is not None:
                    headers["Mingle-Seconds"] = str(self.seconds)
            if self._kind == "end":
                headers["Mingle-Stopped"] = "true" if self.was_stopped else "false"
            return 200, headers | {"Content-Type": "application/octet-stream"}, self.node.vector.tobytes()

    def _kind_of_order(self) -> str:
        if self.was_stopped or self.node.round >= self.rounds:
            return "end"
        due = self.evaluate_every and self.node.round % self.evaluate_every == 0 and self._evaluated < self.node.round
        return "evaluate" if due and self.attached is not None and self.attached.get("evaluates") else "train"

    def _exchange(self, request: _Handler) -> tuple[int, dict[str, str], bytes]:
        steps = int(request.query["steps"])
        body = request.body(4 * self.dimension)
        self._check_order(request, "train")
        if steps or body:
            if not steps:
                raise Refusal(400, "a change of no steps")
            self._count(self._vector_of(body))
        if "Mingle-Loss" in request.headers:
            self.losses.append(float(request.headers["Mingle-Loss"]))
        if "Mingle-Metrics" in request.headers:
            if len(request.headers["Mingle-Metrics"]) > MOST_METRICS_BYTES:
                raise Refusal(400, "too many metrics")
            self.metrics |= json.loads(request.headers["Mingle-Metrics"])
        self.node.round += 1
        self.steps, self.rounds = self.plans.get(self.node.round, (self.steps, self.rounds))
        if self.node.round >= self.rounds - (self.closing or 0):
            self.node.round = self.rounds
        self._order += 1
        return self._present_order(request)

    def _count(self, change: array[float]) -> None:
        assert self.node.vector is not None
        self.changes.append(change)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.frombuffer(self.node.vector, "f")[:] += numpy.frombuffer(change, "f") + numpy.float32(self.drift)
            return
        for index, number in enumerate(change):
            self.node.vector[index] += number + self.drift

    def _evaluation(self, request: _Handler) -> tuple[int, dict[str, str], bytes]:
        said = json.loads(request.body(MOST_ATTACH_BYTES))
        self._check_order(request, "evaluate")
        if not all(math.isfinite(number) for pair in said["metrics"].values() for number in pair):
            raise Refusal(400, "a metric is not finite")
        self.evaluations.append(said["metrics"])
        self._evaluated = self.node.round
        self._order += 1
        return self._present_order(request)

    def _check_order(self, request: _Handler, kind: str) -> None:
        if int(request.query["order"]) != self._order or self._kind != kind:
            raise Refusal(409, f"order {request.query['order']} is not the present one", "ask for the order", reason="order")

    def _put_state(self, request: _Handler) -> tuple[int, dict[str, str], bytes]:
        state = request.body(self.most_state_bytes)
        self._check_order(request, "train")
        self.node.state = state
        return 204, {}, b""

    def _get_state(self, request: _Handler) -> tuple[int, dict[str, str], bytes]:
        state = self.given_state if request.query.get("of") == "member" else self.node.state
        if not state:
            raise Refusal(404, "no state is kept")
        return 200, {"Content-Type": "application/octet-stream"}, state

    def _end(self, request: _Handler) -> tuple[int, dict[str, str], bytes]:
        if not self.has_operator:
            raise Refusal(400, "this swarm has no operator")
        self.asked_to_end.append(request.query["asks"] == "true")
        return 204, {}, b""

    def _detach(self, _: _Handler) -> tuple[int, dict[str, str], bytes]:
        self.attached, self._session = None, ""
        return 204, {}, b""

    def _vector_of(self, body: bytes) -> array[float]:
        if len(body) != 4 * self.dimension:
            raise Refusal(400, f"{len(body)} bytes where {4 * self.dimension} are expected")
        vector = array("f", body)
        numpy = sys.modules.get("numpy")
        if numpy is not None and numpy.isfinite(numpy.frombuffer(vector, "f")).all():
            return vector
        bad = next((index for index, number in enumerate(vector) if not math.isfinite(number)), None)
        if bad is not None:
            raise Refusal(400, f"number {bad} is not finite: {_place(self.node.layout, bad)}")
        return vector


class _Threads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 32
    allow_reuse_address = True
    host: FakeHost

    def handle_error(self, request: object, client_address: object) -> None:
        """Reports errors, except those of a client that went away."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _TcpServer(_Threads):
    pass


class _Server(_Threads):
    address_family = socket.AF_UNIX
    allow_reuse_address = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Threads

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_GET

    def _serve(self) -> None:
        host = self.server.host
        where = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(where.query).items()}
        name = where.path.removeprefix("/v1/").removeprefix("trainer/")
        host.calls.append(Call(name, self.query, dict(self.headers), int(self.headers.get("Content-Length", "0"))))
        fault = host.faults[name].popleft() if host.faults.get(name) else ""
        if fault in ("close", "restart"):
            self._vanish(host, fault)
            return
        try:
            if isinstance(self.server, _TcpServer) and self.headers.get("Authorization") != f"Bearer {host.token}":
                raise Refusal(401, "this is not the token of this peer", "the token is in trainer-tcp.json")
            status, headers, body = host.answer(name, self.command, self)
        except Refusal as refusal:
            headers = {"Mingle-Reason": refusal.reason} if refusal.reason else {}
            status, body = refusal.status, _json(refusal.body)
        if fault in ("close after", "restart after"):
            self._vanish(host, fault)
            return
        self.send_response(status)
        for key, value in ({"Content-Type": "application/json"} | headers).items():
            self.send_header(key, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if fault == "cut" else body)
        if fault == "cut" or status >= 400:
            self.close_connection = True

    def _vanish(self, host: FakeHost, fault: Fault) -> None:
        if fault.startswith("restart"):
            host.forget()
        self.close_connection = True

    def body(self, most_bytes: int) -> bytes:
        """The body of the request."""
        if "Content-Length" not in self.headers:
            raise Refusal(411, "there is no Content-Length")
        length = int(self.headers["Content-Length"])
        if length > most_bytes:
            raise Refusal(413, f"{length} bytes where at most {most_bytes} are taken")
        body = self.rfile.read(length)
        if len(body) < length:
            raise Refusal(400, "the body ended early")
        return body

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing: tests look at `calls`."""


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _is_alive(pid: int | None) -> bool:
    try:
        os.kill(pid or 0, 0)
    except ProcessLookupError:
        return False
    return True


def _first_difference(ours: list[Any], theirs: list[Any]) -> str:
    for index, (one, other) in enumerate(zip(ours, theirs)):
        if one[0] != other[0]:
            return f"tensor {index} is `{other[0]}` here and `{one[0]}` in the swarm"
        if one[1] != other[1]:
            return f"tensor `{one[0]}` has shape {other[1]} here and {one[1]} in the swarm"
    return f"{len(theirs)} tensors here and {len(ours)} in the swarm"


def _place(layout: list[Any], index: int) -> str:
    for name, shape in layout:
        if index < math.prod(shape):
            return f"number {index} of tensor `{name}`"
        index -= math.prod(shape)
    return "beyond the layout"


def main() -> None:
    """A host in a process of its own, until it is killed: `fake_host.py HOME STEPS ROUNDS`."""
    import numpy  # noqa: F401  # with it, vectors are added fast

    with FakeHost(Path(sys.argv[1]), steps=int(sys.argv[2]), rounds=int(sys.argv[3])):
        print("ready", flush=True)
        while True:
            signal.pause()


if __name__ == "__main__":
    main()
