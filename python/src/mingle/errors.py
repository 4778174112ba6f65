"""What can go wrong. Every message says what is wrong and what to do; every class takes that message as its first argument."""

from __future__ import annotations


class MingleError(Exception):
    """The base of all exceptions of this package."""


class SwarmDone(MingleError):
    """The run is over, and the final model is loaded. `with mingle.join(...)` ends quietly with it."""


class TimedOut(MingleError):
    """Nothing came within the time given. The message says what was waited for."""


class NotFinite(MingleError):
    """A tensor holds NaN or infinity, so it was not sent. The message names it."""


class LayoutError(MingleError):
    """A tensor cannot be a part of the vector. The message names it and says what to do."""


class ProtocolError(MingleError):
    """The peer answered what the protocol does not have: it is another version, or no peer at all."""


class PeerUnreachable(MingleError):
    """A call got no answer: there is no socket, nobody listens, or the connection broke before the whole answer was there."""


class Refused(MingleError):
    """The peer refused a call.

    `status` is HTTP's, `code` and `kind` are Mingle's, `hint` is what to try next and `reason` the word of a conflict ("" where there is nothing
    to say).
    """

    def __init__(self, message: str, *, status: int = 400, code: int = 0, kind: str = "", hint: str = "", reason: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.message = message
        self.status = status
        self.code = code
        self.kind = kind
        self.hint = hint
        self.reason = reason


class NothingThere(Refused):
    """404: no trainer is attached, no state is kept, or the peer was started without `--trainer`."""


class Conflict(Refused):
    """409. `reason` is `busy` (another trainer is attached, and its process runs), `unseen` (another is attached, and may be gone), `task` (the
    peer trains another model), `session` (the session is over), `order` (the order is not the present one) or `over` (the run is over)."""


class PeerFailed(Refused):
    """410: the peer has ended with an error, which is the message."""
