"""The bridge from a shared folder to a peer: `python -m mingle bridge FOLDER`, on the machine of the peer.

It forwards the requests that scripts leave in the folder, each once, and writes the answers beside them. A request that a bridge took and did
not answer, because it was killed, is answered by the next one as a broken connection is: the script then asks for its order again, and no
change is counted twice. Only the calls that a peer answers over TCP pass; nothing that stops or steers the peer does.
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from mingle import http_call
from mingle.endpoint import FolderEndpoint, SocketEndpoint
from mingle.errors import MingleError, PeerUnreachable, ProtocolError
from mingle.folder import BEAT_SECONDS, PAUSE_GROWTH, PAUSE_SECONDS, Beats, Folder, Message, new_id
from mingle.home import Whereabouts, find_peer

TAKE_OVER_SECONDS = 3.0
"""Time in which another bridge would show a beat."""
FAILURE_PAUSE_SECONDS = 1.0
CLEAN_SECONDS = 10.0
LEFTOVER_SECONDS = 120.0
"""Age of an answer, or of the last beat of a script, after which no one waits for it any more."""
WRITING_SECONDS = 3600.0
"""Time since the last byte of a file that was never finished."""
MOST_CALLS = 16
"""Requests that are with the peer at a time. Further ones wait in the folder."""
LONGEST_LIMIT_SECONDS = 86_400.0
MOST_JSON_BYTES = 1 << 20
STATE_SLACK_BYTES = 1 << 16
PIECE_BYTES = 1 << 20

_ALLOWED = re.compile(r"GET /v1/status|(?:GET|PUT|POST) /v1/trainer(?:/[a-z]+(?:\?[A-Za-z0-9=&.+-]*)?)?")

log = logging.getLogger("mingle.bridge")


class Bridge:
    """A bridge from a folder to a peer. `run` works until `stop` or the end of the peer's run."""

    def __init__(self, folder: Folder, peer: Whereabouts) -> None:
        if isinstance(peer.endpoint, FolderEndpoint):
            raise MingleError(f"the peer of a bridge has a home or an address, and {peer.endpoint} is another folder: say --home, or --url and --token")
        self._folder = folder
        self._peer = peer
        self._endpoint: SocketEndpoint = peer.endpoint
        self._id = new_id()
        self._beats = Beats(f"bridge-{self._id}")
        self._stopped = threading.Event()
        self._calls = threading.BoundedSemaphore(MOST_CALLS)
        self._beaten_at = self._cleaned_at = -CLEAN_SECONDS
        self._dimension = 0
        self._gave_end = False
        self._complaint = ""

    def run(self) -> None:
        """Serves the folder. Raises `MingleError` where another bridge does, or the folder is not one's own."""
        self._folder.make()
        self._take_over()
        pause = PAUSE_SECONDS[0]
        while not self._stopped.is_set():
            try:
                took = self._turn()
            except OSError as error:
                self._complain(f"{self._folder.path}: {error}")
                self._stopped.wait(FAILURE_PAUSE_SECONDS)
                with suppress(OSError):
                    self._folder.make()
                continue
            pause = PAUSE_SECONDS[0] if took else min(PAUSE_GROWTH * pause, PAUSE_SECONDS[1])
            self._stopped.wait(pause)
        self._leave()

    def stop(self) -> None:
        """Ends `run`. Requests under way are answered as broken."""
        self._stopped.set()

    def _take_over(self) -> None:
        """Waits whether another bridge shows a beat, and removes one that does not."""
        probe = Beats(f"script-{self._id}")  # a change of the folder by this machine, so that network file systems list it anew
        self._folder.beat(probe)
        others = {name for name in self._folder.files() if name.startswith("bridge-")}
        ends = time.monotonic() + TAKE_OVER_SECONDS
        while others and time.monotonic() < ends and not self._stopped.wait(BEAT_SECONDS):
            self._folder.beat(probe)
            if new := {name for name in self._folder.files() if name.startswith("bridge-")} - others:
                self._folder.remove(probe.file)
                raise MingleError(f"another bridge serves {self._folder.path} ({new.pop()}): end it, or name another folder")
        for name in others:
            self._folder.remove(name)
        self._folder.remove(probe.file)

    def _turn(self) -> bool:
        """Takes the requests that are there, and returns True if there was one."""
        if time.monotonic() - self._beaten_at >= BEAT_SECONDS:
            self._beaten_at = time.monotonic()
            self._beat()
        files = self._folder.files()
        now = files.get(self._beats.file, 0.0)
        self._check_others(files, now)
        took = False
        for name in sorted((name for name in files if name.startswith("request-")), key=lambda name: files[name]):
            if not self._calls.acquire(blocking=False):
                break
            call = name.removeprefix("request-")
            taken = f"taken-{self._id}-{call}"
            if not self._folder.rename(name, taken):
                self._calls.release()
                continue
            took = True
            threading.Thread(target=self._serve, args=(call, taken, now - files[name]), daemon=True).start()
        if time.monotonic() - self._cleaned_at >= CLEAN_SECONDS:
            self._cleaned_at = time.monotonic()
            self._clean(files, now)
        return took

    def _beat(self) -> None:
        try:
            self._folder.beat(self._beats)
        except OSError as error:  # a full folder can still be emptied by answers that are collected
            self._complain(f"{self._folder.path}: {error}")

    def _check_others(self, files: dict[str, float], now: float) -> None:
        """Of two bridges that began at the same time one ends. What a former one took is answered as broken."""
        other = max((name for name in files if name.startswith("bridge-") and not name.startswith(self._beats.name)), default="")
        if other > self._beats.name and now - files[other] < TAKE_OVER_SECONDS:
            self._leave()
            raise MingleError(f"another bridge serves {self._folder.path} ({other}): end it, or name another folder")
        if other:
            return
        for name in files:
            if name.startswith("taken-") and not name.startswith(f"taken-{self._id}"):
                self._break(name.split("-", 2)[2], name, "the bridge was started again")

    def _clean(self, files: dict[str, float], now: float) -> None:
        """Removes what scripts and bridges left behind. The folder's own clock counts."""
        limits = {"answer": LEFTOVER_SECONDS, "script": LEFTOVER_SECONDS, "bridge": LEFTOVER_SECONDS, "writing": WRITING_SECONDS}
        for name, time_of in files.items():
            limit_s = limits.get(name.partition("-")[0])
            if limit_s is not None and now - time_of > limit_s and name != self._beats.file:
                self._folder.remove(name)

    def _leave(self) -> None:
        with suppress(OSError, MingleError):
            for name in self._folder.files():
                if name.startswith(f"taken-{self._id}"):
                    self._break(name.split("-", 2)[2], name, "the bridge has ended")
        self._folder.remove(self._beats.file)

    def _complain(self, what: str) -> None:
        if what != self._complaint:
            self._complaint = what
            log.warning("%s", what)

    # One request

    def _serve(self, call: str, taken: str, age_s: float) -> None:
        is_leaving = False
        try:
            with self._folder.read(taken) as request:
                if age_s > float(request.head["limit_s"]):
                    self._folder.remove(taken)  # the script that left it has gone, or has given up
                    return
                is_leaving = str(request.head["target"]).startswith("/v1/trainer/detach")
                self._forward(call, taken, request)
        except (OSError, http.client.HTTPException, PeerUnreachable) as error:
            self._break(call, taken, f"the bridge reaches no peer, {error or type(error).__name__} at {self._endpoint}{self._peer.advice}")
        except (MingleError, KeyError, TypeError, ValueError) as error:
            self._break(call, taken, f"a request that makes no sense: {error}")
            self._complain(f"{taken}: {error}")
        finally:
            self._calls.release()
            if is_leaving and self._gave_end:
                log.info("the run is over, and the script has its final model")
                self.stop()

    def _forward(self, call: str, taken: str, request: Message) -> None:
        method, target = str(request.head["method"]), str(request.head["target"])
        if not _ALLOWED.fullmatch(f"{method} {target}"):
            return self._refuse(call, taken, 404, f"a bridge forwards no {method} {target.partition('?')[0][:80]}")
        if request.body_bytes > self._most_bytes(request.body_bytes):
            return self._refuse(call, taken, 413, f"a body of {request.body_bytes} bytes is longer than a vector or a state of this model")
        said = request.head["headers"]
        if not isinstance(said, dict):
            raise ProtocolError("its headers are no object")
        headers = {name: str(value) for name, value in said.items() if name.lower().startswith("mingle-")}
        has_body = request.body_bytes > 0 or method != "GET"
        length = {"Content-Length": str(request.body_bytes)} if has_body else {}
        limit_s = min(float(request.head["limit_s"]), LONGEST_LIMIT_SECONDS)
        connection = self._endpoint.connection(limit_s)
        connection.blocksize = PIECE_BYTES
        try:
            connection.connect()
            with suppress(BrokenPipeError, ConnectionResetError):  # the peer may answer without reading the body
                sent = {**headers, **self._endpoint.headers(), **length, "Connection": "close"}
                connection.request(method, target, request.file if has_body else None, sent)
            self._pass_back(call, taken, target, connection.getresponse())
        finally:
            connection.close()

    def _pass_back(self, call: str, taken: str, target: str, response: http.client.HTTPResponse) -> None:
        headers = {name.lower(): value for name, value in response.getheaders()}
        length = response.length
        pieces: Iterator[bytes | memoryview] | list[bytes]
        if length is None or target.startswith("/v1/trainer/attach"):
            whole = response.read(MOST_JSON_BYTES + 1)
            if len(whole) > MOST_JSON_BYTES:
                raise ProtocolError(f"the peer answered more than {MOST_JSON_BYTES} bytes")
            self._learn(whole)
            pieces, length = [whole], len(whole)
        elif length > self._most_bytes(length):
            raise ProtocolError(f"the peer answered {length} bytes, more than a vector or a state of this model")
        else:
            pieces = _pieces(response, length)
        kept = {name: value for name, value in headers.items() if name.startswith("mingle-") or name == "content-type"}
        self._answer(call, taken, {"status": response.status, "headers": kept}, pieces, length)
        self._gave_end = self._gave_end or headers.get("mingle-kind") == "end"

    def _answer(
        self, call: str, taken: str, head: dict[str, object], pieces: Iterator[bytes | memoryview] | list[bytes], length: int
    ) -> None:
        try:
            self._folder.write(f"answer-{call}", head, pieces, length)
        except (OSError, http.client.HTTPException) as error:
            self._complain(f"an answer did not reach {self._folder.path}: {error or type(error).__name__}")
            self._break(call, taken, f"the answer of the peer did not reach {self._folder.path}: {error or type(error).__name__}")
        self._folder.remove(taken)

    def _refuse(self, call: str, taken: str, status: int, message: str) -> None:
        body = json.dumps({"error": {"code": 4, "kind": "refused", "message": message, "hint": ""}}).encode()
        self._answer(call, taken, {"status": status, "headers": {"content-type": "application/json"}}, [body], len(body))

    def _break(self, call: str, taken: str, why: str) -> None:
        """Answers as a broken connection does. A full folder takes no new file: then the request itself goes back, which says the same."""
        try:
            self._folder.write(f"answer-{call}", {"broken": why}, [], 0)
            self._folder.remove(taken)
        except OSError:
            self._folder.rename(taken, f"answer-{call}")

    # Bounds

    def _most_bytes(self, wanted: int) -> int:
        """Most bytes of a body: a vector or a state of the model that the peer trains."""
        if wanted > MOST_JSON_BYTES and not self._dimension:
            answer = http_call.call(self._endpoint, "GET", "/v1/trainer", headers={})
            task = json.loads(answer.body).get("task") or {}
            self._dimension = int(task.get("dimension", 0))
        return max(MOST_JSON_BYTES, 8 * self._dimension + STATE_SLACK_BYTES if self._dimension else 0)

    def _learn(self, answer: bytes) -> None:
        with suppress(ValueError, TypeError, AttributeError):
            self._dimension = int(json.loads(answer).get("dimension", self._dimension))


