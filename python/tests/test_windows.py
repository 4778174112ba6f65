"""The client in a Python that lacks what that of Windows lacks. No machine with Windows has run it."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from agreement import check_agreement
from fake_host import FakeHost
from prepared_python import run_together
from swarm import LocalSwarm

from mingle.planning.program import is_closed_pipe

TESTS = Path(__file__).parent
SOURCES = TESTS.parent / "src"
STRIPPED = TESTS / "without_unix.py"
TOKEN = "0123456789abcdef" * 4
needs_program = [
    pytest.mark.swarm,
    pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle"),
]


def run(folder: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the text of a script without what Windows lacks."""
    file = folder / "script.py"
    file.write_text(script)
    environment = {"PYTHONPATH": f"{SOURCES}:{TESTS}", "PATH": str(folder / "no programs"), "OMP_NUM_THREADS": "1"} | variables
    (ended,) = run_together([[str(STRIPPED), str(file)]], environment, folder)
    return ended


@pytest.fixture
def tcp(tmp_path: Path) -> Iterator[FakeHost]:
    """A host that is served over TCP."""
    with FakeHost(tmp_path / "home", token=TOKEN) as host:
        yield host


TRAIN = """
import os, socket, sys
import torch
import mingle
assert os.name == "nt" and not hasattr(socket, "AF_UNIX") and not hasattr(os, "register_at_fork")
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
class Lines(mingle.loggers.Logger):
    def log(self, values, round):
        print("logged", round, flush=True)
with mingle.join(model, optimizer, keep_optimizer=True, log_to=Lines(), evaluate=lambda: {"bias": (float(model.bias), 1)}) as swarm:
    loader = torch.utils.data.DataLoader(torch.randn(32, 3), batch_size=8)
    for batch in swarm.batches(loader):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        swarm.report(loss=0.5)
        optimizer.step()
print("done", swarm.done, swarm.round, flush=True)
"""


def test_a_model_of_torch_trains_over_tcp(tcp: FakeHost, tmp_path: Path) -> None:
    ended = run(tmp_path, TRAIN, MINGLE_TRAINER_URL=tcp.url, MINGLE_TRAINER_TOKEN=TOKEN)
    assert ended.returncode == 0 and "done True 5" in ended.stdout, ended.stderr
    assert len(tcp.changes) == 5 and tcp.losses == [0.5] * 5 and "logged 5" in ended.stdout
    assert tcp.attached is None, "it has detached"


def test_numpy_trains_over_tcp(tcp: FakeHost, tmp_path: Path) -> None:
    script = (
        "import numpy, mingle, sys\n"
        f"with mingle.Exchange(None, 'ones', numpy.zeros(3, 'f'), url={tcp.url!r}, token={TOKEN!r}) as swarm:\n"
        "    while not swarm.done:\n"
        "        swarm.exchange(swarm.model + 1)\n"
        "print(swarm.model.tolist())\n"
    )
    ended = run(tmp_path, script)
    assert ended.stdout == "[5.0, 5.0, 5.0]\n", ended.stderr


def test_a_script_by_a_folder_does_without_users_and_their_rights(tcp: FakeHost, tmp_path: Path) -> None:
    share = tmp_path / "share"
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    with subprocess.Popen([sys.executable, "-m", "mingle", "bridge", str(share), "--home", str(tcp.home)], env=environment) as bridge:
        try:
            ended = run(tmp_path, TRAIN, MINGLE_TRAINER_URL=f"folder:{share}")
            assert ended.returncode == 0 and "done True 5" in ended.stdout, ended.stderr
            assert bridge.wait(20) == 0
        finally:
            bridge.kill()


def test_a_script_that_names_no_peer_is_told_of_tcp(tmp_path: Path) -> None:
    ended = run(tmp_path, "import torch, mingle\nmingle.join(torch.nn.Linear(1, 1), None)\n", HOME=str(tmp_path))
    assert "MingleError: which peer? This Python has no Unix sockets: start the peer with --trainer-tcp, and say url=... and token=... here" in ended.stderr


