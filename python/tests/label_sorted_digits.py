"""The example digits_mingle.py, at sites of which each has digits of a few classes only.

usage: MINGLE_HOME=HOME python label_sorted_digits.py SITE SITES
"""

import runpy
import sys
from pathlib import Path

from torch.utils.data import TensorDataset

EXAMPLES = Path(__file__).parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))

import digits_data

load_alike = digits_data.load


def load_label_sorted(site: int, sites: int) -> tuple[TensorDataset, TensorDataset]:
    """The part of a site of the training digits in the order of their labels, and the test digits."""
    train, test = load_alike(0, 1)
    images, labels = train.tensors
    chosen = labels.argsort(stable=True).chunk(sites)[site]
    return TensorDataset(images[chosen], labels[chosen]), test


digits_data.load = load_label_sorted
runpy.run_path(str(EXAMPLES / "digits_mingle.py"), run_name="__main__")
