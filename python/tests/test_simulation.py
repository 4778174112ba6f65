"""`mingle.simulate(plan, make_trainer)`: a swarm of models of one's own, beside peers that train them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mingle
import numpy
import pytest
import torch
from agreement import final_model
from sine_trainer import error, make_trainer
from swarm import LocalSwarm
from torch import nn

pytestmark = [
    pytest.mark.swarm,
    pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle"),
]

PAGE = Path(__file__).parents[2] / "docs/planning.md"
SCRIPT = Path(__file__).parent / "sine_trainer.py"
PATIENCE = ("--deadline", "60s", "--training-deadline", "60s")
"""Options of peers that wait for each other on a busy machine too, as simulated ones do."""


@pytest.mark.parametrize(
    ("sites", "method", "rounds", "options"),
    [
        (3, "exact-average", 30, ("--wait", "sync")),
        (4, "one-peer-exponential", 40, ("--wait", "sync", "--codec", "f32")),
        (8, "exact-average", 20, ("--wait", "sync", "--momentum-across-rounds", "0.5")),
    ],
)
def test_simulated_sites_end_with_the_models_of_peers_to_the_bit(
    tmp_path: Path, sites: int, method: str, rounds: int, options: tuple[str, ...]
) -> None:
    with LocalSwarm(tmp_path, sites, rounds=rounds, local_steps=4, method=method, options=(*options, *PATIENCE)) as swarm:
        peers = [swarm.start_peer(node) for node in range(sites)]
        scripts = [swarm.start_script(node, SCRIPT, str(node), str(sites)) for node in range(sites)]
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        plan = mingle.Plan.read(swarm.plan)
        named = dict(zip(options[::2], options[1::2], strict=True))
        simulation = mingle.simulate(
            plan, lambda node: make_trainer(node, sites), rounds=rounds, options={name.removeprefix("--"): value for name, value in named.items()}
        )
        assert simulation.models is not None
        for node, model in enumerate(simulation.models):
            for name, tensor in final_model(swarm.home(node)).items():
                numpy.testing.assert_array_equal(model.get_parameter(name).detach().numpy(), tensor, f"{name} of node {node}")


def test_rows_have_the_metrics_over_nodes_and_the_models_come_together() -> None:
    plan = mingle.plan("ring:n=4", "d-psgd", local_steps=4)
    seen: list[dict[str, Any]] = []
    simulation = mingle.simulate(
        plan, lambda node: make_trainer(node, 4), rounds=60, evaluate=error, evaluate_every=20, on_evaluation=seen.append
    )
    assert seen == simulation.rows and [row["round"] for row in seen] == [20, 40, 60]
    assert all(row["least_error"] <= row["mean_error"] <= row["most_error"] for row in seen)
    assert simulation.summary["nodes"] == 4 and simulation.summary["weight"] == pytest.approx(4.0)
    assert simulation.summary["mean_error"] == seen[-1]["mean_error"] < 0.1
    # The last rounds only mix.
    assert seen[-1]["disagreement"] < 0.1 * seen[0]["disagreement"]
    assert list(simulation.to_frame().index) == [20, 40, 60]
    again = mingle.simulate(plan, lambda node: make_trainer(node, 4), rounds=60, evaluate=error, evaluate_every=20)
    assert again.rows == seen


def test_the_script_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    script = re.search(r"<!-- tested: own training -->\n```python\n(.*?)```\n", PAGE.read_text(), re.DOTALL)
    assert script is not None
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(script[1], names)
    assert names["simulation"].summary["mean_error"] < 0.05, capsys.readouterr().out


def linear(shape: int = 1, step: Callable[[nn.Module], object] = lambda model: None) -> tuple[nn.Module, Callable[[], object]]:
    model = nn.Linear(shape, 1)
    return model, lambda: step(model)


def spoil(model: nn.Module) -> None:
    torch.nn.init.constant_(model.weight, torch.nan)  # type: ignore[arg-type]


def crash(_: nn.Module) -> None:
    raise ZeroDivisionError("in the script")


def grow(model: nn.Module) -> None:
    model.weight = nn.Parameter(torch.zeros(2, 1))


@pytest.mark.parametrize(
    ("make", "raised", "said"),
    [
        (lambda node: linear(1 + node), mingle.LayoutError, "the model of node 1 differs from that of node 0: `weight` [1, 2]"),
        (lambda node: nn.Linear(1, 1), mingle.PlanError, "the trainer of node 0 is Linear"),
        (lambda node: linear(step=spoil), mingle.NotFinite, "the change of node 0 is not finite in `weight`"),
        (lambda node: linear(step=crash), ZeroDivisionError, "in the script"),
        (lambda node: linear(step=grow), mingle.LayoutError, "`weight` (now [2, 1], was [1, 1])"),
    ],
)
def test_a_trainer_that_cannot_be_simulated_is_named(make: Any, raised: type[Exception], said: str) -> None:
    plan = mingle.plan("ring:n=3")
    with pytest.raises(raised) as refused:
        mingle.simulate(plan, make, rounds=3)
    assert said in str(refused.value)


def test_options_of_built_in_models_are_refused_with_a_trainer() -> None:
    with pytest.raises(mingle.PlanError, match="--split"):
        mingle.simulate(mingle.plan("ring:n=3"), lambda node: linear(), split="iid")