def test_without_the_program_of_that_name_it_says_what_to_install(tmp_path: Path) -> None:
    programs = tmp_path / "no programs"
    programs.mkdir()
    for name in ("mingle", "mingle.exe.txt"):
        programs.joinpath(name).write_text("#!/bin/sh\n")
        programs.joinpath(name).chmod(0o755)
    ended = run(tmp_path, "import mingle\nmingle.plan([(0, 1), (1, 2), (2, 0)])\n")
    assert "MingleError: there is no program `mingle`: install the wheel of mingle-train for this platform" in ended.stderr


def test_a_pipe_that_the_program_closed_is_known_by_the_error_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    of_windows = OSError(errno.EINVAL, "Invalid argument")
    assert is_closed_pipe(BrokenPipeError()) and not is_closed_pipe(of_windows)
    monkeypatch.setattr(os, "name", "nt")
    assert is_closed_pipe(of_windows) and not is_closed_pipe(OSError(errno.ENOSPC, "full")) and not is_closed_pipe(KeyboardInterrupt())


class TestProgram:
    """With the program, as `mingle.exe` on PATH."""

    pytestmark = needs_program

    @pytest.fixture
    def programs(self, tmp_path: Path) -> Path:
        folder = tmp_path / "no programs"
        folder.mkdir()
        folder.joinpath("mingle.exe").symlink_to(os.environ["MINGLE_BIN"])
        return folder

    def test_plans_are_made_drawn_and_simulated(self, tmp_path: Path, programs: Path) -> None:
        script = (
            "import mingle\n"
            "graph = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]\n"
            "plan = mingle.plan(graph, method='bass-heuristic')\n"
            "print(len(plan.matrices()), plan.matrices()[0].sum(axis=0).tolist())\n"
            f"plan.save({str(tmp_path / 'plan.json')!r})\n"
            "assert '<svg' in plan.draw()._repr_svg_()\n"
            "try:\n"
            "    mingle.plan([(0, 1), (2, 3)])\n"
            "except mingle.PlanError as error:\n"
            "    print('refused:', error)\n"
        )
        ended = run(tmp_path, script)
        assert ended.returncode == 0, ended.stderr
        sums = re.search(r"^\d+ \[(.*)\]$", ended.stdout, re.MULTILINE)
        assert sums and numpy.allclose([float(number) for number in sums[1].split(",")], 1.0)
        assert "refused: " in ended.stdout
        checked = subprocess.run([os.environ["MINGLE_BIN"], "plan", "check", str(tmp_path / "plan.json")], capture_output=True, timeout=60)
        assert checked.returncode == 0 and b"\r" not in tmp_path.joinpath("plan.json").read_bytes()

    def test_python_m_mingle_returns_the_exit_code(self, tmp_path: Path, programs: Path) -> None:
        script = "import sys, runpy\nsys.argv = ['mingle', 'plan', 'show', 'nowhere.json']\nrunpy.run_module('mingle', run_name='__main__')\n"
        ended = run(tmp_path, script)
        assert ended.returncode != 0 and "nowhere.json" in ended.stderr
        direct = subprocess.run([os.environ["MINGLE_BIN"], "plan", "show", "nowhere.json"], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert ended.returncode == direct.returncode

    def test_two_sites_train_with_peers_over_tcp(self, tmp_path: Path) -> None:
        with LocalSwarm(tmp_path, count=2, rounds=60, options=("--trainer-tcp", "127.0.0.1:0", "--evaluate-every", "10")) as swarm:
            peers = [swarm.start_peer(node) for node in range(2)]
            scripts = [swarm.start_script_over_tcp(node, STRIPPED, str(TESTS / "sine_trainer.py"), str(node), "2") for node in range(2)]
            swarm.end(scripts, "script")
            swarm.end(peers, "peer")
            assert all(swarm.summary(node)["rounds"] == 60 for node in range(2))
            swarm.audit()
