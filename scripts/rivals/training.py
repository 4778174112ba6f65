#!/usr/bin/env python3
"""Milliseconds of a training step and of an evaluation, of Mingle's models and of the same models in PyTorch.

Images have ten classes and are drawn batch by batch from memory; steps are plain stochastic gradient descent. The two take
turns, so that what else the machine does hits both alike. PyTorch's convolutions run in both of its memory formats, and the
faster one counts. Prints medians. Both sides must have the same number of parameters.

With --device wgpu Mingle computes on a graphics card through wgpu, and PyTorch on the same card through CUDA, eagerly. PyTorch
computes in float32 as Mingle does; --tf32 lets it use the shorter TF32 in products and convolutions.
"""

import argparse
import os
import statistics
import subprocess
import sys

from report import head, row

LARGE = "gpt:layers=6,heads=6,width=384,context=256"
SMALL = "gpt:layers=4,heads=4,width=128,context=64"
# What is measured, model, shape of samples, batch size or number of samples.
ON_PROCESSOR = [
    ("step", "cnn", "1x28x28", 64),
    ("step", "mlp", "1x28x28", 64),
    ("step", "softmax", "1x28x28", 64),
    ("step", "mlp", "1x28x28", 32),
    ("step", "resnet-lite", "1x28x28", 64),
    ("step", "resnet-lite", "3x32x32", 64),
    ("step", SMALL, "text", 12),
    ("step", LARGE, "text", 4),
    ("evaluation", "resnet-lite", "1x28x28", 1000),
    ("evaluation", SMALL, "text", 24576),
]
ON_CARD = [
    ("step", "cnn", "1x28x28", 64),
    ("step", "resnet-lite", "1x28x28", 64),
    ("step", "resnet-lite", "3x32x32", 64),
    ("step", SMALL, "text", 12),
    ("step", LARGE, "text", 64),
    ("evaluation", "resnet-lite", "1x28x28", 10000),
    ("evaluation", LARGE, "text", 98304),
]


class Failed(Exception):
    """A program that did not print its numbers."""


def run(command, threads, seconds):
    """Milliseconds, parameters and seconds of warming up that a program prints."""
    number = str(threads)
    environment = dict(os.environ, OMP_NUM_THREADS=number, MKL_NUM_THREADS=number, RAYON_NUM_THREADS=number)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"no answer in {seconds:.0f} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failed(f"exit code {done.returncode}: {last}")
    milliseconds, parameters, warm_up = done.stdout.split()
    return float(milliseconds), int(parameters), float(warm_up)


def compare(arguments, threads, case):
    """Measures a case in turns, and prints its row."""
    work, name, shape, count = case
    torch_models = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_models.py")
    given = [work, name, shape, str(count), str(arguments.seconds)]
    ours = [arguments.mingle, *given, arguments.device]
    device = "cuda" if arguments.device.startswith("wgpu") else "cpu"
    theirs = [arguments.python, torch_models, *given, device, str(threads), str(int(arguments.tf32))]
    both = [(ours, "Mingle"), (theirs, "PyTorch")]
    turns = []
    for _ in range(arguments.turns):
        turn = []
        for command, who in both:
            try:
                turn.append(run(command, threads, arguments.timeout))
            except Failed as failure:
                print(f"{describe(arguments, threads, case):<56} {who}: {failure}", flush=True)
                if not arguments.go_on:
                    sys.exit(1)
        turns.append(turn)
    alone = [turn[0] for turn in turns if len(turn) == 1]
    if alone:
        print(f"{describe(arguments, threads, case):<56} the other one: {alone[0][0]:.3f} ms, "
              f"{alone[0][1]} parameters, {alone[0][2]:.1f} s to warm up", flush=True)
    turns = [turn for turn in turns if len(turn) == 2]
    if not turns:
        return
    counts = {numbers[1] for turn in turns for numbers in turn}
    if len(counts) != 1:
        sys.exit(f"{name}: Mingle and PyTorch have {counts} parameters")
    mingle, torch = (statistics.median(turn[side][0] for turn in turns) for side in (0, 1))
    what = f"{describe(arguments, threads, case)}, {counts.pop()} parameters"
    row("training", what, "PyTorch", "ms", mingle, torch, [turn[1][0] / turn[0][0] for turn in turns])
    if arguments.device != "cpu":
        print(f"    seconds to warm up: Mingle {turns[0][0][2]:.1f}, PyTorch {turns[0][1][2]:.1f}", flush=True)


def describe(arguments, threads, case):
    work, name, shape, count = case
    where = arguments.device if arguments.device != "cpu" else f"{threads} thread{'s' if threads > 1 else ''}"
    counted = f"batch {count}" if work == "step" else f"evaluation of {count}"
    return f"{name} {shape}, {counted}, {where}{', TF32' if arguments.tf32 else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mingle", required=True, help="the program training_speed of mingle-models")
    parser.add_argument("--python", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each turn measures (3)")
    parser.add_argument("--turns", type=int, default=3, help="turns of each program (3)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads (1 2)")
    parser.add_argument("--device", default="cpu", help="cpu, or wgpu for a graphics card (cpu)")
    parser.add_argument("--tf32", action="store_true", help="let PyTorch use TF32 on the card")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that a turn of a program may take (600)")
    parser.add_argument("--go-on", action="store_true", help="go on with the next case after one that failed")
    parser.add_argument("--only", help="only the cases whose description has this in it")
    arguments = parser.parse_args()
    head("training")
    on_card = arguments.device != "cpu"
    for threads in arguments.threads if not on_card else [os.cpu_count() or 1]:
        for case in ON_CARD if on_card else ON_PROCESSOR:
            if not arguments.only or arguments.only in describe(arguments, threads, case):
                compare(arguments, threads, case)


if __name__ == "__main__":
    main()
