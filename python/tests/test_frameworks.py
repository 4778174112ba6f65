"""JAX, transformers and Lightning. Their absence is a skip here, and a failure in scripts/check-python --heavy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_host import FakeHost
from kept_logger import Kept
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


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        out = self.layer(x).squeeze(1)
        return {"loss": (out - labels).square().mean(), "logits": out}


def trainer_of(transformers: Any, folder: Path, model: nn.Module, callbacks: list[Any], **options: Any) -> Any:
    """A Trainer of transformers without progress bars, reports or saved models."""
    torch.manual_seed(1)
    samples = [{"x": torch.randn(3), "labels": torch.tensor(1.0)} for _ in range(16)]
    quiet = {"report_to": "none", "use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "per_device_train_batch_size": 4}
    arguments = transformers.TrainingArguments(str(folder / "out"), **(quiet | options))
    return transformers.Trainer(model, arguments, train_dataset=samples, eval_dataset=samples, callbacks=callbacks)


def test_the_trainer_of_transformers_trains_as_long_as_the_run_and_no_longer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    transformers = pytest.importorskip("transformers")
    import mingle.hf

    rates: list[float] = []

    class Rates(transformers.TrainerCallback):  # type: ignore[misc,name-defined]
        def on_step_end(self, *_: Any, **given: Any) -> None:
            rates.append(given["optimizer"].param_groups[0]["lr"])

    with FakeHost(tmp_path / "home", rounds=10, steps=5) as host:  # 50 steps, where 3 epochs of 4 batches would be 12
        callback = mingle.hf.Callback(home=host.home, name="net")
        trainer = trainer_of(
            transformers, tmp_path, Net(), [callback, Rates()], lr_scheduler_type="cosine", warmup_steps=0.1, learning_rate=0.1, logging_steps=0.5
        )
        trainer.train()
        assert trainer.state.global_step == trainer.state.max_steps == 50 and callback.swarm is not None and callback.swarm.done
        assert trainer.state.logging_steps == 25
    assert max(rates) == pytest.approx(0.1) and rates.index(max(rates)) == 4, "the warmup is a tenth of the run"
    assert rates[-1] == pytest.approx(0.0, abs=1e-6) and rates[27] == pytest.approx(0.05, abs=0.005), "the schedule ends with the run"
    with FakeHost(tmp_path / "second", rounds=10, steps=5) as host:
        callback = mingle.hf.Callback(home=host.home, name="net")
        trainer = trainer_of(transformers, tmp_path, Net(), [callback], max_steps=7)
        trainer.train()
        assert trainer.state.global_step == 7, "a limit of the user's own counts"
        assert [call.query["steps"] for call in host.calls if call.name == "exchange"] == ["5", "2"]
    assert "the training ends after 7 steps, before the run, which has 50" in caplog.text
    with FakeHost(tmp_path / "third", rounds=10, steps=5) as host:
        trainer = trainer_of(transformers, tmp_path, Net(), [])
        trainer.add_callback(mingle.hf.Callback(home=host.home, name="net"))
        trainer.train()
        assert trainer.state.global_step == 12 and "the training ends after 12 steps" in caplog.text
    with pytest.warns(RuntimeWarning, match="goes on alone"):
        callback = mingle.hf.Callback(home=tmp_path / "nobody", name="net", timeout=0.1, alone_ok=True)
        trainer = trainer_of(transformers, tmp_path, Net(), [callback])
        trainer.train()
    assert trainer.state.global_step == 12, "alone, epochs count"


@pytest.mark.parametrize("ends", ["with the run", "early", "early, by epochs"])
def test_the_best_model_stays_and_is_not_sent_as_a_change(tmp_path: Path, ends: str) -> None:
    transformers = pytest.importorskip("transformers")
    import mingle.hf

    class Worse(transformers.TrainerCallback):  # type: ignore[misc,name-defined]
        """Spoils the model from step 5 on, so that an early one is the best, and stops the training unless it ends with the run."""

        def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            if state.global_step > 4:
                with torch.no_grad():
                    given["model"].layer.bias.sub_(0.1)

        def on_evaluate(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            if ends != "with the run" and state.global_step >= 12:
                control.should_training_stop = True

    by = {"eval_strategy": "epoch", "save_strategy": "epoch"} if ends == "early, by epochs" else {"eval_strategy": "steps", "save_strategy": "steps"}
    with FakeHost(tmp_path / "home", rounds=10, steps=5) as host:
        model = Net()
        callback = mingle.hf.Callback(home=host.home, name="net")
        trainer = trainer_of(
            transformers,
            tmp_path,
            model,
            [callback, Worse()],
            learning_rate=1e-3,
            eval_steps=4,
            save_steps=4,
            load_best_model_at_end=True,
            metric_for_best_model="loss",
            **by,
        )
        trainer.train()
        assert trainer.state.best_global_step == 4
        bias = model.layer.bias.item()
        assert host.node.vector is not None and host.node.vector[3] < bias - 0.5, "the swarm's model is the trained one"
        assert all(change[3] < 0.05 for change in host.changes), "no change jumps back"
        assert sum(int(call.query["steps"]) for call in host.calls if call.name == "exchange") == trainer.state.global_step
        assert host.attached is None


def test_the_trainer_of_transformers_ends_with_the_run(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import mingle.hf

    samples = [{"x": torch.randn(3), "labels": torch.tensor(1.0)} for _ in range(64)]
    with FakeHost(tmp_path / "home", rounds=3, steps=5) as host:
        kept = Kept()
        callback = mingle.hf.Callback(home=host.home, name="net", samples=len(samples), keep_optimizer="bfloat16", log_to=kept)
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
        assert kept.of("swarm/steps") == {1: 5, 2: 10, 3: 15}
        assert list(kept.of("swarm/train/loss").values()) == pytest.approx(host.losses)
        evaluations = {entry["step"]: entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry}
        # The last evaluation of each round, and that of the final model, which no exchange takes along.
        assert kept.of("swarm/reported/eval_loss") == {1: evaluations[3], 2: evaluations[9], 3: evaluations[15]}
        assert kept.calls == ["open", "close"]


def test_a_metric_of_the_trainer_that_is_no_number_ends_nothing(host: FakeHost, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import mingle.hf

    callback = mingle.hf.Callback(home=host.home, name="net")
    trainer = trainer_of(transformers, tmp_path, Net(), [callback], eval_strategy="steps", eval_steps=2)
    trainer.compute_metrics = lambda _: {"auc": float("nan"), "per_class": [0.3, 0.7], "bias": 0.5}
    trainer.train()
    assert trainer.state.global_step == 20 and callback.swarm is not None and callback.swarm.done
    assert "eval_bias" in host.metrics and "eval_auc" not in host.metrics and "eval_per_class" not in host.metrics


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
            self.log("val_auc", torch.tensor(float("nan")))  # as of a batch with one class

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    with FakeHost(tmp_path / "home", rounds=3, steps=5) as host, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, kept = Net(), Kept()
        batches = torch.utils.data.DataLoader(torch.randn(64, 3), batch_size=8)
        trainer = pl.Trainer(
            max_epochs=1000,
            accelerator="cpu",
            accumulate_grad_batches=2,
            callbacks=[mingle.lightning.Callback(home=host.home, log_to=kept)],
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
        assert kept.of("swarm/steps") == {1: 5, 2: 10, 3: 15}
        assert list(kept.of("swarm/train/loss").values()) == pytest.approx(host.losses)
        assert kept.of("swarm/reported/val_loss")[3] == trainer.callback_metrics["val_loss"].item()
        assert kept.calls == ["open", "close"]


def test_an_optimizer_and_a_model_of_opacus_are_looked_through(tmp_path: Path) -> None:
    opacus = pytest.importorskip("opacus")
    with FakeHost(tmp_path / "home", rounds=3, steps=5) as host, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 3)), batch_size=8)
        private, optimizer, loader = opacus.PrivacyEngine().make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=batches, noise_multiplier=0.1, max_grad_norm=1.0
        )
        with mingle.join(private, optimizer, home=host.home) as swarm:
            while True:
                for (x,) in loader:
                    optimizer.zero_grad()
                    private(x).square().mean().backward()
                    optimizer.step()
        assert swarm.exchanges == 3 and [name for name, _ in host.node.layout] == ["0.weight", "0.bias", "2.weight", "2.bias"]
        assert len(host.changes) == 3 and all(any(change) for change in host.changes)


def test_the_final_adapter_of_peft_is_loaded(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")

    def adapted() -> Any:
        torch.manual_seed(0)
        return peft.get_peft_model(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)), peft.LoraConfig(r=2, target_modules=["0"]))

    model = adapted()
    with FakeHost(tmp_path / "home", rounds=1) as host:
        with mingle.join(model, None, home=host.home) as swarm:
            with torch.no_grad():
                for _, parameter in swarm.tensors.parameters():
                    parameter.add_(1.0)
            swarm.step()
            swarm.sync()
        host.finish()
    other = adapted()
    mingle.load(other, host.home)
    x = torch.ones(1, 3)
    assert torch.equal(other(x), model(x)) and not torch.equal(adapted()(x), model(x))
