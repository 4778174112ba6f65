"""Agreement of the models with which the peers of a run end."""

from __future__ import annotations

import json
import os
import re
import shlex
import struct
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy

REMAINING = 0.1
"""Largest disagreement of the final models, as a part of that while the peers trained."""
ROUNDING = 1e-6
"""Disagreement that the rounding of f32 may leave."""
NOISE = {"accuracy": 4 / 360, "val_loss": 0.01}
"""The difference of a metric from one round to the next that says nothing."""
SCRIPT = Path(__file__).with_name("training_rounds.py")
SOURCES = Path(__file__).parents[1] / "src"


def final_model(home: Path) -> dict[str, Any]:
    """The tensors of `model.safetensors`, by name, `[...]` as their shapes."""
    file = (home / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", file[:8])
    header = json.loads(file[8 : 8 + length])
    tensors = {}
    for name, told in header.items():
        if name != "__metadata__":
            begin, end = told["data_offsets"]
            tensors[name] = numpy.frombuffer(file[8 + length + begin : 8 + length + end], dtype="<f4").reshape(told["shape"])
    return tensors


def mean_model(homes: Sequence[Path]) -> dict[str, Any]:
    """The mean of the final models."""
    models = [final_model(home) for home in homes]
    return {name: numpy.mean([model[name] for model in models], axis=0, dtype="f8").astype("f4") for name in models[0]}


def training_rounds(home: Path) -> int:
    """The number of rounds of a peer's run that train, before those that only mix: what a script is told in a simulated run of the same plan."""
    return _training_rounds((home / "plan.json").read_text(), json.loads((home / "summary.json").read_text())["rounds"])


@cache
def _training_rounds(plan: str, rounds: int) -> int:
    """The number of `rounds` rounds by the text of a plan that train: peers of a swarm have the same one."""
    variables = f"PYTHONPATH={shlex.quote(str(SOURCES))}"
    script = f"{variables} exec {shlex.quote(sys.executable)} {shlex.quote(str(SCRIPT))}"
    with NamedTemporaryFile("w", suffix=".json") as file:
        file.write(plan)
        file.flush()
        command = [os.environ["MINGLE_BIN"], "simulate", "--plan", file.name, "--rounds", str(rounds), "--trainer", script]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    told = {int(count) for count in re.findall(r"training rounds: (\d+)", ended.stderr)}
    assert ended.returncode == 0 and len(told) == 1, ended.stderr
    training = told.pop()
    assert 2 / 3 * rounds <= training <= rounds, (training, rounds)
    return training


def evaluations(home: Path) -> list[dict[str, Any]]:
    """The evaluations of a peer's run while it trained: without those after rounds that only mix."""
    events = [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
    return [event for event in events if event["event"] == "evaluated" and event["round"] <= training_rounds(home)]


def gains(home: Path, metrics: dict[str, float]) -> tuple[float, float]:
    """By how much the first metric of a final model is better than the mean of the last two evaluations in which its peer trained, and the
    difference from one round to the next that says nothing."""
    (name, final), *_ = metrics.items()
    # A site that is late with its steps by a moment leaves an evaluation out.
    before = [evaluation["metrics"][name] for evaluation in evaluations(home) if name in evaluation["metrics"]][-2:]
    assert len(before) == 2, f"{name} was evaluated {len(before)} times while it trained"
    print(f"{name} {before} while it trained, {final} at the end")
    return (sum(before) / len(before) - final) * (-1 if name == "accuracy" else 1), NOISE[name]


def check_agreement(homes: Sequence[Path]) -> None:
    """Checks that the final models differ by at most a tenth of what they did in the last evaluation while all trained."""
    # A peer that has just taken a new plan has heard of no neighbour's model yet, and reports none.
    before = max([each["disagreement"] for each in evaluations(home) if each["disagreement"] is not None][-1] for home in homes)
    after = disagreement(homes)
    print(f"disagreement {before:.1e} while they trained, {after:.1e} at the end")
    assert after <= max(REMAINING * before, ROUNDING), (before, after)


def disagreement(homes: Sequence[Path]) -> float:
    """The largest relative distance between the final model of one peer and those of others, a root mean square as peers report it."""
    vectors = [numpy.concatenate([tensor.ravel() for tensor in final_model(home).values()]).astype("f8") for home in homes]
    distances = []
    for own in vectors:
        squares = [float(numpy.square(other - own).sum()) for other in vectors if other is not own]
        distances.append((sum(squares) / len(squares)) ** 0.5 / float(numpy.linalg.norm(own)))
    return max(distances)
