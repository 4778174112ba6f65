"""Trainers that share only a folder with the machine of their peer, where a bridge forwards their calls."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from conftest import wait_until
from fake_host import FakeHost
from free_ports import free_ports
from swarm import LocalSwarm, kill

import mingle
from mingle import folder as folders
from mingle import folder_call
from mingle.bridge import Bridge
from mingle.client import Client, Description
from mingle.endpoint import FolderEndpoint
from mingle.errors import MingleError, PeerUnreachable
from mingle.folder import Folder
from mingle.home import find_peer
from mingle.layout import Layout

SOURCES = Path(__file__).parents[1] / "src"
ONES = numpy.zeros(3, dtype=numpy.float32)
real_peers = [
    pytest.mark.swarm,
    pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle"),
]


class Served:
    """A folder with a bridge in a thread of its own."""

    def __init__(self, path: Path, host: FakeHost) -> None:
        self.path, self.host = path, host
        self.url = f"folder:{path}"
        self.bridge, self.thread = self._started()

    def _started(self) -> tuple[Bridge, threading.Thread]:
        bridge = Bridge(Folder(str(self.path)), find_peer(self.host.home))
        thread = threading.Thread(target=bridge.run)
        thread.start()
        wait_until(lambda: not thread.is_alive() or any(name.startswith(bridge._beats.name) for name in self.names), "a bridge beats")
        return bridge, thread

    def restart(self) -> None:
        """Ends the bridge, and starts another."""
        self.stop()
        self.bridge, self.thread = self._started()

    def stop(self) -> None:
        """Ends the bridge."""
        self.bridge.stop()
        self.thread.join(20)
        assert not self.thread.is_alive()

    @property
    def names(self) -> list[str]:
        """The names in the folder."""
        return sorted(os.listdir(self.path)) if self.path.exists() else []

    def exchange(self, **options: Any) -> mingle.Exchange[numpy.ndarray]:
        """A script that adds ones."""
        return mingle.Exchange(None, "ones", ONES, url=self.url, **options)


@pytest.fixture
def served(host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A bridge to the host."""
    for variable in ("MINGLE_TRAINER_URL", "MINGLE_TRAINER_TOKEN", "MINGLE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    served = Served(tmp_path / "share", host)
    yield served
    served.stop()


def train(swarm: mingle.Exchange[numpy.ndarray]) -> None:
    with swarm:
        while not swarm.done:
            swarm.exchange(swarm.model + 1)


def call_of(script: str = "0" * 16, number: int = 0, call: str = "a" * 16) -> str:
    return f"{script}-{number:08}-{call}"


def made_old(path: Path, seconds: float) -> None:
    at = time.time() - seconds
    os.utime(path, (at, at))


def test_a_model_trains_by_a_folder_to_the_bits_that_it_has_by_the_socket(served: Served) -> None:
    finals = []
    for where in ({"url": served.url}, {"home": served.host.home}):
        served.host.node.round = 0
        served.host.node.vector = None
        torch.manual_seed(1)
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        before = model.bias.detach().clone()
        with mingle.join(model, optimizer, keep_optimizer=True, **where):
            while True:
                optimizer.zero_grad()
                model(torch.randn(4, 2)).square().mean().backward()
                optimizer.step()
        assert served.host.node.round == 5 and not torch.equal(model.bias, before)
        finals.append([parameter.detach().clone() for parameter in model.parameters()])
    assert len(served.host.changes) == 10
    assert all(torch.equal(one, other) for one, other in zip(*finals))


def test_nothing_is_left_in_the_folder_and_the_bridge_ends_with_the_run(served: Served) -> None:
    assert served.path.stat().st_mode & 0o777 == 0o700
    train(served.exchange())
    served.thread.join(10)
    assert not served.thread.is_alive() and served.names == []


def test_the_variable_of_the_environment_names_the_folder(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGLE_TRAINER_URL", served.url)
    monkeypatch.setenv("MINGLE_TRAINER_TOKEN", "of a shell that once used an address")
    swarm = mingle.Exchange(None, "ones", ONES)
    train(swarm)
    assert swarm.model.tolist() == [5, 5, 5]


@pytest.mark.parametrize("fault", ["close", "close after", "cut", "restart", "restart after"])
def test_no_change_is_counted_twice_or_lost_by_a_folder(served: Served, fault: str) -> None:
    served.host.fail_next("exchange", fault, fault)
    swarm = served.exchange()
    train(swarm)
    assert swarm.model.tolist() == [5, 5, 5] and len(served.host.changes) == 5


def test_a_bridge_that_is_started_again_goes_on(served: Served) -> None:
    swarm = served.exchange()
    for _ in range(3):
        swarm.exchange(swarm.model + 1)
        served.restart()
    train(swarm)
    assert swarm.model.tolist() == [5, 5, 5] and len(served.host.changes) == 5 and served.host.sessions == 1


def test_a_bridge_that_is_killed_within_a_call_leaves_it_to_the_next_one(host: FakeHost, tmp_path: Path) -> None:
    share = tmp_path / "share"
    command = [sys.executable, "-m", "mingle", "bridge", str(share), "--home", str(host.home)]
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    first = subprocess.Popen(command, env=environment)
    try:
        wait_until(lambda: share.exists() and list(share.glob("bridge-*")), "a bridge beats")
        swarm = mingle.Exchange(None, "ones", ONES, url=f"folder:{share}")
        host.wait("the plan")
        runner = threading.Thread(target=train, args=(swarm,))
        runner.start()
        wait_until(lambda: host.calls[-1].name == "exchange" and list(share.glob("taken-*")), "the change is with the peer")
        kill(first)
        second = subprocess.Popen(command, env=environment)
        try:
            host.wait(None)
            runner.join(30)
            assert not runner.is_alive() and swarm.model.tolist() == [5, 5, 5] and len(host.changes) == 5
            assert second.wait(20) == 0, "its run is over"
        finally:
            second.kill()
            second.wait()
    finally:
        first.kill()
        first.wait()
    assert list(share.iterdir()) == []


def test_a_bridge_ends_on_request_and_answers_what_it_has(host: FakeHost, tmp_path: Path) -> None:
    share = tmp_path / "share"
    process = subprocess.Popen(
        [sys.executable, "-m", "mingle", "bridge", str(share), "--home", str(host.home)],
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: share.exists() and list(share.glob("bridge-*")), "a bridge beats")
        client = Client(FolderEndpoint(str(share)))
        session = client.attach(Description("ones", Layout.flat(3)))
        client.put_initial(session.id, memoryview(bytes(12)))
        host.wait("the plan")
        failures: list[str] = []

        def ask() -> None:
            try:
                client.order(session.id, 20, memoryview(bytearray(12)))
            except PeerUnreachable as error:
                failures.append(str(error))

        asked = threading.Thread(target=ask)
        asked.start()
        wait_until(lambda: list(share.glob("taken-*")), "the bridge has the call")
        process.send_signal(signal.SIGTERM)
        asked.join(10)
        assert failures == ["the bridge has ended"]
        assert process.wait(20) == 0
        assert list(share.glob("bridge-*")) == []
    finally:
        process.kill()
        process.wait()
        host.wait(None)


def test_without_a_bridge_the_script_is_told_to_start_it(served: Served) -> None:
    served.stop()
    with pytest.raises(mingle.TimedOut, match=rf"no bridge serves {served.path}: start `python -m mingle bridge {served.path} --home HOME`"):
        served.exchange(timeout=0.2)
    assert [name for name in served.names if not name.startswith("script-")] == []
    served.path.joinpath(f"bridge-{'f' * 16}-0000000007").touch()
    made_old(served.path / f"bridge-{'f' * 16}-0000000007", 60)
    with pytest.raises(mingle.TimedOut, match=r"silent since (59|60|61) s: start `python -m mingle bridge"):
        served.exchange(timeout=0.2)
    with pytest.raises(mingle.TimedOut, match="there is no folder .*nowhere: start `python -m mingle bridge"):
        mingle.Exchange(None, "ones", ONES, url=f"folder:{served.path}/nowhere", timeout=0.2)


def test_a_bridge_that_goes_silent_within_a_call_is_noticed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    swarm = served.exchange(timeout=2)
    monkeypatch.setattr(folder_call, "SILENCE_SECONDS", 1.0)
    # It no longer beats and takes nothing, as a process that was stopped.
    monkeypatch.setattr(Bridge, "_turn", lambda bridge: False)
    with pytest.raises(mingle.TimedOut, match="went silent|silent since"):
        swarm.exchange(swarm.model + 1)


def test_a_peer_that_is_gone_is_named_with_its_command(served: Served) -> None:
    served.host.stop()
    command = f"start the peer with `mingle run --home {served.host.home} --trainer attach`"
    with pytest.raises(mingle.TimedOut, match=f"the bridge reaches no peer, .*mingle.sock: {command}"):
        served.exchange(timeout=0.2)


def test_rubbish_in_the_folder_disturbs_nothing(served: Served) -> None:
    path = served.path
    sound = b'{"format": "mingle.folder/1", "method": "GET", "target": "/v1/trainer", "headers": {}, "limit_s": 9, "body_bytes": 0}\n'
    rubbish = {
        f"request-{call_of(call='1' * 16)}": b"",
        f"request-{call_of(call='2' * 16)}": b"\xff" * 100_000,
        f"request-{call_of(call='3' * 16)}": sound.replace(b'"body_bytes": 0', b'"body_bytes": 1000000000000'),
        f"request-{call_of(call='4' * 16)}": sound.replace(b'"limit_s": 9', b'"limit_s": "soon"'),
        f"request-{call_of(call='5' * 16)}": sound.replace(b"{}", b"[]"),
        f"answer-{call_of(call='6' * 16)}": b"{}\n",
    }
    ours = {"notes.txt": b"mine", "request-": b"", f"request-{'z' * 16}-0-1": b"", f".nfs{'0' * 16}": b""}
    for name, content in (rubbish | ours).items():
        path.joinpath(f".{name}").write_bytes(content)
        path.joinpath(f".{name}").rename(path / name)
    path.joinpath(f"request-{call_of(call='7' * 16)}").mkdir()
    path.joinpath(f"request-{call_of(call='8' * 16)}").symlink_to("/etc/passwd")
    swarm = served.exchange()
    train(swarm)
    assert swarm.model.tolist() == [5, 5, 5] and len(served.host.changes) == 5
    assert {name: path.joinpath(name).read_bytes() for name in ours} == ours, "files of others are not touched"
    for number in "12345":
        answer = path / f"answer-{call_of(call=number * 16)}"
        wait_until(answer.exists, f"request {number} is answered")
        assert b'"broken"' in answer.read_bytes()


def test_leftovers_are_recognised_by_the_clock_of_the_folder_and_removed(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.stop()
    old = {
        f"answer-{call_of(call='1' * 16)}": 200.0,
        f"script-{'1' * 16}-0000000003": 200.0,
        f"writing-{'1' * 16}": 4000.0,
        f"bridge-{'e' * 16}-0000000009": 200.0,
        f"request-{call_of(call='2' * 16)}": 200.0,
    }
    young = {f"writing-{'2' * 16}": 200.0, f"answer-{call_of(call='3' * 16)}": 5.0}
    of_killed = f"taken-{'e' * 16}-{call_of(call='4' * 16)}"
    head = b'{"format": "mingle.folder/1", "method": "POST", "target": "/v1/trainer/detach", "headers": {}, "limit_s": 60, "body_bytes": 0}\n'
    for name, age in (old | young | {of_killed: 5.0}).items():
        served.path.joinpath(name).write_bytes(head)
        made_old(served.path / name, age)
    # The clock of the machine counts for nothing: it is a day ahead here.
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + 86_400)
    served.restart()
    wait_until(lambda: not set(old) & set(served.names), "leftovers are removed")
    assert set(young) <= set(served.names)
    assert [call for call in served.host.calls if call.name == "detach"] == [], "no one waits for it, or it was sent before"
    wait_until(lambda: f"answer-{call_of(call='4' * 16)}" in served.names, "what a killed bridge had taken is answered")
    assert b"the bridge was started again" in (served.path / f"answer-{call_of(call='4' * 16)}").read_bytes()


@pytest.mark.parametrize("side", ["script", "bridge"])
def test_a_full_folder_loses_no_change(served: Served, monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    swarm = served.exchange()
    create, full = Folder._create, [0]

    def fails(folder: Folder, name: str) -> int:
        is_bridge = threading.current_thread() is not threading.main_thread()
        if name.startswith("writing-") and is_bridge == (side == "bridge") and full[0] < 3:
            full[0] += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return create(folder, name)

    monkeypatch.setattr(Folder, "_create", fails)
    begun = time.monotonic()
    train(swarm)
    assert full[0] == 3 and time.monotonic() - begun < 20, "a request that cannot be answered is given back, and not waited for"
    assert swarm.model.tolist() == [5, 5, 5] and len(served.host.changes) == 5


def test_a_folder_that_stays_full_is_named(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(folder: Folder, name: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    swarm = served.exchange(timeout=0.5)
    monkeypatch.setattr(Folder, "_create", is_full)
    with pytest.raises(mingle.TimedOut, match=rf"POST /v1/trainer/exchange by {served.url}: .*No space left|GET /v1/trainer/order by .*No space left"):
        swarm.exchange(swarm.model + 1)


def test_a_disk_that_fills_within_a_message_leaves_nothing_of_it(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))

    def pieces() -> Iterator[bytes]:
        yield bytes(100)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError, match="No space left"):
        folder.write(f"answer-{call_of()}", {}, pieces(), 1000)
    assert os.listdir(tmp_path) == []


def test_a_folder_of_others_is_refused_by_both_sides(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.stop()
    peer = find_peer(served.host.home)
    served.path.chmod(0o755)
    for begin in (lambda: served.exchange(timeout=1), lambda: Bridge(Folder(str(served.path)), peer).run()):
        with pytest.raises(MingleError, match=r"open to others \(mode 755\): close it with `chmod 700"):
            begin()
    served.path.chmod(0o700)
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    for begin in (lambda: served.exchange(timeout=1), lambda: Bridge(Folder(str(served.path)), peer).run()):
        with pytest.raises(MingleError, match=rf"belongs to user {owner}, and this is user {owner + 1}"):
            begin()
    assert served.host.calls == []


def test_a_bridge_reaches_its_peer_over_tcp_and_keeps_the_token_to_itself(tmp_path: Path) -> None:
    share, token = tmp_path / "share", "0123456789abcdef" * 4
    with FakeHost(tmp_path / "home", token=token) as host:
        host.wait("the plan")
        command = [sys.executable, "-m", "mingle", "bridge", str(share), "--url", host.url]
        for shown, complaint in ((token, None), ("wrong", "not the token of this peer")):
            environment = {"PYTHONPATH": str(SOURCES), "PATH": "/usr/bin:/bin", "MINGLE_TRAINER_TOKEN": shown}
            with subprocess.Popen(command, env=environment) as bridge:
                try:
                    wait_until(lambda: share.exists() and list(share.glob("bridge-*")), "a bridge beats")
                    client = Client(FolderEndpoint(str(share)))
                    if complaint is not None:
                        with pytest.raises(mingle.Refused, match=complaint):
                            client.status()
                        continue
                    session = client.attach(Description("ones", Layout.flat(3)))
                    client.put_initial(session.id, memoryview(bytes(12)))
                    runner = threading.Thread(target=lambda: client.order(session.id, 20, memoryview(bytearray(12))))
                    runner.start()
                    wait_until(lambda: list(share.glob("taken-*")), "the bridge has the call")
                    assert not any(token.encode() in path.read_bytes() for path in share.glob("taken-*"))
                    host.wait(None)
                    runner.join(10)
                    assert not runner.is_alive()
                finally:
                    bridge.terminate()
                    bridge.wait()


def test_a_second_bridge_is_refused_and_one_that_was_killed_is_followed(served: Served) -> None:
    with pytest.raises(MingleError, match=f"another bridge serves {served.path}"):
        Bridge(Folder(str(served.path)), find_peer(served.host.home)).run()
    served.stop()
    killed = served.path / f"bridge-{'e' * 16}-0000000009"
    killed.touch()
    served.restart()
    assert not killed.exists()
    train(served.exchange())


def test_of_two_bridges_that_begin_together_one_ends(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[Exception] = []

    def run() -> None:
        try:
            other.run()
        except MingleError as error:
            errors.append(error)

    other = Bridge(Folder(str(served.path)), find_peer(served.host.home))
    monkeypatch.setattr(other, "_take_over", lambda: None)
    thread = threading.Thread(target=run)
    caught = threading.excepthook
    monkeypatch.setattr(threading, "excepthook", lambda hooked: errors.append(hooked.exc_value) if hooked.exc_value else caught(hooked))
    thread.start()
    wait_until(lambda: errors, "one of them ends")
    assert "another bridge serves" in str(errors[0])
    assert served.thread.is_alive() != thread.is_alive()
    other.stop()
    thread.join(20)


def test_a_bridge_forwards_what_a_peer_answers_over_tcp_and_no_more(served: Served) -> None:
    client = Client(FolderEndpoint(str(served.path)))
    assert client.peer_status()["schema"] == "mingle.status/1"
    before = len(served.host.calls)
    for method, target in [("POST", "/v1/stop"), ("GET", "/v1/events"), ("POST", "/v1/status"), ("GET", "/v1/trainer/../stop"), ("GET", "/v1/trainer\r\nA: b")]:
        with pytest.raises(mingle.NothingThere, match="a bridge forwards no"):
            client._call(method, target, None)
    assert len(served.host.calls) == before
    client._call("GET", "/v1/trainer", None, headers={"Mingle-Loss": "1", "Host": "elsewhere", "Authorization": "Bearer x"})
    assert {name for name in served.host.calls[-1].headers if name not in ("Host", "Accept-Encoding", "Connection")} == {"Mingle-Loss"}


def test_a_body_longer_than_the_model_is_refused_before_the_peer_sees_it(served: Served) -> None:
    client = Client(FolderEndpoint(str(served.path)))
    session = client.attach(Description("ones", Layout.flat(3)))
    before = len(served.host.calls)
    with pytest.raises(mingle.Refused, match="a body of 2097152 bytes is longer than") as refused:
        client.put_initial(session.id, memoryview(bytes(2 << 20)))
    assert refused.value.status == 413 and len(served.host.calls) == before


def test_a_folder_with_too_many_files_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    served.stop()
    monkeypatch.setattr(folders, "MOST_ENTRIES", 10)
    for number in range(11):
        served.path.joinpath(str(number)).touch()
    with pytest.raises(MingleError, match="more than 10 files: name a folder that is for this alone"):
        served.exchange(timeout=1)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"url": "folder:mingle"}, "no whole path, such as folder:/scratch/ana/mingle"),
        ({"url": "folder:"}, "no whole path"),
        ({"url": "folder:/tmp", "token": "a"}, "wants no token"),
        ({"url": "folder:/tmp", "home": "a"}, "either home"),
    ],
)
def test_what_names_no_folder_is_refused(said: dict[str, str], complaint: str) -> None:
    with pytest.raises(MingleError, match=complaint):
        mingle.join(torch.nn.Linear(1, 1), None, **said)  # type: ignore[arg-type]


def test_a_bridge_to_a_folder_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mingle", "bridge", str(tmp_path / "a"), "--url", f"folder:{tmp_path}/b"]
    ended = subprocess.run(command, env={"PYTHONPATH": str(SOURCES), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 4 and "another folder: say --home, or --url and --token" in ended.stderr


# With peers of the program


class TestPeers:
    """Scripts by folder for real peers."""

    pytestmark = real_peers

    def test_peers_end_with_the_models_that_they_have_by_the_socket(self, tmp_path: Path) -> None:
        patience = ("--wait", "sync", "--deadline", "60s", "--training-deadline", "60s")
        script = Path(__file__).parent / "hashed_model.py"
        said = {}
        for way in ("folder", "socket"):
            tmp_path.joinpath(way).mkdir()
            with LocalSwarm(tmp_path / way, count=2, rounds=20, options=patience) as swarm:
                peers = [swarm.start_peer(node) for node in range(2)]
                started = []
                for node in range(2):
                    wait_until((swarm.home(node) / "mingle.sock").exists, "the peer is up")
                    started.append(swarm.start_script(node, script, str(node)) if way == "socket" else swarm.start_script_by_folder(node, script, str(node)))
                found = [swarm.start_bridge(node) for node in range(2)] if way == "folder" else []
                swarm.end(started, "script")
                swarm.end(peers, "peer")
                swarm.end(found, "bridge")
                said[way] = [swarm.output(f"script{node}").splitlines()[-1] for node in range(2)]
                swarm.audit()
        assert said["folder"] == said["socket"] and said["folder"][0].startswith("final model "), said

    def test_the_recipe_for_slurm_trains_four_tasks(self, tmp_path: Path) -> None:
        recipe = Path(__file__).parents[2] / "examples" / "deploy" / "slurm"
        tools = tmp_path / "bin"
        tools.mkdir()
        tools.joinpath("srun").write_text('#!/bin/sh\nexec "$@"\n')
        tools.joinpath("srun").chmod(0o755)
        tmp_path.joinpath("train.py").write_text(
            "import sys\nfrom array import array\nimport mingle\n"
            "with mingle.Exchange(None, 'eight numbers', array('f', bytes(32))) as swarm:\n"
            "    while not swarm.done:\n"
            "        swarm.exchange(array('f', [0.5 * number + 0.5 * float(sys.argv[1]) for number in swarm.model]))\n"
            "print('final', round(swarm.model[0], 3), flush=True)\n"
        )
        share = tmp_path / "a share"
        environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHON": sys.executable,
            "PYTHONPATH": str(SOURCES),
            "MINGLE_BIN": os.environ["MINGLE_BIN"],
            "MINGLE_SHARE": str(share),
            "MINGLE_HOMES": str(tmp_path / "homes"),
            "MINGLE_PORT": str(free_ports(4)[0]),
        }
        started: list[subprocess.Popen[str]] = []

        def start(*command: str, **variables: str) -> subprocess.Popen[str]:
            output = tmp_path / f"output{len(started)}"
            with output.open("w") as log:
                started.append(subprocess.Popen(command, env=environment | variables, cwd=tmp_path, stdout=log, stderr=log, text=True))
            return started[-1]

        try:
            peers = start(str(recipe / "peers"), "4", "--rounds", "30")
            tasks = [start("bash", str(recipe / "train.sbatch"), SLURM_ARRAY_TASK_ID=str(task)) for task in range(4)]
            for index, process in enumerate([*tasks, peers]):
                assert process.wait(120) == 0, "\n".join((tmp_path / f"output{number}").read_text()[-2000:] for number in range(5))
        finally:
            for process in started:
                process.terminate()
                process.wait()
        finals = [float((tmp_path / f"output{number}").read_text().split("final ")[1].split()[0]) for number in range(1, 5)]
        assert max(finals) - min(finals) < 0.01 and abs(sum(finals) / 4 - 1.5) < 0.1, finals
        assert sorted(path.name for path in share.iterdir()) == [f"site{number}" for number in range(4)]

    def test_bridge_peer_and_script_are_killed_and_started_again(self, tmp_path: Path) -> None:
        script = Path(__file__).parent / "slow_trainer.py"
        with LocalSwarm(tmp_path, rounds=10_000_000) as swarm:
            peers = [swarm.start_peer(node) for node in range(3)]
            scripts = [swarm.start_script(node, script, str(node), str(swarm.progress(node))) for node in (0, 2)]

            def start() -> subprocess.Popen[bytes]:
                return swarm.start_script_by_folder(1, script, "1", str(swarm.progress(1)))

            def wait_for_exchanges() -> None:
                swarm.progress(1).unlink(missing_ok=True)
                progress = swarm.progress(1)
                swarm.progress(1).touch()
                wait_until(lambda: progress.stat().st_size > 20, f"exchanges\n{swarm.output('script1')[-2000:]}{swarm.output('bridge1')[-2000:]}", 120)

            bridge = swarm.start_bridge(1)
            wait_until(lambda: list(swarm.share(1).glob("bridge-*")), "the bridge is up")
            scripts.insert(1, start())
            wait_until(lambda: swarm.progress(1).exists() and swarm.progress(1).stat().st_size > 20, "the script exchanges", 120)
            kill(bridge)
            bridge = swarm.start_bridge(1)
            kill(peers[1])
            peers[1] = swarm.start_peer(1)
            kill(scripts[1])
            # Its place is free after 60 s of silence, or at once where its session ended with the peer.
            scripts[1] = start()
            wait_for_exchanges()
            second = [sys.executable, "-c", f"import mingle, array; mingle.Exchange(None, 'eight numbers', array.array('f', bytes(32)), url='folder:{swarm.share(1)}', timeout=2)"]
            ended = subprocess.run(second, env={"PYTHONPATH": str(SOURCES), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60)
            assert ended.returncode != 0 and "another trainer is attached" in ended.stderr, ended.stderr
            swarm.stop()
            swarm.end(scripts, "script")
            swarm.end(peers, "peer")
            assert bridge.wait(20) == 0, swarm.output("bridge1")
            left = [path.name for path in swarm.share(1).iterdir()]
            assert {name.partition("-")[0] for name in left} <= {"answer", "script"}, "no one waits any more for what the killed script asked for"
            swarm.audit()
