"""The training of `sine_trainer.py` with loggers: `python logged_trainer.py SITE SITES FOLDER`.

Event files of TensorBoard go to FOLDER/tensorboard, and the same numbers as lines of JSON to FOLDER/lines.jsonl.
"""

from __future__ import annotations

import sys
from pathlib import Path

import mingle
import torch
from kept_logger import Lines
from sine_trainer import error, make_trainer


def main() -> None:
    torch.set_num_threads(1)
    site, sites, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    folder.mkdir()
    model, step = make_trainer(site, sites)
    loggers = [mingle.loggers.tensorboard(folder / "tensorboard"), Lines(folder / "lines.jsonl")]
    optimizer: torch.optim.Optimizer = model.optimizer  # type: ignore[assignment]
    with mingle.join(model, optimizer, name="sine", evaluate=lambda: error(model), log_to=loggers) as swarm:
        while True:
            swarm.report(loss=error(model)["error"], site=site)
            step()


if __name__ == "__main__":
    main()
