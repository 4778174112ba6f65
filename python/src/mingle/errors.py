"""The exceptions of this package. Every message says what is wrong and what to do; it is the first argument of every class."""

from __future__ import annotations


class MingleError(Exception):
    """The base of all exceptions of this package."""


class SwarmDone(MingleError):
    """The end of the run: the final model is loaded. `with mingle.join(...)` suppresses it."""


class TimedOut(MingleError):
    """A wait that exceeded its timeout. The message says what was waited for."""


class NotFinite(MingleError):
    """A tensor with NaN or infinity, which does not reach the swarm. The message names it."""


class LayoutError(MingleError):
    """A model, tensor, optimizer or option that cannot be used. The message names it and says what to do."""


class PlanError(MingleError):
    """A graph, plan or option that the planner or the simulator refuses. The message names it and says what to do."""


class ProtocolError(MingleError):
    """An answer outside the protocol: the peer is of another version, or no peer at all. Also a machine or socket path without support."""


class PeerUnreachable(MingleError):
    """A call without an answer: there is no socket, no process listens, or the connection broke before the whole answer arrived."""


class Refused(MingleError):
    """A call that the peer refused.

    `status` is the HTTP status, `code` and `kind` are those of Mingle. `hint` is what to try next, and `reason` the reason of a conflict; both
    are "" where there is none.
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
    """409. `reason` is `busy` (another trainer is attached, and its process runs), `unseen` (another is attached, and may be gone), `rounds` (the number of rounds is not known yet), `task` (the
    peer trains another model), `session` (the session is over), `order` (the order is not the present one) or `over` (the run is over)."""


class PeerFailed(Refused):
    """410: the peer has failed, or its run was over before. The message is its error."""
