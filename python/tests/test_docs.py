"""The scripts and commands of docs/python.md, docs/start-training.md and docs/trainer-protocol.md, run as written."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from agreement import check_agreement, final_model, mean_model
from fake_host import FakeHost
from free_ports import free_ports

import mingle
import mingle.batches

PAGES = Path(__file__).parents[2] / "docs"
PROTOCOL = PAGES / "trainer-protocol.md"
SOURCES = Path(__file__).parents[1] / "src"
EXAMPLES = Path(__file__).parents[1] / "examples"
NEEDS_MINGLE = pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle")

LARGEST_ERROR = 0.05
"""The mean squared error of the sine below which sites that train together come."""
VARIANCE_OF_SINE = 0.52
"""The mean square of the sine from -3 to 3."""
LEAST_EXPLAINED = 0.98
"""The part of the variance that a model by ticket explains, relative to one by plan file: errors of two equal runs differ by a factor of two
and more, and the part that they explain does not."""


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


def test_the_script_with_loggers_logs_each_round(tmp_path: Path) -> None:
    (tmp_path / "logged.py").write_text(block("python.md", "logged.py"))
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1"}
    with FakeHost(tmp_path / "home", rounds=6, evaluate_every=3) as host:
        environment["MINGLE_HOME"] = str(host.home)
        ended = subprocess.run([sys.executable, "logged.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
    lines = ended.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == [f"round {round}" for round in (0, 1, 2, 3, 4, 5, 6)], lines
    assert all(re.search(r"swarm/steps \d+, swarm/train/loss \d", line) for line in lines[1:]), lines
    assert ["swarm/evaluation/error" in line for line in lines] == [True, False, False, True, False, False, False], lines
    assert list((tmp_path / "runs/site0").glob("events.out.tfevents.*"))


def test_the_bar_has_the_steps_that_are_left_as_its_total(host: FakeHost) -> None:
    model, totals, steps = torch.nn.Linear(1, 1), [], []
    with mingle.join(model, None, home=host.home) as swarm:

        def tqdm(batches: mingle.batches.Batches[tuple[int, int]]) -> mingle.batches.Batches[tuple[int, int]]:
            totals.append(len(batches))
            return batches

        def train_step(inputs: int, targets: int) -> None:
            steps.append((inputs, targets))
            swarm.step()

        exec(block("python.md", "bar"), {"tqdm": tqdm, "train_step": train_step, "swarm": swarm, "loader": [(1, 2), (3, 4)]})
    assert totals == [20] and steps == [(1, 2), (3, 4)] * 10


@dataclass
class SineRun:
    """Three sites that have learnt the sine by the commands of the page: the largest error, and the steps of each site."""

    folder: Path
    error: float
    steps: list[int]


@pytest.mark.swarm
@NEEDS_MINGLE
def test_three_sites_learn_the_sine_by_ticket_as_by_a_plan_file_in_as_many_steps(tmp_path: Path) -> None:
    by_plan_file = run_sine(tmp_path / "plan file", "three sites", ["site0", "site1", "site2"])
    assert by_plan_file.error < LARGEST_ERROR, by_plan_file
    check_sine([by_plan_file.folder / f"site{site}" for site in range(3)])
    names = ["ana", "ben", "cho"]
    by_ticket = run_sine(tmp_path / "ticket", "by ticket", names)
    print(by_plan_file, by_ticket)
    # A plan with other local steps has more rounds or fewer, so that the number of steps stays.
    # A site that is late, on a busy machine, mixes on without the steps of a round; the one with most steps was least so.
    assert abs(max(by_ticket.steps) / max(by_plan_file.steps) - 1) < 0.1, (by_plan_file, by_ticket)
    explained = [1 - error / VARIANCE_OF_SINE for error in (by_plan_file.error, by_ticket.error)]
    assert by_ticket.error < LARGEST_ERROR and explained[1] > LEAST_EXPLAINED * explained[0], (by_plan_file, by_ticket)
    check_sine([by_ticket.folder / name for name in names])
    operator = by_ticket.folder / "ana"
    local_steps = json.loads((operator / "plan.json").read_text())["local_steps"]
    events = [json.loads(line) for line in (operator / "events.jsonl").read_text().splitlines()]
    chosen = [event for event in events if event["event"] == "local_steps"]
    assert local_steps == (chosen[-1]["steps"] if chosen else 10), (local_steps, chosen)
    assert all(event["local_step_s"] > 0 and event["exchange_s"] > 0 for event in chosen), "the reason is said with it"


def check_sine(homes: list[Path]) -> None:
    """Checks that the final models agree, and that none is worse than their mean."""
    check_agreement(homes)
    of_mean = error_of_sine(mean_model(homes))
    assert all(error_of_sine(final_model(home)) <= 1.01 * of_mean for home in homes), of_mean


def run_sine(folder: Path, commands: str, names: list[str]) -> SineRun:
    """Runs the commands of that name beside train.py, as the page has both, but that the script counts its steps and the port is a free one.
    `names` are those of the homes."""
    folder.mkdir()
    begun, step = "    while True:", "        optimizer.step()\n"
    script = block("python.md", "train.py")
    assert script.count(begun) == script.count(step) == 1
    script = script.replace(begun, f"    steps = 0\n{begun}").replace(step, f"        steps += 1\n{step}")
    (folder / "train.py").write_text(script + 'print(f"steps {steps}")\n')
    output = run(block("python.md", commands).replace("/tcp/4710", f"/tcp/{free_ports(1)[0]}"), folder)
    errors = re.findall(r"mean squared error from -3 to 3: (\d\.\d+)", output)
    assert len(errors) == 3, output
    steps = [re.findall(r"steps (\d+)", (folder / name / "trainer.log").read_text()) for name in names]
    return SineRun(folder, max(map(float, errors)), [sum(map(int, of_site)) for of_site in steps])


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
