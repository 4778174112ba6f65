"""`mingle.compare(graph)`: the forecasts of all designs for a graph, as a table."""

from __future__ import annotations

import html
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mingle.errors import PlanError
from mingle.planning.forecast import Forecast
from mingle.planning.frames import data_frame
from mingle.planning.graphs import Graph, topology_of
from mingle.planning.plans import FilePath
from mingle.planning.program import answer_of, arguments_of


def compare(
    graph: Graph,
    methods: Sequence[str] | None = None,
    *,
    local_steps: int = 1,
    heterogeneity: float | None = None,
    medium: str = "broadcast",
    objective: str | None = None,
    effort: float | None = None,
    seed: int = 0,
    fault_tolerance: str | None = None,
    max_out_degree: int | None = None,
    budget_slots: int | None = None,
    without: Sequence[Any] | None = None,
    interference: FilePath | None = None,
    links: FilePath | None = None,
    payload_bytes: int | None = None,
    max_upload: int | None = None,
) -> Comparison:
    """The forecasts of all designs for a graph, or of those in `methods`, made by `mingle plan compare`. The options are those of `mingle.plan`.

    A design that the graph does not allow is in the table with the reason.

        mingle.compare(networkx.cycle_graph(8), local_steps=4)
    """
    # Every other parameter is an option of the program, by its name.
    options = {name: value for name, value in locals().items() if name != "graph"}
    with tempfile.TemporaryDirectory() as folder, topology_of(graph, Path(folder)) as topology:
        document = json.loads(answer_of("plan", "compare", f"--topology={topology}", *arguments_of(options)))
    auto = document["auto"]
    return Comparison(
        designs=[Design.of(design) for design in document["designs"]],
        auto=auto and auto["method"],
        cost=auto and float(auto["cost"]),
        unit=auto and auto["unit"],
    )


@dataclass(frozen=True)
class Design:
    """A design for the graph, with its forecast, or with the reason why there is none."""

    method: str
    """Name of the design: `mingle.plan(graph, method)` makes the plan."""
    forecast: Forecast | None
    """The forecast; None where the graph does not allow the design."""
    refused: str | None
    """The reason why there is no plan."""
    steps: int | None
    """Steps of a period."""
    round_length: int | None
    """Steps of a round."""
    parameters: dict[str, str]
    """Parameters of the design."""

    @classmethod
    def of(cls, document: dict[str, Any]) -> Design:
        """The design in a JSON document of the program."""
        forecast = document.get("forecast")
        return cls(
            method=document["method"],
            forecast=None if forecast is None else Forecast.of(forecast),
            refused=document.get("refused"),
            steps=document.get("steps"),
            round_length=document.get("round_length"),
            parameters=document.get("parameters") or {},
        )


_COLUMNS = (
    "slots_per_period",
    "slots_to_1e_2",
    "lambda_2",
    "links",
    "max_out_degree",
    "max_in_degree",
    "diameter",
    "perron_min",
    "payloads_per_period",
    "seconds_per_round",
)


@dataclass(frozen=True, repr=False)
class Comparison:
    """The designs for a graph side by side. It prints as a table, and a notebook shows one."""

    designs: list[Design]
    """All designs, in the program's order."""
    auto: str | None
    """The design that `mingle.plan(graph)` would take; None where none is possible."""
    cost: float | None
    """What a gradient step costs with it."""
    unit: str | None
    """The unit of `cost`."""

    def __getitem__(self, method: str) -> Design:
        """A design by its name."""
        found = next((design for design in self.designs if design.method == method), None)
        if found is None:
            raise PlanError(f"there is no design {method!r} in this comparison, which has {', '.join(design.method for design in self.designs)}")
        return found

    def to_frame(self) -> Any:
        """The table as a data frame of pandas: a row for each design, a column for each number of the forecast."""
        return data_frame([_row(design) for design in self.designs], index="method")

    def __repr__(self) -> str:
        rows = self._cells()
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) if not number else cell.rjust(width) for number, (cell, width) in enumerate(zip(row, widths, strict=True))) for row in rows]
        refused = [f"{design.method}: {design.refused}" for design in self.designs if design.refused is not None]
        return "\n".join([*(line.rstrip() for line in lines), *refused, self._choice()])

    def _repr_html_(self) -> str:
        head, *rows = self._cells()
        cells = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
        lines = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        refused = "".join(f"<p>{html.escape(f'{it.method}: {it.refused}')}</p>" for it in self.designs if it.refused is not None)
        return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>{refused}<p>{html.escape(self._choice())}</p>"

    def _cells(self) -> list[list[str]]:
        """The heading and the rows of the table: columns in which no design has a number are left out."""
        made = [(design, design.forecast) for design in self.designs if design.forecast is not None]
        used = [name for name in _COLUMNS if any(getattr(forecast, name) is not None for _, forecast in made)]
        rows = [[design.method, str(design.steps), *(_cell(getattr(forecast, name)) for name in used)] for design, forecast in made]
        return [["method", "steps", *used], *rows]

    def _choice(self) -> str:
        return "no design is possible" if self.auto is None else f"auto: {self.auto}, {self.cost:.4g} {self.unit}"


def _row(design: Design) -> dict[str, Any]:
    row: dict[str, Any] = {"method": design.method, "steps": design.steps, "refused": design.refused}
    return row if design.forecast is None else {**row, **asdict(design.forecast)}


def _cell(number: float | None) -> str:
    if number is None:
        return ""
    return str(number) if isinstance(number, int) else f"{number:.4g}"
