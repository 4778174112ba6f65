"""`mingle.simulate(plan)`: a swarm that trains by a plan in one process, without sockets."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mingle.errors import PlanError
from mingle.planning.frames import data_frame
from mingle.planning.plans import FilePath, Plan
from mingle.planning.program import arguments_of, lines_of

Row = dict[str, Any]
"""An evaluation: `round`, `slots`, `link_bytes`, `epochs`, `loss`, `mean_accuracy`, `worst_accuracy`, `worst_loss`, `disagreement`, and what the
task adds."""


def simulate(
    plan: Plan,
    *,
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
    """A training of a built-in model on a simulated swarm, by `mingle simulate`: the same node, mixing and codecs as in peers, in one process.

    Options that are not given are as in `mingle simulate --help`: 200 rounds of the softmax model on the digits that the program carries.
    `options` has any other of its options by name: `{"loss": 0.1, "attackers": 2}`. The same seed gives the same numbers.

    `on_evaluation` is called with each row as it comes. `progress` writes a line to stderr meanwhile; unless given, where stderr is a terminal.

        simulation = mingle.simulate(plan, rounds=100, split="dirichlet:0.3")
        simulation.to_frame()["mean_accuracy"].plot()
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
    rows: list[Row] = []
    summary: Row = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        plan.save(path)
        for text in lines_of("simulate", f"--plan={path}", *arguments_of(named)):
            document = json.loads(text)
            schema = document.pop("schema", None)
            if schema == "mingle.simulation/1":
                summary = document
            elif schema == "mingle.simulation-progress/1":
                rows.append(document)
                line.show(document, rounds)
                if on_evaluation is not None:
                    on_evaluation(document)
    line.end()
    return Simulation(rows, summary)


@dataclass(frozen=True, repr=False)
class Simulation:
    """A simulated training: its evaluations and its end."""

    rows: list[Row]
    """The evaluations, in order."""
    summary: Row
    """The end: `round`, `seconds`, `slots`, `link_bytes`, `parcels`, `weight`, the last metrics, and why it stopped (`stop`)."""

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
    measured = [("accuracy", "mean_accuracy"), ("worst", "worst_accuracy"), ("loss", "loss")]
    return ", ".join([f"round {row['round']}", *(f"{name} {row[key]:.4f}" for name, key in measured if row.get(key) is not None)])


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
