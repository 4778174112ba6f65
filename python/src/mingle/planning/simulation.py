"""`mingle.simulate(plan)`: a swarm that trains by a plan in one process, a built-in model or one of your own."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mingle.errors import PlanError
from mingle.planning.elsewhere import Evaluate, MakeTrainer, Trainers, answer, read_vector
from mingle.planning.frames import data_frame
from mingle.planning.plans import FilePath, Plan
from mingle.planning.program import arguments_of, lines_of, running

if TYPE_CHECKING:
    import torch

Row = dict[str, Any]
"""An evaluation: `round`, `slots`, `link_bytes`, `disagreement`, and metrics; for built-in models `epochs`, `loss`, `mean_accuracy`,
`worst_accuracy`, `worst_loss`, and what the task adds."""


def simulate(
    plan: Plan,
    make_trainer: MakeTrainer | None = None,
    *,
    evaluate: Evaluate | None = None,
    rounds: int | None = None,
    model: str | None = None,
    data: str | None = None,
    split: str | None = None,
    local_steps: int | None = None,
    batch_size: int | None = None,
    optimizer: str | None = None,
    learning_rate: float | None = None,
    momentum: float | None = None,
    codec: str | None = None,
    wait: str | None = None,
    momentum_across_rounds: float | str | None = None,
    seed: int = 0,
    evaluate_every: int | None = None,
    target: str | None = None,
    options: dict[str, Any] | None = None,
    on_evaluation: Callable[[Row], None] | None = None,
    progress: bool | None = None,
) -> Simulation:
    """A training on a simulated swarm, by `mingle simulate`: the same nodes, mixing and codecs as in peers, in one process and without sockets.

    `make_trainer(node)` makes the training of a node: a PyTorch model, and a function that takes one optimizer step of it on the data of that
    node. All begin with the model of node 0. As in a run of peers the last rounds mix without training, and with `wait="sync"` the final models
    are to the bit those of peers that train so. `evaluate(model)` returns metrics as for `mingle.join`; rows have their mean over nodes, the
    least and the most.

    Without `make_trainer` a built-in model trains: `model`, `data`, `split`, `batch_size`, `optimizer`, `learning_rate`, `momentum` and
    `target` are for that. Options that are not given are as in `mingle simulate --help`: 200 rounds of the softmax model on the digits that the
    program carries. `options` has any other of its options by name: `{"loss": 0.1}`. The same seed gives the same numbers.

    `on_evaluation` is called with each row as it comes. `progress` writes a line to stderr meanwhile; unless given, where stderr is a terminal.

        simulation = mingle.simulate(plan, rounds=100, split="dirichlet:0.3")
        simulation.to_frame()["mean_accuracy"].plot()

        def make_trainer(node):
            model, optimizer = build()
            return model, lambda: step(model, optimizer, next(batches[node]))

        simulation = mingle.simulate(plan, make_trainer, rounds=100, evaluate=accuracy)
        simulation.models[0]
    """
    if not isinstance(plan, Plan):
        raise PlanError(f"a {type(plan).__name__} is no plan: mingle.plan(graph) makes one, and mingle.Plan.read(path) reads one")
    named = {
        "rounds": rounds,
        "model": model,
        "data": data,
        "split": split,
        "local_steps": local_steps,
        "batch_size": batch_size,
        "optimizer": optimizer,
        "learning_rate": learning_rate,
        "momentum": momentum,
        "codec": codec,
        "wait": wait,
        "momentum_across_rounds": momentum_across_rounds,
        "seed": seed,
        "evaluate_every": evaluate_every,
        "target": target,
        **(options or {}),
    }
    line = _ProgressLine(sys.stderr.isatty() if progress is None else progress)

    def show(row: Row) -> None:
        line.show(row, rounds)
        if on_evaluation is not None:
            on_evaluation(row)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        plan.save(path)
        arguments = ["simulate", f"--plan={path}", *arguments_of(named)]
        if make_trainer is None:
            simulation = _builtin(arguments, show)
        else:
            simulation = _elsewhere(arguments, Trainers(make_trainer, len(plan.nodes)), evaluate, show)
    line.end()
    return simulation


def _builtin(arguments: list[str], show: Callable[[Row], None]) -> Simulation:
    """A simulation that trains in the program."""
    rows: list[Row] = []
    for text in lines_of(*arguments):
        document = json.loads(text)
        if document.pop("schema", None) == "mingle.simulation/1":
            return Simulation(rows, document)
        rows.append(document)
        show(document)
    raise PlanError("the program ended before the simulation")


def _elsewhere(arguments: list[str], trainers: Trainers, evaluate: Evaluate | None, show: Callable[[Row], None]) -> Simulation:
    """A simulation that trains in this process."""
    rows: list[Row] = []
    summary: Row = {}
    with running(*arguments, f"--train-elsewhere={trainers.parameters}") as process:
        process.input.write(trainers.initial())
        process.input.flush()
        for process.last in iter(process.output.readline, b""):
            document = json.loads(process.last)
            schema = document.pop("schema", None)
            if schema == "mingle.simulation-order/1":
                answer(trainers, document, process.input, process.output)
            elif schema == "mingle.simulation-models/1":
                for node in range(document.pop("nodes")):
                    trainers.load(node, read_vector(process.output, trainers.parameters))
                rows.append(document | (trainers.evaluate(evaluate) if evaluate is not None else {}))
                show(rows[-1])
            elif schema == "mingle.simulation-end/1":
                summary = document | {key: value for key, value in rows[-1].items() if key not in document}
    return Simulation(rows, summary, trainers.models)


@dataclass(frozen=True, repr=False)
class Simulation:
    """A simulated training: its evaluations and its end."""

    rows: list[Row]
    """The evaluations, in order."""
    summary: Row
    """The end: `nodes`, `round`, `seconds`, `slots`, `link_bytes`, `parcels`, `weight`, and the last metrics."""
    models: list[torch.nn.Module] | None = None
    """The model of each node with its final weights, where `make_trainer` made them."""

    def to_frame(self) -> Any:
        """The evaluations as a data frame of pandas, by round."""
        return data_frame(self.rows, index="round")

    def save(self, path: FilePath) -> None:
        """Writes the evaluations and the end as JSON."""
        Path(path).write_text(json.dumps({"rows": self.rows, "summary": self.summary}, indent=1), encoding="utf-8")

    def __repr__(self) -> str:
        return f"<mingle.Simulation: {self.summary['nodes']} nodes, {_metrics(self.summary)}>"


def _metrics(row: Row) -> str:
    """Round and metrics of a row in a line."""
    known = [("accuracy", "mean_accuracy"), ("worst", "worst_accuracy"), ("loss", "loss"), ("disagreement", "disagreement")]
    others = [(name, name) for name in row if name.startswith("mean_") and name != "mean_accuracy"]
    return ", ".join([f"round {row['round']}", *(f"{name} {row[key]:.4g}" for name, key in known + others if row.get(key) is not None)])


class _ProgressLine:
    """A line on stderr that is overwritten, a few times a second at most."""

    def __init__(self, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._shown = 0.0
        self._width = 0

    def show(self, row: Row, rounds: int | None) -> None:
        now = time.monotonic()
        if self._is_wanted and now - self._shown >= 0.2:
            self._shown = now
            text = _metrics(row) if rounds is None else f"{row['round'] * 100 // rounds:3d} %  {_metrics(row)}"
            self._write(text)

    def end(self) -> None:
        """Removes the line."""
        if self._width:
            self._write("")
            sys.stderr.write("\r")

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)
