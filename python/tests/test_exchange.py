"""mingle.Exchange: vectors of numpy and of nothing but the standard library."""

from __future__ import annotations

import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

import numpy
import pytest
from fake_host import FakeHost

import mingle

SOURCES = Path(__file__).parents[1] / "src"


def test_a_numpy_array_trains_until_the_run_is_over(host: FakeHost) -> None:
    with mingle.Exchange(host.home, "ones", numpy.zeros((2, 3), dtype=numpy.float32), samples=10) as swarm:
        assert swarm.steps == 4 and swarm.round == 0
        while not swarm.done:
            model = swarm.model
            swarm.exchange(model + 1, loss=0.5, metrics={"accuracy": (0.9, 10)})
        assert swarm.round == 5
        with pytest.raises(mingle.SwarmDone, match="look at `done`"):
            swarm.exchange(model)
    assert numpy.array_equal(swarm.model, numpy.full((2, 3), 5))
    assert host.node.layout == [["x", [2, 3]]] and host.losses == [0.5] * 5 and host.metrics == {"accuracy": [0.9, 10.0]}


def test_a_dict_of_arrays_names_its_tensors(host: FakeHost) -> None:
    weights = {"w": numpy.ones((2, 2)), "b": numpy.zeros(2, dtype=numpy.float32)}
    with mingle.Exchange(host.home, "layer", weights) as swarm:
        after = swarm.exchange({"w": weights["w"] * 3, "b": weights["b"] - 1}, steps=2)
        assert after["w"].dtype == numpy.float64 and after["w"].tolist() == [[3, 3], [3, 3]] and after["b"].tolist() == [-1, -1]
        with pytest.raises(mingle.LayoutError, match=r"`w` is now of shape \[3\]: give an array of shape \[2, 2\]"):
            swarm.exchange({"w": numpy.ones(3), "b": weights["b"]})
    assert host.node.layout == [["w", [2, 2]], ["b", [2]]]


def test_a_layout_takes_the_swarms_model(tmp_path: Path) -> None:
    with FakeHost(tmp_path / "home", model=[1.0, 2.0]) as host:
        swarm = mingle.Exchange(host.home, "two", mingle.Layout([("a", ()), ("b", (1,))]))
        assert swarm.model == array("f", [1, 2])
        assert swarm.exchange(array("f", [2, 2])) == array("f", [2, 2])


def test_a_flatten_function_makes_a_vector_of_anything(host: FakeHost) -> None:
    def flatten(model: dict[str, float]) -> tuple[array[float], object]:
        return array("f", model.values()), lambda vector: dict(zip(model, map(float, vector)))

    swarm = mingle.Exchange(host.home, "scalars", {"slope": 2.0, "offset": 1.0}, flatten=flatten)
    assert swarm.exchange({"slope": 3.0, "offset": 0.5}) == {"slope": 3.0, "offset": 0.5}


def test_no_steps_mean_no_change(host: FakeHost) -> None:
    swarm = mingle.Exchange(host.home, "x", numpy.zeros(2, dtype=numpy.float32))
    swarm.exchange(swarm.model, steps=0)
    assert host.changes == [] and swarm.round == 1


def test_evaluations_get_their_model(tmp_path: Path) -> None:
    with FakeHost(tmp_path / "home", evaluate_every=1, rounds=2) as host:
        with mingle.Exchange(host.home, "x", numpy.zeros(2, "f"), evaluate=lambda model: {"sum": (model.sum(), 2)}) as swarm:
            while not swarm.done:
                swarm.exchange(swarm.model + 1)
        assert host.evaluations == [{"sum": [0.0, 2.0]}, {"sum": [2.0, 2.0]}]


def test_numbers_that_are_not_finite_are_refused_with_their_place(host: FakeHost) -> None:
    weights = {"w": numpy.ones((2, 2)), "b": numpy.zeros(2)}
    with mingle.Exchange(host.home, "layer", weights) as swarm:
        with pytest.raises(mingle.NotFinite, match="in `b`, number 1 of 2; the peer has refused it and waits for another"):
            swarm.exchange({"w": weights["w"], "b": numpy.array([0, numpy.inf])})
        assert [call.name for call in host.calls].count("exchange") == 1, "it was sent"
        swarm.exchange(weights)
    with pytest.raises(mingle.NotFinite, match="the model is not finite in `x`, number 0 of 1; it was not sent"):
        mingle.Exchange(host.home, "x", numpy.array([numpy.nan]))


def test_what_is_no_vector_is_refused(host: FakeHost) -> None:
    with pytest.raises(mingle.LayoutError, match="a str is no buffer"):
        mingle.Exchange(host.home, "x", "words")
    with pytest.raises(mingle.LayoutError, match="format 'd' is not f32"):
        mingle.Exchange(host.home, "x", array("d", [1]))
    swarm = mingle.Exchange(host.home, "x", array("f", [1, 2]))
    with pytest.raises(mingle.LayoutError, match="a vector of 3 numbers where 2 are expected"):
        swarm.exchange(array("f", [1, 2, 3]))


def test_a_model_of_another_form_is_refused_at_each_exchange(host: FakeHost) -> None:
    swarm = mingle.Exchange(host.home, "lin", numpy.arange(6, dtype="f").reshape(2, 3))
    refusals = {
        r"is now of shape \[3, 2\]: give an array of shape \[2, 3\]": swarm.model.T,
        "an array of int64, which cannot hold": numpy.ones((2, 3), dtype="i8"),
        "an array of complex64: give its real": numpy.ones((2, 3), dtype="F"),
        "is now a list: give an array of shape": [[1.0] * 3] * 2,
    }
    for match, model in refusals.items():
        with pytest.raises(mingle.LayoutError, match=match):
            swarm.exchange(model)
    swarm.close()
    assert host.changes == [], "none of them was sent"


