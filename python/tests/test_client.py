"""The calls, one by one, and what they raise."""

from __future__ import annotations

import os
import socket
import threading
from array import array
from pathlib import Path

import pytest
from fake_host import FakeHost

from mingle.client import Client, Description, Order, Waiting
from mingle.errors import Conflict, LayoutError, MingleError, NothingThere, PeerFailed, PeerUnreachable, ProtocolError, Refused
from mingle.home import Whereabouts
from mingle.layout import Layout

LAYOUT = Layout([("weight", (2, 2)), ("bias", ()), ("none", (0, 3))])


def vector(*numbers: float) -> memoryview:
    return memoryview(array("f", numbers).tobytes())


def numbers(buffer: memoryview) -> list[float]:
    return list(buffer.cast("f"))


def client_of(home: Path) -> Client:
    return Client(Whereabouts.of_home(home).endpoint)


def attached(host: FakeHost) -> tuple[Client, str, memoryview]:
    client = client_of(host.home)
    session = client.attach(Description("two layers", LAYOUT))
    assert session.needs_initial and session.dimension == 5 and session.rounds == 5
    client.put_initial(session.id, vector(1, 2, 3, 4, 5))
    return client, session.id, memoryview(bytearray(20))


def test_a_whole_run_call_by_call(host: FakeHost) -> None:
    client, session, into = attached(host)
    order = client.order(session, 5, into)
    assert order == Order(1, "train", 0, 4, None, 1.0)
    assert numbers(into) == [1, 2, 3, 4, 5]
    for number in range(1, 6):
        order = client.exchange(session, number, 4, vector(1, 0, 0, 0, 0), 5, into, loss=0.5, metrics={"accuracy": (0.9, 10)})
    assert isinstance(order, Order) and order.kind == "end" and order.round == 5
    assert numbers(into) == [6, 2, 3, 4, 5]
    assert host.losses == [0.5] * 5 and host.metrics == {"accuracy": [0.9, 10]}
    client.detach(session)
    assert host.attached is None


def test_a_round_without_training_is_an_exchange_without_a_body(host: FakeHost) -> None:
    client, session, into = attached(host)
    client.order(session, 5, into)
    order = client.exchange(session, 1, 0, None, 5, into)
    assert isinstance(order, Order) and order.number == 2
    assert host.changes == []


def test_what_is_waited_for_is_told(host: FakeHost) -> None:
    client, session, into = attached(host)
    host.wait("the plan")
    assert client.order(session, 0, into) == Waiting("the plan")


def test_a_number_that_is_not_finite_is_refused_with_its_place_and_the_order_stays_open(host: FakeHost) -> None:
    client, session, into = attached(host)
    client.order(session, 5, into)
    with pytest.raises(Refused, match="number 4 is not finite: number 0 of tensor `bias`") as refused:
        client.exchange(session, 1, 4, vector(0, 0, 0, 0, float("nan")), 5, into)
    assert refused.value.status == 400
    assert isinstance(client.exchange(session, 1, 4, vector(0, 0, 0, 0, 0), 5, into), Order)


def test_an_order_is_answered_once(host: FakeHost) -> None:
    client, session, into = attached(host)
    client.order(session, 5, into)
    client.exchange(session, 1, 4, vector(1, 1, 1, 1, 1), 5, into)
    with pytest.raises(Conflict, match="order 1 is not the present one"):
        client.exchange(session, 1, 4, vector(1, 1, 1, 1, 1), 5, into)
    assert len(host.changes) == 1


def test_a_wrong_length_is_refused_with_both_lengths(host: FakeHost) -> None:
    client, session, into = attached(host)
    client.order(session, 5, into)
    with pytest.raises(Refused, match="16 bytes where 20"):
        client.exchange(session, 1, 4, vector(1, 1, 1, 1), 5, into)
    with pytest.raises(ProtocolError, match="20 bytes where the vector has 16"):
        client.order(session, 5, memoryview(bytearray(16)))


def test_state_is_kept(host: FakeHost) -> None:
    client, session, into = attached(host)
    assert client.get_state(session) is None
    client.order(session, 5, into)
    client.put_state(session, 1, b"momentum")
    assert client.get_state(session) == b"momentum"
    with pytest.raises(Refused) as refused:
        client.put_state(session, 1, bytes(host.most_state_bytes + 1))
    assert refused.value.status == 413


