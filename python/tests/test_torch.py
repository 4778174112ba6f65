"""mingle.join: an ordinary training loop in a swarm of one."""

from __future__ import annotations

import io
import os
import re
import threading
import traceback
import warnings
import zipfile
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import wait_until
from fake_host import FakeHost
from torch import nn

import mingle
from mingle.client import MOST_METRICS_BYTES
from mingle.optimizer_state import OptimizerState
from mingle.shared_moments import begin_with
from mingle.tensors import ModelTensors


SIZE = 42
"""Number of exchanged elements of `network`."""


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


def sgd(model: nn.Module, lr: float = 0.1, **options: Any) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=lr, **options)


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int = 0) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(8, 3, generator=generator).to(next(model.parameters()).dtype)
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def vector_of(model: nn.Module) -> torch.Tensor:
    tensors = ModelTensors(model)
    vector = torch.empty(tensors.layout.dimension)
    tensors.store(vector)
    return vector


def node_vector(host: FakeHost) -> torch.Tensor:
    assert host.node.vector is not None
    return torch.tensor(list(host.node.vector))


def test_a_loop_trains_until_the_run_is_over(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model)
    steps = 0
    with mingle.join(model, optimizer, home=host.home, name="test", samples=range(100)) as swarm:
        assert swarm.steps == 4 and swarm.round == 0 and not swarm.done
        while True:
            steps += 1
            train_step(model, optimizer, steps)
    assert steps == 5 * 4
    assert swarm.done and swarm.exchanges == 5 and swarm.round == 5
    assert torch.equal(vector_of(model), node_vector(host)), "the final model is loaded"
    assert host.attached is None, "it has detached"
    assert host.calls[0].name == "attach"
    train_step(model, optimizer)  # nothing of it is left in the optimizer


def test_a_swarm_of_one_trains_like_no_swarm(host: FakeHost) -> None:
    alone, model = network(), network()
    optimizer = sgd(alone, momentum=0.9)
    for step in range(20):
        train_step(alone, optimizer, step)
    optimizer = sgd(model, momentum=0.9)
    with mingle.join(model, optimizer, home=host.home):
        for step in range(21):
            train_step(model, optimizer, step)
    assert torch.allclose(vector_of(alone), vector_of(model), atol=1e-5)


def test_without_with_the_end_is_an_exception_that_says_what_to_do(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model)
    swarm = mingle.join(model, optimizer, home=host.home)
    with pytest.raises(mingle.SwarmDone, match="the run is over after round 5, and the final model is loaded: put the training into"):
        for step in range(100):
            train_step(model, optimizer, step)
    assert step == 19
    train_step(model, optimizer)
    swarm.close()


def test_a_run_that_is_over_gives_the_final_model(tmp_path: Path) -> None:
    with FakeHost(tmp_path / "home", rounds=0, model=[7.0] * SIZE) as host:
        model = network()
        optimizer = sgd(model)
        with mingle.join(model, optimizer, home=host.home) as swarm:
            assert swarm.done
            train_step(model, optimizer)
            pytest.fail("the first step ends the block")
        assert torch.equal(vector_of(model), torch.full((SIZE,), 7.0))


def test_the_home_is_that_of_the_environment_or_of_the_user(host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINGLE_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(mingle.MingleError, match="MINGLE_HOME"):
        mingle.join(network(), None)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "mingle").symlink_to(host.home)
    mingle.join(network(), None).close()
    monkeypatch.setenv("MINGLE_HOME", str(host.home))
    mingle.join(network(), None).close()
    assert host.node.name == "Sequential" and host.sessions == 2


def test_the_swarms_weights_are_loaded_in_place(tmp_path: Path) -> None:
    weights = [float(number) for number in range(SIZE)]
    with FakeHost(tmp_path / "home", model=weights) as host:
        model = network()
        first = next(model.parameters())
        with mingle.join(model, sgd(model), home=host.home, initial="take"):
            assert first is next(model.parameters())
            assert first.flatten().tolist() == weights[:12]
        assert not any(call.name == "initial" for call in host.calls)


