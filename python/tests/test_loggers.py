"""Loggers of a training: the numbers that reach them, the libraries, and that none of them ends a training."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from conftest import wait_until
from fake_host import FakeHost
from kept_logger import Kept, read_lines
from torch import nn

import mingle
import mingle.recording

STATUS = {
    "disagreement": 0.25,
    "contraction": {"observed": None, "forecast": 0.5},
    "weight": {"units": 1 << 39, "value": 0.5, "share": 2.0},
    "sent_bytes": 3_456_789,
    "received_bytes": 1_000_000,
}
OF_STATUS = {
    "swarm/disagreement": 0.25,
    "swarm/weight": 0.5,
    "swarm/weight_share": 2.0,
    "swarm/sent_megabytes": 3.456789,
    "swarm/received_megabytes": 1.0,
}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[FakeHost]:
    """A host of 5 rounds of 4 steps with a status, which orders an evaluation every second round."""
    with FakeHost(tmp_path / "home", evaluate_every=2) as host:
        host.status = STATUS
        yield host


def train(host: FakeHost, log_to: Any, each_step: Callable[[mingle.Swarm, int], None] = lambda swarm, step: None, **options: Any) -> mingle.Swarm:
    """Trains a line until the run is over; its loss is the number of the step."""
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = 0
    with mingle.join(model, optimizer, home=host.home, log_to=log_to, evaluate=lambda: {"error": (0.5, 10)}, **options) as swarm:
        while True:
            step += 1
            model.zero_grad()
            model(torch.ones(1, 1)).square().mean().backward()
            swarm.report(loss=step)
            each_step(swarm, step)
            optimizer.step()
    return swarm


def library(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> Any:
    """A module in place of a library."""
    module = ModuleType(name)
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def run_script(script: str, *arguments: str) -> None:
    """Runs a Python script in a process of its own, which must succeed."""
    tests = Path(__file__).parent
    environment = {"PYTHONPATH": f"{tests.parent / 'src'}:{tests}", "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    ended = subprocess.run([sys.executable, "-c", script, *arguments], env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


def test_each_round_has_its_numbers(host: FakeHost) -> None:
    kept, another = Kept(), Kept()
    train(host, [kept, another], lambda swarm, step: swarm.report(rate=1 / step, share=(step, 7)))
    expected: list[tuple[int, dict[str, float]]] = [(0, {"swarm/evaluation/error": 0.5, **OF_STATUS})]
    for round in range(1, 6):
        last_step = 4 * round
        trained = {
            "swarm/steps": last_step,
            "swarm/train/loss": last_step - 1.5,
            "swarm/reported/rate": 1 / last_step,
            "swarm/reported/share": last_step,
            "swarm/last_factor": 1.0,
        }
        expected.append((round, trained | ({"swarm/evaluation/error": 0.5} if round in (2, 4) else {}) | OF_STATUS))
    assert kept.records == another.records == expected
    assert kept.calls == ["open", "close"]


def test_with_overlap_each_round_has_its_own_steps(host: FakeHost) -> None:
    kept = Kept()
    train(host, kept, overlap=True)
    steps, losses = kept.of("swarm/steps"), kept.of("swarm/train/loss")
    assert list(steps) == list(losses) == [1, 2, 3, 4, 5]
    bounds = [0, *steps.values()]
    for round, loss in losses.items():
        begin, end = bounds[round - 1], bounds[round]
        assert loss == pytest.approx((begin + 1 + end) / 2), (steps, losses)


def test_a_script_that_comes_later_logs_at_the_rounds_of_the_run(host: FakeHost) -> None:
    first, second = Kept(), Kept()

    def stop_in_round_three(swarm: mingle.Swarm, step: int) -> None:
        if swarm.round == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(host, first, stop_in_round_three)
    train(host, second)
    assert [round for round, _ in first.records] == [0, 1, 2, 3]
    assert first.calls == ["open", "close"]
    assert [round for round, _ in second.records] == [3, 4, 5]


def test_metrics_that_come_after_the_last_exchange_are_logged(host: FakeHost) -> None:
    kept = Kept()
    model = nn.Linear(1, 1)
    with mingle.join(model, None, home=host.home, log_to=kept, raise_when_done=False) as swarm:
        while not swarm.done:
            swarm.step()
        swarm.report(final_accuracy=(0.75, 8))
    assert kept.records[-1] == (5, {"swarm/reported/final_accuracy": 0.75})
    assert kept.calls == ["open", "close"]


def test_a_peer_that_gives_no_status_costs_its_numbers_alone(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    host.fail_next("status", *["close"] * 6)
    kept = Kept()
    train(host, kept)
    assert [round for round, _ in kept.records] == [0, 1, 2, 3, 4, 5]
    assert list(kept.of("swarm/train/loss")) == [1, 2, 3, 4, 5]
    assert not kept.of("swarm/weight")
    assert not caplog.records, caplog.text


def test_the_status_of_a_peer_that_is_further_is_logged_at_its_own_round(host: FakeHost) -> None:
    host.status = STATUS | {"round": 7}
    kept = Kept()
    train(host, kept)
    assert kept.of("swarm/weight") == {7: 0.5}
    assert list(kept.of("swarm/train/loss")) == [1, 2, 3, 4, 5]


def test_without_loggers_no_status_is_asked_for(host: FakeHost) -> None:
    train(host, None)
    assert "status" not in [call.name for call in host.calls]
    assert not [thread for thread in threading.enumerate() if thread.name == "mingle-logger"]


def test_what_is_no_logger_is_refused_before_anything_is_attached(host: FakeHost) -> None:
    for wrong in ("runs/site0", ["runs/site0"], print):
        with pytest.raises(mingle.MingleError, match=r"log_to takes loggers, such as mingle.loggers.tensorboard\(folder\).*: this is a (str|builtin)"):
            train(host, wrong)
    assert not host.calls


def test_joining_again_closes_the_loggers_of_the_former_one(host: FakeHost) -> None:
    kept = Kept()
    model = nn.Linear(1, 1)
    first = mingle.join(model, None, home=host.home, log_to=kept)
    second = mingle.join(model, None, home=host.home)
    assert kept.calls == ["open", "close"]
    first.close()
    second.close()
    assert kept.calls == ["open", "close"]


def test_a_script_that_ends_without_close_closes_its_loggers(host: FakeHost, tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
import torch
import mingle
from kept_logger import Lines

class Closed(Lines):
    def close(self):
        self.log({"closed": 1.0}, 99)

model = torch.nn.Linear(1, 1)
swarm = mingle.join(model, None, home=sys.argv[1], log_to=Closed(Path(sys.argv[2])), raise_when_done=False)
while not swarm.done:
    swarm.step()
"""
    run_script(script, str(host.home), str(tmp_path / "lines"))
    logged = read_lines(tmp_path / "lines")
    assert list(logged) == [0, 1, 2, 3, 4, 5, 99] and logged[99] == {"closed": [1.0]}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_leaves_the_loggers_of_its_parent_alone() -> None:
    script = """
import os
from kept_logger import Kept
from mingle.recording import Recorder

kept = Kept()
recorder = Recorder([kept], dict)
child = os.fork()
if child == 0:
    recorder.close()
    os._exit(0 if kept.calls == ["open"] else 1)
assert os.waitpid(child, 0)[1] == 0
recorder.close()
assert kept.calls == ["open", "close"]
"""
    run_script(script)