def test_another_layout_is_refused_with_the_first_difference(host: FakeHost) -> None:
    attached(host)
    with pytest.raises(Conflict, match=r"tensor `weight` has shape \[2, 3\] here and \[2, 2\] in the swarm"):
        client_of(host.home).attach(Description("two layers", Layout([("weight", (2, 3)), ("bias", ()), ("none", (0, 3))])))


def test_calls_of_an_old_session_are_refused(host: FakeHost) -> None:
    client, session, into = attached(host)
    attached_again = client.attach(Description("two layers", LAYOUT))
    assert attached_again.id != session and not attached_again.needs_initial
    with pytest.raises(Conflict, match="the session is over"):
        client.order(session, 5, into)
    client.detach(attached_again.id)
    with pytest.raises(NothingThere, match="no trainer is attached"):
        client.order(session, 5, into)


def test_a_peer_that_failed_says_why(host: FakeHost) -> None:
    client, session, into = attached(host)
    host.failed = "the disk is full"
    with pytest.raises(PeerFailed, match="the disk is full"):
        client.order(session, 5, into)


@pytest.mark.parametrize("fault", ["close", "close after", "cut"])
def test_an_answer_that_is_not_whole_is_none(host: FakeHost, fault: str) -> None:
    client, session, into = attached(host)
    host.fail_next("order", fault)
    with pytest.raises(PeerUnreachable, match="GET /v1/trainer/order"):
        client.order(session, 5, into)


def test_a_home_without_a_peer(tmp_path: Path) -> None:
    with pytest.raises(PeerUnreachable, match="mingle.sock"):
        client_of(tmp_path).status()
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(tmp_path / "mingle.sock"))
    with pytest.raises(PeerUnreachable, match="refused"):
        client_of(tmp_path).status()


def test_a_socket_of_another_user_is_said_to_be_one_at_once(host: FakeHost) -> None:
    host.socket.chmod(0)
    if os.getuid() != 0:
        with pytest.raises(MingleError, match="open to its owner alone: run this as the user"):
            client_of(host.home).status()
        return
    child = os.fork()  # root may open everything
    if child == 0:
        os.setuid(65_534)
        try:
            client_of(host.home).status()
        except MingleError as error:
            os._exit(0 if "open to its owner alone" in str(error) and not isinstance(error, PeerUnreachable) else 1)
        os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_home_whose_path_is_too_long_for_a_socket(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="too long"):
        client_of(tmp_path / ("x" * 100)).status()


def test_a_peer_whose_socket_is_not_in_its_home_is_found(host: FakeHost, tmp_path: Path) -> None:
    home = tmp_path / ("x" * 200)
    home.mkdir()
    (home / "mingle.sock.path").write_text(f"{host.socket}\n")
    assert client_of(home).status() == client_of(host.home).status()
    (home / "mingle.sock.path").write_text("half a pa")
    with pytest.raises(ProtocolError, match="too long"):
        client_of(home).status()


def test_what_does_not_speak_the_protocol_is_no_peer(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "mingle.sock"))
        listener.listen()

        def answer(text: bytes) -> None:
            connection, _ = listener.accept()
            connection.recv(4096)
            connection.sendall(text)
            connection.close()

        for text in [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"]:
            threading.Thread(target=answer, args=(text,)).start()
            with pytest.raises(ProtocolError):
                client_of(tmp_path).status()


def test_a_child_does_not_keep_a_call_of_its_parent_open(host: FakeHost) -> None:
    client, session, into = attached(host)
    host.wait("the plan")
    caller = threading.Thread(target=client.order, args=(session, 30, into))
    caller.start()
    before = len(host.calls)
    assert before
    child = os.fork()
    if child == 0:
        from mingle import endpoint

        os._exit(len(endpoint._open_sockets))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    host.wait(None)
    caller.join(10)
    assert not caller.is_alive()


@pytest.mark.parametrize(
    ("tensors", "complaint"),
    [([], "nothing to train"), ([("a", (0,))], "nothing to train"), ([("a", (1,)), ("a", (2,))], "two tensors are called `a`")],
)
def test_layouts_that_cannot_be(tensors: list[tuple[str, tuple[int, ...]]], complaint: str) -> None:
    with pytest.raises(LayoutError, match=complaint):
        Layout(tensors)
    with pytest.raises(LayoutError, match="more than 1000000"):
        Layout((f"{index:0200}", (1,)) for index in range(5000))