def test_steps_that_were_not_taken_do_not_count(host: FakeHost) -> None:
    """Gradient accumulation steps less often than batches come, and a scaler skips steps that overflow."""
    model = network()
    optimizer = sgd(model)
    with mingle.join(model, optimizer, home=host.home) as swarm:
        for batch in range(16):
            model(torch.randn(8, 3)).mean().backward()
            if batch % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
        assert swarm.exchanges == 1


def test_parameters_and_float_buffers_are_exchanged_and_integer_buffers_are_not() -> None:
    names = ModelTensors(network()).names
    assert names == ["0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias", "1.running_mean", "1.running_var"]


def test_frozen_parameters_and_local_tensors_stay_out() -> None:
    model = network()
    model[0].weight.requires_grad = False  # type: ignore[union-attr,index]
    assert ModelTensors(model, local=["1.*", "3.bias"]).names == ["0.bias", "3.weight"]
    with pytest.raises(mingle.LayoutError, match=r"local=\['head.\*'\] fits no tensor"):
        ModelTensors(model, local=["head.*"])
    with pytest.raises(mingle.LayoutError, match="give a list"):
        ModelTensors(model, local="1.*")


def test_buffers_that_a_state_dict_leaves_out_are_not_exchanged() -> None:
    model = nn.Linear(2, 2)
    model.register_buffer("mask", torch.full((2, 2), float("-inf")), persistent=False)
    assert ModelTensors(model).names == ["weight", "bias"]


def test_a_model_may_be_moved_after_it_joined(host: FakeHost) -> None:
    model = network()
    with mingle.join(model, None, home=host.home) as swarm:
        model.double()  # new buffers, as model.to(device) makes them
        with torch.no_grad():
            model[1].running_mean.add_(1.0)  # type: ignore[union-attr,operator]
        swarm.step()
        swarm.sync()
    assert list(host.changes[0]) == [0.0] * 34 + [1.0] * 4 + [0.0] * 4


@pytest.mark.parametrize("share_storage", [False, True])
def test_tied_weights_occur_once(share_storage: bool) -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 5, bias=False))
    model[1].weight = nn.Parameter(model[0].weight.data) if share_storage else model[0].weight  # type: ignore[arg-type,union-attr]
    assert ModelTensors(model).names == ["0.weight"]


def test_names_are_the_same_in_a_wrapper() -> None:
    model = network()
    assert ModelTensors(nn.DataParallel(model)).names == ModelTensors(model).names
    assert ModelTensors(torch.compile(model)).names == ModelTensors(model).names  # type: ignore[arg-type]


def test_tensors_that_cannot_be_exchanged_are_named() -> None:
    def complaint(model: nn.Module) -> str:
        with pytest.raises(mingle.LayoutError) as error:
            ModelTensors(model)
        return str(error.value)

    model = nn.Linear(2, 2)
    model.register_parameter("phase", nn.Parameter(torch.zeros(2, dtype=torch.complex64)))
    assert complaint(model).startswith("`phase` is complex")
    model = nn.Linear(2, 2)
    model.register_parameter("table", nn.Parameter(torch.zeros(2, 2).to_sparse()))
    assert complaint(model).startswith("`table` is sparse")
    assert complaint(nn.Linear(2, 2, device="meta")).startswith("`weight` has no data (device meta)")
    assert complaint(nn.LazyLinear(2)).startswith("`weight` has no shape yet")
    assert complaint(nn.Linear(2, 2).requires_grad_(False)).startswith("there is nothing to exchange")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_rounding_of_other_types_is_no_change(host: FakeHost, dtype: torch.dtype) -> None:
    """Without training, others add an amount that a bfloat16 cannot hold beside 1: it stays in the vector, which is f32."""
    host.drift = 0.001
    model = nn.Linear(1, 1, bias=False).to(dtype)
    with torch.no_grad():
        model.weight.fill_(1.0)
    with mingle.join(model, None, home=host.home) as swarm:
        for _ in range(4):
            swarm.step()
            swarm.sync()
    assert [list(change) for change in host.changes] == [[0.0]] * 4
    assert node_vector(host).item() == pytest.approx(1.004, abs=1e-6)