def test_an_exchange_logs_as_a_swarm_does(host: FakeHost) -> None:
    kept = Kept()
    options: dict[str, Any] = {"evaluate": lambda model: {"error": (model[0], 10)}, "log_to": [kept]}
    with mingle.Exchange(host.home, "two numbers", array("f", [0.0, 0.0]), **options) as swarm:
        while not swarm.done:
            model = swarm.model
            model[0] += 1
            swarm.exchange(model, steps=3, loss=0.5, metrics={"share": (swarm.round, 7)})
        assert [round for round, _ in kept.records] == [0, 1, 2, 3, 4, 5], "all is written at the end of the run"
    trained = {"swarm/train/loss": 0.5, "swarm/last_factor": 1.0, **OF_STATUS}
    expected = [(0, {"swarm/evaluation/error": 0.0, **OF_STATUS})]
    for round in range(1, 6):
        measured = {"swarm/evaluation/error": float(round)} if round in (2, 4) else {}
        expected.append((round, {"swarm/steps": 3.0 * round, "swarm/reported/share": round - 1, **measured, **trained}))
    assert kept.records == expected
    assert kept.calls == ["open", "close"]


# Loggers that fail


class Broken(Kept):
    """A logger that raises in the given methods."""

    def __init__(self, *methods: str) -> None:
        super().__init__()
        self._methods = methods

    def open(self) -> None:
        self._call("open")

    def log(self, values: Mapping[str, float], round: int) -> None:
        self._call("log")

    def close(self) -> None:
        self._call("close")

    def _call(self, method: str) -> None:
        self.calls.append(method)
        if method in self._methods:
            raise ConnectionError(f"no answer to {method}")


