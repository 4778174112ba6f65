"""docs/python.md does what it says: its script and its commands, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/python.md"
SOURCES = Path(__file__).parents[1] / "src"


def block(name: str) -> str:
    """The code block behind `<!-- tested: NAME -->`."""
    found = re.search(rf"<!-- tested: {name} -->\n```\w+\n(.*?)```\n", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


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
