"""Trainings during which the swarm takes a plan with other local steps: schedules and progress follow."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import torch
from fake_host import FakeHost
from torch import nn

import mingle

FIRST = {"steps": 4, "rounds": 22, "closing": 2}
PLANS = {6: (10, 14), 9: (7, 15)}
"""The plans that follow: 24 steps by the first, 30 by the second, 28 by the third. As in a real swarm the steps stay, to within a round."""
BY_FIRST_PLAN = 80
TAKEN = 24 + 30 + 28
LARGEST = 10


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.ones(4, 3)).square().mean().backward()
    optimizer.step()


def test_a_schedule_and_a_progress_bar_follow_the_plans(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    totals, rates, lengths, steps = [], [], [], []
    with FakeHost(tmp_path / "home", plans=PLANS, **FIRST) as host, mingle.join(model, optimizer, home=host.home) as swarm:
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, swarm.total_steps)
        batches = swarm.batches([1, 2, 3])
        for taken, _ in enumerate(batches):
            totals.append(swarm.total_steps)
            lengths.append(len(batches))
            steps.append(swarm.steps)
            rates.append(optimizer.param_groups[0]["lr"])
            assert swarm.steps_left == swarm.total_steps - taken, "each step taken is one less"
            train_step(model, optimizer)
            schedule.step()
        assert swarm.total_steps == len(batches) == TAKEN and swarm.steps_left == 0
        exchanged = [int(call.query["steps"]) for call in host.calls if call.name == "exchange"]
    assert exchanged == [4] * 6 + [10] * 3 + [7] * 4 and steps == [count for count in exchanged for _ in range(count)]
    assert totals == lengths == [80] * 24 + [84] * 30 + [82] * 28
    assert max(abs(total - BY_FIRST_PLAN) for total in totals) < LARGEST
    assert min(rates) < 0.001 and max(rates[-5:]) < 0.002, "the schedule by the first plan ends with the run"


def test_the_steps_of_an_exchange_under_way_are_no_longer_left(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    totals, lefts = [], []
    with FakeHost(tmp_path / "home", plans=PLANS, **FIRST) as host, mingle.join(model, optimizer, home=host.home, overlap=True) as swarm:
        while True:
            totals.append(swarm.total_steps)
            lefts.append(swarm.steps_left)
            train_step(model, optimizer)
    # Steps beside the last exchange count for nothing: they are those of a round at most.
    foretold = totals[: lefts.index(0)] if 0 in lefts else totals
    assert totals[0] == BY_FIRST_PLAN and max(abs(total - BY_FIRST_PLAN) for total in foretold) <= LARGEST, totals
    assert len(totals) - len(foretold) <= LARGEST, lefts
    assert totals[:24] == [80] * 24, "within one plan nothing changes"
    assert lefts[-1] <= 1, "the end comes when it was foretold"


def test_rounds_left_of_an_exchange_are_those_that_train(tmp_path: Path) -> None:
    left = []
    with FakeHost(tmp_path / "home", plans=PLANS, **FIRST) as host, mingle.Exchange(host.home, "numbers", numpy.zeros(3, "f4")) as swarm:
        while not swarm.done:
            left.append((swarm.round, swarm.steps, swarm.rounds_left))
            swarm.exchange(swarm.model + 1)
        assert swarm.rounds_left == 0
    assert left == [(r, 4, 20 - r) for r in range(6)] + [(r, 10, 12 - r) for r in (6, 7, 8)] + [(r, 7, 13 - r) for r in (9, 10, 11, 12)]
    with FakeHost(tmp_path / "older", rounds=3) as host, mingle.Exchange(host.home, "numbers", numpy.zeros(3, "f4")) as swarm:
        assert swarm.rounds_left == 3, "of a peer that does not say it, all rounds that are left"


@pytest.mark.heavy
def test_the_trainer_of_transformers_follows_the_plans(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import mingle.hf
    from test_frameworks import Net, trainer_of

    seen: list[tuple[int, int, float]] = []

    class Notes(transformers.TrainerCallback):  # type: ignore[misc,name-defined]
        def on_step_end(self, args: object, state: object, control: object, **given: object) -> None:
            seen.append((state.global_step, state.max_steps, given["optimizer"].param_groups[0]["lr"]))  # type: ignore[attr-defined,index]

    with FakeHost(tmp_path / "home", plans=PLANS, **FIRST) as host:
        callback = mingle.hf.Callback(home=host.home, name="net")
        trainer = trainer_of(transformers, tmp_path, Net(), [callback, Notes()], lr_scheduler_type="cosine", learning_rate=0.1)
        trainer.train()
        assert callback.swarm is not None and callback.swarm.done
    assert trainer.state.global_step == trainer.state.max_steps == TAKEN
    # The step that ends a round has the next plan already.
    assert [most for _, most, _ in seen] == [80] * 23 + [84] * 30 + [82] * 29
    rates = [rate for _, _, rate in seen]
    assert rates == sorted(rates, reverse=True) or max(after - before for before, after in zip(rates, rates[1:])) < 0.005, rates
    assert rates[-1] == pytest.approx(0.0, abs=1e-6), "the cosine ends with the run"
