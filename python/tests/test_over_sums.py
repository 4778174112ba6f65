"""Scripts that train over masked sums, with noise that all sites share."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from swarm import LocalSwarm, kill

pytestmark = [
    pytest.mark.swarm,
    pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle"),
]

SOFTMAX = Path(__file__).parent / "softmax_digits.py"
PRIVACY = """
[privacy]
clip = 1.0
epsilon_max = 400.0
"""


def _problem(folder: Path, lines: str) -> Path:
    path = folder / "problem.toml"
    path.write_text(f'kind = "training"\nmodel = "trainer"\nlocal_steps = 20\nrounds = 15\n{lines}')
    return path


def _accuracy(text: str) -> float:
    found = re.search(r"\((0\.\d+), 360\)", text)
    assert found, text
    return float(found[1])


def test_torch_models_of_three_sites_are_one_model_after_rounds_of_sums(tmp_path: Path) -> None:
    with LocalSwarm(tmp_path, rounds=15) as swarm:
        problem = _problem(tmp_path, 'metrics = ["accuracy"]\nevaluate_every = 5\n')
        peers = [swarm.start_peer_over_sums(node, problem) for node in range(3)]
        scripts = [swarm.start_script(node, "digits_mingle.py", str(node), "3") for node in range(3)]
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        models = [(home / "model.safetensors").read_bytes() for home in swarm.homes]
        assert models[1:] == models[:-1]
        learned = json.loads((swarm.home(0) / "learned.json").read_text())
        for node in range(3):
            accuracy = _accuracy(swarm.output(f"script{node}"))
            assert accuracy > 0.9, swarm.output(f"script{node}")
            # Each script got the model of the file, and all hold out the same digits.
            assert accuracy == pytest.approx(learned["history"][14]["mean"][0], abs=5e-4), learned["history"]


def test_a_script_of_a_private_training_is_killed_and_comes_back_and_the_budget_holds(tmp_path: Path) -> None:
    with LocalSwarm(tmp_path, rounds=15) as swarm:
        problem = _problem(tmp_path, f'metrics = ["accuracy"]\n{PRIVACY}')
        peers = [swarm.start_peer_over_sums(node, problem) for node in range(3)]
        scripts = [swarm.start_script(node, SOFTMAX, str(node), "3") for node in range(3)]
        swarm.wait_for_round(1, 3)
        kill(scripts[1])
        scripts[1] = swarm.start_script(1, SOFTMAX, "1", "3")
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        models = [(home / "model.safetensors").read_bytes() for home in swarm.homes]
        assert models[1:] == models[:-1]
        for home in swarm.homes:
            report = json.loads((home / "privacy-of-sums.json").read_text())
            assert 300 < report["epsilon"] <= 400 and not report["ended_with_noise_alone"], report
            learned = json.loads((home / "learned.json").read_text())
            assert learned["history"][14]["mean"][0] > 0.8, learned["history"]
