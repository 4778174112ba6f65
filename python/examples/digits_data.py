"""The handwritten digits that Mingle ships, split over sites: 8 x 8 pixels, 10 classes (models/data/README.md)."""

import gzip
from pathlib import Path

import torch
from torch.utils.data import TensorDataset

COUNT, PIXELS = 1797, 64
TEST_COUNT = 360


def load(site: int, sites: int) -> tuple[TensorDataset, TensorDataset]:
    """The training digits of one site of so many, and the test digits, which are the same everywhere.

    Images are `[digits, 1, 8, 8]`, from -0.3 to 0.7; labels `[digits]`.
    """
    packed = gzip.decompress((Path(__file__).parents[2] / "models/data/digits.bin.gz").read_bytes())
    numbers = torch.frombuffer(bytearray(packed), dtype=torch.uint8)
    labels, pixels = numbers[:COUNT].long(), numbers[COUNT:].view(COUNT, 1, 8, 8) / 16 - 0.3
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(0))
    test, train = order[:TEST_COUNT], order[TEST_COUNT:][site::sites]
    return TensorDataset(pixels[train], labels[train]), TensorDataset(pixels[test], labels[test])
