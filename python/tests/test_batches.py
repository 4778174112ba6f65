"""The batches of a run: as many as its steps, in epochs, and the end of the loop."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from fake_host import FakeHost
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

import mingle


def joined(home: Path, **options: object) -> tuple[mingle.Swarm, torch.optim.Optimizer]:
    """A swarm with a model of one number, and the optimizer of it."""
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return mingle.join(model, optimizer, home=home, **options), optimizer  # type: ignore[arg-type]


def step(optimizer: torch.optim.Optimizer) -> None:
    for parameter in optimizer.param_groups[0]["params"]:
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()


def test_a_loop_over_batches_goes_on_until_the_run_is_over_and_ends_without_an_exception(host: FakeHost) -> None:
    swarm, optimizer = joined(host.home)
    taken, lengths = [], []
    with swarm:
        batches = swarm.batches([10, 20, 30])
        for batch in batches:
            taken.append(batch)
            step(optimizer)
            lengths.append(len(batches))
        after = "the loop"
    assert taken == [10, 20, 30] * 6 + [10, 20], "20 steps: 5 rounds of 4"
    assert lengths == [20] * 20 and after == "the loop"
    assert swarm.done and swarm.exchanges == 5


def test_a_progress_bar_gets_its_total(host: FakeHost) -> None:
    swarm, optimizer = joined(host.home)
    with swarm:
        for _ in range(6):
            step(optimizer)
        assert len(swarm.batches([1, 2])) == 14 == swarm.total_steps - 6, "from now on"
        assert len(swarm.batches([1, 2], accumulate=3)) == 42


def test_several_batches_may_make_a_step(host: FakeHost) -> None:
    swarm, optimizer = joined(host.home)
    with swarm:
        batches = swarm.batches([1, 2], accumulate=3)
        count = 0
        for count, _ in enumerate(batches, 1):
            assert len(batches) == 60, count
            if count % 3 == 0:
                step(optimizer)
    assert count == 60 and swarm.done


def test_outside_of_the_loop_the_end_is_an_exception_as_ever(host: FakeHost) -> None:
    swarm, optimizer = joined(host.home)
    for _ in swarm.batches([1]):
        step(optimizer)
        break
    with pytest.raises(mingle.SwarmDone):
        for _ in range(19):
            step(optimizer)
    assert list(swarm.batches([1])) == [], "nothing is left"
    swarm.close()


def test_a_loader_gets_new_epochs_and_its_sampler_their_numbers(host: FakeHost) -> None:
    samples = list(range(8))
    sampler = DistributedSampler(samples, num_replicas=1, rank=0, seed=3)  # type: ignore[arg-type,var-annotated]
    swarm, optimizer = joined(host.home)
    taken: list[int] = []
    with swarm:
        for batch in swarm.batches(DataLoader(samples, batch_size=2, sampler=sampler)):  # type: ignore[arg-type,var-annotated]
            taken.extend(batch.tolist())
            step(optimizer)
    epochs = [taken[begin : begin + 8] for begin in range(0, len(taken), 8)]
    assert len(epochs) == 5 and all(sorted(epoch) == samples for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 5, "each is shuffled anew"


def test_a_loader_without_batches_is_told(host: FakeHost) -> None:
    def once() -> Iterator[int]:
        yield from (1, 2, 3)

    swarm, optimizer = joined(host.home)
    with pytest.raises(mingle.MingleError, match="no batch, or none any more"):
        for _ in swarm.batches(once()):
            step(optimizer)
    assert swarm.total_steps - swarm.steps_left == 3
    with pytest.raises(mingle.MingleError, match="accumulate is .* and not 0"):
        swarm.batches([1], accumulate=0)
    swarm.close()


def test_a_training_that_goes_on_alone_ends_where_the_run_would_have(host: FakeHost) -> None:
    swarm, optimizer = joined(host.home, alone_ok=True, timeout=0.2)
    count = 0
    with swarm, pytest.warns(RuntimeWarning, match="goes on alone"):
        batches = swarm.batches([1, 2, 3])
        for count, _ in enumerate(batches, 1):
            if count == 6:
                host.stop()
            step(optimizer)
    assert swarm.alone and count == len(batches) == 20


def test_without_a_peer_there_is_one_epoch(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="goes on alone"):
        swarm, optimizer = joined(tmp_path, alone_ok=True, timeout=0.1)
    batches = swarm.batches([1, 2, 3])
    assert len(batches) == 3 and list(batches) == [1, 2, 3]
    swarm.close()


@pytest.mark.heavy
def test_the_bar_of_tqdm_is_full_at_the_end(host: FakeHost) -> None:
    tqdm = pytest.importorskip("tqdm")
    swarm, optimizer = joined(host.home)
    with swarm, tqdm.tqdm(swarm.batches([1, 2, 3]), file=io.StringIO()) as bar:
        assert bar.total == 20
        for _ in bar:
            step(optimizer)
    assert bar.n == 20
