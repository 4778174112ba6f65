"""Peers of the program mingle, and scripts in separate processes that train for them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
from agreement import check_agreement, evaluations, final_model, gains
from conftest import wait_until
from free_ports import free_ports
from kept_logger import read_lines
from kill_campaign import campaign
from swarm import LocalSwarm, TicketSwarm, kill

pytestmark = [
    pytest.mark.swarm,
    pytest.mark.skipif(not os.environ.get("MINGLE_BIN"), reason="MINGLE_BIN is not set to the program mingle"),
]

HELD_OUT = 360
"""Digits that no site trains on."""

ENDLESS = 10_000_000
"""Rounds of a run that a test stops: a script takes some seconds to start, and the others go on meanwhile."""


def test_scripts_of_three_sites_learn_digits_together(tmp_path: Path) -> None:
    with LocalSwarm(tmp_path, rounds=150, options=("--evaluate-every", "10")) as swarm:
        peers = [swarm.start_peer(node) for node in range(3)]
        scripts = [swarm.start_script(node, "digits_mingle.py", str(node), "3") for node in range(3)]
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        check_agreement(swarm.homes)
        for node in range(3):
            gain, noise = gains(swarm.home(node), {"accuracy": swarm.summary(node)["metrics"]["accuracy"]})
            assert gain >= -noise, (node, gain)
            accuracy = re.search(r"\((0\.\d+), 360\)", swarm.output(f"script{node}"))
            assert accuracy and float(accuracy[1]) > 0.95, swarm.output(f"script{node}")
            summary = swarm.summary(node)
            assert summary["rounds"] == 150 and summary["metrics"]["accuracy"] > 0.95, summary
            assert (swarm.home(node) / "model.safetensors").exists()
        swarm.audit()


def test_sites_that_see_different_features_find_all_weights(tmp_path: Path) -> None:
    with LocalSwarm(tmp_path, rounds=300) as swarm:
        peers = [swarm.start_peer(node, swarm.command_of_script("linear_numpy.py", str(node), "3")) for node in range(3)]
        swarm.end(peers, "peer")
        for node in range(3):
            error = re.search(r"largest error of a weight: (\d\.\d+)", (swarm.home(node) / "trainer.log").read_text())
            assert error and float(error[1]) < 0.2, error
        check_agreement(swarm.homes)
        swarm.audit()


def test_eight_simulated_scripts_end_with_the_models_of_eight_real_peers_to_the_bit(tmp_path: Path) -> None:
    patience = ("--wait", "sync", "--deadline", "60s", "--training-deadline", "60s")
    script = Path(__file__).parent / "hashed_model.py"
    with LocalSwarm(tmp_path, count=8, rounds=20, options=patience) as swarm:
        swarm.end([swarm.start_peer(node, swarm.command_of_script(script, str(node))) for node in range(8)], "peer")
        said = ["".join(re.findall("final model .*", (home / "trainer.log").read_text())) for home in swarm.homes]
        command = [swarm.program, "simulate", "--plan", str(swarm.plan), "--rounds", "20", "--wait", "sync"]
        command += ["--trainer", swarm.command_of_script(script, "{node}")]
        simulated = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = dict(re.findall(r"node (\d+): (final model .*)", simulated.stderr))
    assert said == [lines[str(node)] for node in range(8)], simulated.stderr
    assert len(set(said)) > 1, "by this plan the last rounds leave a difference, and each has its own model"


def test_scripts_of_sites_with_other_labels_end_with_one_model_that_is_no_worse_than_theirs_before(tmp_path: Path) -> None:
    # By this plan a round leaves a third of the disagreement, so the last rounds have to mix without training.
    with LocalSwarm(tmp_path, count=4, rounds=100, method="exponential") as swarm:
        peers = [swarm.start_peer(node) for node in range(4)]
        label_sorted = Path(__file__).parent / "label_sorted_digits.py"
        scripts = [swarm.start_script(node, label_sorted, str(node), "4") for node in range(4)]
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        check_agreement(swarm.homes)
        finals = [swarm.summary(node)["metrics"]["accuracy"] for node in range(4)]
        assert min(finals) > 0.95 and max(finals) - min(finals) < 0.01, finals
        before = [evaluation["metrics"]["accuracy"] for home in swarm.homes for evaluation in evaluations(home)[-2:]]
        print(f"digits recognised: {HELD_OUT * fmean(before):.2f} while they trained, {HELD_OUT * fmean(finals):.2f} at the end")
        assert HELD_OUT * fmean(finals) > HELD_OUT * fmean(before) - 2, (before, finals)
        swarm.audit()


@pytest.mark.alone
def test_a_site_whose_script_takes_ten_times_as_long_does_not_hold_up_the_others(tmp_path: Path) -> None:
    # The script looks at no time limit: the peer goes on without it.
    usual = _seconds_of_others(tmp_path / "alike", slowest_s=0.04)
    slowed = _seconds_of_others(tmp_path / "one slow", slowest_s=0.4)
    if slowed >= 2 * usual:
        # The machine may have had something else to do; a swarm that waits for the slow site is as slow again.
        slowed = _seconds_of_others(tmp_path / "one slow again", slowest_s=0.4)
    assert slowed < 2 * usual, (slowed, usual)


def _seconds_of_others(folder: Path, slowest_s: float) -> float:
    """The time from round 5 to the end of the peers 0 and 1, where the script of peer 2 takes so long for a round and theirs 40 ms."""
    folder.mkdir()
    slow_trainer = Path(__file__).parent / "slow_trainer.py"
    with LocalSwarm(folder, rounds=60) as swarm:
        peers = [swarm.start_peer(node) for node in range(3)]
        seconds = [0.04, 0.04, slowest_s]
        scripts = [
            swarm.start_script(node, slow_trainer, str(node), str(swarm.progress(node)), str(seconds[node])) for node in range(3)
        ]
        swarm.end(peers, "peer")
        swarm.end(scripts, "script")
        check_agreement(swarm.homes)
        swarm.audit()
        assert len(swarm.progress(2).read_text().split()) >= 4, "its work counts"
        return max(swarm.seconds_from_round(node, 5) for node in (0, 1))


def test_a_script_sends_the_bytes_of_the_built_in_model_and_gets_its_accuracy(tmp_path: Path) -> None:
    softmax = Path(__file__).parent / "softmax_digits.py"
    built_in = ("--data", "digits", "--split", "iid", "--model", "softmax", "--learning-rate", "0.1", "--batch-size", "32")
    found = {}
    for name, options in {"script": (), "built-in": built_in}.items():
        (tmp_path / name).mkdir()
        with LocalSwarm(tmp_path / name, rounds=200, options=options) as swarm:
            command = swarm.command_of_script(softmax, "{}", "3") if name == "script" else None
            peers = [swarm.start_peer(node, command and command.replace("{}", str(node))) for node in range(3)]
            swarm.end(peers, "peer")
            summaries = [swarm.summary(node) for node in range(3)]
            swarm.audit()
        found[name] = [(summary["sent_bytes"] / summary["encoding"]["parcels"]["f32"], summary["metrics"]["accuracy"]) for summary in summaries]
    print(found)
    for (bytes_of_script, accuracy_of_script), (bytes_built_in, accuracy_built_in) in zip(found["script"], found["built-in"], strict=True):
        # The held-out digits differ, 360 each: at 0.96 the difference of two such accuracies has a standard error of 1.5 points.
        assert abs(accuracy_of_script - accuracy_built_in) < 0.04, found
        # Bytes by parcel, with all that is sent beside parcels: the number of parcels of 200 rounds differs from run to run.
        assert abs(bytes_of_script / bytes_built_in - 1) < 0.05, found


def test_a_script_that_is_killed_and_started_again_goes_on(tmp_path: Path) -> None:
    with LocalSwarm(tmp_path, rounds=ENDLESS) as swarm:
        peers = [swarm.start_peer(node) for node in range(3)]
        scripts = [swarm.start_script(node, "digits_mingle.py", str(node), "3") for node in range(3)]
        swarm.wait_for_round(1, 30)
        kill(scripts[1])
        scripts[1] = swarm.start_script(1, "digits_mingle.py", "1", "3")
        swarm.wait_for_training(1, 90)
        swarm.stop()
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        assert swarm.summary(1)["metrics"]["accuracy"] > 0.95
        swarm.audit()


def test_a_script_outlives_its_peer(tmp_path: Path) -> None:
    with LocalSwarm(tmp_path, rounds=ENDLESS) as swarm:
        peers = [swarm.start_peer(node) for node in range(3)]
        scripts = [swarm.start_script(node, "digits_mingle.py", str(node), "3") for node in range(3)]
        swarm.wait_for_round(1, 30)
        kill(peers[1])
        assert scripts[1].poll() is None
        peers[1] = swarm.start_peer(1)
        swarm.wait_for_training(1, 90)
        swarm.stop()
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        assert swarm.summary(1)["metrics"]["accuracy"] > 0.95
        swarm.audit()


def test_scripts_that_do_not_know_the_home_train_over_tcp(tmp_path: Path) -> None:
    with LocalSwarm(tmp_path, rounds=300, options=("--trainer-tcp", "127.0.0.1:0")) as swarm:
        commands = ["unset MINGLE_HOME; " + swarm.command_of_script("linear_numpy.py", str(node), "3") for node in range(3)]
        peers = [swarm.start_peer(node, command) for node, command in enumerate(commands)]
        swarm.end(peers, "peer")
        for node in range(3):
            error = re.search(r"largest error of a weight: (\d\.\d+)", (swarm.home(node) / "trainer.log").read_text())
            assert error and float(error[1]) < 0.2, error
        swarm.audit()


def test_a_script_over_tcp_outlives_its_peer(tmp_path: Path) -> None:
    with LocalSwarm(tmp_path, rounds=ENDLESS) as swarm:
        tcp = ("--trainer-tcp", f"127.0.0.1:{free_ports(1)[0]}")
        peers = [swarm.start_peer(0), swarm.start_peer(1, "attach", *tcp), swarm.start_peer(2)]
        scripts = [swarm.start_script(node, "digits_mingle.py", str(node), "3") for node in (0, 2)]
        scripts.insert(1, swarm.start_script_over_tcp(1, "digits_mingle.py", "1", "3"))
        swarm.wait_for_round(1, 30)
        kill(peers[1])
        assert scripts[1].poll() is None
        peers[1] = swarm.start_peer(1, "attach", *tcp)
        swarm.wait_for_training(1, 90)
        swarm.stop()
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        swarm.audit()


def test_both_are_killed_and_started_again(tmp_path: Path) -> None:
    with LocalSwarm(tmp_path, rounds=ENDLESS) as swarm:
        peers = [swarm.start_peer(node) for node in range(3)]
        scripts = [swarm.start_script(node, "digits_mingle.py", str(node), "3") for node in range(3)]
        swarm.wait_for_round(1, 30)
        kill(peers[1])
        kill(scripts[1])
        scripts[1] = swarm.start_script(1, "digits_mingle.py", "1", "3")
        peers[1] = swarm.start_peer(1)
        swarm.wait_for_training(1, 90)
        swarm.stop()
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        assert swarm.summary(1)["metrics"]["accuracy"] > 0.95
        swarm.audit()


def test_a_script_that_is_at_work_when_the_run_ends_gets_the_final_model(tmp_path: Path) -> None:
    stalling = Path(__file__).parent / "stalling_training.py"
    with LocalSwarm(tmp_path, count=2, rounds=60) as swarm:
        peers = [swarm.start_peer(node) for node in range(2)]
        scripts = [swarm.start_script(0, stalling), swarm.start_script(1, stalling, "stall")]
        swarm.end(peers, "peer")
        swarm.end(scripts, "script")
        for node in range(2):
            assert "done True, round 60" in swarm.output(f"script{node}")
        swarm.audit()


def test_loggers_of_each_site_get_its_rounds_and_the_numbers_of_its_peer(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logged_trainer = Path(__file__).parent / "logged_trainer.py"
    with LocalSwarm(tmp_path, count=2, rounds=60, options=("--evaluate-every", "20")) as swarm:
        peers = [swarm.start_peer(node) for node in range(2)]
        folders = [tmp_path / f"logged{node}" for node in range(2)]
        scripts = [swarm.start_script(node, logged_trainer, str(node), "2", str(folders[node])) for node in range(2)]
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        for node, (home, folder) in enumerate(zip(swarm.homes, folders, strict=True)):
            logged = read_lines(folder / "lines.jsonl")
            assert max(logged) == 60, logged.keys()
            events = [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
            evaluated = [event for event in events if event["event"] == "evaluated"]
            assert [event["round"] for event in evaluated] == [20, 40, 60]
            # A peer whose script is late mixes on: what comes then is logged with the next round in which the script trains.
            errors = [error for values in logged.values() for error in values.get("swarm/evaluation/error", [])]
            assert errors == [event["metrics"]["error"] for event in evaluated], (errors, evaluated)
            assert errors[-1] == swarm.summary(node)["metrics"]["error"]
            for event in evaluated:
                weights = logged.get(event["round"], {}).get("swarm/weight", [])
                assert not weights or event["weight_units"] / 2**40 in weights, (event, weights)
            sent = [megabytes for values in logged.values() for megabytes in values.get("swarm/sent_megabytes", [])]
            assert sent == sorted(sent) and 0 < sent[-1] <= swarm.summary(node)["sent_bytes"] / 1e6
            assert sum("swarm/disagreement" in values for values in logged.values()) >= 20
            trained = {round: values for round, values in logged.items() if "swarm/train/loss" in values}
            assert len(trained) >= 20, "most rounds train, the last ones only mix"
            assert all(values["swarm/reported/site"] == [node] for values in trained.values())
            steps = [0, *(values["swarm/steps"][-1] for values in trained.values())]
            assert all(0 < after - before <= 5 for before, after in pairwise(steps)), steps
            read = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0}).Reload()
            for name in ("swarm/train/loss", "swarm/evaluation/error", "swarm/disagreement"):
                written = [(round, value) for round, values in logged.items() for value in values.get(name, [])]
                assert [scalar.step for scalar in read.Scalars(name)] == [round for round, _ in written], name
                assert [scalar.value for scalar in read.Scalars(name)] == pytest.approx([value for _, value in written]), name


def test_scripts_of_different_models_read_the_difference_within_ten_seconds(tmp_path: Path) -> None:
    layered = Path(__file__).parent / "layered_trainer.py"
    with LocalSwarm(tmp_path, count=2, rounds=60) as swarm:
        peers = [swarm.start_peer(node) for node in range(2)]
        scripts = [swarm.start_script(node, layered, str(node), width) for node, width in enumerate(("4", "5"))]
        assert [script.wait(60) for script in scripts] == [1, 1]
        assert [peer.wait(60) for peer in peers] == [6, 6]
        attached = max(_unix_s(swarm.home(node), "trainer_attached") for node in range(2))
        for node, (here, there) in enumerate((("[4, 1]", "[5, 1]"), ("[5, 1]", "[4, 1]"))):
            output = swarm.output(f"script{node}")
            error = output.splitlines()[-1]
            assert "PeerFailed" in error and f"trains something else: tensor `0.weight` has shape {here} here and {there} there" in error, output
            ended = re.search(r"ended at (\S+)", output)
            # The start of a peer is recorded in whole seconds.
            assert ended and float(ended[1]) - attached <= 10 + 1, (output, attached)


def _unix_s(home: Path, event: str) -> float:
    """The time of a peer's first event of that kind."""
    events = [json.loads(line) for line in (home / "events.jsonl").read_text().splitlines()]
    started = next(each for each in events if each["event"] == "started")
    found = next(each for each in events if each["event"] == event)
    return float(started["unix_s"] + found["at_ms"] / 1000)


