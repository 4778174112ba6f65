"""`mingle.follow(model, ticket)`: the model of a swarm while it is trained, in a PyTorch model that takes no part."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Literal

from mingle.__main__ import program
from mingle.errors import MingleError, PeerUnreachable, Refused
from mingle.final_model import ModelFile
from mingle.home import Path
from mingle.planning.program import is_closed_pipe

if TYPE_CHECKING:
    import torch

__all__ = ["FollowedModel", "Follower", "follow"]

END_SECONDS = 10.0
"""Time that the program has to end when the follower is closed."""


def follow(
    model: torch.nn.Module | None,
    ticket: str,
    *,
    output: Path | None = None,
    home: Path | None = None,
    every: int = 1,
    precision: Literal["f32", "bf16"] = "f32",
    timeout: float = 60.0,
) -> Follower:
    """Follows the model of a swarm, without taking part: `for now in mingle.follow(model, ticket): evaluate(model, now.round)`.

    Each turn of the loop loads the newest model into `model`, in place, and the loop ends after the final model. A turn that takes long skips
    the models that come meanwhile. The follower holds no weight of the swarm and is in no plan, and members never wait for it. It needs the
    program `mingle`, which it starts as `mingle follow`.

    - `model`: None where the file alone is wanted.
    - `ticket`: the word that `mingle invite` printed. Following takes up none of its uses.
    - `output`: the file of the model, replaced whole each time, which stays; a temporary one unless given.
    - `home`: a folder for the key of the follower, so that it is the same one each time.
    - `every`: get the model of each K-th round, as far as the member that is followed makes one of it.
    - `precision`: `bf16` is the model rounded by the member before it is sent: half the bytes, and far smaller patches.
    - `timeout`: seconds without a member that answers, after which it is given up.

    Loading raises as `mingle.load`. The loop raises `Refused` where no member serves this follower, `PeerUnreachable` where none answers, and
    `MingleError` for all else that the program says.
    """
    path = program()
    if path is None:
        raise MingleError("there is no program `mingle`: install the wheel of mingle-train for this platform, or set MINGLE_BIN to the program")
    options = [f"--every={every}", f"--precision={precision}", f"--timeout={round(1000 * timeout)}ms"]
    if home is not None:
        options.append(f"--home={os.fspath(home)}")
    return Follower(model, ticket, str(path), output, options)


@dataclass(frozen=True)
class FollowedModel:
    """A model that a follower has."""

    round: int
    """Rounds over at this model."""
    rounds: int
    """Rounds over when training is done."""
    final: bool
    """True for the model with which the training of the followed member ended."""
    file: str
    """The file, in the safetensors format."""
    peer: str
    """The member that it is from."""
    patch: bool
    """True if the last change came as a patch on the model before."""
    received_bytes: int
    """Bytes in which the last change came."""


class Follower:
    """A follower of a swarm: an iterator of models, and a context manager that ends it. `mingle.follow` makes it."""

    def __init__(self, model: torch.nn.Module | None, ticket: str, program: str, output: Path | None, options: list[str]) -> None:
        self._model = model
        self._folder = tempfile.TemporaryDirectory(prefix="mingle-follow-") if output is None else None
        self.file = os.path.join(self._folder.name, "model.safetensors") if self._folder is not None else os.fspath(output or "")
        """The file of the newest model."""
        self._changed = threading.Condition()
        self._newest: dict[str, Any] | None = None
        self._failure: MingleError | None = None
        self._is_over = False
        self._gave_final = False
        command = [program, "follow", "-", f"--output={self.file}", "--json", "--stop-with-stdin", *options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input: IO[bytes] = self._process.stdin
        try:
            self._input.write(ticket.strip().encode() + b"\n")
            self._input.flush()
        except OSError as error:
            if not is_closed_pipe(error):  # where it is, the program has said why it ended
                raise
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def done(self) -> bool:
        """True once the final model was given."""
        return self._gave_final

    def __iter__(self) -> Iterator[FollowedModel]:
        while not self._gave_final:
            yield self.next()

    def next(self, timeout: float | None = None) -> FollowedModel:
        """Waits for a newer model than the last one, and loads it. Raises `TimeoutError` after `timeout` seconds, if given."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._newest is not None or self._is_over, timeout):
                raise TimeoutError(f"no newer model has come for {timeout} s")
        model = self.poll()
        if model is None:
            raise MingleError("the follower has ended, and no newer model will come")
        return model

    def poll(self) -> FollowedModel | None:
        """Loads the newest model, if one has come since the last. None if there is none; raises what ended the follower."""
        with self._changed:
            event, self._newest = self._newest, None
            failure = self._failure
        if event is None:
            if failure is not None:
                raise failure
            return None
        round = self._load()
        # The program may have replaced the file after it had said so of this model.
        model = FollowedModel(
            round=round if round is not None else event["round"],
            rounds=event["rounds"],
            final=event["final"],
            file=self.file,
            peer=event["peer"],
            patch=event["patch"],
            received_bytes=event["received_bytes"],
        )
        self._gave_final = self._gave_final or model.final
        return model

    def close(self) -> None:
        """Ends the follower. A file that `output` named stays."""
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(END_SECONDS)
        if self._folder is not None:
            self._folder.cleanup()

    def _load(self) -> int | None:
        """Loads the file into the model. Returns the rounds that it names, if it does."""
        # Another name for the same file: the program replaces it while it is read.
        held = f"{self.file}.{os.getpid()}-{time.monotonic_ns()}"
        try:
            try:
                os.link(self.file, held)
            except OSError:
                shutil.copyfile(self.file, held)
            rounds = ModelFile(held).metadata.get("rounds")
            if self._model is not None:
                from mingle.loading import load

                load(self._model, held)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MingleError(f"{self.file} cannot be read: {error}") from error
        finally:
            with contextlib.suppress(OSError):
                os.remove(held)
        return int(rounds) if rounds is not None and rounds.isdigit() else None

    def _read(self, lines: IO[bytes]) -> None:
        """Takes the lines of the program to their end."""
        failure: MingleError | None = None
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if event.get("event") == "model":
                with self._changed:
                    self._newest = event
                    self._changed.notify_all()
            elif "error" in event:
                failure = _failure(event["error"])
        with self._changed:
            self._failure, self._is_over = failure, True
            self._changed.notify_all()


def _failure(error: dict[str, Any]) -> MingleError:
    """The exception of an error of the program."""
    message, hint, kind = str(error.get("message", "")), str(error.get("hint") or ""), str(error.get("kind", ""))
    if kind == "refused":
        return Refused(message, code=6, kind=kind, hint=hint)
    text = f"{message} ({hint})" if hint else message
    return PeerUnreachable(text) if kind == "unreachable" else MingleError(text)