def test_a_model_that_is_cast_after_it_joined_is_refused(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model, lr=0.0)
    with mingle.join(model, optimizer, home=host.home), pytest.raises(mingle.LayoutError, match="cast to bfloat16 since mingle.join"):
        model.bfloat16()
        for _ in range(4):
            optimizer.step()
    assert host.changes == []
    with mingle.join(model, optimizer, home=host.home) as swarm:
        model.double()
        optimizer.step()
        swarm.sync()
    assert len(host.changes) == 1


def test_a_peer_that_is_stopped_is_not_the_end_of_the_run(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    model = network()
    optimizer = sgd(model)
    with mingle.join(model, optimizer, home=host.home) as swarm:
        for step in range(swarm.round + 100):
            if swarm.exchanges == 2:
                host.interrupt()
            train_step(model, optimizer, step)
    assert swarm.done and swarm.stopped and swarm.exchanges == 2
    assert torch.equal(vector_of(model), node_vector(host))
    assert "the peer was stopped in round 2: the last 4 steps are lost" in caplog.text
    assert "stopped after 2 of 5 rounds" in caplog.text


def test_a_change_that_is_not_finite_is_refused_with_the_tensor(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model)
    with mingle.join(model, optimizer, home=host.home) as swarm:
        start = vector_of(model)
        with torch.no_grad():
            model[0].bias[2] = float("nan")  # type: ignore[index]
        with pytest.raises(mingle.NotFinite, match=r"in `0.bias` \(1 of 4\), so the peer has refused it: lower the"):
            swarm.step()
            swarm.sync()
        assert [call.name for call in host.calls].count("exchange") == 1, "it was sent"
        swarm.reset()
        assert torch.equal(vector_of(model), start)
        for step in range(4):
            train_step(model, optimizer, step)
        assert swarm.exchanges == 1


def test_a_model_that_is_not_finite_does_not_join(host: FakeHost) -> None:
    model = network()
    with torch.no_grad():
        model[0].weight[0, 0] = float("inf")  # type: ignore[index]
    with pytest.raises(mingle.NotFinite, match="the model is not finite in `0.weight`"):
        mingle.join(model, sgd(model), home=host.home)


def test_evaluations_see_their_model_and_leave_no_trace(tmp_path: Path) -> None:
    with FakeHost(tmp_path / "home", evaluate_every=2, rounds=4) as host:
        model = network()
        seen: list[torch.Tensor] = []

        def evaluate() -> dict[str, object]:
            assert not model.training and not torch.is_grad_enabled()
            seen.append(vector_of(model))
            assert torch.equal(seen[-1], node_vector(host))
            return {"accuracy": (0.5, 360), "loss": torch.tensor(2.0)}

        optimizer = sgd(model)
        model[1].eval()  # type: ignore[index]
        with mingle.join(model, optimizer, home=host.home, evaluate=evaluate):
            assert model.training and not model[1].training  # type: ignore[index]
            for step in range(100):
                train_step(model, optimizer, step)
        assert len(seen) == len(host.evaluations) == 2
        assert host.evaluations[0] == {"accuracy": [0.5, 360.0], "loss": [2.0, 1.0]}


def test_a_refusal_is_not_hidden_below_frames_of_the_package(host: FakeHost) -> None:
    mingle.Exchange(host.home, "test", array("f", [0.0, 0.0])).close()
    model = network()
    calls: dict[str, Callable[[], object]] = {
        "torch.py": lambda: mingle.join(model, sgd(model), home=host.home, name="test"),
        "exchange.py": lambda: mingle.Exchange(host.home, "test", array("f", [0.0])),
    }
    for file, call in calls.items():
        with pytest.raises(mingle.Conflict, match="in the swarm") as refused:
            call()
        frames = traceback.extract_tb(refused.value.__traceback__)
        assert [Path(frame.filename).name for frame in frames] == ["test_torch.py", "test_torch.py", file]
        assert refused.value.__suppress_context__ and refused.value.__cause__ is None


def test_reports_reach_the_peer(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model)
    with mingle.join(model, optimizer, home=host.home) as swarm:
        for step in range(4):
            swarm.report(loss=torch.tensor(float(step), requires_grad=True), val_accuracy=(0.25 * step, 360))
            train_step(model, optimizer, step)
        assert host.losses == [1.5] and host.metrics == {"val_accuracy": [0.75, 360.0]}


def test_a_metric_never_ends_a_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spoilt = {
        "auc": float("nan"),
        "per_class": [0.3, 0.7],
        "matrix": torch.ones(2, 2),
        "words": "good",
        "none": None,
        "weight": (0.5, 0),
        "three": (1, 2, 3),
        "n" * 101: 1.0,
    }
    with FakeHost(tmp_path / "home", evaluate_every=1, rounds=3) as host:
        model = network()
        optimizer = sgd(model)
        with mingle.join(model, optimizer, home=host.home, evaluate=lambda: {**spoilt, "f1": 0.5}) as swarm:
            for step in range(20):
                swarm.report(loss=[1, 2], good=0.5, **spoilt)
                swarm.report(loss=torch.ones(2))
                swarm.report(**{f"metric_{index}": 1.0 for index in range(1000)})
                train_step(model, optimizer, step)
        assert swarm.done and host.evaluations == [{"f1": [0.5, 1.0]}] * 3
        assert host.metrics["good"] == [0.5, 1.0] and not spoilt.keys() & host.metrics.keys() and not host.losses
    assert caplog.text.count("metric `auc` is left out") == 1
    assert "metric `per_class` is left out, here and whenever that is so: [0.3, 0.7] is no number" in caplog.text
    assert caplog.text.count("more than 8192 bytes") == 1


@pytest.mark.parametrize(
    ("evaluate", "complaint"),
    [
        (lambda: 1 / 0, "the evaluation has failed, so its metrics are left out, and the training goes on"),
        (lambda: 0.97, "metric `evaluate` is left out, here and whenever that is so: 0.97 is no dict of metrics"),
        (lambda: None, "None is no dict of metrics"),
        (lambda: {f"accuracy of class {index}": 0.5 for index in range(1000)}, "and those after it are left out"),
    ],
)
def test_an_evaluation_never_ends_a_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, evaluate: Callable[[], Any], complaint: str
) -> None:
    with FakeHost(tmp_path / "home", evaluate_every=1, rounds=3) as host:
        model = network()
        optimizer = sgd(model)
        with mingle.join(model, optimizer, home=host.home, evaluate=evaluate) as swarm:
            for step in range(20):
                train_step(model, optimizer, step)
        assert swarm.done and len(host.evaluations) == 3
        assert all(call.size <= MOST_METRICS_BYTES for call in host.calls if call.name == "evaluation")
        assert model.training
    assert complaint in caplog.text and caplog.text.count("Traceback") == caplog.text.count("ZeroDivisionError: ") <= 1


