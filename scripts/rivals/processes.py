"""Peers as processes that print events, one JSON object a line, and the kernel's figures about them."""

import json
import os
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path


class Stuck(Exception):
    """A timeout: a peer did not report in time the event that was waited for."""


class Peer:
    """A process and its events, with the times of their arrival on the clock of this script."""

    def __init__(self, command, folder, environment=None):
        """Starts `command` in `folder`; it ends with the end of its standard input."""
        self.process = subprocess.Popen(
            command, cwd=folder, env={**os.environ, **(environment or {})}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        self.said = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        """Reads all lines as they come, so that no peer ever waits for a full pipe."""
        for line in self.process.stdout:
            if line.startswith("{"):
                self.said.put((time.monotonic(), json.loads(line)))
        self.said.put((time.monotonic(), None))

    def tell(self, *words):
        """Writes a line to a peer that takes orders."""
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def wait_for(self, event, limit_s):
        """Waits for an event of this name, and returns its time and the event. Raises `Stuck` after `limit_s`."""
        end = time.monotonic() + limit_s
        while True:
            try:
                when, said = self.said.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                raise Stuck(f"no {event} within {limit_s} s") from None
            if said is None:
                raise RuntimeError(f"a peer ended before it said {event}")
            if "error" in said:
                raise RuntimeError(said["error"]["message"])
            if said["event"] == event:
                return when, said

    def signal(self, number):
        """Sends a signal to the process and all its descendants."""
        for member in family(self.process.pid):
            try:
                os.kill(member, number)
            except ProcessLookupError:
                pass

    def end(self):
        """Kills the process and all its descendants."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def memory_bytes(self):
        """Memory of the process and all its descendants."""
        return sum(memory_bytes(member) for member in family(self.process.pid))


def family(process):
    """The process and all its descendants."""
    children = Path(f"/proc/{process}/task/{process}/children")
    try:
        ids = [int(child) for child in children.read_text().split()]
    except FileNotFoundError:
        return []
    return [process] + [member for child in ids for member in family(child)]


def memory_bytes(process):
    """The present memory of one process; shared pages count in part."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {process} tells no memory")


def loopback_bytes():
    """Bytes that the loopback interface has carried so far."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[0])
    raise RuntimeError("there is no loopback interface")