@pytest.mark.parametrize(
    ("methods", "told", "calls"),
    [
        (("open",), "the logger Broken cannot be opened, and the training goes on without it", ["open"]),
        (("log",), "the logger Broken has failed in round 0, and the training goes on", ["open", *["log"] * 6, "close"]),
        (("close",), "the logger Broken could not be closed", ["open", *["log"] * 6, "close"]),
        (("log", "close"), "the logger Broken has failed in round 0, and the training goes on", ["open", *["log"] * 6, "close"]),
    ],
)
def test_a_logger_that_fails_ends_no_training_and_is_told_once(
    host: FakeHost, caplog: pytest.LogCaptureFixture, methods: tuple[str, ...], told: str, calls: list[str]
) -> None:
    broken, kept = Broken(*methods), Kept()
    swarm = train(host, [broken, kept])
    assert swarm.done
    assert len(kept.records) == 6
    assert broken.calls == calls
    assert caplog.messages == [told]
    assert f"no answer to {methods[0]}" in caplog.text


def test_a_logger_that_is_stuck_holds_up_no_round(host: FakeHost, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mingle.recording, "MOST_WAITING", 2)
    monkeypatch.setattr(mingle.recording, "FLUSH_SECONDS", 0.05)
    released = threading.Event()

    class Stuck(Kept):
        def log(self, values: Mapping[str, float], round: int) -> None:
            released.wait()
            super().log(values, round)

    stuck, kept = Stuck(), Kept()

    def wait_for_the_other(swarm: mingle.Swarm, step: int) -> None:
        wait_until(lambda: len(kept.records) == swarm.round + 1, "the other logger has all rounds")

    swarm = train(host, [stuck, kept], wait_for_the_other)
    assert swarm.done
    assert [round for round, _ in kept.records] == [0, 1, 2, 3, 4, 5]
    assert len(caplog.messages) == 1
    # One record is in the logger's hands where its thread was fast enough, and two wait.
    assert re.fullmatch(r"the logger Stuck is too slow: of the rounds since round [23] some are left out there", caplog.messages[0])
    assert stuck.calls == ["open"], "a logger that is stuck is not closed"
    released.set()
    wait_until(lambda: len(stuck.records) in (2, 3), "what waited is written")


# Libraries


@pytest.mark.parametrize(("name", "module"), [("tensorboard", "torch.utils.tensorboard"), ("wandb", "wandb"), ("mlflow", "mlflow")])
def test_a_library_that_is_missing_is_one_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch, name: str, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(mingle.MingleError, match=rf"mingle.loggers.{name} needs the package {name}, .*: pip install {name}$") as raised:
        getattr(mingle.loggers, name)()
    assert "\n" not in str(raised.value)


