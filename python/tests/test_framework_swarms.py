"""Scripts of transformers, peft, Lightning and JAX in real swarms: what people take away is what was trained."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from agreement import check_agreement, gains
from framework_models import KINDS
from swarm import LocalSwarm

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.swarm,
    pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle"),
]

SCRIPT = Path(__file__).parent / "framework_models.py"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_final_models_agree_and_are_no_worse_than_those_before(tmp_path: Path, kind: str) -> None:
    with LocalSwarm(tmp_path, rounds=60, options=("--evaluate-every", "10")) as swarm:
        peers = [swarm.start_peer(node) for node in range(3)]
        scripts = [swarm.start_script(node, SCRIPT, kind, str(node), "3") for node in range(3)]
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        check_agreement(swarm.homes)
        for node, home in enumerate(swarm.homes):
            gain, noise = gains(home, swarm.summary(node)["metrics"])
            assert gain >= -noise, (node, gain)
        swarm.audit()
