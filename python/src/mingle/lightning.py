"""Lightning: `Trainer(callbacks=[mingle.lightning.Callback(name="my-model")])` trains in a swarm."""

from __future__ import annotations

from typing import Any

try:
    import lightning.pytorch as pl
except ImportError:  # the package by its older name
    import pytorch_lightning as pl  # type: ignore[import-not-found,no-redef,unused-ignore]

from mingle.torch import Swarm, join


class Callback(pl.Callback):
    """Joins when the training begins, exchanges after the optimizer steps that the plan wants, and ends the training with the run.

    Takes the options of `mingle.join`. One optimizer is supported. Metrics that the validation logs go to the peer.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options
        self.swarm: Swarm | None = None
        """The model in its swarm, once the training has begun."""

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Waits for the first order, and loads the swarm's weights."""
        if len(trainer.optimizers) != 1:
            raise ValueError(f"mingle.lightning.Callback supports one optimizer, and there are {len(trainer.optimizers)}")
        options = {"name": type(pl_module).__name__, **self._options}
        self.swarm = join(pl_module, trainer.optimizers[0], raise_when_done=False, **options)
        self._stop_where_done(trainer)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Reports the loss of the batch, and stops the training at the end of the run. Steps are counted by the optimizer's hook."""
        if self.swarm is None:
            return
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is not None:
            self.swarm.report(loss=loss)
        self._stop_where_done(trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Reports the metrics that the validation logged; numbers that are not finite are left out."""
        if self.swarm is not None:
            self.swarm.report(**{name: value for name, value in trainer.callback_metrics.items() if name != "loss"})

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Detaches. Where the run is over, the model is the final one."""
        if self.swarm is not None:
            self.swarm.load_final()
            self.swarm.close()

    def _stop_where_done(self, trainer: Any) -> None:
        if self.swarm is not None and self.swarm.done:
            trainer.should_stop = True