def test_a_site_with_a_compiled_layer_trains_together_with_one_without(tmp_path: Path) -> None:
    layered = Path(__file__).parent / "layered_trainer.py"
    with LocalSwarm(tmp_path, count=2, rounds=300) as swarm:
        peers = [swarm.start_peer(node) for node in range(2)]
        scripts = [swarm.start_script(0, layered, "0", "16", "compiled"), swarm.start_script(1, layered, "1", "16")]
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        for node, home in enumerate(swarm.homes):
            error = re.search(r"mean squared error from -3 to 3: (\d\.\d+)", swarm.output(f"script{node}"))
            # Site 0 alone, which has the negative half, comes to 0.25.
            assert error and float(error[1]) < 0.05, swarm.output(f"script{node}")
            assert sorted(final_model(home)) == ["0.bias", "0.weight", "2.bias", "2.weight"]
        check_agreement(swarm.homes)
        swarm.audit()


def test_a_run_by_ticket_goes_on_with_more_rounds_and_the_moments_of_its_optimizers(tmp_path: Path) -> None:
    script = Path(__file__).parent / "kept_moments.py"
    with TicketSwarm(tmp_path, ["ana", "ben", "cho"], script) as swarm:
        swarm.run_to_end(rounds=30)
        ended = [swarm.said(name) for name in swarm.names]
        assert [len(said) for said in ended] == [2, 2, 2], ended
        assert all(said[0] == "begins in round 0 of 30 with 0 steps, second moments 0.000000" for said in ended), ended
        assert all(re.match("ends after round 30 with [1-9]", said[1]) for said in ended), ended
        # The same commands, but that the operator has more rounds: those who joined take his number.
        swarm.run_to_end(rounds=60)
        for name, (_, end) in zip(swarm.names, ended):
            moments = end.partition(" with ")[2]
            began, over = swarm.said(name)[2:]
            assert began == f"begins in round 30 of 60 with {moments}", (end, began)
            assert int(over.split()[5]) > int(end.split()[5]) and over.startswith("ends after round 60"), over
        swarm.audit()


