"""A change whose peer or connection fails counts once, or not at all where that cannot be known."""

from __future__ import annotations

import re
import threading
import time
from array import array
from itertools import product
from pathlib import Path

import pytest
from conftest import wait_until
from fake_host import FakeHost

from mingle import trainer
from mingle.client import Description
from mingle.errors import Conflict, MingleError, PeerFailed, TimedOut
from mingle.home import Whereabouts
from mingle.layout import Layout
from mingle.trainer import BUSY_SECONDS, Trainer

SIZE = 3


class Loop:
    """A trainer whose changes are all ones, so that the vector counts the changes that the peer has."""

    def __init__(self, host: FakeHost, timeout: float = 20.0) -> None:
        self.first = memoryview(array("f", [0.0] * SIZE).tobytes())
        self.trainer = Trainer(Whereabouts.of_home(host.home), Description("ones", Layout.flat(SIZE)), offer=lambda: self.first, timeout=timeout)
        self.held, self.incoming = memoryview(bytearray(4 * SIZE)), memoryview(bytearray(4 * SIZE))
        self.change = memoryview(array("f", [1.0] * SIZE).tobytes())

    def run(self) -> list[float]:
        """Trains until the end, and returns the final vector."""
        order = self.trainer.first_order(self.incoming)
        while order.kind != "end":
            self.held, self.incoming = self.incoming, self.held
            order = self.trainer.exchange(order, self.held, self.change, order.steps, self.incoming)
        return list(self.incoming.cast("f"))


FAULTS = ["close", "close after", "cut", "restart", "restart after"]
CALLS = ["attach", "initial", "order", "exchange"]


@pytest.mark.parametrize(("call", "fault"), [pair for pair in product(CALLS, FAULTS) if pair != ("initial", "cut")])
def test_no_change_is_counted_twice_or_lost_whatever_breaks(host: FakeHost, call: str, fault: str) -> None:
    host.fail_next(call, fault, fault)
    assert Loop(host).run() == [5.0] * SIZE
    assert host.node.round == len(host.changes) == 5


def test_a_change_that_may_have_been_mixed_in_is_not_sent_again(host: FakeHost) -> None:
    # The peer takes the change, mixes it with parcels of neighbours, and is restarted before it answers.
    host.drift = 0.25
    host.fail_next("exchange", "restart after")
    assert Loop(host).run() == [5 * 1.25] * SIZE
    assert len(host.changes) == 5


def test_a_peer_that_is_away_for_a_while_is_waited_for(host: FakeHost) -> None:
    loop = Loop(host)
    order = loop.trainer.first_order(loop.held)
    host.stop(leave_socket=True)
    result: list[int] = []
    exchange = threading.Thread(
        target=lambda: result.append(loop.trainer.exchange(order, loop.held, loop.change, 4, loop.incoming).number)
    )
    exchange.start()
    wait_until(lambda: exchange.is_alive(), "the exchange waits")
    host.start()
    exchange.join(20)
    assert result and list(loop.incoming.cast("f")) == [1.0] * SIZE
    assert len(host.changes) == 1


def test_202_is_asked_again_until_there_is_an_order(host: FakeHost) -> None:
    host.wait("neighbours")
    loop = Loop(host)
    runner = threading.Thread(target=loop.run)
    runner.start()
    wait_until(lambda: any(call.name == "order" for call in host.calls), "the order is asked for")
    host.wait(None)
    runner.join(20)
    assert host.node.round == 5


def test_a_wait_ends_and_says_what_was_waited_for(host: FakeHost, tmp_path: Path) -> None:
    host.wait("the plan of the operator")
    with pytest.raises(TimedOut, match="no order within 0.3 s, waiting for: the plan of the operator"):
        Loop(host, timeout=0.3).run()
    host.stop()
    started = time.monotonic()
    with pytest.raises(TimedOut, match="start the peer with `mingle run --home"):
        Loop(host, timeout=0.3).run()
    assert time.monotonic() - started < 5


