#!/usr/bin/env python3
"""Milliseconds of one training step on the processor, of Mingle's models and of the same models in PyTorch.

Both train on images of 1 x 28 x 28 in ten classes, drawn batch by batch from memory, with plain stochastic gradient descent.
They take turns, so that what else the machine does hits both alike. PyTorch's convolutions run in both of its memory
formats, and the faster one counts. Prints medians.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

from report import head, row

# model, batch size
CASES = [("cnn", 64), ("mlp", 64), ("softmax", 64), ("mlp", 32)]


def torch_model(name):
    import torch.nn as nn

    if name == "softmax":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(32, 64, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10),
    )


def torch_step_ms(name, batch_size, seconds, threads, channels_last):
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = torch_model(name)
    images = torch.randn(20 * batch_size, 1, 28, 28)
    labels = torch.randint(0, 10, (20 * batch_size,))
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = torch.nn.CrossEntropyLoss()
    times = []
    began = time.perf_counter()
    while len(times) < 32 or time.perf_counter() - began < seconds:
        step = time.perf_counter()
        chosen = torch.randint(0, len(images), (batch_size,))
        batch = images[chosen]
        if channels_last:
            batch = batch.to(memory_format=torch.channels_last)
        optimizer.zero_grad()
        loss_of(model(batch), labels[chosen]).backward()
        optimizer.step()
        times.append((time.perf_counter() - step) * 1e3)
    return statistics.median(times)


def torch_process(python, name, batch_size, seconds, threads):
    command = [python, __file__, "--torch", name, str(batch_size), str(seconds), str(threads)]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def mingle_process(program, name, batch_size, seconds, threads):
    environment = dict(os.environ, RAYON_NUM_THREADS=str(threads))
    command = [program, name, str(batch_size), str(seconds)]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mingle", help="the program training_speed of mingle-models")
    parser.add_argument("--python", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each turn measures (3)")
    parser.add_argument("--turns", type=int, default=3, help="turns of each program (3)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (1 2)")
    parser.add_argument("--torch", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.torch:
        name, batch_size, seconds, threads = arguments.torch
        formats = [False, True] if name == "cnn" else [False]
        each = float(seconds) / len(formats)
        print(min(torch_step_ms(name, int(batch_size), each, int(threads), last) for last in formats))
        return
    if not arguments.mingle:
        parser.error("--mingle is missing")
    head("training, a step")
    for threads in arguments.threads:
        for name, batch_size in CASES:
            turns = [
                (
                    mingle_process(arguments.mingle, name, batch_size, arguments.seconds, threads),
                    torch_process(arguments.python, name, batch_size, arguments.seconds, threads),
                )
                for _ in range(arguments.turns)
            ]
            mingle, torch = (statistics.median(column) for column in zip(*turns))
            what = f"{name}, batch {batch_size}, {threads} thread{'s' if threads > 1 else ''}"
            row("training", what, "PyTorch", "ms", mingle, torch, [torch / mingle for mingle, torch in turns])


if __name__ == "__main__":
    main()
