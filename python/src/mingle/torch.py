"""PyTorch: `mingle.join(model, optimizer)` lets an ordinary training loop train in a swarm."""

from __future__ import annotations

import weakref
from collections.abc import Sequence, Sized
from typing import Literal

import torch

from mingle.client import Description
from mingle.errors import LayoutError, MingleError
from mingle.home import Path, Whereabouts, find_peer
from mingle.loggers import Logger, loggers_of
from mingle.optimizer_state import Keep
from mingle.shards import plain_class
from mingle.site_weight import factor_of
from mingle.swarm import Evaluate, Options, Swarm
from mingle.tensors import ModelTensors
from mingle.wrappers import hookable_optimizer

__all__ = ["Evaluate", "Swarm", "join"]


def join(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None,
    *,
    home: Path | None = None,
    url: str | None = None,
    token: str | None = None,
    name: str | None = None,
    local: Sequence[str] = (),
    initial: Literal["offer", "take"] = "offer",
    evaluate: Evaluate | None = None,
    samples: int | Sized | None = None,
    weight: str = "equal",
    timeout: float = 300.0,
    overlap: bool = False,
    alone_ok: bool = False,
    keep_optimizer: Keep = False,
    share_optimizer: bool = False,
    raise_when_done: bool = True,
    log_to: Logger | Sequence[Logger] | None = None,
) -> Swarm:
    """Trains `model` in a swarm: waits for the first order, loads the swarm's weights, and exchanges after the steps that the plan wants.

    From then on each `optimizer.step()` counts as a local step. After the wanted number of them the change of the model is sent, and the
    step returns once the next weights are loaded, in place. When the run is over the final weights are loaded and the step raises
    `SwarmDone`, which `with mingle.join(...):` suppresses.

    - `optimizer`: None where `swarm.step()` is called by hand after each step. Wrappers of Accelerate, Lightning and Opacus are unwrapped.
    - `home`: the home of the peer; MINGLE_HOME unless given, else the user's state folder, as for `mingle run`.
    - `url`, `token`: in place of a home, the address of a peer with `--trainer-tcp`, and the token in its home; or "folder:/PATH" of a folder
      that `python -m mingle bridge` serves, without a token. MINGLE_TRAINER_URL and MINGLE_TRAINER_TOKEN unless given.
    - `name`: the name of the task, the same on all peers; the model's class unless given.
    - `local`: globs of names of parameters and buffers that stay out of the exchange, such as `["*.bn*", "head.*"]`.
    - `initial`: `offer` the model's weights to begin with, or `take` another peer's.
    - `evaluate`: returns metrics of the model as it is when called: `{"accuracy": (0.97, 360)}`, means and the samples behind them. It is
      called without gradients, in `eval()` mode, with the weights to be evaluated; the training weights are put back after it.
    - `samples`: the number of training samples, or the data set; for people, and for `weight`.
    - `weight`: "equal", or "samples:N" to count by the training samples, where a site with N of them counts as one: the same N on all sites.
    - `timeout`: the longest wait for an order, in seconds.
    - `overlap`: train on while the change is exchanged, and shift the weights when the answer comes.
    - `alone_ok`: where the peer is gone for good, warn and train on alone.
    - `keep_optimizer`: leave the optimizer's state with the peer, and load it at a restart; `"bfloat16"` rounds it to half the bytes.
    - `share_optimizer`: with `keep_optimizer`, let sites that join later begin with this one's optimizer state, and begin with a member's where this
      is such a site. It shows the members running means of this site's gradients.
    - `raise_when_done`: False for loops that look at `swarm.done` after each step instead.
    - `log_to`: a logger, or several, that get the numbers of each round: `mingle.loggers.tensorboard("runs/site0")`.

    Raises `LayoutError` for tensors that cannot be exchanged, and for optimizers of another model or whose steps cannot be counted. The same
    where another `Swarm` of this process trains the same tensors, or uses the same peer for another model; nothing is attached then. Raises
    `Conflict` where the peer trains another model, `NotFinite` where the model holds NaN or infinity, and `TimedOut`, with what was waited
    for, after `timeout` seconds without an order. A run that is over already is no error: `swarm.done` is then true, and the first step raises
    `SwarmDone`.
    """
    count = len(samples) if isinstance(samples, Sized) else samples
    options = Options(evaluate, timeout, overlap, alone_ok, keep_optimizer, share_optimizer, raise_when_done, loggers_of(log_to), factor_of(weight, count))
    swarm = Swarm(ModelTensors(model, local, sharded=True), hookable_optimizer(optimizer) if optimizer is not None else None, options)
    description = Description(
        name=name or plain_class(swarm.tensors.model),
        layout=swarm.tensors.layout,
        initial=initial,
        samples=count,
        evaluates=evaluate is not None,
        state_bytes=swarm._state.room_wanted(swarm.tensors.layout.dimension) if swarm._state is not None else 0,
        shares_state=share_optimizer,
    )
    try:
        peer = find_peer(home, url, token)
        _check_others(swarm, description, peer)
        if (former := _joined.pop(peer.key, None)) is not None:
            former.close(send_rest=False)  # a notebook cell that is run again: two swarms would take the session from each other
        swarm._begin(peer, description)
    except MingleError as error:
        # The message says it all, and frames of this package would hide it.
        raise error.with_traceback(None) from None
    _joined[peer.key] = swarm
    return swarm


_joined: weakref.WeakValueDictionary[str, Swarm] = weakref.WeakValueDictionary()
"""The swarms of this process, by the key of their peer."""


def _check_others(swarm: Swarm, description: Description, peer: Whereabouts) -> None:
    """Raises `LayoutError` where an attached swarm of this process has the same peer with another model, or another peer with some of the tensors."""
    tensors = {id(tensor) for tensor in swarm.tensors.tensors}
    for key, other in list(_joined.items()):
        if not other.is_attached:
            continue
        if key == peer.key and other.trains_other_than(description):
            raise LayoutError(
                f"this process trains `{other.name}` with {peer} already, and a peer has one model: close() that Swarm first,"
                " or join both parts as one torch.nn.ModuleDict"
            )
        if key != peer.key and not tensors.isdisjoint(id(tensor) for tensor in other.tensors.tensors):
            raise LayoutError(
                f"this model trains as `{other.name}` with another peer already, and what one swarm writes into it would be a change to the other:"
                " close() that Swarm first, or join a copy"
            )
