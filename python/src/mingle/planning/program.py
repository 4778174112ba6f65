"""Runs of the program of this installation, with its answers in JSON."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from mingle.__main__ import program
from mingle.errors import MingleError, PlanError


def arguments_of(options: Mapping[str, Any]) -> list[str]:
    """Options of the program, from those of Python: `local_steps=4` is `--local-steps=4`. None is left out, a list is joined by commas."""
    arguments: list[str] = []
    for name, value in options.items():
        if value is not None:
            text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            arguments.append(f"--{name.replace('_', '-')}={text}")
    return arguments


def answer_of(*arguments: str) -> str:
    """The text that the program prints on stdout."""
    return "".join(lines_of(*arguments))


def lines_of(*arguments: str) -> Iterator[str]:
    """The lines that the program prints on stdout, as they come. Closing the iterator ends the program.

    Raises as `running`.
    """
    with running(*arguments) as process:
        for line in process.output:
            process.last = line
            yield line.decode()


class Process:
    """A run of the program."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None and process.stdin is not None
        self.input: IO[bytes] = process.stdin
        """Its standard input."""
        self.output: IO[bytes] = process.stdout
        """Its standard output."""
        self.last = b""
        """The last line that was read: where the program refuses, its message."""


@contextmanager
def running(*arguments: str) -> Iterator[Process]:
    """Runs the program until the end of the context, in which its output is read; its remarks become warnings.

    An exception in the context ends the program. Raises `PlanError` with the program's message where it refuses, also in place of the
    exception of a pipe that it closed.
    """
    path = program()
    if path is None:
        raise MingleError("there is no program `mingle`: install the wheel of mingle-train for this platform, or set MINGLE_BIN to the program")
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as remarks:
        command = [str(path), "--json", *arguments]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=remarks) as started:
            process = Process(started)
            try:
                yield process
                process.input.close()
            except BaseException as error:
                if not is_closed_pipe(error):
                    started.terminate()
                    raise
                process.last = (process.output.read().splitlines() or [b""])[-1]
        _judge(started.returncode, process.last, remarks)


def is_closed_pipe(error: BaseException) -> bool:
    """Returns True if a pipe was written to whose reader has ended. Windows has another error for that."""
    return isinstance(error, BrokenPipeError) or (os.name == "nt" and isinstance(error, OSError) and error.errno == errno.EINVAL)


def _judge(status: int, last: bytes, remarks: IO[str]) -> None:
    """Raises what the program refused, and warns of what it remarked."""
    remarks.seek(0)
    said = remarks.read().strip()
    if status != 0:
        raise PlanError(_refusal(last) or said.removeprefix("error: ") or f"mingle ended with status {status}")
    if said:
        warnings.warn(said, stacklevel=_frames_to_the_user())


def _frames_to_the_user() -> int:
    """The number of frames, from the caller's on, up to the line of the user's: those of this package and of the standard library are left out."""
    frames = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("mingle", "contextlib"):
        frame = frame.f_back
        frames += 1
    return frames


def _refusal(line: bytes) -> str | None:
    """The message and the hint of an error in JSON; None where the line is none."""
    try:
        error = json.loads(line)["error"]
        return f"{error['message']} ({error['hint']})" if error["hint"] else str(error["message"])
    except (ValueError, TypeError, KeyError):
        return None
