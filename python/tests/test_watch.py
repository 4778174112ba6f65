"""Trainings that would silently run without the swarm: each gets a warning or a refusal, with the names of the tensors."""

from __future__ import annotations

import copy
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import wait_until
from fake_host import FakeHost
from torch import nn

import mingle
import mingle.trainer
import mingle.watch
from mingle.tensors import ModelTensors


SOURCES = Path(__file__).parents[1] / "src"

LONGEST_SECONDS = 10.0
"""Longest time from a mistake to its warning."""


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def sgd(parameters: Iterable[nn.Parameter]) -> torch.optim.SGD:
    return torch.optim.SGD(parameters, lr=0.1)


def backward(model: nn.Module) -> None:
    model.zero_grad()
    model(torch.ones(8, 3)).square().mean().backward()


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    backward(model)
    optimizer.step()


class Loop:
    """A training loop in virtual time beside a `Watch` of its model, which looks once in `TICK_SECONDS`."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> None:
        self.now = 0.0
        self._model = model
        self._looked_at = 0.0
        self.watch = mingle.watch.Watch(ModelTensors(model), optimizer, clock=lambda: self.now)
        self._is_told = False

    def spend(self, seconds: float) -> None:
        """Lets time pass."""
        ends = self.now + seconds
        while self._looked_at + mingle.watch.TICK_SECONDS <= ends:
            self._looked_at += mingle.watch.TICK_SECONDS
            self.now = self._looked_at
            self._is_told = self._is_told or self.watch.look()
        self.now = ends

    def move(self, *names: str) -> None:
        """Writes into the parameters with these names, or into all."""
        with torch.no_grad():
            for name, parameter in self._model.named_parameters():
                if not names or name in names:
                    parameter.add_(0.01)

    def count(self) -> None:
        """Counts a step."""
        self.watch.counted()

    def evaluate(self, seconds: float) -> None:
        """Evaluates an average of the weights, which stands in for them meanwhile."""
        self.move()
        self.spend(seconds)
        self.move()


class Sam(torch.optim.Optimizer):
    """Sharpness-aware minimisation (SAM) as published: two half steps, and an optimizer inside."""

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        super().__init__(parameters, {"lr": 0.1})
        self.base_optimizer = torch.optim.SGD(self.param_groups, lr=0.1)

    @torch.no_grad()
    def first_step(self) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.add_(parameter.grad, alpha=0.05)

    def second_step(self) -> None:
        self.base_optimizer.step()

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        assert closure is not None
        self.first_step()
        closure()
        self.second_step()


def test_layers_that_were_unfrozen_after_joining_are_named(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    model = network()
    model[0].requires_grad_(False)
    optimizer = sgd(model[2].parameters())
    with mingle.join(model, optimizer, home=host.home) as swarm:
        model[0].requires_grad_(True)
        optimizer.add_param_group({"params": list(model[0].parameters())})
        while swarm.exchanges < 2:
            train_step(model, optimizer)
    told = [text for text in caplog.messages if "not exchanged" in text]
    assert len(told) == 1 and "`0.weight`, `0.bias`" in told[0]


def test_what_local_names_may_be_unfrozen(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with mingle.join(model, optimizer, home=host.home, local=["0.*"]) as swarm:
        while swarm.exchanges < 1:
            train_step(model, optimizer)
    assert not caplog.messages


def test_layers_and_parameters_that_were_added_after_joining_are_named(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with mingle.join(model, optimizer, home=host.home) as swarm:
        train_step(model, optimizer)
        model.add_module("3", nn.Linear(2, 2))
        optimizer.add_param_group({"params": list(model[3].parameters())})
        while swarm.exchanges < 1:
            train_step(model, optimizer)
        told = [text for text in caplog.messages if "not exchanged" in text]
        assert len(told) == 1 and "`3.weight`, `3.bias`." in told[0], caplog.messages
        model.register_parameter("scale", nn.Parameter(torch.ones(1)))
        model[1].register_buffer("mean", torch.zeros(2))
        model.register_parameter("tied", model[0].weight)  # has a name already
        while swarm.exchanges < 3:
            train_step(model, optimizer)
    told = [text for text in caplog.messages if "not exchanged" in text]
    assert len(told) == 2 and "trainable: `scale`, `1.mean`." in told[1], caplog.messages


def test_a_parameter_that_became_a_computed_one_ends_the_training_with_its_name(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    swarm = mingle.join(model, optimizer, home=host.home)
    torch.nn.utils.parametrizations.weight_norm(model[2])
    with pytest.raises(mingle.LayoutError, match=r"`2.weight` \(removed or replaced\)"):
        swarm.sync()
    swarm.close(send_rest=False)


def test_a_layer_that_was_replaced_after_joining_ends_the_training_with_its_name(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with pytest.raises(mingle.LayoutError, match=r"`2.weight` \(removed or replaced\)"), mingle.join(model, optimizer, home=host.home):
        model[2] = nn.Linear(4, 2)
        for _ in range(4):
            train_step(model, optimizer)
    model = network()
    swarm = mingle.join(model, None, home=host.home)
    model[2].weight = nn.Parameter(torch.ones(3, 4))
    with pytest.raises(mingle.LayoutError, match=r"`2.weight` \(now \[3, 4\], was \[2, 4\]\)"):
        swarm.sync()
    swarm.close(send_rest=False)


def test_an_optimizer_that_was_made_anew_is_told_at_its_first_step(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    model = network()
    swarm = mingle.join(model, sgd(model.parameters()), home=host.home)
    train_step(model, torch.optim.AdamW(model.parameters()))
    assert "a AdamW moved `0.weight`, `0.bias`" in caplog.text and "was given a SGD" in caplog.text
    swarm.close()
    assert "0 exchanges" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_does_not_end_the_training_of_its_parent(host: FakeHost, tmp_path: Path) -> None:
    script = f"""
