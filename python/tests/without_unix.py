"""Runs a Python script without what Windows lacks: `without_unix.py SCRIPT ARGUMENT...`, for test_windows.py.

Unix sockets, forks, users, signals and modules of Unix are removed before `mingle` is imported, and `os.name` is "nt". What remains of Unix are
paths, and the libraries that were imported before.
"""

from __future__ import annotations

import os
import pathlib
import runpy
import signal
import socket
import sys
import sysconfig

import numpy  # noqa: F401  # imported while everything is there
import torch
import torch._dynamo  # optimizers import it
import torch.utils.data

sysconfig.get_config_vars()  # those of Unix are kept

MISSING = {
    os: ["register_at_fork", "fork", "forkpty", "getuid", "geteuid", "getgid", "getegid", "getgroups", "setsid", "getpgid", "killpg", "chown", "fchmod",
         "mkfifo", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY", "O_CLOEXEC", "execv", "uname"],
    socket: ["AF_UNIX"],
    signal: ["SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGSTOP", "SIGCHLD", "pause", "alarm"],
}  # fmt: skip
MODULES = ["fcntl", "pwd", "grp", "termios", "resource", "pty", "tty", "syslog", "crypt"]


def strip() -> None:
    """Removes it."""
    assert not any(name.partition(".")[0] == "mingle" for name in sys.modules)
    for module, names in MISSING.items():
        for name in names:
            delattr(module, name)
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # the import fails
    pathlib.WindowsPath = pathlib.PosixPath  # type: ignore[misc]
    os.name = "nt"
    torch.set_num_threads(1)


if __name__ == "__main__":
    script, *arguments = sys.argv[1:]
    strip()
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(script))
    runpy.run_path(script, run_name="__main__")
