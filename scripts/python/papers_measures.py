"""The measures of tables and figures, by the names that papers.toml gives them. Each takes a run and the settings of its row."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from papers_robust import noise
from papers_run import CommandFailed, Line, Run, slots_of_round, spread

Settings = dict[str, Any]


def topologies(run: Run, settings: Settings) -> list[Line]:
    """Nodes, edges and diameter of graphs."""
    lines = []
    for name, source in settings["graphs"].items():
        shown = json.loads(run.of_mingle("topology", "show", "--json", run.source(source)))
        lines.append(Line(name, f"{shown['nodes']} nodes, {shown['edges']} edges, diameter {shown['diameter']}"))
    return lines


def plans(run: Run, settings: Settings) -> list[Line]:
    """Plans, drawn: their links, and the slots of a round."""
    lines = []
    for name, plan in settings["plans"].items():
        made = run.plan(plan["file"], plan["topology"], plan["method"], *plan.get("options", []))
        forecast = made["forecast"]
        if plan.get("draw", True):
            run.of_mingle("plan", "draw", run.folder / f"{plan['file']}.json", "-o", run.folder / f"{plan['file']}.svg")
        slots, lambda_2 = slots_of_round(made), forecast["lambda_2"]
        lines.append(Line(name, f"{slots:.4g} slots, {forecast['links']} links, diameter {forecast['diameter']}, lambda_2 {lambda_2:.4f}"))
        if "hub" in plan:
            senders = len([link for link in made["steps"][0]["links"] if link[1] == plan["hub"]])
            lines.append(Line(f"{name}: links into the hub", str(senders)))
    return lines


def drawn_graphs(run: Run, settings: Settings) -> list[Line]:
    """Slots of designs over several draws of a random graph: median, least and most."""
    counts: dict[str, list[float]] = {}
    edges = []
    for seed in range(settings["draws"]):
        topology = f"{settings['generator']},seed={seed}"
        for name, method in settings["methods"].items():
            made = run.plan(f"seed-{seed}-{method}", topology, method)
            counts.setdefault(name, []).append(slots_of_round(made))
        edges.append(len(made["base"]["edges"]))
    lines = [Line("edges", f"{min(edges)} to {max(edges)}, mean {fmean(edges):.0f}")]
    lines += [Line(name, f"{min(slots):.3g} to {max(slots):.3g}, mean {fmean(slots):.1f}") for name, slots in counts.items()]
    if {"d-psgd", "nguyen-he"} <= set(counts):
        saved = [100 * (1 - after / before) for before, after in zip(counts["d-psgd"], counts["nguyen-he"], strict=True)]
        lines.append(Line("slots of a round saved", f"{min(saved):.0f} to {max(saved):.0f} %, mean {fmean(saved):.0f} %"))
    return lines


def sweep(run: Run, settings: Settings) -> list[Line]:
    """Algorithm 1 by the number of extra edges: both objectives, slots, links and lambda_2 of the whole design."""
    lines, objectives = [], []
    for extra in range(settings["most"] + 1):
        forecast = run.plan(f"k-{extra}", settings["topology"], "nguyen-he", "--extra-edges", str(extra))["forecast"]
        objectives.append(forecast["ln_objective_19"])
        text = f"ln (19) {forecast['ln_objective_19']:.2f}, ln (16) {forecast['ln_objective_16']:.2f}, {forecast['slots_per_period']} slots"
        lines.append(Line(f"K = {extra}", f"{text}, {forecast['links']} links, lambda_2 {forecast['lambda_2']:.4f}"))
    least = min(objectives)
    best = [str(extra) for extra, value in enumerate(objectives) if value == least]
    chosen = run.plan("k-auto", settings["topology"], "nguyen-he")["parameters"]["extra_edges"]
    lines.append(Line("K with the least (19)", f"{', '.join(best)}, of the whole design"))
    lines.append(Line("K that the planner takes", f"{chosen}, by (19) before step 4"))
    return lines


def training(run: Run, settings: Settings) -> list[Line]:
    """Slots until the mean accuracy of five epochs reaches a target, for each design; a run that is there is not run again."""
    reached: dict[str, list[float]] = {}
    data = settings["data"]
    if ":" in data:
        data = f"{data.split(':')[0]}:{run.published(data.split(':')[1])}"
    for seed in settings["seeds"]:
        for name, design in settings["designs"].items():
            label = "".join(letter if letter.isalnum() else "-" for letter in name)
            run.plan(label, settings["topology"], design["method"], *design.get("options", []))
            options = [*settings["options"], "--device", os.environ.get("DEVICE", "cpu"), "--evaluate-every", str(settings["epoch"])]
            command = ["simulate", "--json", "--plan", str(run.folder / f"{label}.json"), "--data", data, "--seed", str(seed), *options]
            inputs = hashlib.sha256((run.folder / f"{label}.json").read_bytes() + " ".join(command).encode()).hexdigest()
            slots = slots_to(run, command, settings["target"], run.folder / f"{label}-{seed}-{inputs[:8]}.jsonl")
            reached.setdefault(name, []).append(slots)
    lines = [Line(name, "not reached" if inf in slots else spread(slots, 0)) for name, slots in reached.items()]
    for of, less in settings.get("savings", []):
        if inf in reached[of] + reached[less]:
            continue
        saved = [100 * (1 - after / before) for before, after in zip(reached[of], reached[less], strict=True)]
        lines.append(Line(f"{less}, less than {of}", f"{fmean(saved):.0f} %"))
    return lines


def slots_to(run: Run, command: list[str], target: float, results: Path) -> float:
    """The slots after which the mean of the last five evaluations is at the target; the run ends there, or at its most slots."""
    run.commands.append(shlex.join(["mingle", *command]))
    lines = results.read_text().splitlines() if results.exists() else []
    evaluations = [json.loads(line) for line in lines]
    if (at := epochs_to(evaluations, target)) is not None:
        return float(evaluations[at]["slots"])
    evaluations = []
    print(f"$ {run.commands[-1]}", file=sys.stderr, flush=True)
    with subprocess.Popen([run.mingle, *command], cwd=run.root, stdout=subprocess.PIPE, text=True) as process, results.open("w") as kept:
        assert process.stdout is not None
        for line in process.stdout:
            evaluation = json.loads(line)
            if evaluation.get("schema") == "mingle.simulation/1":
                break
            evaluations.append(evaluation)
            kept.write(line)
            kept.flush()
            if epochs_to(evaluations, target) is not None:
                process.kill()
                return float(evaluation["slots"])
    if process.returncode != 0:
        raise CommandFailed(f"exit status {process.returncode} from: {run.commands[-1]}")
    return inf


def epochs_to(evaluations: list[dict[str, Any]], target: float) -> int | None:
    """The first evaluation at which the mean of five is at the target."""
    accuracies = [evaluation["mean_accuracy"] for evaluation in evaluations]
    return next((at for at in range(4, len(accuracies)) if fmean(accuracies[at - 4 : at + 1]) >= target), None)


def designs(run: Run, settings: Settings) -> list[Line]:
    """A suite of designs: slots to the target by topology and split, and as shares of those of the baselines."""
    run.of_mingle("evaluate", run.root / settings["suite"], "-o", run.folder / "runs")
    records = [json.loads(line) for line in (run.folder / "runs/runs.jsonl").read_text().splitlines()]
    slots: dict[tuple[str, str], dict[str, list[float]]] = {}
    for record in records:
        of_case = slots.setdefault((record["topology"], record["split"]), {})
        of_case.setdefault(record["design"], []).append(record["curve"][-1]["slots"] if record["reached"] else float("inf"))
    lines = []
    for (topology, split), by_design in slots.items():
        means = {design: fmean(values) for design, values in by_design.items()}
        for design, mean in means.items():
            shares = [f"{100 * (1 - mean / means[other]):.0f} % less than {other}" for other in settings["baselines"] if other != design]
            lines.append(Line(f"{topology}, {split}: {design}", "; ".join([f"{mean:.0f}", *shares])))
    return lines


def methods(run: Run, settings: Settings) -> list[Line]:
    """A comparison of methods of learning over seeds: the mean and deviation of each metric, and t against the baseline."""
    lines = []
    for variant in settings.get("variants", [{}]):
        several = {**settings, **variant}
        name = str(several.get("label", ""))
        suite = suite_for(run, several, name or "suite")
        report = json.loads((compared(run, suite) / "report.json").read_text())
        for at, method in enumerate(report["metrics"][0]["methods"]):
            entries = [metric["methods"][at] for metric in report["metrics"]]
            cells = [spread([value for _, value in entry["values"]], 4) for entry in entries]
            difference = entries[0]["difference"]
            if difference and difference.get("t") is not None:
                cells.append(f"t {difference['t']:.1f}")
            lines.append(Line(f"{name}: {method['method']}" if name else method["method"], ", ".join(cells)))
    return lines


def compared(run: Run, suite: Path) -> Path:
    """The folder of a suite's results, which go on where they were."""
    folder = suite.with_suffix("")
    run.of_mingle("evaluate", suite, "-o", folder)
    return folder


