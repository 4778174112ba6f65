"""mingle.load: the final model of a run in a PyTorch model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from fake_host import FakeHost
from torch import nn

import mingle


class Tied(nn.Module):
    """A model whose input and output embeddings share one table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.body = nn.Linear(3, 3)
        self.out = nn.Linear(3, 5, bias=False)
        self.out.weight = self.table.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.out(self.body(self.table(words)))  # type: ignore[no-any-return]


def trained(model: nn.Module, home: Path) -> nn.Module:
    with FakeHost(home, rounds=3) as host:
        with mingle.join(model, None, home=home) as swarm:
            while not swarm.done:
                with torch.no_grad():
                    for parameter in model.parameters():
                        if parameter.requires_grad:
                            parameter.add_(torch.randn_like(parameter))
                swarm.step()
        host.finish()
    return model


def test_the_final_model_is_loaded_with_tied_weights_and_wrappers(tmp_path: Path) -> None:
    model = trained(Tied(), tmp_path)
    other = Tied()
    mingle.load(other, tmp_path)
    assert other.out.weight is other.table.weight
    assert all(torch.equal(one, two) for one, two in zip(model.state_dict().values(), other.state_dict().values()))
    other = Tied()
    other.body = torch.compile(other.body, backend="eager")  # type: ignore[assignment]
    mingle.load(nn.DataParallel(other), tmp_path / "model.safetensors")
    assert torch.equal(model.get_parameter("body.weight"), other.body.weight)


def test_only_the_adapter_is_loaded_and_what_is_frozen_stays(tmp_path: Path) -> None:
    model = Tied()
    model.table.requires_grad_(False)
    trained(model, tmp_path)
    other = Tied().half()
    before = other.table.weight.clone()
    mingle.load(other, tmp_path)
    assert torch.equal(other.table.weight, before)
    assert torch.equal(other.body.weight, model.get_parameter("body.weight").half())


def test_a_home_without_a_model_and_a_model_of_another_kind_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(mingle.MingleError, match="there is no .*model.safetensors: a run writes it"):
        mingle.load(Tied(), tmp_path)
    trained(Tied(), tmp_path)
    monkeypatch.setenv("MINGLE_HOME", str(tmp_path))
    with pytest.raises(mingle.LayoutError, match="has tensors that the Linear lacks: `table.weight`"):
        mingle.load(nn.Linear(3, 3))
    wide = Tied()
    wide.body = nn.Linear(3, 4)
    before = wide.table.weight.clone()
    with pytest.raises(mingle.LayoutError, match=r"`body.weight` \(\[3, 3\] in the file, \[4, 3\] in the model\)"):
        mingle.load(wide)
    assert torch.equal(wide.table.weight, before), "nothing is loaded in part"
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 20)
    with pytest.raises(mingle.MingleError, match="is no model of f32"):
        mingle.load(Tied())


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "model.safetensors"
    os.mkfifo(pipe)
    with pytest.raises(mingle.MingleError, match="is a pipe or a device"):
        mingle.load(Tied(), tmp_path)