import os, sys, torch, mingle

model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
swarm = mingle.join(model, optimizer, home={str(host.home)!r})
child = os.fork()
if child == 0:
    try:
        for _ in range(100):
            model(torch.ones(8, 3)).square().mean().backward()
            optimizer.step()
    except mingle.MingleError as error:
        print(error, file=sys.stderr, flush=True)
    swarm.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
with swarm:
    while True:
        optimizer.step()
assert swarm.exchanges == {host.rounds}
"""
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    ended = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert "was forked from the one that joined" in ended.stderr and "0 exchanges" not in ended.stderr
    assert host.sessions == 1 and len(host.changes) == host.rounds


def test_half_steps_of_sam_are_told_and_whole_ones_count(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    model = network()
    optimizer = Sam(model.parameters())
    with mingle.join(model, optimizer, home=host.home) as swarm:
        for _ in range(4):
            backward(model)
            optimizer.step(lambda: backward(model))
        assert swarm.exchanges == 1 and not caplog.messages
    with mingle.join(model, optimizer, home=host.home):
        for _ in range(4):
            backward(model)
            optimizer.first_step()
            backward(model)
            optimizer.second_step()
        assert "a SGD moved" in caplog.text and "was given a Sam" in caplog.text
    assert "0 exchanges" in caplog.text


def test_an_optimizer_of_other_parameters_of_the_model_is_nobodys_business(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    model = network()
    one, other = sgd(model[0].parameters()), sgd(model[2].parameters())
    with mingle.join(model, one, home=host.home):
        for _ in range(4):
            backward(model)
            other.step()
            one.step()
    assert not caplog.messages


def test_steps_over_a_copy_of_the_model_are_told_while_it_trains(
    host: FakeHost, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mingle.watch, "PATIENCE_SECONDS", 0.0)
    model = network()
    optimizer = sgd(model.parameters())
    with mingle.join(model, optimizer, home=host.home):
        another = copy.deepcopy(model)
        others = sgd(another.parameters())
        for _ in range(mingle.watch.FOREIGN_STEPS + 1):
            train_step(another, others)
        assert caplog.text.count("Is a copy of the model trained?") == 1
    caplog.clear()
    with mingle.join(model, optimizer, home=host.home):
        train_step(model, optimizer)
        for _ in range(mingle.watch.FOREIGN_STEPS + 1):
            train_step(another, others)
        assert not caplog.text, "a second network beside the joined one, such as the other half of a GAN"


def test_what_is_no_model_is_refused_before_anything_is_attached(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    for wrong in (optimizer, [model], model.state_dict(), None):
        with pytest.raises(mingle.LayoutError, match="a model is a torch.nn.Module"):
            mingle.join(wrong, optimizer, home=host.home)  # type: ignore[arg-type]
    assert not host.calls


def test_weights_that_move_without_a_counted_step_are_told(
    host: FakeHost, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mingle.watch, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(mingle.watch, "PATIENCE_SECONDS", 0.05)
    model = network()
    swarm = mingle.join(model, None, home=host.home)

    def told_after_another_step() -> bool:
        train_step(model, sgd(model.parameters()))
        return "without a counted step" in caplog.text

    wait_until(told_after_another_step, "the weights move and nobody counts")
    assert "`0.weight`, `0.bias`" in caplog.text
    swarm.close()


@pytest.mark.parametrize("step_s", [0.01, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("before", ["nothing", "steps", "an evaluation", "a pause"])
def test_weights_that_move_uncounted_are_told_within_ten_seconds(caplog: pytest.LogCaptureFixture, step_s: float, before: str) -> None:
    loop = Loop(network())
    for _ in range(0 if before == "nothing" else 20):
        loop.spend(step_s)
        loop.move()
        loop.count()
    if before == "a pause":
        loop.spend(600)
        loop.move()
        loop.count()
    if before == "an evaluation":
        loop.evaluate(60)
        loop.spend(step_s)
        loop.move()
        loop.count()
    began = loop.now
    while not caplog.messages:
        loop.spend(step_s)
        loop.move()
        assert loop.now - began <= LONGEST_SECONDS + step_s, "the first step moves them after its time"
    assert "without a counted step" in caplog.text and "`0.weight`, `0.bias`" in caplog.text


def test_three_uncounted_steps_are_told_where_a_step_takes_longer(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop(network())
    for _ in range(20):
        loop.spend(30)
        loop.move()
        loop.count()
    for _ in range(3):
        assert not caplog.messages
        loop.spend(30)
        loop.move()
    loop.spend(2)
    assert "without a counted step" in caplog.text


def test_no_warning_of_moves_where_each_step_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    for step_s in (0.01, 0.7, 3.0, 20.0):
        loop = Loop(network())
        for step in range(60):
            for name in ("0.weight", "0.bias", "2.weight", "2.bias"):  # by optimizers of their own, or within the backward pass
                loop.spend(step_s / 4)
                loop.move(name)
            loop.count()
            if step % 20 == 0:
                loop.evaluate(60)
    loop = Loop(network())
    for _ in range(10):  # a step that moves all weights again and again
        for _ in range(5):
            loop.spend(1.0)
            loop.move()
        loop.count()
    for seconds in (20, 8, 30):  # a step of two halves, which takes longer each time
        for _ in range(2):
            loop.spend(seconds)
            loop.move()
        loop.count()
    assert not caplog.messages


@pytest.mark.parametrize("step_s", [0.01, 1.0, 4.0])
def test_a_copy_that_is_trained_is_told_within_ten_seconds(caplog: pytest.LogCaptureFixture, step_s: float) -> None:
    model = network()
    loop = Loop(model, sgd(model.parameters()))
    another = copy.deepcopy(model)
    optimizer = sgd(another.parameters())
    loop.watch.start()
    try:
        while not caplog.messages:
            loop.spend(step_s)
            train_step(another, optimizer)
            assert loop.now <= LONGEST_SECONDS
    finally:
        loop.watch.stop()
    assert "Is a copy of the model trained?" in caplog.text


def test_another_network_that_is_trained_first_is_no_copy(caplog: pytest.LogCaptureFixture) -> None:
    model, judge = network(), nn.Linear(3, 1)
    optimizer = sgd(judge.parameters())
    loop = Loop(model, sgd(model.parameters()))
    loop.watch.start()
    try:
        for _ in range(5):
            loop.spend(2.0)
            train_step(judge, optimizer)
    finally:
        loop.watch.stop()
    assert not caplog.messages


def test_a_peer_that_does_not_answer_is_told_within_ten_seconds() -> None:
    assert mingle.trainer.WARNING_SECONDS < LONGEST_SECONDS


def test_weights_that_moved_and_are_dropped_at_an_exchange_are_told(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    model = network()
    with mingle.join(model, None, home=host.home) as swarm:
        train_step(model, sgd(model.parameters()))
        swarm.sync()
        assert not host.changes
    assert caplog.text.count("no step was counted, so this is not sent") == 1 and "`0.weight`, `0.bias`" in caplog.text


def test_steps_of_a_model_that_does_not_move_are_told(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    model, other = network(), network()
    with mingle.join(model, None, home=host.home) as swarm:
        optimizer = sgd(other.parameters())
        while swarm.exchanges < 4:
            train_step(other, optimizer)
            swarm.step()
    assert caplog.text.count("nothing moves") == 1 and "in 3 exchanges (`0.weight`" in caplog.text


def test_an_optimizer_of_another_model_is_refused_before_anything_is_attached(host: FakeHost) -> None:
    model = network()
    with pytest.raises(mingle.LayoutError, match="none of the 4 parameters of the SGD is one of the model"):
        mingle.join(model, sgd(copy.deepcopy(model).parameters()), home=host.home)
    assert not host.calls


def test_an_optimizer_of_a_layer_that_was_replaced_is_told(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    model[2] = nn.Linear(4, 2)
    mingle.join(model, optimizer, home=host.home).close(send_rest=False)
    assert "has 2 parameters that are not in the model" in caplog.text and "`2.weight`, `2.bias`" in caplog.text


def test_a_list_of_optimizers_is_refused_and_a_list_of_one_taken(host: FakeHost) -> None:
    model = network()
    optimizers = [sgd(model[0].parameters()), sgd(model[2].parameters())]
    with pytest.raises(mingle.LayoutError, match=r"2 optimizers, .* call swarm.step\(\) once"):
        mingle.join(model, optimizers, home=host.home)  # type: ignore[arg-type]
    with pytest.raises(mingle.LayoutError, match="the steps of a str cannot be counted"):
        mingle.join(model, "adam", home=host.home)  # type: ignore[arg-type]
    assert not host.calls
    with mingle.join(model, [sgd(model.parameters())], home=host.home) as swarm:  # type: ignore[arg-type]
        assert swarm.total_steps == 20


def test_a_second_model_for_the_same_peer_is_refused_and_the_first_trains_on(host: FakeHost) -> None:
    generator, judge = network(), nn.Linear(2, 1)
    optimizer = sgd(generator.parameters())
    with mingle.join(generator, optimizer, home=host.home) as swarm:
        with pytest.raises(mingle.LayoutError, match="trains `Sequential` with the peer in .* already"):
            mingle.join(judge, sgd(judge.parameters()), home=host.home)
        for _ in range(4):
            train_step(generator, optimizer)
        assert swarm.exchanges == 1
    assert host.sessions == 1


def test_a_model_trains_in_one_swarm_at_a_time(host: FakeHost, tmp_path: Path) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with FakeHost(tmp_path / "other") as other, mingle.join(model, optimizer, home=host.home):
        with pytest.raises(mingle.LayoutError, match="trains as `Sequential` with another peer already"):
            mingle.join(model, optimizer, home=other.home)
        assert not other.calls


def test_names_are_the_same_with_wrappers_at_every_level() -> None:
    class GradSampleModule(nn.Module):
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self._module = module

    names = ModelTensors(network()).names
    model = network()
    model[0] = torch.compile(model[0], backend="eager")  # type: ignore[assignment]
    model[2] = nn.DataParallel(GradSampleModule(model[2]))
    assert ModelTensors(model).names == names
    assert ModelTensors(GradSampleModule(torch.compile(model, backend="eager"))).names == names  # type: ignore[arg-type]
    module = nn.ModuleDict({"module": nn.Linear(1, 1), "_orig_mod": nn.Linear(1, 1)})
    assert ModelTensors(module).names[::2] == ["module.weight", "_orig_mod.weight"], "names of the user's own stay"


@pytest.mark.parametrize("overlap", [False, True])
def test_the_best_model_that_a_loop_loads_at_its_end_is_not_sent_as_a_change(host: FakeHost, caplog: pytest.LogCaptureFixture, overlap: bool) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with mingle.join(model, optimizer, home=host.home, overlap=overlap):
        best = {name: tensor + 7 for name, tensor in model.state_dict().items()}
        for _ in range(6):  # four in a round
            train_step(model, optimizer)
        model.load_state_dict(best)
    assert len(host.changes) == 1 and all(abs(number) < 5 for number in host.changes[0])
    assert "the last 2 steps are not sent: the model was written to after them" in caplog.text
    assert torch.equal(model[0].weight, best["0.weight"]), "it stays in the model"  # type: ignore[index]


def test_a_loop_that_ends_in_its_first_round_is_no_silence(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with caplog.at_level(logging.WARNING), mingle.join(model, optimizer, home=host.home):
        train_step(model, optimizer)
    assert not caplog.messages and len(host.changes) == 1


def test_the_length_of_the_run_is_known_for_schedules(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with mingle.join(model, optimizer, home=host.home) as swarm:
        assert (swarm.rounds, swarm.total_steps, swarm.steps_left) == (5, 20, 20)
        for _ in range(6):
            train_step(model, optimizer)
        assert (swarm.total_steps, swarm.steps_left) == (20, 14)
    with mingle.join(model, optimizer, home=host.home) as late:
        assert late.round == 2 and late.total_steps == 12, "a script that comes later has the rest"


def test_the_wish_to_end_is_told_and_told_again_to_a_peer_that_has_restarted(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with mingle.join(model, optimizer, home=host.home) as swarm:
        swarm.ask_to_end()
        assert host.asked_to_end == [True]
        host.fail_next("exchange", "restart after")
        for _ in range(4):
            train_step(model, optimizer)
        assert host.asked_to_end == [True, True], "the restarted peer knew nothing of it"
        swarm.ask_to_end(False)
        host.has_operator = False
        with pytest.raises(mingle.Refused, match="no operator"):
            swarm.ask_to_end()
    assert host.asked_to_end == [True, True, False]


@pytest.mark.parametrize("how", ["assign", "replace"])
def test_a_parameter_that_was_replaced_under_its_optimizer_is_told(host: FakeHost, how: str) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    name, before = next(iter(model.named_parameters()))
    with pytest.raises(mingle.LayoutError, match=f"optimizer trains the former ones: .*`{name}`"):
        with mingle.join(model, optimizer, home=host.home):
            train_step(model, optimizer)
            if how == "assign":
                model.load_state_dict({key: value.clone() for key, value in model.state_dict().items()}, assign=True)
            else:
                module, _, attribute = name.rpartition(".")
                setattr(model.get_submodule(module), attribute, nn.Parameter(before.detach().clone()))
            for _ in range(8):
                train_step(model, optimizer)


def test_a_group_that_leaves_the_optimizer_is_no_replaced_parameter(host: FakeHost) -> None:
    model = network()
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD([{"params": parameters[:1]}, {"params": parameters[1:]}], lr=0.1)
    with mingle.join(model, optimizer, home=host.home):
        train_step(model, optimizer)
        del optimizer.param_groups[1]
        for _ in range(30):
            train_step(model, optimizer)
    assert host.node.round == host.rounds
