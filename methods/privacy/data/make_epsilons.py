#!/usr/bin/env python3
"""Writes epsilons.csv: what dp-accounting 0.6.0 says that Gaussian mechanisms cost.

    python3 -m venv venv && venv/bin/pip install dp-accounting==0.6.0
    venv/bin/python methods/privacy/data/make_epsilons.py > methods/privacy/data/epsilons.csv

One row for each noise multiplier, number of steps and delta: the epsilon of its RDP accountant
with its default orders, for data sets that differ by one participant that is there or not.
"""

from importlib.metadata import version

from dp_accounting import dp_event
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import RdpAccountant

NOISES = [0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 4.0, 8.0, 20.0, 100.0]
STEPS = [1, 10, 100, 1_000, 20_000]
DELTAS = [1e-3, 1e-5, 1e-8]


def epsilon(noise, steps, delta):
    accountant = RdpAccountant(neighboring_relation=NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(dp_event.GaussianDpEvent(noise), steps)
    return accountant.get_epsilon(delta)


print(f"# dp-accounting {version('dp-accounting')}, made by make_epsilons.py")
print("noise,steps,delta,epsilon")
for noise in NOISES:
    for steps in STEPS:
        for delta in DELTAS:
            print(f"{noise},{steps},{delta},{float(epsilon(noise, steps, delta))!r}")
