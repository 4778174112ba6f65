"""Hugging Face: `Trainer(..., callbacks=[mingle.hf.Callback(name="gpt2-lora")])` trains in a swarm."""

from __future__ import annotations

import functools
import logging
import math
from typing import Any

import transformers

from mingle.torch import Swarm, join

UNTIL_THE_END = 1_000_000_000
"""`max_steps` until the length of the run is known, which is when the training begins."""

log = logging.getLogger("mingle")


class Callback(transformers.TrainerCallback):
    """Joins when the training begins, exchanges after the steps that the plan wants, and ends the training with the run.

    Takes the options of `mingle.join`. Optimizer steps are counted, so gradient accumulation works; a step that mixed precision skipped does
    not count. `max_steps` is the length of the run unless the arguments have one, and learning-rate schedules of the `Trainer` follow it;
    epochs do not end the training. Metrics of the `Trainer`'s evaluations go to the peer (`eval_loss`, `eval_accuracy`), and so does the
    training loss that it logs. With a PEFT adapter only the adapter is exchanged. Weights that `load_best_model_at_end` loads stay in the
    model, and are not sent.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._wants_whole_run = False
        self._scheduled = 0
        self._most_steps = UNTIL_THE_END
        self.swarm: Swarm | None = None
        """The model in its swarm, once the training has begun."""

    def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Lets the training last until the end of the run, unless the arguments set the number of steps."""
        if args.max_steps <= 0:
            self._wants_whole_run = True
            args.max_steps = UNTIL_THE_END

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Waits for the first order, loads the swarm's weights, and sets the number of steps."""
        self.swarm = join(kwargs["model"], kwargs["optimizer"], raise_when_done=False, **self._options)
        self._scheduled = self._most_steps = state.max_steps
        if self.swarm.rounds == 0:
            # Without a swarm (`alone_ok`) there is no end of a run: the epochs count, unless the arguments set the number of steps.
            if self._wants_whole_run:
                self._set_steps(args, state, _steps_of_epochs(args, kwargs.get("train_dataloader")), kwargs)
            return
        self._follow_run(args, state, kwargs)
        if state.max_steps < state.global_step + self.swarm.steps_left:
            log.warning("the training ends after %d steps, before the run, which has %d", state.max_steps, state.global_step + self.swarm.steps_left)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stops the training at the end of the run. Steps are counted by the optimizer's hook."""
        swarm = self._joined()
        if not swarm.done:
            self._follow_run(args, state, kwargs)
            return
        if args.load_best_model_at_end and not control.should_training_stop:
            control.should_evaluate = control.should_save = True  # the final model may be the best one
        control.should_training_stop = True

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Reports the training loss."""
        if self.swarm is not None and logs and "loss" in logs:
            self.swarm.report(loss=logs["loss"])

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Reports the metrics of the `Trainer`'s evaluation, except times."""
        if self.swarm is not None:
            timings = ("_runtime", "_per_second", "_time", "epoch")
            numbers = {name: value for name, value in (metrics or {}).items() if isinstance(value, (int, float)) or hasattr(value, "item")}
            self.swarm.report(**{name: value for name, value in numbers.items() if not name.endswith(timings)})

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Sends the last steps, before the `Trainer` loads its best model."""
        self._leave_before_best(args, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Sends the last steps, before the `Trainer` loads its best model."""
        self._leave_before_best(args, control)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Detaches. Where the run is over, the model is the final one, or the best one with `load_best_model_at_end`."""
        swarm = self._joined()
        if self._wants_whole_run:
            args.max_steps = UNTIL_THE_END
        if args.load_best_model_at_end and state.best_model_checkpoint is not None:
            swarm.close(send_rest=False)
            return
        swarm.load_final()
        swarm.close()

    def _joined(self) -> Swarm:
        assert self.swarm is not None, "on_train_begin comes first"
        return self.swarm

    def _leave_before_best(self, args: Any, control: Any) -> None:
        if self.swarm is not None and args.load_best_model_at_end and control.should_training_stop:
            self.swarm.close()

    def _follow_run(self, args: Any, state: Any, kwargs: dict[str, Any]) -> None:
        """Sets the steps to those that the run has left, which change with its plan; a limit in the arguments stays."""
        swarm = self._joined()
        if swarm.done or swarm.alone:
            return
        steps = state.global_step + max(1, swarm.steps_left)
        self._set_steps(args, state, min(steps, self._most_steps), kwargs)

    def _set_steps(self, args: Any, state: Any, steps: int, kwargs: dict[str, Any]) -> None:
        if steps == self._scheduled:
            return
        self._scheduled = state.max_steps = steps
        if hasattr(state, "compute_steps"):
            state.compute_steps(args, steps)  # intervals given as a fraction of all steps
        _stretch(kwargs.get("lr_scheduler"), args, steps)


def _steps_of_epochs(args: Any, loader: Any) -> int:
    try:
        batches = len(loader)
    except TypeError:
        return UNTIL_THE_END
    return int(math.ceil(args.num_train_epochs * max(1, batches // args.gradient_accumulation_steps)))


def _stretch(scheduler: Any, args: Any, steps: int) -> None:
    """Makes a schedule of transformers, which depends on the number of steps, end after `steps`; a custom one stays as it is."""
    scheduler = getattr(scheduler, "scheduler", scheduler)
    lambdas = [each for each in getattr(scheduler, "lr_lambdas", ()) if isinstance(each, functools.partial) and "num_training_steps" in each.keywords]
    for each in lambdas:
        each.keywords["num_training_steps"] = steps
        if "num_warmup_steps" in each.keywords:
            each.keywords["num_warmup_steps"] = args.get_warmup_steps(steps)
    if lambdas and (optimizer := getattr(scheduler, "optimizer", None)) is not None:
        for group, rate, each in zip(optimizer.param_groups, scheduler.base_lrs, scheduler.lr_lambdas):
            group["lr"] = rate * each(scheduler.last_epoch)