def test_sync_exchanges_now_and_close_sends_the_rest(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model)
    with mingle.join(model, optimizer, home=host.home) as swarm:
        train_step(model, optimizer)
        swarm.sync()
        assert swarm.round == 1 and host.calls[-1].query["steps"] == "1"
        train_step(model, optimizer)
        train_step(model, optimizer)
    assert [call.query.get("steps") for call in host.calls if call.name == "exchange"] == ["1", "2"]
    assert host.calls[-1].name == "detach"


def test_an_error_in_the_loop_sends_nothing_and_detaches(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model)
    with pytest.raises(ZeroDivisionError), mingle.join(model, optimizer, home=host.home):
        train_step(model, optimizer)
        raise ZeroDivisionError
    assert host.changes == [] and host.attached is None


def test_a_time_box_ends_a_round_early(tmp_path: Path) -> None:
    with FakeHost(tmp_path / "home", seconds=0.0) as host:
        model = network()
        optimizer = sgd(model)
        with mingle.join(model, optimizer, home=host.home) as swarm:
            train_step(model, optimizer)
            assert swarm.round == 1 and host.calls[-1].query["steps"] == "1"


def test_save_writes_the_state_dict(host: FakeHost, tmp_path: Path) -> None:
    model = network()
    with mingle.join(model, None, home=host.home) as swarm:
        swarm.save(tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=True)
    assert torch.equal(loaded["0.weight"], model.state_dict()["0.weight"])


