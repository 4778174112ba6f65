"""Models and loops of the usual kinds, in swarms of sites that see different data: what people take away is what was trained."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import torch
from agreement import check_agreement, gains
from own_models import KINDS
from swarm import LocalSwarm

import mingle

pytestmark = [
    pytest.mark.swarm,
    pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle"),
]

OWN_MODELS = Path(__file__).parent / "own_models.py"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_final_models_agree_and_are_no_worse_than_those_before(tmp_path: Path, kind: str) -> None:
    with LocalSwarm(tmp_path, rounds=60, options=("--evaluate-every", "10")) as swarm:
        peers = [swarm.start_peer(node) for node in range(3)]
        scripts = [swarm.start_script(node, OWN_MODELS, kind, str(node), "3") for node in range(3)]
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        check_agreement(swarm.homes)
        for node, home in enumerate(swarm.homes):
            # A busy machine may start slowly; nothing else is to be warned of.
            assert [line for line in swarm.output(f"script{node}").splitlines() if not line.startswith("no order yet")] == []
            gain, noise = gains(home, swarm.summary(node)["metrics"])
            assert gain >= -noise, (node, gain)
        swarm.audit()
        work = KINDS[kind](0, 3)
        mingle.load(work.model, swarm.home(0))
        work.model.eval()
        with torch.no_grad():
            metrics = work.evaluate()
        found = {measured: value for measured, (value, _) in metrics.items()}
        assert found == pytest.approx(swarm.summary(0)["metrics"], abs=1e-4), "the one line of the docs loads the model that was evaluated"


def test_a_script_that_is_interrupted_detaches_and_its_peer_mixes_on(tmp_path: Path) -> None:
    slow_trainer = Path(__file__).parent / "slow_trainer.py"
    with LocalSwarm(tmp_path, rounds=150) as swarm:
        peers = [swarm.start_peer(node) for node in range(3)]
        scripts = [swarm.start_script(node, slow_trainer, str(node), str(swarm.progress(node)), "0.02") for node in range(3)]
        swarm.wait_for_round(1, 20)
        scripts[1].send_signal(signal.SIGINT)
        assert scripts[1].wait(10) in (-signal.SIGINT, 130) and "KeyboardInterrupt" in swarm.output("script1")
        swarm.end(peers, "peer")
        check_agreement(swarm.homes)
        assert "has detached" in (swarm.home(1) / "events.jsonl").read_text()
        swarm.audit()
