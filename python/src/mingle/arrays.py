"""Models that `mingle.Exchange` accepts, and their conversion to a vector of `f32` and back.

- any buffer of f32: an array of numpy, `array.array("f")`, a `memoryview`; arrays of numpy with other real numbers are converted, and
  come back in their type: so whole numbers, which cannot hold a swarm's model, are refused
- a `Layout`, where the model is to be taken from the swarm; vectors are then `array.array("f")`
- a dict of names and numpy arrays
- a pytree of JAX, or any object with a `flatten` of the user's, which works as `jax.flatten_util.ravel_pytree` does
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from typing import Any

from mingle.errors import LayoutError
from mingle.layout import Layout

Flatten = Callable[[Any], tuple[Any, Callable[[Any], Any]]]
"""A function from a model to its vector, and to the inverse function from a vector to a model."""


class Form:
    """The conversion of a model to a vector and back. `to_vector` returns a buffer of f32, `from_vector` a model from such a buffer."""

    def __init__(
        self,
        layout: Layout,
        to_vector: Callable[[Any], memoryview[float]],
        from_vector: Callable[[memoryview[float]], Any],
        is_exact: bool = True,
    ) -> None:
        self.layout = layout
        self._to_vector = to_vector
        self.from_vector = from_vector
        self.is_exact = is_exact
        """True if a model holds any vector of f32 without rounding."""

    def to_vector(self, model: Any) -> memoryview[float]:
        """The model as f32, `[dimension]`. Raises `LayoutError` where it has another length."""
        vector = self._to_vector(model)
        if len(vector) != self.layout.dimension:
            raise LayoutError(f"a vector of {len(vector)} numbers where {self.layout.dimension} are expected")
        return vector


def form_of(model: Any, flatten: Flatten | None = None) -> Form:
    """The form of `model`. Raises `LayoutError` where it is of no supported kind."""
    if isinstance(model, Layout):
        return Form(model, _floats, lambda vector: array("f", vector.tobytes()))
    if flatten is not None:
        return _flattened(model, flatten)
    if isinstance(model, dict) and "numpy" in sys.modules and all(_is_numpy(value) for value in model.values()):
        for name, value in model.items():
            _check_real(f"`{name}`", value)
        return _dict_form(model)
    if _is_numpy(model):
        _check_real("the model", model)
        return _numpy_form(model)
    if (jax := sys.modules.get("jax")) is not None and all(hasattr(leaf, "dtype") for leaf in jax.tree_util.tree_leaves(model)):
        return _jax_form(model)
    if hasattr(model, "dtype") and hasattr(model, "__array__"):
        _check_real("the model", model)
        return _array_form(model)
    return Form(Layout.flat(len(_floats(model))), _floats, lambda vector: array("f", vector.tobytes()))


def _floats(model: Any) -> memoryview[float]:
    """The model as a buffer of f32, without a copy where it is one. Objects that numpy can convert become arrays of f32."""
    if _is_numpy(model) or hasattr(model, "__array__"):
        import numpy

        model = numpy.ascontiguousarray(model, dtype=numpy.float32).reshape(-1)
    try:
        view = memoryview(model)
    except TypeError:
        raise LayoutError(f"a {type(model).__name__} is no buffer of f32: give a numpy array, array.array('f'), or flatten=") from None
    if view.format != "f" or not view.c_contiguous:
        raise LayoutError(f"a buffer of format {view.format!r} is not f32 in row-major order: convert it, as numpy.asarray(x, 'f') does")
    return view.cast("B").cast("f")


def _check_real(what: str, tensor: Any) -> None:
    """Refuses types that would truncate the swarm's model: it comes back in the type that went in."""
    kind = _kind(tensor)
    if "complex" in kind:
        raise LayoutError(f"{what} is an array of {kind}: give its real and imaginary parts as two arrays")
    if "float" not in kind:
        to_do = "convert it, as array.astype('float32') does, or leave it out of the model"
        raise LayoutError(f"{what} is an array of {kind}, which cannot hold the numbers of a swarm's model: {to_do}")


def _is_wide(tensor: Any) -> bool:
    """Returns True if the type of the tensor holds any f32."""
    return _kind(tensor) in ("float32", "float64", "float96", "float128")


def _kind(tensor: Any) -> str:
    """The name of the element type of a tensor of numpy, JAX or PyTorch."""
    return str(getattr(tensor.dtype, "name", tensor.dtype)).removeprefix("torch.")