def suite_for(run: Run, settings: Settings, name: str) -> Path:
    """A suite of the repository, or one of the settings, over a copy of its problem file whose data are where --data says."""
    given = tomllib.loads((run.root / settings["suite"]).read_text()) if "suite" in settings else settings
    base = (run.root / settings["suite"]).parent if "suite" in settings else run.root
    problem = base / given["problem"]
    changes = dict(settings.get("change", {}))
    if "data" in settings:
        changes["data"] = str(at_hand(run, settings["data"]))
    of_line = [line.split(" = ")[0] for line in problem.read_text().splitlines()]
    lines = problem.read_text().splitlines()
    for key, value in changes.items():
        lines[of_line.index(key)] = f"{key} = {json.dumps(value)}"
    for key, value in settings.get("add", {}).items():
        lines.insert(0, f"{key} = {json.dumps(value)}")
    copy = run.folder / "problem.toml"
    copy.write_text("\n".join(lines) + "\n")
    clients = settings.get("clients", given.get("clients"))
    lines = [f"title = {json.dumps(given.get('title', name))}", 'problem = "problem.toml"', f"clients = {clients}"]
    lines += [f"seeds = {settings.get('seeds', given['seeds'])}", f"metrics = {json.dumps(given['metrics'])}"]
    lines += [f"baseline = {json.dumps(given['baseline'])}"] if "baseline" in given else []
    for method in given.get("method", []):
        sets = {**settings.get("set", {}), **method["set"]}
        values = ", ".join(f"{key} = {json.dumps(value)}" for key, value in sets.items())
        lines += ["", "[[method]]", f"name = {json.dumps(method['name'])}", f"set = {{ {values} }}"]
    suite = run.folder / f"{''.join(letter if letter.isalnum() else '-' for letter in name)}.toml"
    suite.write_text("\n".join(lines) + "\n")
    return suite


