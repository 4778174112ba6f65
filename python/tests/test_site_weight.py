"""The weight of a site by its training samples."""

from __future__ import annotations

import os
import re
import sys
from array import array
from pathlib import Path

import pytest
import torch
from fake_host import FakeHost
from swarm import LocalSwarm
from torch import nn

import mingle

STEPS = 43


def after_constant_steps(home: Path, **options: object) -> tuple[list[float], FakeHost]:
    """The change of the host's vector by `STEPS` steps that each add 1 to both numbers of a model, and the host."""
    with FakeHost(home, rounds=1000) as host:
        model = nn.Linear(2, 1, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        before = model.weight.flatten().tolist()
        with mingle.join(model, optimizer, home=home, **options):  # type: ignore[arg-type]
            for _ in range(STEPS):
                model.weight.grad = -torch.ones(1, 2)
                optimizer.step()
        assert host.node.vector is not None
        return [after - begin for after, begin in zip(host.node.vector, before, strict=True)], host


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize(("weight", "samples", "factor"), [("equal", 100, 1.0), ("samples:50", 100, 2.0), ("samples:300", range(100), 1 / 3)])
def test_each_step_counts_once_times_the_weight(tmp_path: Path, overlap: bool, weight: str, samples: object, factor: float) -> None:
    moved, host = after_constant_steps(tmp_path / "home", samples=samples, weight=weight, overlap=overlap)
    assert moved == pytest.approx([factor * STEPS] * 2, rel=1e-5)
    assert host.attached is None
    assert list(host.changes[0]) == pytest.approx([factor * 4] * 2, rel=1e-5), "a round has 4 steps"


@pytest.mark.parametrize("with_numpy", [False, True])
def test_an_exchange_weighs_its_changes_too(host: FakeHost, monkeypatch: pytest.MonkeyPatch, with_numpy: bool) -> None:
    if with_numpy:
        pytest.importorskip("numpy")
    else:
        monkeypatch.delitem(sys.modules, "numpy", raising=False)
    with mingle.Exchange(host.home, "numbers", array("f", [1.0, 5.0]), samples=200, weight="samples:100") as swarm:
        while not swarm.done:
            model = swarm.model
            model[0] += 1
            swarm.exchange(model)
    assert [list(change) for change in host.changes] == [[2.0, 0.0]] * 5
    assert list(swarm.model) == [11.0, 5.0]


@pytest.mark.parametrize(
    ("weight", "samples", "complaint"),
    [
        ("samples", 100, 'weight is "equal" or "samples:N", .* and not \'samples\''),
        ("samples:0", 100, "and not 'samples:0'"),
        ("samples:-3", 100, "and not 'samples:-3'"),
        (0.5, 100, "and not 0.5"),
        ("samples:50", None, 'weight="samples:50" needs the number of training samples'),
        ("samples:50", 0, 'weight="samples:50" needs the number of training samples'),
    ],
)
def test_what_is_no_weight_is_refused_before_anything_is_attached(host: FakeHost, weight: str, samples: int | None, complaint: str) -> None:
    with pytest.raises(mingle.MingleError, match=complaint):
        mingle.join(nn.Linear(1, 1), None, home=host.home, weight=weight, samples=samples)
    with pytest.raises(mingle.MingleError, match=complaint):
        mingle.Exchange(host.home, "number", array("f", [0.0]), weight=weight, samples=samples)
    assert not host.calls


def test_a_site_far_larger_than_the_others_counts_for_less_and_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    moved, _ = after_constant_steps(tmp_path / "at the limit", samples=3200, weight="samples:100")
    assert moved == pytest.approx([32 * STEPS] * 2, rel=1e-5)
    assert not caplog.messages
    moved, _ = after_constant_steps(tmp_path / "beyond", samples=3201, weight="samples:100")
    assert moved == pytest.approx([32 * STEPS] * 2, rel=1e-5)
    assert len(caplog.messages) == 1 and "counts 32 times as much as one of that size, and its 3201 samples would be more" in caplog.text


@pytest.mark.swarm
@pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle")
@pytest.mark.parametrize(("weight", "expected"), [("equal", 1 / 3), ("samples:400", 0.75)])
def test_sites_agree_on_the_mean_of_their_samples(tmp_path: Path, weight: str, expected: float) -> None:
    sites = [(0.0, 100), (0.0, 200), (1.0, 900)]
    script = Path(__file__).parent / "weighted_trainer.py"
    with LocalSwarm(tmp_path, rounds=150) as swarm:
        peers = [swarm.start_peer(node) for node in range(3)]
        scripts = [swarm.start_script(node, script, str(target), str(samples), weight) for node, (target, samples) in enumerate(sites)]
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        swarm.audit()
        found = [re.search(r"number (\S+)", swarm.output(f"script{node}")) for node in range(3)]
        numbers = [float(each[1]) for each in found if each is not None]
    print(weight, numbers)
    assert numbers == pytest.approx([expected] * 3, abs=0.05)
