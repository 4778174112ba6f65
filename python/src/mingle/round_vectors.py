"""The vectors of a round of a PyTorch model, and the step of the model from one order to the next.

    held       the vector of the order, z
    base       the origin of the change
    change     the model minus base, times the weight of the site, which is sent
    incoming   the buffer for the vector of the next order

`base` is `held`, with two exceptions. Tensors of float16 and bfloat16 cannot hold z to the bit: `base` is then the rounded z, so that no
rounding is sent as a change. With overlap, steps were taken before z came: `base` is then the model without these steps.
"""

from __future__ import annotations

from typing import Protocol

import torch

from mingle.tensors import ModelTensors


class Steps(Protocol):
    """Those steps of the model from one order to the next that all ranks take together where it is sharded."""

    def hold_model(self) -> None:
        """Writes the present model into `held`."""

    def measure(self) -> None:
        """Writes the model minus `base`, times the weight of the site, into `change`."""

    def load(self) -> None:
        """Makes `incoming` the vector of the order, and writes it into the model."""

    def load_incoming(self) -> None:
        """Writes `incoming` into the model, to be evaluated."""

    def load_held(self) -> None:
        """Writes the vector of the order into the model."""

    def reset(self) -> None:
        """Restores the model from `base`."""


class OtherRank:
    """The part of a rank other than 0, which holds no vectors."""

    def __init__(self, tensors: ModelTensors) -> None:
        self._tensors = tensors

    def hold_model(self) -> None:
        """Helps to gather the model."""
        self._tensors.store(None)

    def measure(self) -> None:
        """Helps to gather the model."""
        self._tensors.difference(None, None)

    def load(self) -> None:
        """Takes its part of the model of an order."""
        self._tensors.load(None)
        if not self._tensors.is_exact:
            self._tensors.store(None)

    def load_incoming(self) -> None:
        """Takes its part of a model that is evaluated."""
        self._tensors.load(None)

    def load_held(self) -> None:
        """Takes its part of the model of the order again."""
        self._tensors.load(None)

    def reset(self) -> None:
        """Takes its part of the model that the change is measured from."""
        self._tensors.load(None)


class RoundVectors:
    """Vectors of `f32` on the processor, `[dimension]` each, which share memory with buffers of bytes, `[4 * dimension]`."""

    def __init__(self, tensors: ModelTensors, overlap: bool, factor: float) -> None:
        self.tensors = tensors
        self._factor = factor
        self._has_own_base = overlap or not tensors.is_exact
        self.held_bytes, self.held = self._vector()
        self.incoming_bytes, self.incoming = self._vector()
        self.change_bytes, self.change = self._vector()
        self.base = torch.empty_like(self.held) if self._has_own_base else self.held

    def _vector(self) -> tuple[memoryview, torch.Tensor]:
        buffer = bytearray(4 * self.tensors.layout.dimension)
        return memoryview(buffer), torch.frombuffer(buffer, dtype=torch.float32)

    def model_bytes(self) -> memoryview:
        """A copy of the present model, `[4 * dimension]`."""
        buffer, vector = self._vector()
        self.tensors.store(vector)
        return buffer

    def hold_model(self) -> None:
        """Writes the present model into `held`."""
        self.tensors.store(self.held)

    def measure(self) -> None:
        """Writes the model minus `base`, times the weight of the site, into `change`."""
        self.tensors.difference(self.base, self.change)
        if self._factor != 1.0:
            self.change.mul_(self._factor)

    def load(self) -> None:
        """Makes `incoming` the vector of the order, and writes it into the model."""
        self._take()
        self.tensors.load(self.held)
        if self._has_own_base:
            self.tensors.store(self.base)

    def load_incoming(self) -> None:
        """Writes `incoming` into the model, to be evaluated."""
        self.tensors.load(self.incoming)

    def load_held(self) -> None:
        """Writes the vector of the order into the model."""
        self.tensors.load(self.held)

    def shift(self) -> None:
        """Makes `incoming` the vector of the order, and keeps the steps that the model took since `measure`. Allocates a vector."""
        self._take()
        measured = self.base.add_(self.change, alpha=1.0 / self._factor)
        steps_since = torch.empty_like(measured)
        self.tensors.store(steps_since)
        steps_since.sub_(measured)
        self.tensors.shift(torch.sub(self.held, measured, out=self.change))
        self.tensors.store(self.base)
        self.base.sub_(steps_since)

    def reset(self) -> None:
        """Restores the model from `base`."""
        self.tensors.load(self.base)

    def _take(self) -> None:
        self.held, self.incoming = self.incoming, self.held
        self.held_bytes, self.incoming_bytes = self.incoming_bytes, self.held_bytes
        if not self._has_own_base:
            self.base = self.held