def test_a_site_that_joins_late_begins_with_the_moments_of_a_member(tmp_path: Path) -> None:
    script = Path(__file__).parent / "kept_moments.py"
    with TicketSwarm(tmp_path, ["ana", "ben", "cho"], script, "share") as swarm:
        swarm.start_operator(rounds=100_000)
        swarm.start_guest("ben")
        swarm.wait_for_round("ana", 20)
        swarm.start_guest("cho")
        wait_until(lambda: bool(swarm.said("cho")), f"cho's script has begun\n{swarm.output('cho')}", 120)
        began = re.fullmatch(r"begins in round (\d+) of \d+ with (\d+) steps, second moments (\S+)", swarm.said("cho")[0])
        assert began and int(began[1]) >= 20, swarm.said("cho")
        assert int(began[2]) > 20 and float(began[3]) > 0, "its optimizer has seen steps that this site has not taken"
        assert re.search(r"optimizer +12D3Koo\w+ gives the state of its own", swarm.output("cho")), swarm.output("cho")
        swarm.stop_for_all()
        swarm.wait_for_end()
        swarm.audit()


@pytest.mark.heavy
def test_adapters_of_a_language_model_are_trained_by_four_sites(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    with LocalSwarm(tmp_path, count=4, rounds=30, local_steps=10, options=("--evaluate-every", "5")) as swarm:
        peers = [swarm.start_peer(node) for node in range(4)]
        scripts = [swarm.start_script(node, "gpt2_lora.py", str(node)) for node in range(4)]
        swarm.end(scripts, "script")
        swarm.end(peers, "peer")
        check_agreement(swarm.homes)
        for node in range(4):
            gain, noise = gains(swarm.home(node), swarm.summary(node)["metrics"])
            assert gain >= -noise, (node, gain)
            found = re.search(r"exchanges of (\d+) numbers, loss from (\S+) to (\S+)", swarm.output(f"script{node}"))
            assert found and float(found[3]) < float(found[2]) - 0.3, swarm.output(f"script{node}")
        swarm.audit()


def test_weights_add_up_after_kills_of_trainers_and_peers_at_random_moments(tmp_path: Path) -> None:
    # A longer one: python tests/kill_campaign.py 100
    counts = campaign(tmp_path, kills=10, seed=1)
    assert counts.total() == 10
