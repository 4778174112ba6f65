"""Models in the training loops of other frameworks, each at a site that sees some labels or patterns more than others.

usage: MINGLE_HOME=HOME python framework_models.py KIND SITE SITES
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from own_models import Digits, Metrics
from torch import nn
from torch.nn import functional

import mingle

HIDDEN = 32
LETTERS = 32


def hugging_face(site: int, sites: int) -> None:
    """The Trainer of transformers with its default AdamW, a cosine schedule and clipped gradients."""
    import transformers

    import mingle.hf

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            logits = self.layers(x)
            return {"loss": functional.cross_entropy(logits, labels), "logits": logits}

    digits, model = Digits(site, sites), Network()
    samples = [{"x": image, "labels": label} for image, label in zip(digits.images, digits.labels, strict=True)]
    callback = mingle.hf.Callback(name="digits", evaluate=lambda: digits.accuracy(model.layers))
    _train_by_transformers(transformers, model, samples, callback, learning_rate=3e-3, lr_scheduler_type="cosine")


def gpt2_lora(site: int, sites: int) -> None:
    """An adapter of peft above a frozen GPT-2; each site has sequences that count up by a step of its own."""
    import peft
    import transformers

    import mingle.hf

    torch.manual_seed(0)  # the frozen weights are the same at all sites
    config = transformers.GPT2Config(vocab_size=LETTERS, n_positions=LETTERS, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
    adapter = peft.LoraConfig(r=8, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True)
    model: Any = peft.get_peft_model(transformers.GPT2LMHeadModel(config), adapter)

    def sequences(step: int, count: int, seed: int) -> torch.Tensor:
        starts = torch.randint(0, LETTERS, (count, 1), generator=torch.Generator().manual_seed(seed))
        return (starts + step * torch.arange(LETTERS)) % LETTERS

    held_out = torch.cat([sequences(1 + step, 32, 99) for step in range(sites)])

    def evaluate() -> Metrics:
        return {"val_loss": (model(input_ids=held_out, labels=held_out).loss.item(), len(held_out))}

    samples = [{"input_ids": row, "labels": row} for row in sequences(1 + site, 256, site)]
    callback = mingle.hf.Callback(name="gpt2-lora", evaluate=evaluate)
    _train_by_transformers(transformers, model, samples, callback, learning_rate=1e-2, lr_scheduler_type="constant")


def _train_by_transformers(transformers: Any, model: nn.Module, samples: list[Any], callback: Any, **options: Any) -> None:
    quiet = {"report_to": "none", "use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "logging_strategy": "no"}
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(folder, per_device_train_batch_size=16, **quiet, **options)
        transformers.Trainer(model, arguments, train_dataset=samples, callbacks=[callback]).train()


def lightning(site: int, sites: int) -> None:
    """The Trainer of Lightning with Adam and two batches in a step."""
    import lightning.pytorch as pl

    import mingle.lightning

    class Network(pl.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 10))

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            images, labels = batch
            return functional.cross_entropy(self.layers(images), labels)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=3e-3)

    digits, model = Digits(site, sites), Network()
    samples = torch.utils.data.TensorDataset(digits.images, digits.labels)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    callback = mingle.lightning.Callback(name="digits", evaluate=lambda: digits.accuracy(model.layers))
    trainer = pl.Trainer(max_epochs=-1, accelerator="cpu", accumulate_grad_batches=2, callbacks=[callback], **quiet)
    trainer.fit(model, torch.utils.data.DataLoader(samples, batch_size=16, shuffle=True))


def jax(site: int, sites: int) -> None:
    """A pytree of JAX, gradient steps without an optimizer, and an exchange after each round."""
    import jax
    import jax.numpy as jnp
    import numpy

    digits = Digits(site, sites)
    test_images, test_labels = (tensor.numpy() for tensor in digits.test.tensors)
    key = jax.random.PRNGKey(site)
    first = {"a": 0.1 * jax.random.normal(key, (64, HIDDEN)), "b": jnp.zeros(HIDDEN), "c": 0.1 * jax.random.normal(key, (HIDDEN, 10))}

    def scores(model: Any, images: Any) -> Any:
        return jnp.tanh(images.reshape(-1, 64) @ model["a"] + model["b"]) @ model["c"]

    @jax.jit
    def step(model: Any, images: Any, labels: Any) -> Any:
        def loss(model: Any) -> Any:
            return -jnp.take_along_axis(jax.nn.log_softmax(scores(model, images)), labels[:, None], 1).mean()

        return jax.tree_util.tree_map(lambda weight, slope: weight - 0.3 * slope, model, jax.grad(loss)(model))

    def evaluate(model: Any) -> Mapping[str, Any]:
        right = numpy.asarray(scores(model, test_images)).argmax(1) == test_labels
        return {"accuracy": (float(right.mean()), len(right))}

    with mingle.Exchange(None, "digits", first, evaluate=evaluate) as swarm:
        while not swarm.done:
            model = swarm.model
            for _ in range(swarm.steps):
                images, labels = digits.batch()
                model = step(model, images.numpy(), labels.numpy())
            swarm.exchange(model)


KINDS = {train.__name__: train for train in (hugging_face, gpt2_lora, lightning, jax)}

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # those of the frameworks
    torch.set_num_threads(1)
    kind, site, sites = sys.argv[1:]
    torch.manual_seed(int(site))
    KINDS[kind](int(site), int(sites))
