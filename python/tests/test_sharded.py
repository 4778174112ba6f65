"""Models that `fully_shard` has split over the processes of a site, over gloo on the processor."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest
import torch
from fake_host import FakeHost
from prepared_python import run_together

import mingle
from mingle.tensors import ModelTensors

TESTS = Path(__file__).parent
NUMBERS = 3 * 5 + 5 + 5 * 5 + 5 + 5 + 5 + 5 + 1
"""Numbers of the model of fsdp_training.py."""


def run(host: FakeHost, tmp_path: Path, mode: str, count: int = 2) -> list[tuple[int, str]]:
    """Exit codes and outputs of `count` processes of a site."""
    command = [str(TESTS / "fsdp_training.py"), str(host.home)]
    environment = {"PYTHONPATH": str(TESTS.parent / "src"), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    meeting = str(tmp_path / f"meet-{mode}-{count}")
    ranks = run_together([[*command, str(rank), str(count), meeting, mode] for rank in range(count)], environment, tmp_path)
    for number, ended in enumerate(ranks):
        print(f"rank {number}: {ended.stderr}")
    return [(ended.returncode, ended.stdout) for ended in ranks]


def write_begin(home: Path) -> float:
    """Writes a model of halves as a file, and returns the sum of its numbers."""
    names = {"0.weight": [5, 3], "0.bias": [5], "2.weight": [5, 5], "2.bias": [5], "3.weight": [5], "3.bias": [5], "4.weight": [1, 5], "4.bias": [1]}
    header, at = {}, 0
    for name, shape in names.items():
        size = 4 * int(numpy.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    home.joinpath("begin.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + numpy.full(NUMBERS, 0.5, "f4").tobytes())
    return 0.5 * NUMBERS


@pytest.mark.parametrize("mode", ["train", "root"])
def test_a_sharded_model_trains_as_a_whole_one_with_the_same_global_batch(tmp_path: Path, mode: str) -> None:
    finals, evaluations, hosts = [], [], []
    for count in (1, 2):
        with FakeHost(tmp_path / f"home{count}", drift=0.01, evaluate_every=2) as host:
            expected = write_begin(host.home)
            told = run(host, tmp_path, mode, count)
            assert [code for code, _ in told] == [0] * count, told
            assert host.node.round == 5 and len(host.changes) == 5 and host.sessions == 1
            assert host.node.vector is not None
            finals.append(numpy.frombuffer(host.node.vector, "f4").copy())
            evaluations.append([found["output"][0] for found in host.evaluations])
            hosts.append(host)
            host.finish()
    assert hosts[0].node.layout == hosts[1].node.layout and hosts[0].node.name == hosts[1].node.name == "Sequential"
    assert float(numpy.abs(finals[0] - finals[1]).max()) < 1e-5, "to the rounding of sums in another order"
    assert float(numpy.abs(finals[0]).max()) > 0.01 and len(evaluations[0]) == 3
    assert evaluations[0] == pytest.approx(evaluations[1], abs=1e-5)
    first, second = (output for _, output in told)
    assert first.startswith(f"{22 if mode == 'root' else 20} steps, round 5, sum ")
    assert first.split(",")[:3] == second.split(",")[:3]
    here = [int(output.split(", ")[3].split()[0]) for output in (first, second)]
    assert sum(here) == NUMBERS and max(here) < 0.7 * NUMBERS, "each process holds its part alone"
    if mode == "root":
        assert float(first.split("sum ")[1].split(",")[0]) == expected, "mingle.load writes into a sharded model"
    # The final model of the swarm, in one process and whole.
    layers = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 5), torch.nn.LayerNorm(5), torch.nn.Linear(5, 1))
    mingle.load(layers, hosts[1].home)
    loaded = numpy.concatenate([parameter.detach().numpy().ravel() for parameter in layers.parameters()])
    assert loaded.tobytes() == finals[1].tobytes()
    saved = torch.load(hosts[1].home / "model.pt")
    assert all(torch.equal(saved[name], tensor) for name, tensor in layers.state_dict().items()), "what swarm.save wrote is whole"


def test_bfloat16_is_rounded_and_the_rounding_is_not_sent(tmp_path: Path) -> None:
    with FakeHost(tmp_path / "home", rounds=2, model=[0.1] * NUMBERS) as host:
        told = run(host, tmp_path, "half")
        assert [code for code, _ in told] == [0, 0], told
        change = torch.frombuffer(bytearray(host.changes[0].tobytes()), dtype=torch.float32)
    # 0.1 is no bfloat16. The change begins at the next one, and both ends of it are numbers of that type.
    ends = change + torch.tensor(0.1).bfloat16().float()
    assert change.count_nonzero() > 5 and torch.equal(ends, ends.bfloat16().float())


def test_the_steps_since_the_last_exchange_are_sent_at_the_end_of_the_loop(host: FakeHost, tmp_path: Path) -> None:
    told = run(host, tmp_path, "rest")
    assert [code for code, _ in told] == [0, 0], told
    assert len(host.changes) == 2 and host.attached is None
    assert numpy.abs(numpy.frombuffer(host.changes[1], "f4")).max() > 0


def test_reset_restores_all_parts(host: FakeHost, tmp_path: Path) -> None:
    first, second = run(host, tmp_path, "reset")
    assert first[0] == second[0] == 0 and first[1].startswith("22 steps, round 5")


def test_what_is_not_finite_is_raised_on_all_ranks(host: FakeHost, tmp_path: Path) -> None:
    first, second = run(host, tmp_path, "nan")
    assert first[0] == second[0] == 3
    assert first[1].startswith("NotFinite: the change is not finite in ")
    assert second[1].startswith("NotFinite: rank 0: the change is not finite in ")


def test_a_rank_that_dies_ends_the_others_and_the_session(host: FakeHost, tmp_path: Path) -> None:
    first, second = run(host, tmp_path, "dies")
    assert second[0] == 9
    assert first[0] == 4 and first[1].startswith("RuntimeError: "), "an error of the process group, and no wait for ever"
    assert host.attached is None and len(host.changes) == 1, "the peer is told, and nothing half done is sent"


@pytest.mark.parametrize(
    ("mode", "complaint"),
    [
        ("tensor-parallel", "LayoutError: `0.weight` is sharded over a mesh of 2 dimensions, as for tensor parallelism, which is not supported"),
        ("old", "LayoutError: FullyShardedDataParallel is not supported"),
        ("keep", "LayoutError: keep_optimizer does not work with a sharded model"),
    ],
)
def test_what_is_not_supported_is_refused_on_all_ranks(host: FakeHost, tmp_path: Path, mode: str, complaint: str) -> None:
    for code, output in run(host, tmp_path, mode):
        assert code == 3 and output.startswith(complaint), output
    assert host.calls == []


def test_a_whole_model_is_none_that_is_sharded() -> None:
    assert not ModelTensors(torch.nn.Linear(2, 1)).is_sharded
