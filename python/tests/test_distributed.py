"""Several processes at one site, over gloo on the processor."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_host import FakeHost
from kept_logger import read_lines
from prepared_python import run_together

TESTS = Path(__file__).parent


def run(host: FakeHost, tmp_path: Path, mode: str = "train") -> list[tuple[int, str]]:
    """Exit codes and outputs of two processes."""
    command = [str(TESTS / "ddp_training.py"), str(host.home)]
    environment = {"PYTHONPATH": str(TESTS.parent / "src"), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    ranks = run_together([[*command, str(rank), "2", str(tmp_path / f"meet-{mode}"), mode] for rank in range(2)], environment, tmp_path)
    for number, ended in enumerate(ranks):
        print(f"rank {number}: {ended.stderr}")
    return [(ended.returncode, ended.stdout) for ended in ranks]


def test_rank_0_exchanges_and_all_ranks_hold_the_same_model(host: FakeHost, tmp_path: Path) -> None:
    first, second = run(host, tmp_path)
    assert first == second
    assert first[0] == 0 and first[1].startswith("20 steps, round 5, sum ")
    assert host.sessions == 1 and len(host.changes) == 5
    assert host.node.layout[0] == ["0.weight", [4, 3]], "names are those without the wrapper"
    assert (host.home / "model.pt").exists()
    assert host.node.state
    logged = read_lines(host.home / "rank0.jsonl")
    assert [values["swarm/steps"] for round, values in logged.items() if round] == [[4], [8], [12], [16], [20]]
    assert not (host.home / "rank1.jsonl").exists(), "rank 0 logs alone"


def test_what_fails_on_rank_0_is_raised_on_all(host: FakeHost, tmp_path: Path) -> None:
    first, second = run(host, tmp_path, "nan")
    assert first[0] == second[0] == 3
    assert first[1].startswith("NotFinite: the change is not finite in `0.bias` (4 of 4)")
    assert second[1].startswith("NotFinite: rank 0: the change is not finite in `0.bias` (4 of 4)")


@pytest.mark.parametrize(("mode", "complaint"), [("gone", "TimedOut: "), ("overlap", "LayoutError: overlap=True does not work")])
def test_what_cannot_be_ends_all_ranks(host: FakeHost, tmp_path: Path, mode: str, complaint: str) -> None:
    if mode == "gone":
        host.stop()
    for code, output in run(host, tmp_path, mode):
        assert code == 3 and output.startswith(complaint)