def at_hand(run: Run, data: str | list[str]) -> Path:
    """Published data; of several gzipped files, one that has all their lines."""
    if isinstance(data, str):
        return run.published(data)
    parts = [gzip.decompress(run.published(part).read_bytes()).decode().rstrip("\n") for part in data]
    whole = run.folder / "interactions.txt"
    whole.write_text("\n".join(parts) + "\n")
    return whole


def solvers(run: Run, settings: Settings) -> list[Line]:
    """Iterations of solvers to a precision, medians over eight problems."""
    printed = run.of_example("mingle-examples", "solver_iterations", "--json", "--output", str(run.folder))
    experiment = [json.loads(line) for line in printed.splitlines()][settings["experiment"]]
    lines = []
    for method in experiment["methods"]:
        count, worst = method["iterations"], method["iterations_worst_model"]
        text = f"{count:g}" if count is not None else "more than 150"
        lines.append(Line(method["method"], text + (f"; model of the worst node {worst:g}" if worst is not None else "")))
    return lines


def steps(run: Run, settings: Settings) -> list[Line]:
    """Seconds and memory of the steps of recommenders."""
    printed = run.of_example("mingle-recommend", "recommender_speed", run.published(settings["data"]), *settings["options"])
    found = [json.loads(line) for line in printed.splitlines()]
    return [Line(f"{at + 1}. {step['what']}", f"{step['seconds']:.1f} s, {step['peak_memory_mb']} MB at most") for at, step in enumerate(found)]


