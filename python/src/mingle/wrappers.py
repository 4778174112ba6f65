"""Wrappers of other libraries around models and optimizers: they are removed, so that names and steps are the same without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from mingle.errors import LayoutError

MODEL_WRAPPERS = {
    "DistributedDataParallel": "module",
    "DataParallel": "module",
    "OptimizedModule": "_orig_mod",  # torch.compile
    "GradSampleModule": "_module",  # Opacus, as the next three
    "GradSampleModuleFastGradientClipping": "_module",
    "GradSampleModuleExpandedWeights": "_module",
    "DifferentiallyPrivateDistributedDataParallel": "module",
    "CheckpointWrapper": "_checkpoint_wrapped_module",
}
"""Attribute that holds the wrapped module, by the class of the wrapper or one of its base classes."""

OPTIMIZER_WRAPPERS = {"AcceleratedOptimizer": "optimizer", "LightningOptimizer": "_optimizer", "DPOptimizer": "original_optimizer"}
"""Attribute that holds the wrapped optimizer, by the class of the wrapper or one of its base classes."""

INSIDE = ("original_optimizer", "optimizer", "_optimizer", "base_optimizer", "inner_optimizer")
"""Attributes in which a wrapper without hooks may hold its optimizer."""

DEEPEST = 10


def _inside(module: torch.nn.Module) -> str | None:
    return next((MODEL_WRAPPERS[kind.__name__] for kind in type(module).__mro__ if kind.__name__ in MODEL_WRAPPERS), None)


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The model inside the wrappers around it. Raises `LayoutError` where it is no module."""
    while (attribute := _inside(model)) is not None:
        model = getattr(model, attribute)
    if not isinstance(model, torch.nn.Module):
        raise LayoutError(f"a model is a torch.nn.Module, and this is a {type(model).__name__}: mingle.join takes the model first, then its optimizer")
    return model


def plain_names(model: torch.nn.Module) -> Callable[[str], str]:
    """A function from the path of a tensor in the model to its name without wrappers, which may be around any module in it."""
    modules = ((path, _inside(module)) for path, module in model.named_modules())
    wrappers = {f"{path}." if path else "": f"{attribute}." for path, attribute in modules if attribute is not None}
    if not wrappers:
        return lambda path: path

    def plain(path: str) -> str:
        name, done = "", 0
        while done < len(path):
            end = path.find(".", done) + 1 or len(path)
            if wrappers.get(path[:done]) != path[done:end]:
                name += path[done:end]
            done = end
        return name

    return plain


def hookable_optimizer(optimizer: object) -> torch.optim.Optimizer:
    """The optimizer whose `step` is counted: the one inside the wrappers of Accelerate, Lightning, Opacus and others.

    Raises `LayoutError` where its steps cannot be counted: for a list of several, and for an object without hooks and without an optimizer inside.
    """
    if isinstance(optimizer, (list, tuple)):
        if len(optimizer) != 1:
            raise LayoutError(
                f"{len(optimizer)} optimizers, and the steps of one are counted: give mingle.join(model, None), and call swarm.step() once"
                " after all of them have taken their step"
            )
        return hookable_optimizer(optimizer[0])
    found: Any = optimizer
    for _ in range(DEEPEST):
        inside = _known_inside(found)
        if inside is None and hasattr(found, "_optimizer_step_post_hooks"):
            break
        inside = inside or next((name for name in INSIDE if hasattr(getattr(found, name, None), "step")), None)
        if inside is None:
            break
        found = getattr(found, inside)
    if hasattr(found, "_optimizer_step_post_hooks") and isinstance(found, torch.optim.Optimizer):
        return found
    raise LayoutError(
        f"the steps of a {type(optimizer).__name__} cannot be counted, it is no torch.optim.Optimizer: give mingle.join(model, None),"
        " and call swarm.step() after each step"
    )


def _known_inside(optimizer: object) -> str | None:
    names = (OPTIMIZER_WRAPPERS.get(kind.__name__) for kind in type(optimizer).__mro__)
    return next((name for name in names if name is not None and hasattr(optimizer, name)), None)
