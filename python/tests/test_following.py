"""mingle.follow: the model of a swarm that is trained, in a PyTorch model that takes no part."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from conftest import wait_until
from torch import nn

import mingle

pytestmark = [
    pytest.mark.swarm,
    pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle"),
]

LOOPBACK = ("--listen", "/ip4/127.0.0.1/tcp/0,/ip4/127.0.0.1/udp/0/quic-v1")
END_SECONDS = 120.0


class Digits(nn.Module):
    """The built-in model `softmax` on the digits, by the names in its file."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 10)


class FoundedSwarm:
    """A swarm of two peers with an operator, which train a built-in model until they are stopped or done."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder, self.rounds = folder, rounds
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Founds the swarm, and starts both peers."""
        self.run("init", "--home", str(self.home(0)), "--swarm", "ward7")
        self._start("run", "--home", str(self.home(0)), "--planning", "auto", "--local-steps", "1")
        wait_until((self.home(0) / "addresses.json").exists, "the operator listens", END_SECONDS)
        self._start("join", self.invite(), "--home", str(self.home(1)))

    def home(self, peer: int) -> Path:
        """The home of a peer."""
        return self.folder / f"peer{peer}"

    def invite(self) -> str:
        """A ticket."""
        return self.run("invite", "--home", str(self.home(0))).strip()

    def run(self, *arguments: str) -> str:
        """Runs a command of the program to its end, and returns its output."""
        ended = subprocess.run([os.environ["MINGLE_BIN"], *arguments], capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def end(self) -> None:
        """Kills what still runs."""
        for process in self._processes:
            process.kill()
            process.wait()

    def wait(self) -> None:
        """Waits until the peers have ended by themselves."""
        for process in self._processes:
            assert process.wait(END_SECONDS) == 0

    def _start(self, *arguments: str) -> None:
        task = ("--model", "softmax", "--rounds", str(self.rounds), "--durability", "off", "--evaluate-every", "20")
        command = [os.environ["MINGLE_BIN"], *arguments, *LOOPBACK, *task]
        out = (self.folder / f"out{len(self._processes)}").open("wb")
        self._processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT))


@pytest.fixture
def swarm(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FoundedSwarm]:
    """A swarm that trains for as many rounds as the test asks for."""
    swarm = FoundedSwarm(tmp_path, getattr(request, "param", 1_000_000))
    swarm.start()
    yield swarm
    swarm.end()


@pytest.mark.parametrize("swarm", [3000], indirect=True)
def test_a_loop_gets_models_in_place_and_ends_with_the_final_one(swarm: FoundedSwarm, tmp_path: Path) -> None:
    model, output = Digits(), tmp_path / "followed.safetensors"
    before = model.linear.weight
    rounds, seen = [], set()
    with mingle.follow(model, swarm.invite(), output=output, every=5) as follower:
        for now in follower:
            rounds.append(now.round)
            seen.add(float(model.linear.weight.detach().sum()))
        assert follower.done and now.final and now.rounds == swarm.rounds
    assert rounds == sorted(rounds) and len(rounds) > 2, rounds
    assert len(seen) == len(rounds), "each model is another one"
    assert model.linear.weight is before
    swarm.wait()
    peers = {swarm.run("id", "--home", str(swarm.home(peer))).strip(): peer for peer in (0, 1)}
    exported = swarm.home(peers[now.peer]) / "model.safetensors"
    assert output.read_bytes() == exported.read_bytes()
    other = Digits()
    mingle.load(other, exported)
    assert torch.equal(other.linear.weight, model.linear.weight) and torch.equal(other.linear.bias, model.linear.bias)


def test_a_rounded_model_is_loaded_and_another_one_is_named(swarm: FoundedSwarm) -> None:
    model = Digits()
    with mingle.follow(model, swarm.invite(), precision="bf16") as follower:
        now = follower.next()
        assert not now.final and not follower.done
        header = Path(now.file).read_bytes()
        assert json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])["linear.weight"]["dtype"] == "BF16"
        assert torch.equal(model.linear.weight, model.linear.weight.bfloat16().float())
        while (later := follower.poll()) is None:
            pass
        assert later.round > now.round
    assert not Path(now.file).exists(), "the temporary file is gone"
    with mingle.follow(nn.Linear(3, 3), swarm.invite()) as follower, pytest.raises(mingle.LayoutError, match="linear.weight"):
        follower.next()


def test_what_ends_a_follower_is_raised(swarm: FoundedSwarm, tmp_path: Path) -> None:
    with mingle.follow(None, "mingle2nonsense") as follower, pytest.raises(mingle.MingleError, match="this is not a ticket"):
        follower.next(60)
    ticket = swarm.invite()
    poem = tmp_path / "poem"
    poem.write_text("a poem")
    with mingle.follow(None, ticket, output=poem) as follower, pytest.raises(mingle.MingleError, match="holds no model of a swarm"):
        next(iter(follower))
    assert poem.read_text() == "a poem"
    with mingle.follow(None, ticket) as follower:
        assert follower.next().round > 0
        swarm.end()
    with mingle.follow(None, ticket, timeout=2) as follower, pytest.raises(mingle.PeerUnreachable, match="could be reached in 2 s"):
        follower.next()