def test_who_waits_long_for_a_peer_is_told_once_and_hears_of_a_run_that_is_over(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trainer, "WARNING_SECONDS", 0.1)
    host.stop()
    for over in ("", r" \(a run in this home ended \d+ s ago\)"):
        caplog.clear()
        with pytest.raises(TimedOut):
            Loop(host, timeout=0.4).run()
        (told,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
        assert re.fullmatch(rf"no peer answers since 0 s, of 0\.4 s that are waited: .*--trainer attach`{over}", told), told
        (host.home / "summary.json").write_text("{}")


def test_who_waits_long_for_the_first_order_is_told_once_what_the_peer_waits_for(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(trainer, "WARNING_SECONDS", 0.2)
    host.wait("1 of 2 neighbours")
    started = time.monotonic()
    with pytest.raises(TimedOut):
        Loop(host, timeout=1.5).run()
    assert time.monotonic() - started < 20, "a call that is held for long says nothing meanwhile"
    (told,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert told == "no order yet after 0 s, of 1.5 s that are waited, waiting for: 1 of 2 neighbours"
    caplog.clear()
    host.wait(None)
    loop = Loop(host, timeout=1.5)
    order = loop.trainer.first_order(loop.held)
    host.wait("round 1")
    with pytest.raises(TimedOut):
        loop.trainer.exchange(order, loop.held, loop.change, order.steps, loop.incoming)
    assert not [record for record in caplog.records if record.levelname == "WARNING"], "a slow neighbour is no news in a round"


def test_a_peer_that_failed_ends_the_training(host: FakeHost) -> None:
    loop = Loop(host)
    loop.trainer.first_order(loop.held)
    host.failed = "its training diverged"
    with pytest.raises(PeerFailed, match="its training diverged"):
        loop.run()


def test_another_layout_ends_the_training_at_once(host: FakeHost) -> None:
    Loop(host).trainer.attach()
    other = Trainer(Whereabouts.of_home(host.home), Description("ones", Layout.flat(2)), offer=lambda: memoryview(b""), timeout=60)
    with pytest.raises(Conflict, match=r"tensor `x` has shape \[2\] here and \[3\] in the swarm"):
        other.attach()


def test_a_trainer_that_is_alive_is_not_replaced(host: FakeHost) -> None:
    Loop(host).trainer.attach()
    assert host.attached is not None
    host.attached["pid"] = 1
    with pytest.raises(TimedOut, match="another trainer is attached"):
        Loop(host, timeout=0.2).run()


def test_a_second_script_is_refused_soon_with_the_process_that_holds_the_place(host: FakeHost) -> None:
    Loop(host).trainer.attach()
    assert host.attached is not None
    host.attached["pid"] = 1
    began = time.monotonic()
    with pytest.raises(Conflict, match="another trainer is attached, process 1"):
        Loop(host, timeout=60).run()
    assert time.monotonic() - began < 10


def test_one_that_may_be_gone_is_waited_for(host: FakeHost) -> None:
    Loop(host).trainer.attach()
    assert host.attached is not None
    host.attached["pid"], host.busy_reason = 1, "unseen"
    with pytest.raises(TimedOut, match="another trainer is attached"):
        Loop(host, timeout=BUSY_SECONDS + 1).run()


def test_one_that_is_detached_while_it_waits_gives_up(host: FakeHost) -> None:
    host.wait("the plan")
    loop = Loop(host)
    loop.trainer.attach()
    failures: list[Exception] = []

    def run() -> None:
        try:
            loop.run()
        except MingleError as error:
            failures.append(error)

    runner = threading.Thread(target=run)
    runner.start()
    wait_until(lambda: any(call.name == "order" for call in host.calls), "the order is asked for")
    loop.trainer.detach()
    host.wait(None)
    runner.join(20)
    assert len(failures) <= 1 and not runner.is_alive()


def test_the_last_change_is_left_without_waiting(host: FakeHost) -> None:
    loop = Loop(host)
    order = loop.trainer.first_order(loop.held)
    host.wait("neighbours")
    loop.trainer.leave(order, loop.change, 2, loop.incoming)
    assert len(host.changes) == 1
    assert host.calls[-1].query == {"order": "1", "steps": "2", "wait": "0"}