def _is_numpy(model: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(model, numpy.ndarray)


def _numpy_form(model: Any) -> Form:
    import numpy

    shape, kind = model.shape, model.dtype

    def to_vector(value: Any) -> memoryview[float]:
        if len(shape) == 1 and not hasattr(value, "dtype"):
            return _floats(value)
        _check_form("the model", value, shape)
        return _floats(value)

    def from_vector(vector: memoryview[float]) -> Any:
        return numpy.frombuffer(vector, dtype=numpy.float32).reshape(shape).astype(kind)

    return Form(Layout([("x", shape)]), to_vector, from_vector, is_exact=_is_wide(model))


def _array_form(model: Any) -> Form:
    """Of an array of another library: vectors come back as `array.array`, as for any buffer."""
    shape = tuple(model.shape)

    def to_vector(value: Any) -> memoryview[float]:
        if hasattr(value, "dtype"):
            _check_form("the model", value, shape)
        return _floats(value)

    return Form(Layout.flat(len(_floats(model))), to_vector, lambda vector: array("f", vector.tobytes()))


def _check_form(what: str, value: Any, shape: tuple[int, ...]) -> None:
    """Refuses what has another shape than the first model, or a type that would truncate the swarm's."""
    found = getattr(value, "shape", None)
    if found is None or tuple(found) != tuple(shape):
        now = f"a {type(value).__name__}" if found is None else f"of shape {list(found)}"
        raise LayoutError(f"{what} is now {now}: give an array of shape {list(shape)}, as the first one was")
    if hasattr(value, "dtype"):
        _check_real(what, value)


def _dict_form(model: dict[str, Any]) -> Form:
    import numpy

    layout = Layout((name, value.shape) for name, value in model.items())
    kinds = {name: value.dtype for name, value in model.items()}
    is_exact = all(map(_is_wide, model.values()))

    def to_vector(values: dict[str, Any]) -> memoryview[float]:
        for entry in layout:
            if entry.name not in values:
                raise LayoutError(f"`{entry.name}` is missing: the model keeps the arrays that it had at the start")
            _check_form(f"`{entry.name}`", values[entry.name], entry.shape)
        if others := [name for name in values if name not in kinds]:
            raise LayoutError(f"`{others[0]}` is new: the model keeps the arrays that it had at the start")
        return _floats(numpy.concatenate([numpy.ravel(values[entry.name]) for entry in layout]))

    def from_vector(vector: memoryview[float]) -> Any:
        flat = numpy.frombuffer(vector, dtype=numpy.float32)
        parts = ((entry, flat[entry.offset : entry.offset + entry.size]) for entry in layout)
        return {entry.name: part.reshape(entry.shape).astype(kinds[entry.name]) for entry, part in parts}

    return Form(layout, to_vector, from_vector, is_exact=is_exact)


def _flattened(model: Any, flatten: Flatten) -> Form:
    vector, unflatten = flatten(model)

    def from_vector(vector: memoryview[float]) -> Any:
        return unflatten(_like_flat(vector))

    # It is unknown whether the function rounds.
    return Form(Layout.flat(len(_floats(vector))), lambda model: _floats(flatten(model)[0]), from_vector, is_exact=False)


def _like_flat(vector: memoryview[float]) -> Any:
    """The vector in the form that a flatten function returns: a numpy array where numpy is loaded, else an `array.array`."""
    if (numpy := sys.modules.get("numpy")) is not None:
        return numpy.frombuffer(vector, dtype=numpy.float32).copy()
    return array("f", vector.tobytes())


def _jax_form(model: Any) -> Form:
    import jax
    import numpy
    from jax.flatten_util import ravel_pytree

    leaves, _ = jax.tree_util.tree_flatten_with_path(model)
    for path, leaf in leaves:
        _check_real(f"`{jax.tree_util.keystr(path) or 'x'}`", leaf)
    _, unravel = ravel_pytree(model)
    layout = Layout((jax.tree_util.keystr(path) or "x", leaf.shape) for path, leaf in leaves)

    def from_vector(vector: memoryview[float]) -> Any:
        return unravel(jax.numpy.asarray(numpy.frombuffer(vector, dtype=numpy.float32)))

    def to_vector(value: Any) -> memoryview[float]:
        found = {jax.tree_util.keystr(path) or "x": leaf for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]}
        for entry in layout:
            if entry.name not in found:
                raise LayoutError(f"`{entry.name}` is missing: the model keeps the arrays that it had at the start")
            if hasattr(found[entry.name], "dtype") or entry.shape:
                _check_form(f"`{entry.name}`", found[entry.name], entry.shape)
        if len(found) > len(layout):
            new = next(name for name in found if name not in {entry.name for entry in layout})
            raise LayoutError(f"`{new}` is new: the model keeps the arrays that it had at the start")
        return _floats(ravel_pytree(value)[0])

    is_exact = all(_is_wide(leaf) for _, leaf in leaves)
    return Form(layout, to_vector, from_vector, is_exact)