def eigenvalues(run: Run, settings: Settings) -> list[Line]:
    """Eigenvalues and diagonals of mixing matrices on one random graph."""
    lines, diagonals, files = [], {}, []
    for name, method in settings["methods"].items():
        step = run.plan(method, settings["topology"], method, "--medium", "point-to-point")["steps"][0]
        matrix = [[0.0] * len(step["keep"]) for _ in step["keep"]]
        for sender, receiver, weight in step["links"]:
            matrix[receiver][sender] = weight
        for node, weight in enumerate(step["keep"]):
            matrix[node][node] = weight
        diagonals[name] = step["keep"]
        values = sorted(of_symmetric(matrix), reverse=True)
        files.append(", ".join([name, *(f"{value:.6f}" for value in values)]))
        middle = values[len(values) // 2]
        lines.append(Line(name, f"second {values[1]:.4f}, median {middle:.4f}, least {values[-1]:.4f}, sum {sum(values):.2f}"))
    (run.folder / "eigenvalues.csv").write_text("\n".join(files) + "\n")
    for phi in settings["smaller"]:
        for other in (name for name in diagonals if name not in settings["smaller"]):
            less = sum(mine < theirs for mine, theirs in zip(diagonals[phi], diagonals[other], strict=True))
            lines.append(Line(f"nodes with a smaller diagonal: {phi} than {other}", f"{less} of {len(diagonals[phi])}"))
    return lines


def of_symmetric(matrix: list[list[float]]) -> list[float]:
    """The eigenvalues of a symmetric matrix, by Jacobi rotations."""
    size = len(matrix)
    for _ in range(60):
        if sum(matrix[i][j] ** 2 for i in range(size) for j in range(i)) < 1e-24:
            break
        for p in range(size):
            for q in range(p + 1, size):
                rotate(matrix, p, q)
    return [matrix[at][at] for at in range(size)]


def rotate(a: list[list[float]], p: int, q: int) -> None:
    """One Jacobi rotation, which makes a[p][q] zero."""
    if abs(a[p][q]) < 1e-300:
        return
    theta = (a[q][q] - a[p][p]) / (2 * a[p][q])
    t = (1 if theta >= 0 else -1) / (abs(theta) + (theta**2 + 1) ** 0.5)
    c = 1 / (t**2 + 1) ** 0.5
    s = t * c
    for k in range(len(a)):
        a[k][p], a[k][q] = c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]
    for k in range(len(a)):
        a[p][k], a[q][k] = c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]


def graphs(run: Run, settings: Settings) -> list[Line]:
    """Nodes, edges, classes and features of graphs; those whose files are missing are named."""
    lines = []
    for name, place in settings["graphs"].items():
        path = run.data / place
        if not path.exists() and not list(path.parent.glob(path.name + ".*")):
            lines.append(Line(name, f"not here: {place}"))
            continue
        shown = json.loads(run.of_mingle("graph", "show", "--json", "--data", path))["graph"]
        counts = [f"{shown[key]:,}" for key in ("nodes", "edges")] + [str(len(shown["classes"])), f"{shown['features']:,}"]
        lines.append(Line(name, f"{', '.join(counts)}; adjusted homophily {shown['adjusted_homophily']:.3f}"))
    return lines


def interactions(run: Run, settings: Settings) -> list[Line]:
    """Users, items and interactions of recommendation data in LightGCN's form; those whose files are missing are named."""
    lines = []
    for name, places in settings["data"].items():
        if not all((run.data / place).exists() for place in places):
            lines.append(Line(name, f"not here: {', '.join(places)}"))
            continue
        users, items, pairs = set(), set(), 0
        for place in places:
            for line in gzip.decompress(run.published(place).read_bytes()).decode().splitlines():
                user, *chosen = line.split()
                if chosen:
                    users.add(user)
                items.update(chosen)
                pairs += len(chosen)
        lines.append(Line(name, f"{len(users):,}, {len(items):,}, {pairs:,}, {100 * pairs / len(users) / len(items):.3f} %"))
    return lines


MEASURES: dict[str, Callable[[Run, Settings], list[Line]]] = {
    measure.__name__: measure
    for measure in (
        topologies, plans, drawn_graphs, sweep, training, designs, methods, solvers, steps, eigenvalues, graphs, interactions, noise,
    )
}  # fmt: skip
