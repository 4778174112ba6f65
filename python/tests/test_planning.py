"""`mingle.plan`, `mingle.compare` and `mingle.simulate`, beside the program that they ask."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import mingle
import networkx
import numpy
import pytest
from mingle.planning import Forecast

pytestmark = pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle")

PENTAGON = [("ana", "ben"), ("ben", "cho"), ("cho", "dai"), ("dai", "eva"), ("eva", "ana"), ("ana", "cho"), ("ben", "eva")]
PAGE = Path(__file__).parents[2] / "docs/planning.md"
NOTEBOOK = Path(__file__).parents[1] / "examples/planning.ipynb"


def printed(*arguments: str) -> str:
    """What the program prints as JSON."""
    command = [os.environ["MINGLE_BIN"], *arguments, "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def edge_list(folder: Path) -> str:
    path = folder / "pentagon.txt"
    path.write_text("".join(f"{one} {other}\n" for one, other in PENTAGON))
    return str(path)


def test_plan_file_and_forecast_are_those_of_the_program(tmp_path: Path) -> None:
    made = mingle.plan(PENTAGON, local_steps=4, seed=3)
    path = tmp_path / "plan.json"
    forecast = json.loads(printed("plan", "make", "--topology", edge_list(tmp_path), "--local-steps=4", "--seed=3", f"--output={path}"))
    assert made.text == path.read_text()
    assert forecast.pop("schema") == "mingle.forecast/1"
    assert {field.name.replace("1e_2", "1e-2") for field in fields(Forecast)} == set(forecast)
    for name, value in forecast.items():
        assert getattr(made.forecast, name.replace("1e-2", "1e_2")) == value, name
    assert mingle.Plan.read(path).forecast == made.forecast


def test_every_form_of_a_graph_gives_the_same_plan(tmp_path: Path) -> None:
    graph = networkx.Graph(PENTAGON)
    named = [mingle.plan(form) for form in (PENTAGON, graph, graph.to_directed(), networkx.MultiGraph(graph), edge_list(tmp_path))]
    assert {plan.text for plan in named} == {named[0].text}
    assert named[0].nodes == ["ana", "ben", "cho", "dai", "eva"]
    numbered = networkx.to_numpy_array(graph)
    sparse = networkx.to_scipy_sparse_array(graph) if _has_scipy() else numbered
    numbers = [mingle.plan(form) for form in (numbered, numbered.astype(int).tolist(), sparse, networkx.convert_node_labels_to_integers(graph))]
    assert {plan.text for plan in numbers} == {numbers[0].text}
    assert numbers[0].forecast == named[0].forecast
    assert mingle.plan("ring:n=5").nodes == mingle.plan("ring:n=5", without=None).nodes


def _has_scipy() -> bool:
    try:
        import scipy  # noqa: F401
    except ImportError:
        return False
    return True


def test_matrices_are_column_stochastic_and_bring_all_nodes_to_the_mean() -> None:
    made = mingle.plan(networkx.cycle_graph(6), "nguyen-he")
    numerators = numpy.arange(6.0)
    weights = numpy.ones(6)
    for _ in range(100):
        for matrix in made.matrices():
            numpy.testing.assert_allclose(matrix.sum(axis=0), 1.0)
            numerators = matrix @ numerators
            weights = matrix @ weights
    numpy.testing.assert_allclose(numerators / weights, numpy.full(6, 2.5), rtol=1e-9)
    assert weights.min() == pytest.approx(made.forecast.perron_min, rel=1e-6)
    source, target, weight = made.links[0][0]
    assert made.matrices()[0][target, source] == weight
    assert sum(len(step) for step in made.slots) == made.forecast.slots_per_period


def test_a_plan_is_drawn_where_the_nodes_of_the_graph_are(tmp_path: Path) -> None:
    placed = networkx.Graph(PENTAGON)
    for number, node in enumerate(placed):
        placed.nodes[node]["pos"] = (float(number), float(number * number))
    made = mingle.plan(placed)
    assert made.draw().svg.startswith("<svg") and made.draw().svg == made._repr_svg_()
    assert made.draw().svg != made.draw(layout="circle").svg == mingle.plan(PENTAGON).draw().svg
    made.draw(tmp_path / "plan.dot")
    assert (tmp_path / "plan.dot").read_text().startswith("digraph")
    with pytest.raises(mingle.PlanError, match="--positions"):
        mingle.plan(PENTAGON).draw(layout="positions")


def test_a_comparison_has_the_numbers_of_the_program_and_the_reasons_of_designs_that_are_not_possible(tmp_path: Path) -> None:
    table = mingle.compare(PENTAGON, local_steps=4)
    document = json.loads(printed("plan", "compare", "--topology", edge_list(tmp_path), "--local-steps=4"))
    assert [design.method for design in table.designs] == [design["method"] for design in document["designs"]]
    assert table.auto == mingle.plan(PENTAGON, local_steps=4).method == document["auto"]["method"]
    refused = table["exponential"]
    assert refused.forecast is None and refused.refused is not None and "exponential needs a link" in refused.refused
    text, page = repr(table), table._repr_html_()
    assert f"auto: {table.auto}, " in text and f"auto: {table.auto}, " in page
    assert all(design.method in text and design.method in page for design in table.designs)
    frame = table.to_frame()
    best = table[str(table.auto)].forecast
    assert best is not None and frame.loc[table.auto, "slots_per_period"] == best.slots_per_period
    with pytest.raises(mingle.PlanError, match="there is no design 'gossip' in this comparison"):
        table["gossip"]


def test_a_simulation_has_the_numbers_of_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = mingle.plan(PENTAGON, local_steps=2)
    path = tmp_path / "plan.json"
    made.save(path)
    seen: list[int] = []
    simulation = mingle.simulate(
        made, rounds=12, split="label-sorted", seed=5, options={"loss": 0.1}, on_evaluation=lambda row: seen.append(row["round"]), progress=True
    )
    lines = [json.loads(line) for line in printed("simulate", f"--plan={path}", "--rounds=12", "--split=label-sorted", "--seed=5", "--loss=0.1").splitlines()]
    *rows, summary = [{key: value for key, value in line.items() if key not in ("schema", "seconds", "training_seconds")} for line in lines]
    assert simulation.rows == rows and seen == [row["round"] for row in rows]
    assert {key: value for key, value in simulation.summary.items() if "seconds" not in key} == summary
    assert list(simulation.to_frame().index) == seen
    assert "%  round " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (3, "a int is no graph"),
        ([], "at least two nodes"),
        (networkx.Graph(), "at least two nodes"),
        ([[0, 1], [1, 0]], "can be an adjacency matrix or two edges"),
        (numpy.zeros((2, 3)), "an adjacency matrix is square"),
        (numpy.array([[0.0, numpy.nan], [1.0, 0.0]]), "row 0, column 1 of the adjacency matrix is nan"),
        ([("a", "b", 3.0)], "an edge is a pair"),
        ([("a", "a"), ("a", "b")], 'the graph cannot be used: node "a" has an edge to itself'),
        ([(1, 2), ("1", 3)], "the nodes 1 and '1' have the same name"),
        ([("a", "b"), ("c", "d")], "the graph cannot be used: the topology falls into 2 parts"),
        (networkx.DiGraph([(0, 1)]), "not the other way round"),
        ("nowhere.txt", "cannot read the topology nowhere.txt"),
    ],
)
def test_a_graph_that_cannot_be_planned_is_refused_with_the_reason(graph: Any, said: str) -> None:
    with pytest.raises(mingle.PlanError) as refused:
        mingle.plan(graph)
    assert said in str(refused.value)
    assert "/tmp" not in str(refused.value)


def test_an_option_that_the_program_refuses_is_named() -> None:
    with pytest.raises(mingle.PlanError, match="gossip"):
        mingle.plan(PENTAGON, "gossip")
    with pytest.raises(mingle.PlanError, match="a str is no plan: mingle.plan"):
        mingle.simulate("plan.json")  # type: ignore[arg-type]
    with pytest.raises(mingle.PlanError, match="--bogus"):
        mingle.simulate(mingle.plan(PENTAGON), options={"bogus": 1})


def test_what_the_program_does_not_use_of_a_file_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "weighted.txt"
    path.write_text('0 1 {"weight": 3}\n1 2 {"weight": 1}\n')
    with pytest.warns(UserWarning, match="weight") as warned:
        mingle.plan(str(path))
    assert warned[0].filename == __file__


def test_without_the_program_a_plan_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mingle.planning.program.program", lambda: None)
    with pytest.raises(mingle.MingleError, match="install the wheel of mingle-train"):
        mingle.plan(PENTAGON)


def test_the_script_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    script = re.search(r"<!-- tested: plan -->\n```python\n(.*?)```\n", PAGE.read_text(), re.DOTALL)
    assert script is not None
    monkeypatch.chdir(tmp_path)
    exec(script[1], {})
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    printed("plan", "check", "plan.json")
    assert "auto: " in capsys.readouterr().out


def test_the_cells_of_the_notebook_run_and_show_what_they_say() -> None:
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for cell in cells:
        exec("".join(cell["source"]), names)
    assert names["plan"].forecast.slots_per_period > 0
    assert names["plan"]._repr_svg_().startswith("<svg")
    assert names["table"].auto is not None
    assert names["history"].iloc[-1]["mean_accuracy"] > 0.8