@pytest.mark.parametrize("fault", ["close", "close after", "cut", "restart", "restart after"])
def test_the_training_outlives_its_peer(host: FakeHost, fault: str) -> None:
    host.fail_next("exchange", fault, fault)
    model = network()
    optimizer = sgd(model)
    with mingle.join(model, optimizer, home=host.home):
        for step in range(100):
            train_step(model, optimizer, step)
    assert host.node.round == 5
    assert torch.equal(vector_of(model), node_vector(host))


def test_a_run_that_ends_while_the_model_trains_leaves_the_final_model(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model)
    with mingle.join(model, optimizer, home=host.home) as swarm:
        for step in range(6):
            train_step(model, optimizer, step)
        host.finish()
        for step in range(6):
            train_step(model, optimizer, step)
        pytest.fail("the step that finds the peer gone ends the block")
    assert swarm.done and swarm.round == 1
    assert torch.equal(vector_of(model), node_vector(host))


def test_a_model_of_an_earlier_run_is_not_the_end_of_this_one(host: FakeHost) -> None:
    model = network()
    mingle.join(model, None, home=host.home).close()
    host.finish()
    for file in ("model.safetensors", "summary.json"):
        os.utime(host.home / file, (1e9, 1e9))
    host.start()
    swarm = mingle.join(model, None, home=host.home, timeout=0.3)
    host.stop()
    with pytest.raises(mingle.TimedOut):
        swarm.sync()


def test_joining_again_replaces_the_former_one(host: FakeHost) -> None:
    """A notebook cell is run again, with the same optimizer."""
    model = network()
    optimizer = sgd(model)
    former = mingle.join(model, optimizer, home=host.home)
    train_step(model, optimizer)
    with mingle.join(model, optimizer, home=host.home) as swarm:
        for step in range(100):
            train_step(model, optimizer, step)
    assert swarm.exchanges == 5 and former.exchanges == 0 and host.sessions == 2
    former.close()


def test_without_a_peer_the_wait_ends(tmp_path: Path) -> None:
    with pytest.raises(mingle.TimedOut, match="start the peer with"):
        mingle.join(network(), None, home=tmp_path, timeout=0.2)


def test_alone_ok_trains_on_alone(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model)
    with mingle.join(model, optimizer, home=host.home, timeout=0.2, alone_ok=True) as swarm:
        train_step(model, optimizer)
        host.stop()
        with pytest.warns(RuntimeWarning, match="goes on alone"):
            for step in range(3):
                train_step(model, optimizer, step)
        before = vector_of(model)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for step in range(8):
                train_step(model, optimizer, step)
        assert swarm.alone and not torch.equal(vector_of(model), before)
    with pytest.warns(RuntimeWarning, match="goes on alone"):
        assert mingle.join(network(), None, home=host.home, timeout=0.1, alone_ok=True).alone


