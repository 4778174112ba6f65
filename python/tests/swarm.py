"""A local swarm for tests: peers of the program mingle, and scripts that train for them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import prepared_python
from conftest import wait_until
from free_ports import free_ports
from prepared_python import Script

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from mingle.client import Client
from mingle.errors import MingleError
from mingle.home import find_peer

EXAMPLES = Path(__file__).parents[1] / "examples"
SOURCES = Path(__file__).parents[1] / "src"
END_SECONDS = 120.0


class LocalSwarm:
    """Peers on loopback, `count` of them, with a plan that is bound to them. A context manager: it kills processes that still run."""

    def __init__(self, folder: Path, count: int = 3, *, rounds: int, local_steps: int = 5, method: str = "auto", options: tuple[str, ...] = ()) -> None:
        self.folder, self.count, self.rounds, self.options = folder, count, rounds, options
        self.program = os.environ["MINGLE_BIN"]
        self._processes: list[Script] = []
        self._addresses = _free_addresses(count)
        self.plan = folder / "plan.json"
        self.run("plan", "make", "--topology", f"complete:n={count}", "--method", method, "--local-steps", str(local_steps), "-o", str(self.plan))
        for node in range(count):
            peer = self.run("init", "--home", str(self.home(node))).strip()
            self.run("plan", "bind", str(self.plan), "--peer", f"{node}={peer}")

    def __enter__(self) -> LocalSwarm:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def home(self, node: int) -> Path:
        """The home of a peer."""
        return self.folder / f"peer{node}"

    @property
    def homes(self) -> list[Path]:
        """The homes of all peers."""
        return [self.home(node) for node in range(self.count)]

    def progress(self, node: int) -> Path:
        """The file in which the script of a peer may record its progress."""
        return self.folder / f"progress{node}"

    def run(self, *arguments: str) -> str:
        """Runs a command of the program to its end, and returns its output."""
        ended = subprocess.run([self.program, *arguments], env=_environment(), capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def start_peer(self, node: int, trainer: str | None = "attach", *more: str) -> subprocess.Popen[bytes]:
        """Starts a peer, always with the same command and `more` options; without a trainer it trains a built-in model."""
        trained_by = ["--trainer", trainer] if trainer is not None else []
        return self._start_peer(node, *trained_by, "--rounds", str(self.rounds), *self.options, *more)

    def start_peer_over_sums(self, node: int, problem: Path, trainer: str = "attach") -> subprocess.Popen[bytes]:
        """Starts a peer whose script trains in the rounds of this problem, over masked sums."""
        return self._start_peer(node, "--problem", str(problem), "--trainer", trainer)

    def _start_peer(self, node: int, *options: str) -> subprocess.Popen[bytes]:
        others = [address for index, address in enumerate(self._addresses) if index != node]
        command = [self.program, "run", "--json", "--home", str(self.home(node)), "--plan", str(self.plan)]
        command += ["--listen", self._addresses[node], "--bootstrap", ",".join(others), *options]
        return self._start(command, f"peer{node}", {})

    def start_script(self, node: int, script: Path | str, *arguments: str) -> Script:
        """Starts a Python script that trains for a peer; `output` returns what it prints."""
        return self._start_script(node, script, arguments, {"MINGLE_HOME": str(self.home(node))})

    def start_script_over_tcp(self, node: int, script: Path | str, *arguments: str) -> Script:
        """Starts a Python script that trains for a peer over TCP, without knowledge of the peer's home."""
        file = self.home(node) / "trainer-tcp.json"
        wait_until(file.exists, f"peer {node} serves trainers over TCP\n{self.output(f'peer{node}')[-2000:]}", END_SECONDS)
        access = json.loads(file.read_text())
        return self._start_script(node, script, arguments, {"MINGLE_TRAINER_URL": access["url"], "MINGLE_TRAINER_TOKEN": access["token"]})

    def share(self, node: int) -> Path:
        """The folder that a bridge of a peer serves."""
        return self.folder / f"share{node}"

    def start_bridge(self, node: int) -> subprocess.Popen[bytes]:
        """Starts a bridge from a folder to a peer."""
        command = [sys.executable, "-m", "mingle", "bridge", str(self.share(node)), "--home", str(self.home(node))]
        return self._start(command, f"bridge{node}", {})

    def start_script_by_folder(self, node: int, script: Path | str, *arguments: str) -> Script:
        """Starts a Python script that trains for a peer and shares nothing but a folder with it."""
        return self._start_script(node, script, arguments, {"MINGLE_TRAINER_URL": f"folder:{self.share(node)}"})

    def command_of_script(self, script: Path | str, *arguments: str) -> str:
        """The command of a Python script, to be started by a peer."""
        variables = [f"PYTHONPATH={shlex.quote(str(SOURCES))}", "OMP_NUM_THREADS=1"]
        words = [*variables, "exec", shlex.quote(sys.executable), shlex.quote(str(EXAMPLES / script)), *arguments]
        return " ".join(words)

    def _start_script(self, node: int, script: Path | str, arguments: tuple[str, ...], variables: dict[str, str]) -> Script:
        path = EXAMPLES / script
        if "torch" not in path.read_text():
            return self._start([sys.executable, str(path), *arguments], f"script{node}", variables)
        with self._outputs(f"script{node}") as (out, err):
            process = prepared_python.start([str(path), *arguments], _environment() | variables, out.fileno(), err.fileno())
        self._processes.append(process)
        return process

    def _start(self, command: list[str], name: str, variables: dict[str, str]) -> subprocess.Popen[bytes]:
        with self._outputs(name) as (out, err):
            process = subprocess.Popen(command, env=_environment() | variables, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self._processes.append(process)
        return process

    @contextmanager
    def _outputs(self, name: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
        """The files that get the standard output and standard error of a process."""
        with (self.folder / f"{name}.out").open("ab") as out, (self.folder / f"{name}.err").open("ab") as err:
            yield out, err

    def output(self, name: str) -> str:
        """The standard output and standard error of a process."""
        return "".join((self.folder / f"{name}.{kind}").read_text(errors="replace") for kind in ("out", "err"))

    def status(self, node: int) -> dict[str, Any]:
        """The status of a peer, which `mingle status --json` prints; empty where it does not run."""
        try:
            return Client(find_peer(self.home(node)).endpoint).peer_status()
        except MingleError:
            return {}

    def wait_for_round(self, node: int, round: int) -> None:
        """Waits until a peer has reached the round."""
        self._wait_for(node, f"is in round {round}", lambda status: status.get("round", 0) >= round)

    def wait_for_training(self, node: int, rounds: int) -> None:
        """Waits until a peer has a trainer and has done `rounds` more rounds."""
        self._wait_for(node, "has a trainer", lambda status: bool((status.get("trainer") or {}).get("attached")))
        self.wait_for_round(node, self.status(node)["round"] + rounds)

    def _wait_for(self, node: int, what: str, is_there: Callable[[dict[str, Any]], bool]) -> None:
        said = f"peer {node} {what}\n{self.output(f'peer{node}')[-2000:]}"
        wait_until(lambda: is_there(self.status(node)), said, END_SECONDS)

    def stop(self) -> None:
        """Asks all peers to end their runs."""
        for node in range(self.count):
            self.run("stop", "--home", str(self.home(node)))

    def end(self, processes: Sequence[Script], name: str) -> None:
        """Waits until the processes end, each with exit code 0."""
        for index, process in enumerate(processes):
            try:
                code = process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{name}{index} has not ended:\n{self.output(f'{name}{index}')[-4000:]}") from None
            assert code == 0, f"{name}{index} ended with {code}:\n{self.output(f'{name}{index}')[-4000:]}"

    def summary(self, node: int) -> dict[str, Any]:
        """The summary of a peer's run."""
        summary: dict[str, Any] = json.loads((self.home(node) / "summary.json").read_text())
        return summary

    def seconds_from_round(self, node: int, round: int) -> float:
        """The time between the ends of this round and of the last one of a peer that has ended, in seconds."""
        told = [json.loads(line) for line in (self.folder / f"peer{node}.out").read_text().splitlines()]
        ends = [event["at_ms"] for event in told if event["event"] == "round" and event["round"] >= round]
        return float(ends[-1] - ends[0]) / 1000

    def audit(self) -> None:
        """Checks that the weights of all peers add up to their number, exactly."""
        check_audit(self.run("audit", "--json", *(str(home) for home in self.homes)), self.count)


class TicketSwarm:
    """Peers on loopback that share one operator's plan: the first founds the swarm, the others join by one ticket. Each starts the script with
    its number. A context manager, as `LocalSwarm`."""

    def __init__(self, folder: Path, names: list[str], script: Path, *arguments: str) -> None:
        self.folder, self.names, self._script, self._arguments = folder, names, script, arguments
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ticket = folder / "ticket"
        self._command("init", "--home", str(self.home(names[0])), "--swarm", "tested")

    def __enter__(self) -> TicketSwarm:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def home(self, name: str) -> Path:
        """The home of a peer."""
        return self.folder / name

    def run_to_end(self, rounds: int) -> None:
        """Starts all peers, whose commands are always the same but for the operator's rounds, and waits until they have ended."""
        self.start_operator(rounds)
        for name in self.names[1:]:
            self.start_guest(name)
        self.wait_for_end()

    def start_operator(self, rounds: int) -> None:
        """Starts the first peer, and makes the ticket for the others."""
        operator, *guests = self.names
        self._start(operator, "run", "--planning", "auto", "--rounds", str(rounds))
        self._command("wait", "--home", str(self.home(operator)), "--for", "waiting=0")
        if not self._ticket.exists():
            self._ticket.write_text(self._command("invite", "--home", str(self.home(operator)), "--uses", str(len(guests))))

    def start_guest(self, name: str) -> None:
        """Starts a peer that joins by the ticket."""
        self._start(name, "join", "-")

    def wait_for_round(self, name: str, round: int) -> None:
        """Waits until a peer is in the round."""

        def is_there() -> bool:
            try:
                return bool(Client(find_peer(self.home(name)).endpoint).peer_status().get("round", 0) >= round)
            except MingleError:
                return False

        wait_until(is_there, f"{name} is in round {round}\n{self.output(name)}", END_SECONDS)

    def stop_for_all(self) -> None:
        """Lets the operator end the run of all before its last round."""
        self._command("stop", "--for-all", "--home", str(self.home(self.names[0])))

    def wait_for_end(self) -> None:
        """Waits until all peers that were started last have ended, each with exit code 0."""
        for name, process in self._running.items():
            try:
                code = process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{name} has not ended:\n{self.output(name)}") from None
            assert code == 0, f"{name} ended with {code}:\n{self.output(name)}"

    def output(self, name: str) -> str:
        """The last of what a peer printed."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-4000:]

    def said(self, name: str) -> list[str]:
        """The lines that the script of a peer printed, without warnings; none before it is started."""
        log = self.home(name) / "trainer.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if not line.startswith("no order yet")]

    def audit(self) -> None:
        """Checks that the weights of all peers add up to their number, exactly."""
        check_audit(self._command("audit", "--json", *(str(self.home(name)) for name in self.names)), len(self.names))

    def _start(self, name: str, *words: str) -> None:
        number = str(self.names.index(name))
        trainer = shlex.join(["exec", sys.executable, str(self._script), number, *self._arguments])
        command = [os.environ["MINGLE_BIN"], *words, "--home", str(self.home(name)), "--listen", "127.0.0.1:0", "--trainer", trainer]
        source = self._ticket if "-" in words else Path(os.devnull)
        with source.open("rb") as given, (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(command, env=_environment(), stdin=given, stdout=log, stderr=log)

    def _command(self, *arguments: str) -> str:
        ended = subprocess.run([os.environ["MINGLE_BIN"], *arguments], env=_environment(), capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


def check_audit(report: str, count: int) -> None:
    """Checks that an audit found the weights of `count` peers to add up to their number, exactly."""
    told = json.loads(report)
    assert (told["verdict"], told["sum_units"]) == ("exact", count << 40), told


def kill(process: Script) -> None:
    """Kills a process with SIGKILL, and waits for its end."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def _environment() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("MINGLE_")}
    return ours | {"PYTHONPATH": f"{SOURCES}:{Path(__file__).parent}", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


def _free_addresses(count: int) -> list[str]:
    return [f"/ip4/127.0.0.1/tcp/{port}" for port in free_ports(count)]
