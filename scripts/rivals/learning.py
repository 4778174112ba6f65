#!/usr/bin/env python3
"""Trains the same network on handwritten digits at three sites, with Mingle and with hivemind, from the same script in PyTorch.

Prints one JSON object a run:

  lines        lines that the script has more than the one for a single site (python/examples/digits.py)
  start_s      from the start of the first process until every script has taken its first 20 steps
  target_s     until every site's own model has had the wanted loss on digits that nobody trains on; null: not within --limit-s
  loss, accuracy   the worst of the sites, in the end
  steps_per_s  local steps a second, median over the sites
  mb_per_site  memory of the largest site with all its processes, in megabytes, after the target or the limit
  kb_per_step  what the loopback interface carried for each local step of a site, in kilobytes

Every site is judged after each 20th local step, by the model that its script trains at that moment. The loopback counter is that of the
network namespace this runs in: `unshare -n` gives it one of its own (as root; `ip link set lo up` in it).
"""

import argparse
import contextlib
import difflib
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from processes import Peer, Stuck, loopback_bytes
from report import head, row

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "python/examples"
SITES = 3
START_S = 120.0
# A site that exchanges its 2,906 numbers every 1,000 steps sends more; one that sends less learns alone, and its run is void.
LEAST_BYTES_A_STEP = 12
# In 3,000 steps, a site alone with its third of the digits reaches 0.096, and one with all of them 0.050.
TARGET_LOSS = 0.065
JUDGED_STEPS = 20
ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


class Mingle:
    """Mingle: peers of the program, and a script for each."""

    def __init__(self, binary, python, local_steps):
        self.binary, self.python, self.local_steps = str(Path(binary).resolve()), python, local_steps
        self.script = EXAMPLES / "digits_mingle.py"

    def name(self):
        return f"mingle, exchange every {self.local_steps} steps"

    def start(self, folder, join):
        """Starts all sites, and returns the processes of each; the script is the last."""
        plan = f"{folder}/plan.json"
        self._run("plan", "make", "--topology", f"complete:n={SITES}", "--local-steps", str(self.local_steps), "-o", plan)
        homes = [f"{folder}/{site}" for site in range(SITES)]
        for site, home in enumerate(homes):
            self._run("plan", "bind", plan, "--peer", f"{site}={self._run('init', '--home', home).strip()}")
        bootstrap, sites = [], []
        for home in homes:
            command = [self.binary, "run", "--json", "--stop-with-stdin", "--home", home, "--plan", plan, "--rounds", "100000000",
                       "--listen", "/ip4/127.0.0.1/tcp/0", "--trainer", "attach", *bootstrap]
            peer = join(Peer(command, folder, ONE_THREAD))
            if not bootstrap:
                bootstrap = ["--bootstrap", peer.wait_for("listening", START_S)[1]["addresses"][0]]
            sites.append([peer])
        for site, home in enumerate(homes):
            paths = {"MINGLE_HOME": home, "PYTHONPATH": f"{HERE.parents[1] / 'python/src'}:{EXAMPLES}"}
            sites[site].append(join(script(self.python, self.script, site, folder, paths)))
        return sites

    def _run(self, *arguments):
        return subprocess.run([self.binary, *arguments], check=True, capture_output=True, text=True).stdout


class Hivemind:
    """The optimizer of hivemind, in its mode of local updates with averaged parameters."""

    def __init__(self, python, target_batch_size):
        self.python, self.target_batch_size = python, target_batch_size
        self.script = HERE / "digits_hivemind.py"

    def name(self):
        return f"hivemind, target_batch_size {self.target_batch_size}"

    def start(self, folder, join):
        """Starts all sites, and returns the processes of each; the script is the last."""
        names = {"PYTHONPATH": str(EXAMPLES), "TARGET_BATCH_SIZE": str(self.target_batch_size)}
        first = join(script(self.python, self.script, 0, folder, names))
        names["HIVEMIND_PEERS"] = first.wait_for_line("listening", START_S)
        return [[first]] + [[join(script(self.python, self.script, site, folder, names))] for site in range(1, SITES)]


