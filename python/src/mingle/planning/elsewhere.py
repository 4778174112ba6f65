"""The training of a simulated swarm by trainers of this process: orders of `mingle simulate --train-elsewhere`, and the answers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

from mingle.errors import LayoutError, PlanError

if TYPE_CHECKING:
    import torch

    from mingle.tensors import ModelTensors

Step = Callable[[], object]
MakeTrainer = Callable[[int], "tuple[torch.nn.Module, Step]"]
"""A function of the number of a node that makes its model, and a function that takes one optimizer step on the data of that node."""
Metrics = Mapping[str, "float | tuple[float, int]"]
Evaluate = Callable[["torch.nn.Module"], Metrics]
"""A function of a model that returns its metrics: means, with or without the samples behind them."""


class Trainers:
    """A model and its step for each node."""

    def __init__(self, make_trainer: MakeTrainer, nodes: int) -> None:
        from mingle.tensors import ModelTensors

        self.models: list[torch.nn.Module] = []
        self._steps: list[Step] = []
        self._tensors: list[ModelTensors] = []
        for node in range(nodes):
            model, step = _made(make_trainer, node)
            self.models.append(model)
            self._steps.append(step)
            self._tensors.append(ModelTensors(model))
        self._check_layouts()
        self.parameters = self._tensors[0].layout.dimension

    def _check_layouts(self) -> None:
        first = self._tensors[0].layout
        for node, tensors in enumerate(self._tensors):
            if tensors.layout != first:
                other = next((it for it, of_first in zip(tensors.layout, first, strict=False) if it != of_first), None)
                what = f"`{other.name}` {list(other.shape)}" if other is not None else f"{len(tensors.layout)} tensors"
                raise LayoutError(f"the model of node {node} differs from that of node 0: {what}. All nodes train one model")

    def initial(self) -> bytes:
        """The model that all nodes begin with: that of node 0, as in a swarm of peers."""
        return bytes(self._vector(0))

    def train(self, node: int, model: bytearray, steps: int) -> bytes:
        """Takes so many steps from a model, and returns the change."""
        import torch

        tensors = self._tensors[node]
        start = torch.frombuffer(model, dtype=torch.float32)
        tensors.load(start)
        if not tensors.is_exact:
            # float16 and bfloat16 round the model: the rounding is no change.
            tensors.store(start)
        for _ in range(steps):
            self._steps[node]()
        tensors.check_layout()
        change = bytearray(len(model))
        vector = torch.frombuffer(change, dtype=torch.float32)
        tensors.difference(start, vector)
        tensors.check_finite(vector, f"the change of node {node}")
        return bytes(change)

    def load(self, node: int, model: bytearray) -> None:
        """Writes a model into that of a node."""
        import torch

        self._tensors[node].load(torch.frombuffer(model, dtype=torch.float32))

    def evaluate(self, evaluate: Evaluate) -> dict[str, float]:
        """The metrics of all models as they are: the mean over nodes under `mean_NAME`, the least and the most under `least_NAME` and `most_NAME`."""
        import torch

        found: dict[str, list[float]] = {}
        for model in self.models:
            was_training = model.training
            model.eval()
            with torch.no_grad():
                metrics = evaluate(model)
            model.train(was_training)
            for name, metric in metrics.items():
                found.setdefault(name, []).append(float(metric[0] if isinstance(metric, tuple) else metric))
        return {key: value for name, numbers in found.items() for key, value in _over_nodes(name, numbers)}

    def _vector(self, node: int) -> bytearray:
        import torch

        numbers = bytearray(4 * self._tensors[node].layout.dimension)
        self._tensors[node].store(torch.frombuffer(numbers, dtype=torch.float32))
        return numbers


def _made(make_trainer: MakeTrainer, node: int) -> tuple[torch.nn.Module, Step]:
    made = make_trainer(node)
    if not (isinstance(made, tuple) and len(made) == 2 and hasattr(made[0], "named_parameters") and callable(made[1])):
        raise PlanError(f"the trainer of node {node} is {made!r}: return a PyTorch model, and a function that takes one optimizer step of it")
    return made


def _over_nodes(name: str, numbers: list[float]) -> Iterator[tuple[str, float]]:
    yield f"mean_{name}", statistics.fmean(numbers) if all(map(math.isfinite, numbers)) else math.nan
    yield f"least_{name}", min(numbers)
    yield f"most_{name}", max(numbers)


def answer(trainers: Trainers, document: dict[str, Any], output: IO[bytes], orders: IO[bytes]) -> None:
    """Trains the node of an order from the model behind it, and sends the change."""
    model = read_vector(orders, trainers.parameters)
    output.write(trainers.train(document["node"], model, document["steps"]))
    output.flush()


def read_vector(stream: IO[bytes], parameters: int) -> bytearray:
    """A vector of so many numbers of f32."""
    vector = bytearray(4 * parameters)
    view = memoryview(vector)
    done = 0
    while done < len(vector):
        count = stream.readinto(view[done:])  # type: ignore[attr-defined]
        if not count:
            raise PlanError("the program ended in the middle of a model")
        done += count
    return vector
