"""`mingle.load(model, home)`: the final model of a run, in a PyTorch model."""

from __future__ import annotations

import os

import torch

from mingle.errors import LayoutError, MingleError
from mingle.final_model import ModelFile
from mingle.home import Path, usual_home
from mingle.shards import is_sharded, reshard, scatter
from mingle.tensors import listed
from mingle.wrappers import plain_names, unwrapped

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16}


def load(model: torch.nn.Module, home: Path | None = None) -> None:
    """Writes the model of a home into `model`, in place: its `model.safetensors`, or the file itself where `home` is one, such as `best.safetensors`.

    Tensors that the run did not exchange stay as they are: frozen weights below an adapter, integer buffers, those that `local` named. Tied
    weights are in the file once, under any of their names. Wrappers around the model or in it make no difference.

    Where `fully_shard` has split the model, all processes of the site call this together.

    `home` is MINGLE_HOME unless given, else the user's state folder. Raises `MingleError` where there is no such file, and `LayoutError`
    where a tensor of the file is not in the model or has another shape; nothing is written then.
    """
    place = os.fspath(home if home is not None else os.environ.get("MINGLE_HOME") or usual_home())
    path = os.path.join(place, "model.safetensors") if os.path.isdir(place) else place
    if os.path.exists(path) and not os.path.isfile(path):
        raise MingleError(f"{path} is a pipe or a device: the model is read from a regular file")
    try:
        file = ModelFile(path)
        held = _tensors(model)
        _check(file, held, path, type(unwrapped(model)).__name__)
        loaded = [(held[name], torch.frombuffer(file.read(name), dtype=DTYPES[file.dtypes[name]])) for name in file.shapes if held[name].numel()]
    except FileNotFoundError:
        raise MingleError(f"there is no {path}: a run writes it into the home of its peer when it ends") from None
    except OSError as error:
        raise MingleError(f"{path} cannot be read: {error}") from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise MingleError(f"{path} is no model of f32 in the format of safetensors: {error}") from error
    with torch.no_grad():
        reshard(unwrapped(model))
        for tensor, numbers in loaded:
            if is_sharded(tensor):
                scatter(tensor, numbers.view(tensor.shape))
            else:
                tensor.copy_(numbers.view(tensor.shape))


def _tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """All tensors by their names without wrappers, tied ones under each of their names."""
    model = unwrapped(model)
    plain = plain_names(model)
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    return {plain(path): tensor for path, tensor in named}


def _check(file: ModelFile, held: dict[str, torch.Tensor], path: str, kind: str) -> None:
    missing = [f"`{name}`" for name in file.shapes if name not in held]
    if missing:
        raise LayoutError(
            f"{path} has tensors that the {kind} lacks: {listed(missing)}. Load it into the model that was given to mingle.join,"
            " with its adapter where that had one"
        )
    other = [
        f"`{name}` ({list(shape)} in the file, {list(held[name].shape)} in the model)"
        for name, shape in file.shapes.items()
        if tuple(held[name].shape) != shape
    ]
    if other:
        raise LayoutError(f"{path} is of a model with other shapes: {listed(other)}")
