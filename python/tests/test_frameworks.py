"""JAX, transformers and Lightning. Their absence is a skip here, and a failure of scripts/check-python --heavy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_host import FakeHost
from torch import nn

import mingle

pytestmark = pytest.mark.heavy


def test_a_pytree_of_jax_is_a_model(host: FakeHost) -> None:
    jax = pytest.importorskip("jax")
    weights = {"dense": {"w": jax.numpy.ones((2, 3)), "b": jax.numpy.zeros(3)}, "scale": jax.numpy.array(2.0)}
    with mingle.Exchange(host.home, "tree", weights) as swarm:
        while not swarm.done:
            model = jax.tree_util.tree_map(lambda leaf: leaf + 1, swarm.model)
            swarm.exchange(model)
    assert swarm.model["dense"]["w"].tolist() == [[6.0] * 3] * 2 and float(swarm.model["scale"]) == 7.0
    assert host.node.layout == [["['dense']['b']", [3]], ["['dense']['w']", [2, 3]], ["['scale']", []]]


def test_a_flatten_function_of_jax(host: FakeHost) -> None:
    pytest.importorskip("jax")
    import jax.numpy
    from jax.flatten_util import ravel_pytree

    swarm = mingle.Exchange(host.home, "tree", [jax.numpy.ones(2), jax.numpy.zeros(1)], flatten=ravel_pytree)
    after = swarm.exchange([jax.numpy.full(2, 3.0), jax.numpy.zeros(1)])
    assert [leaf.tolist() for leaf in after] == [[3.0, 3.0], [0.0]]


def test_the_trainer_of_transformers_ends_with_the_run(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import mingle.hf

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 1)

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            out = self.layer(x).squeeze(1)
            return {"loss": (out - labels).square().mean(), "logits": out}

    samples = [{"x": torch.randn(3), "labels": torch.tensor(1.0)} for _ in range(64)]
    with FakeHost(tmp_path / "home", rounds=3, steps=5) as host:
        callback = mingle.hf.Callback(home=host.home, name="net", samples=len(samples), keep_optimizer="bfloat16")
        arguments = transformers.TrainingArguments(
            str(tmp_path / "out"),
            max_steps=1000,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            eval_strategy="steps",
            eval_steps=3,
            logging_steps=2,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        )
        model = Net()
        trainer = transformers.Trainer(model, arguments, train_dataset=samples, eval_dataset=samples[:8], callbacks=[callback])
        result = trainer.train()
        assert result.global_step == 15, "optimizer steps count, not batches"
        assert host.node.vector is not None and model.layer.bias.item() == host.node.vector[3], "the model is the final one"
        assert "eval_loss" in host.metrics and not any("runtime" in name for name in host.metrics)
        assert host.losses and host.attached is None


def test_a_trainer_of_lightning_ends_with_the_run(tmp_path: Path) -> None:
    pl = pytest.importorskip("lightning.pytorch")
    import mingle.lightning

    class Net(pl.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 1)

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            return self.layer(batch).square().mean()

        def validation_step(self, batch: Any, _: int) -> None:
            self.log("val_loss", self.layer(batch).square().mean())

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    with FakeHost(tmp_path / "home", rounds=3, steps=5) as host, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Net()
        batches = torch.utils.data.DataLoader(torch.randn(64, 3), batch_size=8)
        trainer = pl.Trainer(
            max_epochs=1000,
            accelerator="cpu",
            accumulate_grad_batches=2,
            callbacks=[mingle.lightning.Callback(home=host.home)],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(model, batches, batches)
        assert trainer.global_step == 15
        assert host.node.name == "Net" and host.losses and "val_loss" in host.metrics
        assert host.node.vector is not None and model.layer.bias.item() == host.node.vector[3]
        assert host.attached is None