def test_overlap_trains_on_while_the_exchange_is_under_way(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model)
    swarm = mingle.join(model, optimizer, home=host.home, overlap=True)
    host.wait("neighbours")
    for step in range(6):
        train_step(model, optimizer, step)
    wait_until(lambda: host.changes, "the change is there")
    before = vector_of(model)
    assert swarm.round == 0
    with host._lock:
        assert host.node.vector is not None
        for index in range(SIZE):
            host.node.vector[index] += 2.0  # what neighbours sent
    host.wait(None)
    flight = swarm._flight
    assert flight is not None
    wait_until(lambda: flight.is_over, "the answer is there")
    learning_rate, optimizer.param_groups[0]["lr"] = optimizer.param_groups[0]["lr"], 0.0
    model.eval()  # no running mean moves
    train_step(model, optimizer)
    assert swarm.round == 1
    assert torch.allclose(vector_of(model), before + 2.0, atol=1e-5), "the weights were shifted by what the neighbours sent"
    optimizer.param_groups[0]["lr"] = learning_rate
    with swarm:
        model.train()
        for step in range(100):
            train_step(model, optimizer, step)
    assert swarm.done and torch.equal(vector_of(model), node_vector(host))


def test_overlap_counts_each_step_once(tmp_path: Path) -> None:
    """In a swarm of one, all changes together are the training without a swarm."""
    with FakeHost(tmp_path / "home", rounds=1000) as host:
        alone, model = network(), network()
        optimizer = sgd(alone)
        for step in range(43):
            train_step(alone, optimizer, step)
        optimizer = sgd(model)
        with mingle.join(model, optimizer, home=host.home, overlap=True):
            for step in range(43):
                train_step(model, optimizer, step)
        assert torch.allclose(vector_of(alone), node_vector(host), atol=1e-4)
        assert sum(int(call.query["steps"]) for call in host.calls if call.name == "exchange") == 43


def test_a_change_that_is_not_finite_is_told_with_overlap_too(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model)
    with pytest.raises(mingle.NotFinite, match="`0.bias`"), mingle.join(model, optimizer, home=host.home, overlap=True):
        train_step(model, optimizer)
        with torch.no_grad():
            model[0].bias[2] = float("nan")  # type: ignore[index]
        for step in range(20):
            train_step(model, optimizer, step)


def test_the_optimizer_goes_on_after_a_restart_of_the_trainer(host: FakeHost) -> None:
    def momentum(optimizer: torch.optim.Optimizer) -> torch.Tensor:
        return torch.cat([state["momentum_buffer"].flatten() for state in optimizer.state.values()])

    model = network()
    optimizer = sgd(model, momentum=0.9)
    swarm = mingle.join(model, optimizer, home=host.home, keep_optimizer=True)
    for step in range(4):
        train_step(model, optimizer, step)
    assert swarm.round == 1
    kept = momentum(optimizer)
    model = network()
    optimizer = sgd(model, momentum=0.9)
    with mingle.join(model, optimizer, home=host.home, keep_optimizer=True):
        assert torch.equal(momentum(optimizer), kept)


