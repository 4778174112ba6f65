"""The script and the commands of docs/python.md, and the commands of docs/trainer-protocol.md, run as written."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fake_host import FakeHost

PAGE = Path(__file__).parents[2] / "docs/python.md"
PROTOCOL = Path(__file__).parents[2] / "docs/trainer-protocol.md"
SOURCES = Path(__file__).parents[1] / "src"


def block(name: str) -> str:
    """The code block behind `<!-- tested: NAME -->`."""
    found = re.search(rf"<!-- tested: {name} -->\n```\w+\n(.*?)```\n", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


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
@pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle")
def test_three_sites_learn_the_sine(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mingle").symlink_to(os.environ["MINGLE_BIN"])
    (tmp_path / "bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "bin/python").chmod(0o755)
    (tmp_path / "train.py").write_text(block("train.py"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MINGLE_")}
    environment |= {"PATH": f"{tmp_path}/bin:{environment['PATH']}", "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        ["bash", "-e", "-c", block("three sites")], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    errors = re.findall(r"mean squared error from -3 to 3: (\d\.\d+)", ended.stdout)
    assert len(errors) == 3, ended.stdout + ended.stderr
    assert all(float(error) < 0.05 for error in errors), errors
