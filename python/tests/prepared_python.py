"""Scripts that train with PyTorch, in interpreters that have imported it already.

The import takes 2.7 s of processor time with that of torch._dynamo by the first optimizer: as much as all that follows in most of these scripts.
`start` forks them from one process without threads that has imported PyTorch and nothing of this package. Each runs as by `python SCRIPT`, with
arguments, environment, output and exit code of its own. On systems other than Linux, where a fork of such a process is not safe everywhere, each
is a new interpreter.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

START_SECONDS = 120.0
"""Longest time for the imports, and for a fork."""
END_SECONDS = 120.0
"""Longest time for scripts whose end is waited for."""


class ForkedScript:
    """A forked script, with the part of the interface of `subprocess.Popen` that tests use."""

    def __init__(self, command: list[str], environment: Mapping[str, str], out: int, err: int) -> None:
        self.returncode: int | None = None
        self.args = command
        self._told, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(_forks(), [b"f"], [theirs.fileno(), out, err])
        self._told.sendall(json.dumps([command, dict(environment)]).encode() + b"\n")
        self.pid = self._number(START_SECONDS)

    def poll(self) -> int | None:
        """The exit code, or None while the script runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end, and returns the exit code: minus the signal of one that was killed."""
        if self.returncode is None:
            self.returncode = self._number(timeout)
            self._told.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal to a script that has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills the script."""
        self.send_signal(signal.SIGKILL)

    def _number(self, timeout: float | None) -> int:
        """The next number that is told of the script: four bytes, which come whole."""
        self._told.settimeout(timeout)
        try:
            told = self._told.recv(4)
        except (TimeoutError, BlockingIOError):
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
        assert told, "the process from which scripts are forked has ended"
        return int.from_bytes(told, "little", signed=True)


Script = subprocess.Popen[bytes] | ForkedScript


def start(command: list[str], environment: Mapping[str, str], out: int, err: int) -> Script:
    """Starts the script `command[0]` with arguments; its output goes to two open files, by their descriptors."""
    if sys.platform != "linux":
        return subprocess.Popen([sys.executable, *command], env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    return ForkedScript(command, environment, out, err)


def run_together(commands: list[list[str]], environment: Mapping[str, str], folder: Path) -> list[subprocess.CompletedProcess[str]]:
    """Runs scripts at the same time, to the end of each."""
    with ExitStack() as files:
        outputs = [[files.enter_context(TemporaryFile("w+", dir=folder)) for _ in ("out", "err")] for _ in commands]
        scripts = []
        try:
            for command, (out, err) in zip(commands, outputs, strict=True):
                scripts.append(start(command, environment, out.fileno(), err.fileno()))
            codes = [script.wait(END_SECONDS) for script in scripts]
        finally:
            for script in scripts:
                script.kill()
                script.wait()
        return [subprocess.CompletedProcess(command, code, *map(_whole, pair)) for command, code, pair in zip(commands, codes, outputs, strict=True)]


def _whole(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


@cache
def _forks() -> socket.socket:
    """The control socket of the process that forks, which ends with it."""
    ours, theirs = socket.socketpair()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with theirs:
        subprocess.Popen([sys.executable, __file__], env=environment, stdin=theirs)
    return ours


def _wait_for_script() -> tuple[list[str], dict[str, str]]:
    """Command and environment of a script, in the process that was forked for it. The calling process goes on to fork, and never returns."""
    with socket.socket(fileno=os.dup(0)) as control:
        while True:
            asked, files, *_ = socket.recv_fds(control, 1, 3)
            if not asked:
                os._exit(0)
            if os.fork() == 0:
                break
            for file in files:
                os.close(file)
    with socket.socket(fileno=files[0]) as told, told.makefile("r") as lines:
        command, environment = json.loads(lines.readline())
        # The parent of the script waits for its end, so that each is waited for by one process.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if script := os.fork():
            for file in files[1:]:
                os.close(file)
            told.sendall(script.to_bytes(4, "little"))
            _, status = os.waitpid(script, 0)
            told.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "little", signed=True))
            os._exit(0)
    for number, file in enumerate([os.open(os.devnull, os.O_RDONLY), *files[1:]]):
        os.dup2(file, number)
        os.close(file)
    return command, environment


def main() -> None:
    """Imports what the scripts do, and becomes one of them in each fork."""
    import numpy  # noqa: F401
    import torch._dynamo  # by the first optimizer otherwise
    import torch.distributed.fsdp
    import torch.utils.data

    torch.set_num_threads(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    command, environment = _wait_for_script()
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = command
    given = environment.get("PYTHONPATH", "")
    sys.path[:1] = [str(Path(command[0]).parent), *(given.split(os.pathsep) if given else [])]
    runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    main()