def test_tensorboard_reads_what_was_logged(host: FakeHost, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    kept = Kept()
    train(host, [mingle.loggers.tensorboard(tmp_path / "runs"), kept], lambda swarm, step: swarm.report(rate=1 / step))
    read = EventAccumulator(str(tmp_path / "runs")).Reload()
    names = {name for _, values in kept.records for name in values}
    assert set(read.Tags()["scalars"]) == names
    for name in names:
        found = {scalar.step: scalar.value for scalar in read.Scalars(name)}
        assert found == pytest.approx(kept.of(name)), name


def test_a_writer_of_the_script_is_used_and_stays_open(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # a writer may be of tensorboardX
    scalars: list[tuple[str, float, int]] = []
    calls: list[str] = []
    writer = SimpleNamespace(
        add_scalar=lambda tag, scalar_value, global_step=None: scalars.append((tag, scalar_value, global_step)),
        flush=lambda: calls.append("flush"),
        close=lambda: calls.append("close"),
    )
    kept = Kept()
    train(host, [mingle.loggers.tensorboard(writer=writer), kept])
    assert scalars == [(name, value, round) for round, values in kept.records for name, value in values.items()]
    assert set(calls) == {"flush"}
    with pytest.raises(mingle.MingleError, match="either a folder or writer"):
        mingle.loggers.tensorboard("runs", writer=writer)


class FakeRun:
    """A run of Weights & Biases: the calls of `wandb.Run` that are used, with their parameters."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.metrics: list[tuple[str, str | None]] = []
        self.is_finished = False

    def define_metric(self, name: str, step_metric: str | None = None) -> None:
        self.metrics.append((name, step_metric))

    def log(self, data: dict[str, Any], step: int | None = None, commit: bool | None = None) -> None:
        assert step is None and commit is None, "the steps of the run are the script's own"
        self.rows.append(data)

    def finish(self, exit_code: int | None = None) -> None:
        self.is_finished = True


@pytest.mark.parametrize("whose", ["of the training", "of the process", "given"])
def test_a_run_of_wandb_has_the_round_as_its_axis(host: FakeHost, monkeypatch: pytest.MonkeyPatch, whose: str) -> None:
    run, made = FakeRun(), []

    def init(*, project: str, name: str) -> FakeRun:
        made.append((project, name))
        return run

    module = library(monkeypatch, "wandb", run=None, init=init)
    logger = mingle.loggers.wandb(run) if whose == "given" else mingle.loggers.wandb(project="sine", name="site0")
    module.run = run if whose == "of the process" else None  # as of `wandb.init` after the logger was made
    kept = Kept()
    train(host, [logger, kept])
    assert run.metrics == [("swarm/round", None), ("swarm/*", "swarm/round")]
    assert run.rows == [{**values, "swarm/round": round} for round, values in kept.records]
    assert made == ([("sine", "site0")] if whose == "of the training" else [])
    assert run.is_finished == (whose == "of the training")


class FakeMLflow:
    """The calls of `mlflow` that are used, with their parameters. As there, the active run is that of a thread."""

    NAME = re.compile(r"^[/\w.\- ]*$")

    def __init__(self) -> None:
        self._active = threading.local()
        self.metrics: list[tuple[str, int, dict[str, float]]] = []
        self.started: list[str | None] = []

    def active_run(self) -> Any:
        return getattr(self._active, "run", None)

    def start_run(self, run_id: str | None = None, experiment_id: str | None = None, run_name: str | None = None) -> Any:
        assert self.active_run() is None, "mlflow refuses a second run"
        self.started.append(run_name)
        self._active.run = SimpleNamespace(info=SimpleNamespace(run_id=f"run-{len(self.started)}"))
        return self._active.run

    def end_run(self, status: str = "FINISHED") -> None:
        self._active.run = None

    def log_metrics(self, metrics: dict[str, float], step: int | None = None, synchronous: bool | None = None, run_id: str | None = None) -> None:
        assert step is not None and run_id is not None
        assert all(self.NAME.match(name) for name in metrics), metrics
        self.metrics.append((run_id, step, metrics))


@pytest.mark.parametrize("whose", ["of the training", "of the process", "given"])
def test_metrics_of_a_run_of_mlflow_have_the_round_as_their_step(host: FakeHost, monkeypatch: pytest.MonkeyPatch, whose: str) -> None:
    fake = FakeMLflow()
    calls = ("active_run", "start_run", "end_run", "log_metrics")
    library(monkeypatch, "mlflow", **{name: getattr(fake, name) for name in calls})
    logger = mingle.loggers.mlflow("run-of-mine") if whose == "given" else mingle.loggers.mlflow(run_name="site0")
    own = fake.start_run(run_name="own") if whose == "of the process" else None
    kept = Kept()
    train(host, [logger, kept], lambda swarm, step: swarm.report(**{"top@5, %": step, "f1/": step}))
    run_id = "run-of-mine" if whose == "given" else "run-1"
    renamed = {"swarm/reported/top@5, %": "swarm/reported/top_5_ _", "swarm/reported/f1/": "swarm/reported/f1"}
    expected = [(run_id, round, {renamed.get(name, name): value for name, value in values.items()}) for round, values in kept.records]
    assert fake.metrics == expected
    assert fake.started == {"of the training": ["site0"], "of the process": ["own"], "given": []}[whose]
    assert fake.active_run() is own, "a run of the training's own ends with it, another one stays active"


def test_an_exception_of_a_library_names_it(host: FakeHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def init(**options: Any) -> Any:
        raise RuntimeError("api_key not configured (no-tty)")

    library(monkeypatch, "wandb", run=None, init=init)
    with caplog.at_level(logging.WARNING):
        assert train(host, mingle.loggers.wandb()).done
    assert caplog.messages == ["the logger WeightsAndBiases cannot be opened, and the training goes on without it"]
    assert "api_key not configured" in caplog.text
