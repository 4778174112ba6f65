"""python -m mingle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mingle

SOURCES = Path(__file__).parents[1] / "src"


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mingle", *arguments]
    return subprocess.run(command, env={"PYTHONPATH": str(SOURCES), **environment}, capture_output=True, text=True, timeout=60)


def test_the_program_gets_all_arguments_and_its_exit_code_is_returned(tmp_path: Path) -> None:
    program = tmp_path / "mingle"
    program.write_text('#!/bin/sh\necho "$# $1 $2"\nexit 7\n')
    program.chmod(0o755)
    for environment in [{"MINGLE_BIN": str(program), "PATH": "/usr/bin:/bin"}, {"PATH": f"{tmp_path}:/usr/bin:/bin"}]:
        ended = run(environment, "demo", "--peers 8")
        assert (ended.stdout, ended.returncode) == ("2 demo --peers 8\n", 7)


def test_without_the_program_it_says_what_to_install() -> None:
    ended = run({"PATH": "/nonexistent"}, "demo")
    assert ended.returncode == 127 and "install the wheel of mingle-train" in ended.stderr


def test_the_version_is_that_of_the_program() -> None:
    manifest = (SOURCES.parents[1] / "Cargo.toml").read_text()
    assert f'[workspace.package]\nversion = "{mingle.__version__}"\n' in manifest