def _pieces(response: http.client.HTTPResponse, length: int) -> Iterator[bytes | memoryview]:
    buffer = memoryview(bytearray(min(PIECE_BYTES, max(length, 1))))
    left = length
    while left:
        count = response.readinto(buffer[: min(left, len(buffer))])
        if not count:
            raise http.client.IncompleteRead(b"", left)
        left -= count
        yield buffer[:count]


def main(arguments: Sequence[str]) -> int:
    """`python -m mingle bridge`: serves a folder until it is asked to end, and returns the exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="mingle bridge: %(message)s", stream=sys.stderr)
    try:
        peer = find_peer(options.home, options.url, options.token)
        bridge = Bridge(Folder(FolderEndpoint.parse(options.folder).path), peer)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: bridge.stop())
        log.info("%s is served for %s", options.folder, peer)
        bridge.run()
    except (MingleError, OSError) as error:
        log.error("%s", error)
        return 4
    return 0


def _parser() -> Any:
    parser = argparse.ArgumentParser(
        prog="python -m mingle bridge",
        description="Forwards what scripts leave in FOLDER to a peer, for nodes that share a file system with its machine and no network.",
        epilog="The scripts say mingle.join(..., url='folder:/FOLDER'), or MINGLE_TRAINER_URL=folder:/FOLDER.",
    )
    parser.add_argument("folder", metavar="FOLDER", help="an absolute path; made where it is missing, and open to its owner alone")
    parser.add_argument("--home", help="the home of the peer (MINGLE_HOME, else the user's state folder)")
    parser.add_argument("--url", help="in place of a home, the address of a peer with --trainer-tcp (MINGLE_TRAINER_URL)")
    parser.add_argument("--token", help="its token; better in MINGLE_TRAINER_TOKEN, as other users can see arguments")
    return parser
