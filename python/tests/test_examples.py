"""The examples, against a host with one node."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fake_host import FakeHost

EXAMPLES = Path(__file__).parents[1] / "examples"
ROOT = EXAMPLES.parents[1]


def run(host: FakeHost, script: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES.parent / "src"), "MINGLE_HOME": str(host.home), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / script), *arguments], env=environment, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_joining_a_swarm_changes_as_many_lines_of_a_script_as_the_docs_say() -> None:
    scripts = [(EXAMPLES / name).read_text().splitlines() for name in ("digits.py", "digits_mingle.py")]
    changed = [line for line in difflib.unified_diff(*scripts, n=0) if re.match(r"[+-](?![+-]{2})", line)]
    assert sorted(line[0] for line in changed) == ["+", "+", "+", "-"], changed
    assert "PyTorch with three added lines" in _words(ROOT / "README.md")
    page = _words(ROOT / "docs/python.md")
    assert re.search(r"digits_mingle\.py\) has three lines that \S+ does not have, and leaves out one\.", page), page[:1000]


def _words(page: Path) -> str:
    """The text of a page with its line breaks as blanks."""
    return " ".join(page.read_text().split())


def test_digits_are_learnt(tmp_path: Path) -> None:
    with FakeHost(tmp_path / "home", rounds=60, steps=10, evaluate_every=30) as host:
        output = run(host, "digits_mingle.py", "0", "1")
    accuracy = re.search(r"\((0\.\d+), 360\)", output)
    assert accuracy and float(accuracy[1]) > 0.96, output
    assert len(host.evaluations) == 2 and host.evaluations[1]["accuracy"][0] > 0.95


def test_a_line_is_fitted(tmp_path: Path) -> None:
    with FakeHost(tmp_path / "home", rounds=40, steps=10) as host:
        output = run(host, "linear_numpy.py", "0", "1")
    assert float(output.split()[-1]) < 0.02


@pytest.mark.heavy
def test_an_adapter_is_trained(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    with FakeHost(tmp_path / "home", rounds=20, steps=10) as host:
        output = run(host, "gpt2_lora.py", "0")
    found = re.search(r"20 exchanges of (\d+) numbers, loss from (\S+) to (\S+)$", output.strip())
    assert found, output
    assert all("lora" in name for name, _ in host.node.layout)
    assert float(found[3]) < float(found[2]) - 0.5
    assert host.losses
