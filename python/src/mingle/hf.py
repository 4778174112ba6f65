"""Hugging Face: `Trainer(..., callbacks=[mingle.hf.Callback(name="gpt2-lora")])` trains in a swarm."""

from __future__ import annotations

from typing import Any

import transformers

from mingle.torch import Swarm, join


class Callback(transformers.TrainerCallback):
    """Joins when the training begins, exchanges after the steps that the plan wants, and ends the training with the run.

    Takes the options of `mingle.join`. Optimizer steps count, so gradient accumulation comes out right; a step that mixed precision
    skipped does not. Metrics of the `Trainer`'s evaluations go to the peer (`eval_loss`, `eval_accuracy`), and so does the training loss
    that it logs. With a PEFT adapter only the adapter is exchanged.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self.swarm: Swarm | None = None
        """The model in its swarm, once the training has begun."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Waits for the first order, and loads the swarm's weights."""
        self.swarm = join(kwargs["model"], kwargs["optimizer"], raise_when_done=False, **self._options)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stops the training at the end of the run. Steps are counted by the optimizer's hook."""
        if self._joined().done:
            control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Reports the training loss."""
        if self.swarm is not None and logs and "loss" in logs:
            self.swarm.report(loss=logs["loss"])

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Reports what the `Trainer` evaluated, apart from times."""
        if self.swarm is not None:
            timings = ("_runtime", "_per_second", "_time", "epoch")
            numbers = {name: value for name, value in (metrics or {}).items() if isinstance(value, (int, float))}
            self.swarm.report(**{name: value for name, value in numbers.items() if not name.endswith(timings)})

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Detaches. Where the run is over, the model is the final one."""
        swarm = self._joined()
        swarm.load_final()
        swarm.close()

    def _joined(self) -> Swarm:
        assert self.swarm is not None, "on_train_begin comes first"
        return self.swarm