def test_a_late_site_begins_with_the_moments_of_a_member_and_with_its_own_settings(tmp_path: Path) -> None:
    def moments(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
        return [torch.as_tensor(value) for state in optimizer.state.values() for value in state.values()]

    with FakeHost(tmp_path / "home") as host:
        model = network()
        donor = torch.optim.AdamW(model.parameters(), lr=0.1)
        with mingle.join(model, donor, home=host.home, keep_optimizer=True, share_optimizer=True):
            train_step(model, donor)
            for step in range(3):
                train_step(model, donor, step)
        assert host.attached is None and len(host.node.state) > 0
        given, host.node.state = host.node.state, b""
    for keep in (True, False):
        with FakeHost(tmp_path / f"late{keep}") as host:
            host.given_state = given
            late = network()
            optimizer = torch.optim.AdamW(late.parameters(), lr=0.001, weight_decay=0.5)
            with mingle.join(late, optimizer, home=host.home, keep_optimizer=True, share_optimizer=keep):
                assert host.attached is not None and host.attached["shares_state"] is keep
                if not keep:
                    assert not optimizer.state, "it did not ask"
                    continue
                assert all(torch.equal(one, other) for one, other in zip(moments(optimizer), moments(donor), strict=True))
                assert [(group["lr"], group["weight_decay"]) for group in optimizer.param_groups] == [(0.001, 0.5)]


SPOILT: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda state: state["state"][0].update(exp_avg_sq=-state["state"][0]["exp_avg_sq"]), "exp_avg_sq of parameter 0 is negative"),
    (lambda state: state["state"][1]["exp_avg"].fill_(float("nan")), "exp_avg of parameter 1 is not finite"),
    (lambda state: state["state"][0].update(exp_avg=state["state"][0]["exp_avg"].double().fill_(1e300)), "exp_avg of parameter 0 is not finite"),
    (lambda state: state["state"][0]["exp_avg"].fill_(1e6), "exp_avg of parameter 0 is larger than its squares allow"),
    (lambda state: state["state"][0].update(exp_avg=torch.zeros(2)), r"exp_avg of parameter 0 is \[2\]"),
    (lambda state: state["state"][0].update(exp_avg=torch.tensor(1.0)), r"exp_avg of parameter 0 is \[\]"),
    (lambda state: state["state"][0].update(exp_avg=None), "exp_avg of parameter 0 is NoneType"),
    (lambda state: state["state"][0].update(step=torch.zeros(4, 3)), "step of parameter 0 is no count"),
    (lambda state: state["state"][0].update(step=None), "the state that a member gave does not fit"),
    (lambda state: state["state"][0].pop("exp_avg"), "it has exp_avg_sq, step for parameter 0, and this optimizer exp_avg, exp_avg_sq, step"),
    (lambda state: state["state"].update({7: state["state"][0]}), "moments of a parameter without a name"),
    (lambda state: state["mingle_names"].reverse() or state["mingle_names"].append("x"), "an optimizer of other parameters"),
    (lambda state: state["state"].clear(), "it has seen no step"),
    (lambda state: state.clear(), "'state'"),
]


def shared_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> OptimizerState:
    return OptimizerState(optimizer, True, ModelTensors(model).names_of(optimizer))


