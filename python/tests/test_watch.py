"""Trainings that would silently run without the swarm: each gets a warning or a refusal, with the names of the tensors."""

from __future__ import annotations

import copy
import logging
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


def test_warnings_come_within_ten_seconds() -> None:
    assert mingle.watch.TICK_SECONDS + mingle.watch.PATIENCE_SECONDS < 10
    assert mingle.trainer.WARNING_SECONDS < 10


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
