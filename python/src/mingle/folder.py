"""A folder that two machines share, as the way between a script and a bridge (docs/python.md, "Nodes without network").

Every message is one file. It is written as `writing-...` and renamed when it is whole:

    script                                        bridge
    request-SCRIPT-NUMBER-CALL  ─────────────►    taken-BRIDGE-SCRIPT-NUMBER-CALL, then forwarded to the peer
                                ◄─────────────    answer-SCRIPT-NUMBER-CALL
    script-ID-BEAT: is there                      bridge-ID-BEAT: is there

A message is a line of JSON, its head, and a body whose length the head gives. A beat is an empty file with a new name each time: a listing
shows it also where attributes of files are cached, and a change of the folder by this machine makes network file systems read the listing
anew. Times are those of files, by the clock of the folder, never by that of a machine. Files with other names are not touched.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

from mingle.errors import MingleError, ProtocolError

BEAT_SECONDS = 0.5
"""Time between two beats of a bridge, and of a script that waits."""
SILENCE_SECONDS = 15.0
"""Time without a beat after which a bridge counts as gone."""
PAUSE_SECONDS = (0.002, 0.1)
"""The first and the longest pause between two listings."""
PAUSE_GROWTH = 1.5
MOST_ENTRIES = 10_000
MOST_HEAD_BYTES = 1 << 16
FORMAT = "mingle.folder/1"
OWNER_ONLY = 0o700

_ID = "[0-9a-f]{16}"
_CALL = f"{_ID}-[0-9]{{8}}-{_ID}"
_NAMES = re.compile(f"(?:request-{_CALL}|taken-{_ID}-{_CALL}|answer-{_CALL}|(?:script|bridge)-{_ID}-[0-9]{{10}}|writing-{_ID})")
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


def new_id() -> str:
    """A random id of a script, a bridge or a call."""
    return secrets.token_hex(8)


@dataclass
class Beats:
    """The beats of one side: files `KIND-ID-0000000000`, of which the next replaces the one before."""

    name: str
    number: int = 0

    @property
    def file(self) -> str:
        """The name of the present beat."""
        return f"{self.name}-{self.number:010}"

    @property
    def next(self) -> str:
        """The name of the next beat."""
        return f"{self.name}-{self.number + 1:010}"


class Folder:
    """The files of this transport in a folder. Methods raise `OSError` where the file system refuses."""

    def __init__(self, path: str) -> None:
        self.path = path

    def make(self) -> None:
        """Makes the folder where it is missing, for its owner alone, and checks it."""
        with suppress(FileExistsError):
            os.makedirs(self.path, OWNER_ONLY)
        self.check()

    def check(self) -> None:
        """Raises `MingleError` where the folder is of another user or open to others: they could read models and write messages."""
        found = os.stat(self.path)
        if not stat.S_ISDIR(found.st_mode):
            raise MingleError(f"{self.path} is no folder")
        if not hasattr(os, "geteuid"):
            return
        if found.st_uid != os.geteuid():
            of_mount = "mount it with `sshfs -o idmap=user` where it is of the same user there"
            raise MingleError(f"{self.path} belongs to user {found.st_uid}, and this is user {os.geteuid()}: name a folder of your own, or {of_mount}")
        if found.st_mode & 0o077:
            raise MingleError(f"{self.path} is open to others (mode {found.st_mode & 0o777:o}): close it with `chmod 700 {self.path}`, or name a new folder")

    def files(self) -> dict[str, float]:
        """Names and times of the files of this transport. Raises `MingleError` for a folder with too many entries to be listed often."""
        found = {}
        with os.scandir(self.path) as entries:
            for count, entry in enumerate(entries):
                if count >= MOST_ENTRIES:
                    raise MingleError(f"{self.path} has more than {MOST_ENTRIES} files: name a folder that is for this alone")
                if _NAMES.fullmatch(entry.name):
                    with suppress(FileNotFoundError):  # it went while the folder was read
                        told = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(told.st_mode):
                            found[entry.name] = told.st_mtime
        return found

    def beat(self, beats: Beats) -> None:
        """Makes the next beat, and removes the one before."""
        os.close(self._create(beats.next))
        self.remove(beats.file)
        beats.number += 1

    def write(self, name: str, head: Mapping[str, object], pieces: Iterable[bytes | memoryview], body_bytes: int) -> None:
        """Writes a message, which appears whole under its name. Nothing is left of one that cannot be written."""
        line = json.dumps({"format": FORMAT, **head, "body_bytes": body_bytes}).encode() + b"\n"
        if len(line) > MOST_HEAD_BYTES:
            raise ProtocolError(f"the headers of a message take {len(line)} bytes, more than {MOST_HEAD_BYTES}")
        temporary = f"writing-{new_id()}"
        try:
            with os.fdopen(self._create(temporary), "wb") as file:
                file.write(line)
                for piece in pieces:
                    file.write(piece)
            os.replace(self._at(temporary), self._at(name))
        except BaseException:
            self.remove(temporary)
            raise

    def read(self, name: str) -> Message:
        """Opens a message; the caller closes it. Raises `ProtocolError` where it is none, or not whole."""
        file = os.fdopen(os.open(self._at(name), os.O_RDONLY | _FLAGS), "rb")
        try:
            return Message(name, file)
        except BaseException:
            file.close()
            raise

    def rename(self, name: str, other: str) -> bool:
        """Renames a file, and returns False where it is not there any more."""
        try:
            os.rename(self._at(name), self._at(other))
        except FileNotFoundError:
            return False
        return True

    def remove(self, name: str) -> None:
        """Removes a file, where it is there."""
        with suppress(OSError):
            os.remove(self._at(name))

    def _create(self, name: str) -> int:
        return os.open(self._at(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY | _FLAGS, 0o600)

    def _at(self, name: str) -> str:
        return os.path.join(self.path, name)


class Message:
    """A message that is open: its head is read, and `file` stands at its body."""

    def __init__(self, name: str, file: BufferedReader) -> None:
        line = file.readline(MOST_HEAD_BYTES + 1)
        try:
            head = json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            head = None
        if not isinstance(head, dict) or head.get("format") != FORMAT or not isinstance(head.get("body_bytes"), int):
            raise ProtocolError(f"{name} is no message of this transport: {line[:40]!r}")
        self.head: dict[str, Any] = head
        self.file = file
        self.body_bytes: int = head["body_bytes"]
        there = os.fstat(file.fileno()).st_size - len(line)
        if there != self.body_bytes:
            raise ProtocolError(f"{name} has {there} bytes after its head, and should have {self.body_bytes}")

    def __enter__(self) -> Message:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
