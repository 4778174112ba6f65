#!/usr/bin/env python3
"""What a peer takes of a machine, as multiples of the model: resident memory, and the disk for its records.

A swarm of `mingle demo` trains text models of several sizes in plain SGD, with records on the disk. Resident memory is the
most that the kernel counted for a process (VmHWM), disk the most that all files of a peer's records had at one time. Both
are of the peer with the largest figure. The second number of a row is the goal.
"""

import argparse
import json
import re
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from report import head, row

RESIDENT, DISK = 6.0, 3.0
# Layers and width of the text models; the context and the batch are short, so that what a step computes is small beside
# the parameters.
MODELS = {"1.7": (2, 256), "10": (3, 512), "52": (4, 1024), "268": (5, 2112)}


class Watched:
    """The largest figures of the peers of a demo, looked at until it ends."""

    def __init__(self, demo, folder):
        self.demo, self.folder = demo, folder
        self.resident, self.disk = {}, {}

    def follow(self):
        """Looks until the demo has ended."""
        while self.demo.poll() is None:
            self.look()
            time.sleep(0.02)

    def look(self):
        """Notes the present figures where they are larger than before."""
        for child in children(self.demo.pid):
            try:
                found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{child}/status").read_text())
            except OSError:
                continue
            if found:
                self.resident[child] = int(found[1]) * 1024
        for home in Path(self.folder).glob("demo/peers/*"):
            taken = sum(bytes_in(home / name) for name in ("records", "records.next", "records.discarded"))
            self.disk[home] = max(self.disk.get(home, 0), taken)


def children(process):
    """The processes that a process has started."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except OSError:
            continue
    return found


def bytes_in(folder):
    """Bytes that the files of a folder take on the disk."""
    total = 0
    for path in folder.glob("*"):
        try:
            total += path.stat().st_blocks * 512
        except OSError:
            continue
    return total


def measured(mingle, model, rounds, options):
    """Parameters of a model, and the figures of a swarm of four peers that trains it."""
    layers, width = model
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [mingle, "demo", "--json", "--peers", "4", "--durability", "on", "--no-comparison", "--data", "text",
                   "--model", f"gpt:layers={layers},heads={width // 64},width={width},context=16", "--batch-size", "2",
                   "--local-steps", "1", "--learning-rate", "0.01", "--rounds", str(rounds), "--evaluate-every",
                   str(rounds), "--output", f"{folder}/demo", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
            watched = Watched(demo, folder)
            watching = threading.Thread(target=watched.follow)
            watching.start()
            said, complaint = demo.communicate()
            watching.join()
        if demo.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {complaint}{said[-2000:]}")
        return parameters_of(folder), watched


def parameters_of(folder):
    """The number of parameters in the model file of the first peer."""
    with open(f"{folder}/demo/peers/0/model.safetensors", "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    tensors = [entry for name, entry in header.items() if name != "__metadata__"]
    return sum(entry["data_offsets"][1] - entry["data_offsets"][0] for entry in tensors) // 4


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mingle", metavar="BINARY", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", action="append", choices=MODELS, help="millions of parameters [default: 1.7, 10, 52]")
    parser.add_argument("--option", action="append", default=[], help="another argument of `mingle demo`")
    arguments = parser.parse_args()
    mingle = str(Path(arguments.mingle).resolve())
    head("memory")
    for name in arguments.model or ["1.7", "10", "52"]:
        parameters, watched = measured(mingle, MODELS[name], arguments.rounds, arguments.option)
        millions, model = parameters / 1e6, 4 * parameters
        resident, disk = max(watched.resident.values()) / model, max(watched.disk.values()) / model
        row("memory", f"resident, {millions:.1f} M parameters, 4 peers", "goal", "x", resident, RESIDENT,
            [RESIDENT / resident])
        row("memory", f"records on disk, {millions:.1f} M parameters, 4 peers", "goal", "x", disk, DISK, [DISK / disk])


if __name__ == "__main__":
    main()