def saved(state: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def trained_adam() -> tuple[nn.Module, torch.optim.AdamW]:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    train_step(model, optimizer)
    return model, optimizer


@pytest.mark.parametrize(("spoilt", "why"), SPOILT)
def test_what_is_no_state_of_such_an_optimizer_is_left_out_with_the_reason(
    spoilt: Callable[[dict[str, Any]], Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = torch.load(io.BytesIO(shared_state(*trained_adam()).to_bytes()), weights_only=True)
    spoilt(theirs)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    for given in (saved(theirs), saved(theirs)[:100], b"", b"cos\nsystem\n(S'true'\ntR."):
        assert not begin_with(shared_state(model, optimizer), given, 100_000)
        assert not optimizer.state
    assert re.search(why, caplog.text)
    assert caplog.text.count("the optimizer begins anew: the state that a member gave does not fit") == 4
    train_step(model, optimizer)


def test_a_state_is_taken_by_the_names_of_the_parameters_and_with_the_options_of_their_groups() -> None:
    def in_groups(model: nn.Module, *layers: int) -> torch.optim.SGD:
        return torch.optim.SGD([{"params": model[layer].parameters(), "momentum": 0.9} for layer in layers], lr=0.1)  # type: ignore[index]

    model, late = network(), network()
    donor, optimizer = in_groups(model, 0, 1, 3), in_groups(late, 3, 1, 0)
    train_step(model, donor)
    assert begin_with(shared_state(late, optimizer), shared_state(model, donor).to_bytes(), 100_000)
    for (_, one), (_, other) in zip(model.named_parameters(), late.named_parameters()):
        assert torch.equal(donor.state[one]["momentum_buffer"], optimizer.state[other]["momentum_buffer"])


def test_a_state_that_unpacks_to_more_than_there_is_room_for_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    state = shared_state(*trained_adam())
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(state.to_bytes())) as plain, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as deflated:
        for entry in plain.namelist():
            deflated.writestr(entry, plain.read(entry))
    model = network()
    other = shared_state(model, torch.optim.AdamW(model.parameters()))
    assert not begin_with(other, packed.getvalue(), 100_000) and "it is compressed" in caplog.text
    assert not begin_with(other, state.to_bytes(), 1000) and "it unpacks to more than 1000 bytes" in caplog.text


def test_a_shared_optimizer_has_to_be_kept_and_none_of_what_stays_here(host: FakeHost) -> None:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters())
    with pytest.raises(mingle.LayoutError, match="share_optimizer shares what keep_optimizer keeps: give both"):
        mingle.join(model, optimizer, home=host.home, share_optimizer=True)
    with pytest.raises(mingle.LayoutError, match=r"the moments of a parameter of shape \[4\] that stays here"):
        mingle.join(model, optimizer, home=host.home, keep_optimizer=True, share_optimizer=True, local=["0.bias"])
    assert not host.calls, "nothing was attached"


def test_a_state_that_the_peer_has_no_room_for_is_refused_with_the_sizes(tmp_path: Path) -> None:
    model = nn.Linear(200, 200)
    with FakeHost(tmp_path / "home", most_state_bytes=4 * 40_200 + 65_528) as host:
        with pytest.raises(mingle.LayoutError, match=r"state of AdamW takes about 3\d{5} bytes, and the peer keeps at most 226328: use"):
            mingle.join(model, torch.optim.AdamW(model.parameters()), home=host.home, keep_optimizer=True)
        optimizer = torch.optim.AdamW(model.parameters())
        with mingle.join(model, optimizer, home=host.home, keep_optimizer="bfloat16"):
            for _ in range(4):
                optimizer.zero_grad()
                model(torch.randn(2, 200)).mean().backward()
                optimizer.step()
        assert 0 < len(host.node.state) <= host.most_state_bytes
        other = torch.optim.AdamW(model.parameters())
        mingle.join(model, other, home=host.home, keep_optimizer="bfloat16").close()
        moments = [[state["exp_avg"] for state in each.state.values()] for each in (optimizer, other)]
        assert all(torch.allclose(one, two, rtol=0.01) for one, two in zip(*moments))


def test_a_loader_with_workers_works(tmp_path: Path) -> None:
    with FakeHost(tmp_path / "home", rounds=4) as host:
        model = network()
        optimizer = sgd(model)
        data = torch.utils.data.TensorDataset(torch.randn(64, 3))
        for overlap in (False, True):
            host.node.round = 0
            with mingle.join(model, optimizer, home=host.home, overlap=overlap) as swarm:
                while True:
                    for (x,) in torch.utils.data.DataLoader(data, batch_size=8, num_workers=4, multiprocessing_context="fork"):
                        optimizer.zero_grad()
                        model(x).square().mean().backward()
                        optimizer.step()
            assert swarm.done


def test_the_peer_may_stop_while_the_model_trains(host: FakeHost) -> None:
    model = network()
    optimizer = sgd(model)
    with mingle.join(model, optimizer, home=host.home) as swarm:
        train_step(model, optimizer)
        host.stop(leave_socket=True)
        train_step(model, optimizer)
        threading.Timer(0.2, host.start).start()
        for step in range(100):
            train_step(model, optimizer, step)
    assert swarm.done and host.sessions == 2
