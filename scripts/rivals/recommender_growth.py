#!/usr/bin/env python3
"""How the time of a recommender grows with its interactions.

recommender_speed learns as one client from planted interactions of growing size. First users and items grow with the interactions, a user
having as many as before; then the interactions of a user grow, with users and items as they are. Printed for each size: seconds of the
spectrum (the client's opening), the median of seconds of an epoch, and the slope of both over all sizes on a log-log scale, by least
squares: 1 is linear growth.
"""

import argparse
import json
import math
import os
import statistics
import subprocess


def measure(arguments, communities, per_user):
    data = f"planted:communities={communities},users=1000,items=1500,tastes=20,per_user={per_user},noise=0.2"
    words = [f"epochs={arguments.epochs}", "evaluation_users=100", f"seed={arguments.seed}", f"frequencies={arguments.frequencies}"]
    environment = dict(os.environ, RAYON_NUM_THREADS=str(arguments.threads))
    output = subprocess.run([arguments.mingle, data, *words], env=environment, check=True, capture_output=True, text=True)
    lines = [json.loads(line) for line in output.stdout.splitlines()]
    read = next(line for line in lines if line["what"] == "read")
    opened = next(line for line in lines if line["what"] == "opened")
    epochs = [line["seconds"] for line in lines if line["what"] == "epoch"]
    return {"interactions": read["interactions"], "nodes": read["users"] + read["items"], "spectrum": opened["seconds"],
            "epoch": statistics.median(epochs), "memory_mb": lines[-1]["peak_memory_mb"]}


def slope(sizes, seconds):
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in seconds]
    x, y = statistics.mean(xs), statistics.mean(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def table(title, arguments, sizes):
    print(f"\n{title}\n{'interactions':>14} {'nodes':>10} {'spectrum, s':>12} {'an epoch, s':>12} {'memory, MB':>12}")
    runs = []
    for communities, per_user in sizes:
        runs.append(measure(arguments, communities, per_user))
        run = runs[-1]
        print(f"{run['interactions']:>14} {run['nodes']:>10} {run['spectrum']:>12.2f} {run['epoch']:>12.3f} "
              f"{run['memory_mb']:>12.0f}", flush=True)
    if len(runs) > 1:
        counts = [run["interactions"] for run in runs]
        found = [slope(counts, [run[name] for run in runs]) for name in ("spectrum", "epoch")]
        print(f"{'slope':>14} {'':>10} {found[0]:>12.2f} {found[1]:>12.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mingle", required=True, help="the program recommender_speed of mingle-recommend")
    parser.add_argument("--communities", type=int, nargs="*", default=[2, 4, 8, 16, 32], help="of the first table (2 4 8 16 32)")
    parser.add_argument("--per-user", type=int, nargs="*", default=[20, 40, 80, 160, 320], help="of the second (20 40 80 160 320)")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--frequencies", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.communities:
        table("users and items grow", arguments, [(communities, 40) for communities in arguments.communities])
    if arguments.per_user:
        table("interactions of a user grow", arguments, [(2, per_user) for per_user in arguments.per_user])


if __name__ == "__main__":
    main()
