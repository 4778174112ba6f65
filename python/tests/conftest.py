"""Shared fixtures and helpers of the tests: a host, a wait for a condition, and the order and the company in which tests run."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_host import FakeHost


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--no-skips`, for environments in which everything is installed."""
    parser.addoption("--no-skips", action="store_true", help="a skipped test is a failure")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Turns skips into failures with `--no-skips`."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.skipped and item.config.getoption("--no-skips"):
        report.outcome, report.longrepr = "failed", f"skipped: {report.longrepr}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Orders the tests: first those with peers, which take longest, so that the last ones are short and workers end together; `alone` ones last."""
    items.sort(key=lambda item: 2 if item.get_closest_marker("alone") else 0 if item.get_closest_marker("swarm") else 1)


@pytest.fixture(autouse=True)
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The machine: shared with the tests of other workers, unless the test is marked `alone`."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    with (tmp_path_factory.getbasetemp().parent / "machine.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if request.node.get_closest_marker("alone") else fcntl.LOCK_SH)
        yield


@pytest.fixture(autouse=True)
def one_thread_for_torch() -> None:
    """Limits PyTorch to one thread, as tests share the machine."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[FakeHost]:
    """A host of 5 rounds of 4 steps."""
    with FakeHost(tmp_path / "home") as host:
        yield host


def wait_until(condition: Callable[[], object], what: str, seconds: float = 30.0) -> None:
    """Waits until the condition holds, which is checked every 10 ms; fails with `what` after `seconds`."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"not within {seconds} s: {what}"
        time.sleep(0.01)
