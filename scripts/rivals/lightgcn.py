#!/usr/bin/env python3
"""Seconds of an epoch and quality of one recommender: Mingle's client beside LightGCN in PyTorch, on the same split.

LightGCN (He and others, SIGIR 2020) is written here as the paper has it: embeddings of users and items, propagated by the normalised
adjacency in torch.sparse, the mean over layers, BPR with one negative and Adam. Mingle's program recommender_speed deals out training,
validation and test pairs, learns from them as one client, and writes them down for PyTorch. Both rank all items but those a user
has trained on, and validation items too, and are judged by Recall@20 and NDCG@20 over all users with test items, after the epoch that is best on
validation NDCG. Both have embeddings of 64 numbers. They take turns, seed by seed, each in a process of its own.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from report import head, row

K = 20
WIDTH = 64


def read_pairs(path):
    import numpy

    return numpy.loadtxt(path, dtype=numpy.int64, ndmin=2).reshape(-1, 2)


def by_user(pairs, users):
    lists = [[] for _ in range(users)]
    for user, item in pairs:
        lists[user].append(item)
    return lists


class LightGcn:
    def __init__(self, train, users, items, layers, seed):
        import torch

        torch.manual_seed(seed)
        self.users, self.layers = users, layers
        nodes = users + items
        self.table = torch.nn.Parameter(torch.empty(nodes, WIDTH).normal_(0.0, 0.1))
        rows = torch.from_numpy(train[:, 0])
        columns = torch.from_numpy(train[:, 1]) + users
        index = torch.stack([torch.cat([rows, columns]), torch.cat([columns, rows])])
        degree = torch.bincount(index[0], minlength=nodes).clamp(min=1).float()
        weight = (degree[index[0]] * degree[index[1]]).rsqrt()
        adjacency = torch.sparse_coo_tensor(index, weight, (nodes, nodes), check_invariants=True)
        self.adjacency = adjacency.coalesce().to_sparse_csr()

    def embeddings(self):
        total = layer = self.table
        for _ in range(self.layers):
            layer = self.adjacency @ layer
            total = total + layer
        return total / (self.layers + 1)


def epoch(model, optimizer, train, known, items, batch, decay, generator):
    import torch

    order = generator.permutation(len(train))
    for first in range(0, len(order), batch):
        chosen = train[order[first:first + batch]]
        wrong = generator.integers(0, items, len(chosen))
        # A negative that the user knows is drawn again.
        again = [at for at, (user, item) in enumerate(zip(chosen[:, 0], wrong)) if item in known[user]]
        while again:
            wrong[again] = generator.integers(0, items, len(again))
            again = [at for at in again if wrong[at] in known[chosen[at, 0]]]
        user, good, bad = (torch.from_numpy(ids) for ids in
                           (chosen[:, 0], chosen[:, 1] + model.users, wrong + model.users))
        found = model.embeddings()
        margin = (found[user] * (found[good] - found[bad])).sum(1)
        own = model.table
        size = (own[user].square().sum() + own[good].square().sum() + own[bad].square().sum()) / (2 * len(chosen))
        loss = torch.nn.functional.softplus(-margin).mean() + decay * size
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def quality(model, hidden, wanted, most):
    """Recall and NDCG at 20 over the users with items in `wanted`, or `most` evenly spread ones; items in `hidden` are not ranked."""
    import numpy
    import torch

    with torch.no_grad():
        found = model.embeddings()
        recalls, gains = [], []
        discounts = 1.0 / numpy.log2(numpy.arange(2, K + 2))
        users = [user for user, items in enumerate(wanted) if items]
        if most and most < len(users):
            users = [users[at * len(users) // most] for at in range(most)]
        for first in range(0, len(users), 1024):
            chunk = users[first:first + 1024]
            scores = found[chunk] @ found[model.users:].T
            for at, user in enumerate(chunk):
                scores[at, [item for items in hidden for item in items[user]]] = -torch.inf
            for user, ranking in zip(chunk, scores.topk(K).indices.tolist()):
                hits = numpy.isin(ranking, wanted[user])
                recalls.append(hits.sum() / len(wanted[user]))
                gains.append((hits * discounts).sum() / discounts[:min(K, len(wanted[user]))].sum())
    return float(numpy.mean(recalls)), float(numpy.mean(gains))


def lightgcn(arguments):
    import numpy
    import torch

    torch.set_num_threads(arguments.threads)
    folder = pathlib.Path(arguments.split)
    train, validation, test = (read_pairs(folder / f"{name}.txt") for name in ("train", "validation", "test"))
    pairs = numpy.concatenate([train, validation, test])
    users, items = pairs[:, 0].max() + 1, pairs[:, 1].max() + 1
    train_of, validation_of, test_of = (by_user(part, users) for part in (train, validation, test))
    known = [set(own) for own in train_of]
    model = LightGcn(train, users, items, arguments.layers, arguments.seed)
    optimizer = torch.optim.Adam([model.table], lr=arguments.learning_rate)
    generator = numpy.random.default_rng(arguments.seed)
    seconds, best = [], None
    for at in range(1, arguments.epochs + 1):
        began = time.perf_counter()
        epoch(model, optimizer, train, known, items, arguments.batch_size, arguments.decay, generator)
        seconds.append(time.perf_counter() - began)
        if at % arguments.evaluate_every == 0 or at == arguments.epochs:
            judged = quality(model, [train_of], validation_of, arguments.evaluation_users)[1]
            if best is None or judged > best["validation"]:
                recall, ndcg = quality(model, [train_of, validation_of], test_of, arguments.evaluation_users)
                best = {"validation": judged, "recall": recall, "ndcg": ndcg, "epoch": at}
    print(json.dumps({"seconds": seconds, **best}))


def mingle(split, seed, arguments):
    environment = dict(os.environ, RAYON_NUM_THREADS=str(arguments.threads))
    words = [f"epochs={arguments.mingle_epochs}", f"evaluate_every={arguments.mingle_evaluate_every}", f"seed={seed}",
             f"split={split}", *arguments.option]
    if arguments.evaluation_users:
        words.append(f"evaluation_users={arguments.evaluation_users}")
    output = subprocess.run([arguments.mingle, arguments.data, *words], env=environment, check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in output.splitlines()]
    found = [line for line in lines if line["what"] == "evaluated"]
    best = max(found, key=lambda line: line["validation_ndcg@20"])
    return {
        "seconds": [line["seconds"] for line in lines if line["what"] == "epoch"],
        "opened": sum(line["seconds"] for line in lines if line["what"] == "opened"),
        "validation": best["validation_ndcg@20"], "recall": best["recall@20"], "ndcg": best["ndcg@20"],
        "epoch": best["epoch"],
    }


def pytorch(python, split, seed, arguments):
    command = [python, __file__, "--split", str(split), "--seed", str(seed), "--epochs", str(arguments.epochs),
               "--evaluate-every", str(arguments.evaluate_every), "--threads", str(arguments.threads),
               "--layers", str(arguments.layers), "--batch-size", str(arguments.batch_size),
               "--learning-rate", str(arguments.learning_rate), "--decay", str(arguments.decay),
               "--evaluation-users", str(arguments.evaluation_users)]
    environment = dict(os.environ, OMP_NUM_THREADS=str(arguments.threads), MKL_NUM_THREADS=str(arguments.threads))
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def compare(arguments):
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in arguments.seeds:
            split = pathlib.Path(folder) / str(seed)
            ours.append(mingle(split, seed, arguments))
            theirs.append(pytorch(arguments.python, split / "0", seed, arguments))
            print(json.dumps({"seed": seed, "mingle": without_times(ours[-1]), "lightgcn": without_times(theirs[-1])}),
                  flush=True)
    head(f"one recommender, {arguments.threads} threads")
    name = arguments.name or pathlib.Path(arguments.data).name
    pairs = list(zip(ours, theirs))
    epochs = [(statistics.median(one["seconds"]), statistics.median(other["seconds"])) for one, other in pairs]
    middle = [statistics.median(column) for column in zip(*epochs)]
    row("recommenders", f"{name}: an epoch", "LightGCN, PyTorch", "s", *middle, [other / one for one, other in epochs])
    for metric in ("recall", "ndcg"):
        means = [statistics.mean(run[metric] for run in side) for side in (ours, theirs)]
        ratios = [one[metric] / other[metric] for one, other in pairs]
        row("recommenders", f"{name}: {metric}@20, mean of {len(pairs)} seeds", "LightGCN, PyTorch", "", *means, ratios)
    totals = [(one["opened"] + statistics.median(one["seconds"]) * one["epoch"],
               statistics.median(other["seconds"]) * other["epoch"]) for one, other in pairs]
    middle = [statistics.median(column) for column in zip(*totals)]
    row("recommenders", f"{name}: to the best epoch, with the spectrum", "LightGCN, PyTorch", "s", *middle,
        [other / one for one, other in totals])


def without_times(run):
    return {**{name: value for name, value in run.items() if name != "seconds"},
            "seconds": round(statistics.median(run["seconds"]), 4)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mingle", help="the program recommender_speed of mingle-recommend")
    parser.add_argument("--python", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--data", help="interactions, as recommender_speed reads them")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="for recommender_speed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of split and models (0 1 2)")
    parser.add_argument("--mingle-epochs", type=int, default=100, help="epochs of Mingle (100)")
    parser.add_argument("--mingle-evaluate-every", type=int, default=5, help="epochs between its evaluations (5)")
    parser.add_argument("--epochs", type=int, default=400, help="epochs of LightGCN (400)")
    parser.add_argument("--evaluate-every", type=int, default=20, help="epochs between its evaluations (20)")
    parser.add_argument("--evaluation-users", type=int, default=0, help="users that quality is measured on; 0: all (0)")
    parser.add_argument("--name", help="of the data, for the table; the name of the file")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=2, help="of LightGCN (2, as Mingle has)")
    parser.add_argument("--batch-size", type=int, default=2048, help="of LightGCN (2048)")
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="of LightGCN (0.001)")
    parser.add_argument("--decay", type=float, default=1e-4, help="weight decay of LightGCN (0.0001)")
    parser.add_argument("--split", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.split:
        lightgcn(arguments)
    elif arguments.mingle and arguments.data:
        compare(arguments)
    else:
        parser.error("--mingle and --data are needed")


if __name__ == "__main__":
    main()
