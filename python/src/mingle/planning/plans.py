"""`mingle.plan(graph)`: a plan, with its forecast, matrices and picture."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mingle.errors import MingleError, PlanError
from mingle.planning.forecast import Forecast
from mingle.planning.graphs import Graph, has_places, topology_of
from mingle.planning.program import answer_of, arguments_of

if TYPE_CHECKING:
    import numpy

FilePath = str | os.PathLike[str]


def plan(
    graph: Graph,
    method: str = "auto",
    *,
    local_steps: int = 1,
    heterogeneity: float | None = None,
    medium: str = "broadcast",
    codec: str | None = None,
    objective: str | None = None,
    extra_edges: int | str | None = None,
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
) -> Plan:
    """A plan for a graph, made by `mingle plan make`: which node sends to which in every step, and with what weights.

    `graph` is one of networkx, a square adjacency matrix, a list of pairs of nodes, the path of a topology file, or a generator such as
    `"rg:n=33,r=0.5,seed=0"`. Every link has to work in both directions.

    `method` is a design, or `"auto"` for the best one: `mingle.compare` shows them all. `local_steps` are the gradient steps that each peer takes
    in a round, `heterogeneity` from 0 to 1 the difference of the peers' data. `medium` is `"broadcast"` (slots, interference) or
    `"point-to-point"`. The other options are those of `mingle plan make`, and as there unless given.

    Raises `PlanError` where the graph or an option cannot be used.

        plan = mingle.plan(networkx.cycle_graph(8), local_steps=4)
        plan.forecast.slots_to_1e_2
        plan.draw()
    """
    # Every other parameter is an option of the program, by its name.
    options = {name: value for name, value in locals().items() if name != "graph"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.json"
        with topology_of(graph, Path(folder)) as topology:
            forecast = answer_of("plan", "make", f"--topology={topology}", f"--output={path}", *arguments_of(options))
            made = Plan(path.read_text(encoding="utf-8"), Forecast.of(json.loads(forecast)))
            if has_places(graph):
                made._placed = Path(topology).read_text(encoding="utf-8")
    return made


@dataclass(repr=False)
class Plan:
    """A plan as in its file. In a notebook it shows its picture.

    `Plan.read(path)` reads one that `mingle plan make` or `Plan.save` wrote.
    """

    text: str
    """The plan file, byte by byte: `mingle run --plan` takes it."""
    forecast: Forecast
    """What a period costs, and how fast the nodes agree."""
    _placed: str | None = field(default=None, init=False)
    """The topology file with a place for each node; None where they have none."""

    @classmethod
    def read(cls, path: FilePath) -> Plan:
        """The plan in a file. The program checks all of it."""
        place = os.fspath(path)
        forecast = answer_of("plan", "show", "--", place)
        return cls(Path(place).read_text(encoding="utf-8"), Forecast.of(json.loads(forecast)))

    def save(self, path: FilePath) -> None:
        """Writes the plan file, for `mingle plan bind` and `mingle run --plan`."""
        Path(path).write_bytes(self.text.encode())

    @property
    def method(self) -> str:
        """The design: the one that was chosen where `"auto"` was asked for."""
        return str(self._document["method"])

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the design. With `"auto"`, `reason` says why it was chosen."""
        return dict(self._document["parameters"])

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes. A node's place in this list is its number in `links` and its row in `matrices`."""
        return [str(node["name"]) for node in self._document["nodes"]]

    @property
    def links(self) -> list[list[tuple[int, int, float]]]:
        """The links of each step: sender, receiver, and the weight of the sender's numerators and mass that travels."""
        return [[(source, target, weight) for source, target, weight in step["links"]] for step in self._document["steps"]]

    @property
    def slots(self) -> list[list[list[tuple[int, int]]]]:
        """The slots of each step: the links, as sender and receiver, that transmit at the same time. Empty on a point-to-point medium."""
        return [[[(source, target) for source, target in slot] for slot in step.get("slots") or []] for step in self._document["steps"]]

    def matrices(self) -> list[numpy.ndarray[Any, numpy.dtype[numpy.float64]]]:
        """The mixing matrix of each step as numpy arrays: row is the receiver, column the sender, and every column sums to 1.

        A round of push-sum is `x = matrix @ x` for the numerators and `w = matrix @ w` for the weights.
        """
        try:
            import numpy
        except ImportError:
            raise MingleError("matrices are numpy arrays: pip install numpy (links has the same numbers without it)") from None
        matrices = []
        for step in self._document["steps"]:
            matrix = numpy.diag(numpy.array(step["keep"], dtype=numpy.float64))
            for source, target, weight in step["links"]:
                matrix[target, source] = weight
            matrices.append(matrix)
        return matrices

    def draw(self, path: FilePath | None = None, *, layout: str | None = None) -> Drawing:
        """The picture of the plan, as SVG: a notebook shows it inline. With `path` it is written there too (.svg, .dot or .graphml).

        `layout` is `"circle"`, or `"positions"` for the places that the nodes of a networkx graph have; unless given, these where there are any.
        """
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "plan.json"
            file.write_bytes(self.text.encode())
            arguments = arguments_of({"layout": layout})
            if self._placed is not None and layout != "circle":
                places = Path(folder) / "places.json"
                places.write_bytes(self._placed.encode())
                arguments.append(f"--positions={places}")
            drawing = Path(folder) / "plan.svg"
            answer_of("plan", "draw", f"--output={drawing}", *arguments, str(file))
            if path is not None:
                answer_of("plan", "draw", f"--output={os.fspath(path)}", *arguments, str(file))
            return Drawing(drawing.read_text(encoding="utf-8"))

    @cached_property
    def _document(self) -> dict[str, Any]:
        document = json.loads(self.text)
        if not isinstance(document, dict):
            raise PlanError("this is no plan file")
        return document

    def _repr_svg_(self) -> str:
        return self.draw().svg

    def __repr__(self) -> str:
        forecast = self.forecast
        cost = f"{forecast.slots_per_period} slots a period" if forecast.slots_per_period else f"{forecast.payloads_per_period} payloads a period"
        return f"<mingle.Plan: {self.method}, {len(self.nodes)} nodes, {len(self._document['steps'])} steps, {forecast.links} links, {cost}>"


@dataclass(frozen=True, repr=False)
class Drawing:
    """A picture, which a notebook shows."""

    svg: str
    """The text of the picture."""

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<mingle.Drawing: {len(self.svg)} bytes of SVG>"
