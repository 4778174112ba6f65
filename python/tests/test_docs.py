"""The scripts and commands of docs/python.md, docs/start-training.md and docs/trainer-protocol.md, run as written."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
from agreement import check_agreement, final_model, mean_model
from fake_host import FakeHost

PAGES = Path(__file__).parents[2] / "docs"
PROTOCOL = PAGES / "trainer-protocol.md"
SOURCES = Path(__file__).parents[1] / "src"
EXAMPLES = Path(__file__).parents[1] / "examples"
NEEDS_MINGLE = pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle")


def block(page: str, name: str) -> str:
    """The code block of a page behind `<!-- tested: NAME -->`."""
    found = re.search(rf"<!-- tested: {name} -->\n```\w+\n(.*?)```\n", (PAGES / page).read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def run(commands: str, folder: Path) -> str:
    """Runs commands in a folder, with `mingle` and `python` in the path, and returns what they print."""
    (folder / "bin").mkdir()
    (folder / "bin/mingle").symlink_to(os.environ["MINGLE_BIN"])
    (folder / "bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (folder / "bin/python").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MINGLE_")}
    environment |= {"PATH": f"{folder}/bin:{environment['PATH']}", "PYTHONPATH": f"{SOURCES}:{EXAMPLES}", "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(["bash", "-e", "-c", commands], cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def commands_with_curl() -> list[str]:
    """The commands of "With curl" that go over the socket, as written."""
    section = PROTOCOL.read_text().split("\n## With curl\n")[1].split("\nOver TCP")[0]
    # Commands are indented by four, their continuations by six or by eight with an option; answers by eight.
    lines = [line for line in section.splitlines() if re.match(r" {4}(curl|printf)| {6}(curl|-)| {8}-", line)]
    text = "\n".join(lines)
    return [command for command in re.split(r"\n(?=    (?:curl|printf))", text) if command.strip()]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_exchange_with_curl_works_as_it_stands_there(tmp_path: Path) -> None:
    with FakeHost(tmp_path / "site-a", steps=10) as host:
        session = ""
        commands = commands_with_curl()
        assert len(commands) == 4
        for command in commands:
            if session:
                command = command.replace("6f1c8a0f5f0b4f0e", session)
            # The peer, unlike the host of the tests, answers a body in chunks with 411, so none may be sent.
            ended = subprocess.run(["bash", "-c", f"set -o pipefail; {command.strip()}"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
            assert ended.returncode == 0 and "error" not in ended.stdout, command + ended.stdout + ended.stderr
            session = session or json.loads(ended.stdout)["session"]
        sent = [call for call in host.calls if call.name in ("initial", "exchange")]
        assert [(call.size, "Transfer-Encoding" in call.headers) for call in sent] == [(8, False)] * 2
        assert [list(change) for change in host.changes] == [[0.5, -0.5]]
        assert host.node.vector is not None and list(host.node.vector) == [0.5, 0.5]
    assert "mingle-kind: train" in (tmp_path / "headers").read_text().lower()


@pytest.mark.swarm
@NEEDS_MINGLE
def test_three_sites_learn_the_sine(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(block("python.md", "train.py"))
    output = run(block("python.md", "three sites"), tmp_path)
    errors = re.findall(r"mean squared error from -3 to 3: (\d\.\d+)", output)
    assert len(errors) == 3, output
    assert all(float(error) < 0.05 for error in errors), errors
    homes = [tmp_path / f"site{site}" for site in range(3)]
    check_agreement(homes)
    of_mean = error_of_sine(mean_model(homes))
    assert all(error_of_sine(final_model(home)) <= 1.01 * of_mean for home in homes), of_mean


def error_of_sine(model: dict[str, Any]) -> float:
    """The mean squared error from -3 to 3 of the model of train.py."""
    x = numpy.linspace(-3, 3, 100)[:, None]
    hidden = numpy.tanh(x @ model["0.weight"].T + model["0.bias"])
    return float(numpy.square(hidden @ model["2.weight"].T + model["2.bias"] - numpy.sin(x)).mean())


@pytest.mark.swarm
@NEEDS_MINGLE
def test_two_friends_join_by_ticket_and_all_three_learn_the_digits(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "digits_mingle.py", tmp_path)
    output = run(block("start-training.md", "two friends"), tmp_path)
    accuracies = re.findall(r"^\{'accuracy': \((\d\.\d+), 360\)\}$", output, re.MULTILINE)
    assert len(accuracies) == 3, output
    assert all(float(accuracy) > 0.93 for accuracy in accuracies), accuracies
    assert "sum of weights: exactly 3" in output, output
