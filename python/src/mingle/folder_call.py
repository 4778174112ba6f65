"""One call to a peer by files in a shared folder, which a bridge forwards (`mingle.folder` has the files)."""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from contextlib import suppress

from mingle.endpoint import FolderEndpoint
from mingle.errors import MingleError, PeerUnreachable, ProtocolError
from mingle.folder import BEAT_SECONDS, PAUSE_GROWTH, PAUSE_SECONDS, SILENCE_SECONDS, Folder, Message, new_id
from mingle.http_call import ANSWER_SECONDS, Answer, received

SLOWEST_BYTES_PER_SECOND = 1e6
"""A shared folder may be at the other end of a line to a home."""
TORN_SECONDS = 5.0
"""Time in which an answer that is not whole may become so, on a file system that shows a name before its bytes."""


def call(
    endpoint: FolderEndpoint,
    method: str,
    target: str,
    *,
    headers: Mapping[str, str],
    body: bytes | memoryview | None = None,
    into: memoryview | None = None,
    wait_s: float = 0.0,
    answer_s: float = ANSWER_SECONDS,
) -> Answer:
    """Leaves a request in the folder and waits for the answer: the same as `http_call.call` for an address.

    Raises `PeerUnreachable` where no bridge is there, it reaches no peer, or the folder is full.
    """
    folder = Folder(endpoint.path)
    name = f"{endpoint.script}-{next(endpoint.numbers):08}-{new_id()}"
    moved_bytes = (len(body) if body is not None else 0) + (len(into) if into is not None else 0)
    limit_s = wait_s + answer_s + moved_bytes / SLOWEST_BYTES_PER_SECOND
    what = f"{method} {target.partition('?')[0]}"
    wait = _Wait(endpoint, folder, name, limit_s)
    try:
        folder.check()
        wait.begin()
        sent = body if body is not None else b""
        head = {"method": method, "target": target, "headers": dict(headers), "limit_s": limit_s, "answer_bytes": len(into or b"")}
        folder.write(f"request-{name}", head, [sent], len(sent))
        with wait.answer() as message:
            return _received(message, into)
    except FileNotFoundError as error:
        raise PeerUnreachable(f"there is no folder {endpoint.path}: {endpoint.start_bridge}") from error
    except PermissionError as error:
        raise MingleError(f"{endpoint.path} is closed to this user: run this as the user whose peer it is") from error
    except (OSError, http.client.IncompleteRead) as error:
        raise PeerUnreachable(f"{what} by {endpoint}: {error}") from error
    finally:
        wait.end()
        if target.startswith("/v1/trainer/detach"):
            folder.remove(endpoint.beats.file)


class _Wait:
    """The wait for one answer."""

    def __init__(self, endpoint: FolderEndpoint, folder: Folder, name: str, limit_s: float) -> None:
        self._endpoint, self._folder, self._name, self._limit_s = endpoint, folder, name, limit_s
        self._known_beats: set[str] = set()
        self._heard_at = self._beaten_at = 0.0
        self._torn_at: float | None = None
        self._is_answered = False

    def begin(self) -> None:
        """Raises `PeerUnreachable` where no bridge is there, by the times of its files beside one that was just made."""
        self._beat()
        files = self._folder.files()
        now = files.get(self._endpoint.beats.file, 0.0)
        bridges = {name: time for name, time in files.items() if name.startswith("bridge-")}
        if not bridges:
            raise PeerUnreachable(f"no bridge serves {self._endpoint.path}: {self._endpoint.start_bridge}")
        silent_s = now - max(bridges.values())
        if silent_s > SILENCE_SECONDS:
            raise PeerUnreachable(f"the bridge of {self._endpoint.path} is silent since {silent_s:.0f} s: {self._endpoint.start_bridge}")

    def answer(self) -> Message:
        """Waits for the answer, and opens it."""
        begun = self._heard_at = time.monotonic()
        pause = PAUSE_SECONDS[0]
        while True:
            files = self._folder.files()
            if f"answer-{self._name}" in files and (message := self._whole()) is not None:
                return message
            now = time.monotonic()
            self._listen({name for name in files if name.startswith("bridge-")}, now)
            if now - begun > self._limit_s:
                raise PeerUnreachable(f"no answer in {self._endpoint.path} within {self._limit_s:.0f} s")
            if now - self._beaten_at > BEAT_SECONDS:
                self._beat()
            time.sleep(pause)
            pause = min(PAUSE_GROWTH * pause, PAUSE_SECONDS[1])

    def end(self) -> None:
        """Removes what is left of the call."""
        if self._is_answered:
            self._folder.remove(f"answer-{self._name}")
            return
        with suppress(OSError, MingleError):
            for name in self._folder.files():
                if name.endswith(self._name):
                    self._folder.remove(name)

    def _beat(self) -> None:
        self._beaten_at = time.monotonic()
        with self._endpoint.lock:
            self._folder.beat(self._endpoint.beats)

    def _listen(self, beats: set[str], now: float) -> None:
        """Raises `PeerUnreachable` once the beats of the bridge have ended."""
        if not beats <= self._known_beats:
            self._known_beats, self._heard_at = beats, now
        if now - self._heard_at > SILENCE_SECONDS:
            raise PeerUnreachable(f"the bridge of {self._endpoint.path} went silent: {self._endpoint.start_bridge}")

    def _whole(self) -> Message | None:
        """The answer, or None where the rest of it may still come."""
        try:
            message = self._folder.read(f"answer-{self._name}")
        except (ProtocolError, FileNotFoundError) as error:
            now = time.monotonic()
            self._torn_at = now if self._torn_at is None else self._torn_at
            if now - self._torn_at > TORN_SECONDS:
                raise ProtocolError(f"an answer in {self._endpoint.path} stays torn: {error}") from error
            return None
        self._is_answered = True
        return message


def _received(message: Message, into: memoryview | None) -> Answer:
    head = message.head
    if "broken" in head:
        raise PeerUnreachable(str(head["broken"]))
    if "method" in head:
        raise PeerUnreachable("the bridge gave the request back without an answer: the folder may be full")
    try:
        status, headers = int(head["status"]), {str(name).lower(): str(value) for name, value in dict(head["headers"]).items()}
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"the head of an answer makes no sense: {error!r}") from error
    return received(status, headers, message.body_bytes, message.file, into)
