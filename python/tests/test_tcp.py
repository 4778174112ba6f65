"""Trainers that reach their peer over TCP, with a token."""

from __future__ import annotations

import os
import socket
import threading
from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
import torch
from conftest import wait_until
from fake_host import FakeHost

import mingle
from mingle import endpoint, trainer
from mingle.client import Description
from mingle.endpoint import TcpEndpoint
from mingle.home import find_peer
from mingle.layout import Layout
from mingle.trainer import Trainer

TOKEN = "0123456789abcdef" * 4
VARIABLES = ("MINGLE_TRAINER_URL", "MINGLE_TRAINER_TOKEN", "MINGLE_HOME")


@pytest.fixture
def tcp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHost]:
    """A host that is served over TCP, without the environment variables for it."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    with FakeHost(tmp_path / "home", token=TOKEN) as host:
        yield host


def train(swarm: mingle.Exchange[numpy.ndarray]) -> None:
    while not swarm.done:
        swarm.exchange(swarm.model + 1)


def test_a_model_of_torch_trains_over_tcp(tcp: FakeHost) -> None:
    model = torch.nn.Linear(2, 1)
    before = model.bias.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with mingle.join(model, optimizer, url=tcp.url, token=TOKEN):
        while True:
            optimizer.zero_grad()
            model(torch.ones(4, 2)).square().mean().backward()
            optimizer.step()
    assert tcp.node.round == len(tcp.changes) == 5
    assert not torch.equal(model.bias, before)


def test_the_variables_of_the_environment_say_where_the_peer_is(tcp: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINGLE_TRAINER_URL", tcp.url)
    monkeypatch.setenv("MINGLE_TRAINER_TOKEN", TOKEN)
    monkeypatch.setenv("MINGLE_HOME", "/nowhere")
    with mingle.Exchange(None, "ones", numpy.zeros(3, dtype=numpy.float32)) as swarm:
        train(swarm)
    assert swarm.model.tolist() == [5, 5, 5]
    # Arguments of the script take precedence.
    peer = find_peer("/somewhere")
    assert (peer.home, str(peer.endpoint)) == ("/somewhere", "/somewhere/mingle.sock")
    peer = find_peer(None, "http://10.0.1.5:7718/", "other")
    assert peer.endpoint == TcpEndpoint("10.0.1.5", 7718, "other") and peer.home is None
    assert "other" not in repr(peer), "a token is in no message"


@pytest.mark.parametrize("fault", ["close", "close after", "cut", "restart", "restart after"])
def test_no_change_is_counted_twice_or_lost_over_tcp(tcp: FakeHost, fault: str) -> None:
    tcp.fail_next("exchange", fault, fault)
    with mingle.Exchange(None, "ones", numpy.zeros(3, dtype=numpy.float32), url=tcp.url, token=TOKEN) as swarm:
        train(swarm)
    assert swarm.model.tolist() == [5, 5, 5] and len(tcp.changes) == 5


def test_a_peer_that_is_started_again_is_found_again(tcp: FakeHost) -> None:
    swarm = mingle.Exchange(None, "ones", numpy.zeros(3, dtype=numpy.float32), url=tcp.url, token=TOKEN)
    swarm.exchange(swarm.model + 1)
    tcp.stop()
    runner = threading.Thread(target=train, args=(swarm,))
    runner.start()
    wait_until(runner.is_alive, "the exchange waits")
    tcp.start()
    runner.join(20)
    assert swarm.done and swarm.model.tolist() == [5, 5, 5]


def test_a_wrong_token_is_refused_at_once_however_long_the_layout_is(tcp: FakeHost) -> None:
    layout = Layout((f"{index:0100}", (1,)) for index in range(8000))
    peer = find_peer(None, tcp.url, "wrong")
    with pytest.raises(mingle.Refused, match="not the token of this peer .*trainer-tcp.json") as refused:
        Trainer(peer, Description("long", layout), offer=lambda: memoryview(b""), timeout=60).attach()
    assert refused.value.status == 401 and not isinstance(refused.value, mingle.Conflict)
    assert [call.name for call in tcp.calls] == ["trainer"]


def test_a_peer_that_is_not_there_is_named_by_its_address(tcp: FakeHost) -> None:
    tcp.stop()
    with pytest.raises(mingle.TimedOut, match=rf"mingle run --trainer attach --trainer-tcp 127.0.0.1:{tcp.url.rpartition(':')[2]}`"):
        mingle.Exchange(None, "ones", numpy.zeros(3, dtype=numpy.float32), url=tcp.url, token=TOKEN, timeout=0.2)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"home": "a", "url": "http://127.0.0.1:1"}, "either home"),
        ({"home": "a", "token": TOKEN}, "either home"),
        ({"token": TOKEN}, "a token without an address"),
        ({"url": "http://127.0.0.1:1"}, "wants a token.*MINGLE_TRAINER_TOKEN"),
        ({"url": "127.0.0.1:7718", "token": TOKEN}, "no address of a peer"),
        ({"url": "https://127.0.0.1:7718", "token": TOKEN}, "speaks no HTTPS"),
        ({"url": "http://127.0.0.1:port", "token": TOKEN}, "no address of a peer"),
        ({"url": "http://127.0.0.1:77180", "token": TOKEN}, "no address of a peer"),
        ({"url": "http://a@127.0.0.1:1", "token": TOKEN}, "no address of a peer"),
        ({"url": "http://127.0.0.1:1/v1", "token": TOKEN}, "no address of a peer"),
        ({"url": "http://127.0.0.1:1", "token": "a\r\nHost: b"}, "the token is one word"),
        ({"url": "http://127.0.0.1:1", "token": "zwei Wörter"}, "the token is one word"),
    ],
)
def test_what_says_no_peer_is_refused(tcp: FakeHost, said: dict[str, str], complaint: str) -> None:
    with pytest.raises(mingle.MingleError, match=complaint):
        mingle.join(torch.nn.Linear(1, 1), None, **said)


def test_a_python_without_unix_sockets_is_told_of_tcp(tcp: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(mingle.TimedOut, match="start the peer with --trainer-tcp, and say url= and token= here"):
        mingle.Exchange(tcp.home, "ones", numpy.zeros(3, dtype=numpy.float32), timeout=0.1)
    with mingle.Exchange(None, "ones", numpy.zeros(3, dtype=numpy.float32), url=tcp.url, token=TOKEN) as swarm:
        assert swarm.round == 0


def test_a_child_keeps_no_connection_over_tcp_open(tcp: FakeHost) -> None:
    tcp.wait("the plan")
    peer = find_peer(None, tcp.url, TOKEN)
    first = memoryview(array("f", [0.0]).tobytes())
    loop = Trainer(peer, Description("one", Layout.flat(1)), offer=lambda: first, timeout=30)
    loop.attach()
    caller = threading.Thread(target=loop.first_order, args=(memoryview(bytearray(4)),))
    caller.start()
    wait_until(lambda: tcp.calls[-1].name == "order", "the order is asked for")
    assert len(endpoint._open_sockets) == 1
    child = os.fork()
    if child == 0:
        os._exit(len(endpoint._open_sockets))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    tcp.wait(None)
    caller.join(10)
    assert not caller.is_alive()


def test_a_trainer_says_between_steps_that_it_is_at_work(tcp: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> int:
        return sum(call.name == "trainer" and "Mingle-Session" in call.headers for call in tcp.calls)

    model = torch.nn.Linear(2, 1)
    with mingle.join(model, None, url=tcp.url, token=TOKEN) as swarm:
        swarm.step()
        assert told() == 0, "not more often than is needed"
        monkeypatch.setattr(trainer, "SILENCE_SECONDS", 0.0)
        swarm.step()
        assert told() == 1
        # The call has no effect where the peer is away, or no longer knows the trainer.
        tcp.forget()
        swarm.step()
        tcp.stop()
        tcp.start()
        swarm.sync()
        assert swarm.exchanges == 1 and len(tcp.changes) == 1
    with mingle.Exchange(None, type(model).__name__, Layout([("weight", (1, 2)), ("bias", (1,))]), url=tcp.url, token=TOKEN) as exchange:
        before = told()
        exchange.still_here()
        assert told() == before + 1