def test_the_arrays_of_a_dict_stay_the_same(host: FakeHost) -> None:
    with mingle.Exchange(host.home, "lin", {"a": numpy.zeros(2), "b": numpy.zeros(1)}) as swarm:
        with pytest.raises(mingle.LayoutError, match="`c` is new"):
            swarm.exchange({"a": numpy.zeros(2), "b": numpy.zeros(1), "c": numpy.zeros(1)})
        with pytest.raises(mingle.LayoutError, match="`b` is an array of int64"):
            swarm.exchange({"a": numpy.zeros(2), "b": numpy.zeros(1, dtype="i8")})


@pytest.mark.parametrize("steps", [-1, 2.5, True, "2", float("nan")])
def test_a_number_of_steps_is_a_whole_number(host: FakeHost, steps: Any) -> None:
    with mingle.Exchange(host.home, "lin", numpy.zeros(2)) as swarm, pytest.raises(mingle.MingleError, match="give the number of local steps"):
        swarm.exchange(swarm.model, steps=steps)


def test_a_peer_that_is_stopped_is_not_the_end_of_the_run(host: FakeHost, caplog: pytest.LogCaptureFixture) -> None:
    with mingle.Exchange(host.home, "lin", numpy.zeros(2)) as swarm:
        swarm.exchange(swarm.model + 1)
        assert not swarm.stopped
        host.interrupt()
        model = swarm.exchange(swarm.model + 1)
        assert swarm.done and swarm.stopped and list(model) == [1.0, 1.0]
    assert "the last 4 steps are lost" in caplog.text
    assert "stopped after 1 of 5 rounds: start it and this script again" in caplog.text


def test_whole_numbers_cannot_hold_a_model(host: FakeHost) -> None:
    for model in (numpy.array([0, 0, 3]), {"w": numpy.ones(2), "n": numpy.array([1])}, numpy.array([True])):
        with pytest.raises(mingle.LayoutError, match="cannot hold the numbers of a swarm's model: convert it"):
            mingle.Exchange(host.home, "lin", model)
    with pytest.raises(mingle.LayoutError, match="the model is an array of complex128: give its real"):
        mingle.Exchange(host.home, "lin", numpy.ones(2, dtype=complex))
    assert not host.calls


def test_what_half_precision_rounds_is_no_change(tmp_path: Path) -> None:
    with FakeHost(tmp_path / "home", rounds=4, drift=0.0001) as host, mingle.Exchange(host.home, "lin", numpy.ones(2, dtype=numpy.float16)) as swarm:
        while not swarm.done:
            swarm.exchange(swarm.model)
        assert [list(change) for change in host.changes] == [[0.0, 0.0]] * 4
        assert host.node.vector is not None and list(host.node.vector) == pytest.approx([1.0004] * 2, abs=1e-6)


def test_a_metric_that_is_no_number_is_left_out(host: FakeHost) -> None:
    with mingle.Exchange(host.home, "lin", numpy.zeros(2)) as swarm:
        swarm.exchange(swarm.model, metrics={"auc": float("nan"), "per_class": [0.1, 0.2], "f1": 0.5})
    assert host.metrics == {"f1": [0.5, 1.0]}


def test_neither_a_loss_nor_an_evaluation_ends_a_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    many = {f"accuracy of class {index}": 0.5 for index in range(1000)}
    with FakeHost(tmp_path / "home", evaluate_every=1, rounds=3) as host:
        with mingle.Exchange(host.home, "line", array("f", [1, 2]), evaluate=lambda model: model.no_such_thing) as swarm:
            while not swarm.done:
                swarm.exchange(swarm.model, loss="low", metrics=many)  # type: ignore[arg-type]
        assert host.evaluations == [{}] * 3 and "accuracy of class 0" in host.metrics and not host.losses
    assert "AttributeError" in caplog.text and "metric `loss` is left out" in caplog.text and "and those after it are left out" in caplog.text


def test_the_package_lists_what_it_has() -> None:
    assert {"join", "load", "Swarm", "Exchange"} <= set(dir(mingle)) and "TYPE_CHECKING" not in dir(mingle)
    assert all(getattr(mingle, name) is not None for name in dir(mingle))


def test_the_standard_library_is_enough(host: FakeHost) -> None:
    """Runs in an interpreter without other packages."""
    program = """
import sys
from array import array
import mingle
try:
    mingle.Exchange(sys.argv[1], "x", array("f", [float("nan")]))
except mingle.NotFinite as error:
    assert "`x`, number 0 of 1" in str(error)
with mingle.Exchange(sys.argv[1], "x", array("f", [0, 0])) as swarm:
    while not swarm.done:
        swarm.exchange(array("f", [x + 1 for x in swarm.model]))
assert swarm.model == array("f", [5, 5])
assert not {"numpy", "torch", "jax"} & set(sys.modules)
"""
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(SOURCES)!r})\n{program}", str(host.home)]
    subprocess.run(command, check=True, timeout=60)


def test_importing_the_package_imports_no_framework() -> None:
    program = "import mingle, sys; print(sorted({'torch', 'numpy', 'jax'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(SOURCES)}, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
