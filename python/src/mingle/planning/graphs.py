"""Graphs as Python has them, written as a topology file of the program."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from mingle.errors import PlanError

Graph: TypeAlias = Any
"""A graph: one of networkx, directed or not; a square adjacency matrix (numpy, a SciPy matrix, lists of lists), where any number other than 0 is an
edge; a list of pairs of nodes; or the text that `--topology` takes, a file or a generator such as `"rg:n=33,r=0.5,seed=0"`."""


@contextmanager
def topology_of(graph: Graph, folder: Path) -> Iterator[str]:
    """The argument of `--topology` for a graph: a file in `folder`, unless the graph is one or is made by a generator.

    A `PlanError` in the context speaks of the graph, and not of the file in the folder.
    """
    if isinstance(graph, (str, os.PathLike)):
        yield os.fspath(graph)
        return
    path = folder / "topology.json"
    path.write_text(json.dumps(_document(graph)), encoding="utf-8")
    try:
        yield str(path)
    except PlanError as error:
        raise PlanError(str(error).replace(f"topology {path}", "graph")) from None


def has_places(graph: Graph) -> bool:
    """True where a graph of networkx has a place for each of its nodes: `pos`, as its generators give, or `x` and `y`."""
    return _is_networkx(graph) and bool(len(graph)) and all(_place(of_node) is not None for _, of_node in graph.nodes(data=True))


def _document(graph: Graph) -> dict[str, Any]:
    """The graph as node-link data."""
    if _is_networkx(graph):
        return _of_networkx(graph)
    matrix = _matrix(graph)
    if matrix is not None:
        return _of_matrix(matrix)
    return _of_pairs(graph)


def _is_networkx(graph: Graph) -> bool:
    return all(hasattr(graph, name) for name in ("nodes", "edges", "is_directed", "adjacency"))


def _of_networkx(graph: Graph) -> dict[str, Any]:
    nodes = [{"id": name, **_place_of(of_node)} for name, of_node in zip(_names(graph.nodes), (it for _, it in graph.nodes(data=True)), strict=True)]
    # A multigraph has several edges between two nodes: one of them is enough.
    pairs = dict.fromkeys((str(edge[0]), str(edge[1])) for edge in graph.edges)
    return {"directed": graph.is_directed(), "nodes": nodes, "edges": [list(pair) for pair in pairs]}


def _place_of(of_node: Mapping[str, Any]) -> dict[str, float]:
    place = _place(of_node)
    return {} if place is None else {"x": place[0], "y": place[1]}


def _place(of_node: Mapping[str, Any]) -> tuple[float, float] | None:
    """The place of a node in the plane, from the attributes of networkx."""
    found = of_node.get("pos", (of_node.get("x"), of_node.get("y")))
    try:
        x, y = (float(number) for number in found)
    except (TypeError, ValueError):
        return None
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None


def _matrix(graph: Graph) -> list[list[float]] | None:
    """The rows of an adjacency matrix; None where the graph is a list of pairs."""
    is_array = hasattr(graph, "shape") and hasattr(graph, "dtype")
    rows = graph.toarray() if hasattr(graph, "toarray") else graph
    rows = rows.tolist() if hasattr(rows, "tolist") else rows
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows) or not rows:
        return None
    lengths = {len(row) for row in rows}
    if lengths == {2} and len(rows) == 2 and not is_array:
        raise PlanError(
            "two lists of two numbers can be an adjacency matrix or two edges: give a matrix as a numpy array, and edges as tuples",
        )
    if lengths == {2} and len(rows) != 2:
        return None
    if lengths != {len(rows)}:
        raise PlanError(f"an adjacency matrix is square: this one has {len(rows)} rows, of {', '.join(map(str, sorted(lengths)))} numbers")
    return rows


def _of_matrix(rows: list[list[float]]) -> dict[str, Any]:
    edges: list[list[int]] = []
    for source, row in enumerate(rows):
        for target, number in enumerate(row):
            if not isinstance(number, (int, float)) or not math.isfinite(number):
                raise PlanError(f"row {source}, column {target} of the adjacency matrix is {number!r}: no edge is 0, any other number is an edge")
            if number != 0:
                edges.append([source, target])
    return {"directed": True, "nodes": list(range(len(rows))), "edges": edges}


def _of_pairs(pairs: Iterable[Any]) -> dict[str, Any]:
    try:
        edges = [tuple(pair.tolist() if hasattr(pair, "tolist") else pair) for pair in pairs]
    except TypeError:
        raise PlanError(
            f"a {type(pairs).__name__} is no graph: give a networkx graph, a square adjacency matrix, a list of pairs of nodes, a file, or a"
            ' generator such as "rg:n=33,r=0.5,seed=0"'
        ) from None
    for number, edge in enumerate(edges):
        if len(edge) != 2:
            raise PlanError(f"edge {number} of the list is {edge!r}: an edge is a pair of nodes")
    nodes = _names(dict.fromkeys(node for edge in edges for node in edge))
    return {"directed": False, "nodes": nodes, "edges": [[str(node) for node in edge] for edge in edges]}


def _names(nodes: Iterable[Any]) -> list[str]:
    """The names of nodes, in order. Two nodes may not have the same."""
    named: dict[str, Any] = {}
    for node in nodes:
        name = str(node)
        if name in named:
            raise PlanError(f"the nodes {named[name]!r} and {node!r} have the same name in a plan, {name}: rename one")
        named[name] = node
    return list(named)
