"""The forecast of a plan: what a period costs, and how fast the nodes agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Forecast:
    """The forecast of a plan, with the names and numbers of `mingle plan show --json`. What does not apply is None.

    A *period* is one pass through the plan's steps. Slots are transmissions that cannot be at the same time on a shared medium; seconds and
    bytes need measured links. docs/planning.md says how each number is computed.
    """

    slots_per_period: int
    """Broadcast slots of a period; 0 on a point-to-point medium."""
    slots_lower_bound: int | None
    """Proven lower bound of `slots_per_period`, for the links of this plan."""
    slots_to_1e_2: int | None
    """Slots until a random start is averaged to within 1 %: the median over starts, to the end of a step."""
    periods_to_1e_2: int | None
    """Periods until a random start is averaged to within 1 %, including a begun one."""
    periods_to_1e_2_note: str | None
    """Reason why `slots_to_1e_2` and `periods_to_1e_2` are not known."""
    slots_per_neper: float | None
    """Slots until disagreement has shrunk by a factor e, in the long run."""
    lambda_2: float | None
    """Factor by which disagreement shrinks in a period, in the long run: the second largest modulus of an eigenvalue of the period's product."""
    lambda_2_note: str | None
    """Reason why `lambda_2` is not known."""
    perron_min: float | None
    """Smallest push-sum weight with which a node ends; the average is 1."""
    perron_max: float | None
    """Largest push-sum weight with which a node ends."""
    links: int
    """Different links of a period."""
    max_out_degree: int
    """Most receivers of a node."""
    max_in_degree: int
    """Most senders of a node."""
    diameter: int
    """Largest distance between two nodes in hops."""
    critical_nodes: int
    """Nodes without which the others are no longer strongly connected."""
    critical_links: int
    """Links without which the nodes are no longer strongly connected."""
    payloads_per_period: int
    """Transmissions of a period."""
    ln_objective_16: float | None
    """Logarithm of the objective (16) of Nguyen and He."""
    ln_objective_19: float | None
    """Logarithm of the objective (19) of Nguyen and He."""
    largest_momentum: float | None
    """Largest momentum across rounds with which the plan is stable."""
    largest_momentum_note: str | None
    """Reason why `largest_momentum` is not known."""
    busiest_payloads_per_round: float | None
    """Payloads that the busiest node sends or receives in a round, on a point-to-point medium."""
    heaviest_node_share: float | None
    """Load of the busiest node relative to the mean, on a point-to-point medium."""
    payload_share: float | None
    """Bytes of a payload in the codec of the peers relative to f32, on a point-to-point medium."""
    seconds_per_round: float | None
    """Seconds of a round, with measured links."""
    seconds_per_period: float | None
    """Seconds of a period, with measured links."""
    seconds_to_1e_2: float | None
    """Seconds until a random start is averaged to within 1 %, with measured links."""
    bytes_per_node_per_period: int | None
    """Most bytes that a node sends in a period, with measured links."""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Forecast:
        """The forecast in a JSON document of the program."""
        return cls(**{field.name: document[_key(field.name)] for field in fields(cls)})


def _key(name: str) -> str:
    """The name of a field in the program's JSON: an exponent is a minus sign and a digit there."""
    return name.replace("1e_2", "1e-2")