class Script(Peer):
    """A training script under watched.py."""

    def wait_for_line(self, word, limit_s):
        """The rest of the first whole line that begins with `word`: an unbuffered script writes a line in pieces."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            with contextlib.suppress(FileNotFoundError):
                for line in self.output.read_text().splitlines(keepends=True):
                    if line.startswith(word) and line.endswith("\n"):
                        return line.removeprefix(word).strip()
            time.sleep(0.05)
        raise Stuck(f"no line {word} within {limit_s} s")


def script(python, path, site, folder, variables):
    """Starts the script of a site."""
    output = Path(folder) / f"script{site}.out"
    command = ["sh", "-c", 'exec "$@" | tee "$0"', str(output), python, str(HERE / "watched.py"), str(path), str(site), str(SITES)]
    peer = Script(command, folder, ONE_THREAD | variables)
    peer.output = output
    return peer


def learn(system, target_loss, limit_s):
    """Runs a system once, and returns the figures of the run."""
    processes = []

    def join(process):
        processes.append(process)
        return process

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            began = time.monotonic()
            sites = system.start(folder, join)
            started = [site[-1].wait_for("loss", START_S)[0] for site in sites]
            bytes_before, first = loopback_bytes(), time.monotonic()
            reached = [until(site[-1], target_loss, first + limit_s) for site in sites]
            bytes_moved, last = loopback_bytes() - bytes_before, [latest(site[-1]) for site in sites]
            memory = max(sum(process.memory_bytes() for process in site) for site in sites)
        finally:
            for process in processes:
                process.end()
    steps = [said["steps"] - JUDGED_STEPS for _, said in last]
    if bytes_moved < LEAST_BYTES_A_STEP * sum(steps):
        raise RuntimeError(f"the sites sent each other next to nothing ({bytes_moved} bytes): each learned alone")
    rates = [count / (when - start) for count, (when, _), start in zip(steps, last, started, strict=True)]
    return {
        "lines": added_lines(system.script),
        "start_s": max(started) - began,
        "target_s": None if None in reached else max(reached) - began,
        "loss": max(said["loss"] for _, said in last),
        "accuracy": min(said["accuracy"] for _, said in last),
        "steps_per_s": statistics.median(rates),
        "mb_per_site": memory / 1e6,
        "kb_per_step": bytes_moved / sum(steps) / 1e3,
    }


def until(process, target_loss, end):
    """Time at which the model reached the target loss; None where it did not until `end`."""
    while time.monotonic() < end:
        when, said = process.wait_for("loss", START_S)
        if said["loss"] <= target_loss:
            return when
    return None


def latest(process):
    """The latest event of the script, and its time."""
    found = process.wait_for("loss", START_S)
    while not process.said.empty():
        found = process.wait_for("loss", START_S)
    return found


def added_lines(path):
    """Lines of code that the script has beyond digits.py."""

    def code(script):
        return script.read_text().split('"""', 2)[2].splitlines()

    return sum(line.startswith("+ ") and line != "+ " for line in difflib.ndiff(code(EXAMPLES / "digits.py"), code(path)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mingle", required=True, help="the program")
    parser.add_argument("--python", required=True, help="a Python with torch, for Mingle's scripts")
    parser.add_argument("--hivemind", required=True, help="a Python with hivemind and torch")
    parser.add_argument("--local-steps", type=int, nargs="*", default=[5, 50], help="steps between two exchanges of Mingle")
    parser.add_argument("--target-batch-size", type=int, nargs="*", default=[14400, 48000, 144000], help="of hivemind")
    parser.add_argument("--target-loss", type=float, default=TARGET_LOSS)
    parser.add_argument("--limit-s", type=float, default=60.0)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    systems = [Mingle(arguments.mingle, arguments.python, steps) for steps in arguments.local_steps]
    systems += [Hivemind(arguments.hivemind, size) for size in arguments.target_batch_size]
    runs = {system.name(): [] for system in systems}
    for turn in range(arguments.turns):
        for system in systems:
            try:
                found = learn(system, arguments.target_loss, arguments.limit_s)
            except (Stuck, RuntimeError) as failure:
                found = {"failed": str(failure)}
            runs[system.name()].append(found)
            rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in found.items()}
            print(json.dumps({"system": system.name(), "turn": turn, **rounded}), flush=True)
    compare(runs, arguments.target_loss)


def compare(runs, target_loss):
    """Adds rows to the report: for each system, the quickest setting that reached the target loss in every turn."""
    whole = {name: found for name, found in runs.items() if all(run.get("target_s") for run in found)}
    for what, unit, figure in ((f"to a loss of {target_loss} at 3 sites", "s", "target_s"), ("memory of a site", "MB", "mb_per_site")):
        best = {}
        for name, found in whole.items():
            middle = statistics.median(run["target_s"] for run in found)
            best[name.split(",")[0]] = min(best.get(name.split(",")[0], (middle, name)), (middle, name))
        if len(best) < 2:
            continue
        ours, theirs = ([run[figure] for run in runs[best[system][1]]] for system in ("mingle", "hivemind"))
        head(f"learning: {best['mingle'][1]}")
        ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
        row("learning", what, best["hivemind"][1], unit, statistics.median(ours), statistics.median(theirs), ratios)


if __name__ == "__main__":
    os.environ.pop("MINGLE_HOME", None)
    main()
