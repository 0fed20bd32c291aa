"""Errors of services, beside those of the engine.

::

    SignalboxError
    ├── Forbidden         of ``machines.access.permissions``: the right is missing, or the token's scope does not hold
    it
    │   └── NotAccepted   a definition reaches a machine that does not accept it, without a right on that one
    ├── ApprovalNeeded    the engine's NeedsApproval, or of a bulk, with all that ``approvals.ask`` files
    ├── OwnRequest        the requester cannot approve their own request
    ├── NotOpen           the request is decided, withdrawn or expired
    ├── NotMoved          a job is not where it was seen, so it was left there
    ├── TooFast           more events in a short time than one account or address may send
    └── TokenNeeded       only a token makes sessions: neither a session nor a person

The engine's ``NotAllowed`` is the group rule.
"""

from __future__ import annotations

from typing import Any

from machines.access.permissions import Forbidden
from machines.engine import NeedsApproval, SignalboxError

__all__ = [
    "ApprovalNeeded",
    "Forbidden",
    "NotAccepted",
    "NotMoved",
    "NotOpen",
    "OwnRequest",
    "TokenNeeded",
    "TooFast",
]


class NotAccepted(Forbidden):
    """A definition sends to a machine, or invokes it, that does not accept the sender, and its publisher has no right
    there. ``machine``: the receiver; ``sender``; ``path``: where the definition names it."""

    def __init__(self, machine: str, sender: str, path: str, line: str) -> None:
        super().__init__("fire", machine)
        self.sender = sender
        self.path = path
        self.message = (
            f"{sender!r} sends to the machine {machine!r}, or invokes it, at {path}: that takes the right to fire or to"
            f" publish there as well, or {line} in the definition of {machine!r}"
        )
        self.args = (self.message,)

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"sender": self.sender, "path": self.path}


class ApprovalNeeded(NeedsApproval):
    """The same with all that a request is filed from. ``name``: the action, ``delete`` or ``fire``; ``asked``: what it
    takes beside who and why; ``expect``: the revision that was looked at.

    ``bulk``: of a bulk that may not run yet, its id; ``id`` is "" then.
    """

    def __init__(
        self, machine: str, id: str, action: str, *, asked: dict[str, Any], reason: str, expect: int | None = None,
        bulk: str = "",
    ) -> None:  # fmt: skip
        self.asked = asked
        self.reason = reason
        self.expect = expect
        self.bulk = bulk
        super().__init__(
            machine, id, action, version=expect, definition=asked.get("definition"),
            transitions=asked.get("transitions", ()), subject=f"bulk {bulk} of {machine}" if bulk else "",
        )  # fmt: skip

    @property
    def name(self) -> str:
        return self.action.partition(":")[0]

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"bulk": self.bulk}


class OwnRequest(SignalboxError):
    code = "SB436"

    def __init__(self, approval: int) -> None:
        self.approval = approval
        super().__init__(f"request {approval} is your own: another person has to decide it")

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"approval": self.approval}


class NotOpen(SignalboxError):
    """``state``: what became of it."""

    code = "SB437"

    def __init__(self, approval: int, state: str) -> None:
        self.approval = approval
        self.state = state
        super().__init__(f"request {approval} is {state}: it is already decided")

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"approval": self.approval, "state": self.state}


class NotMoved(SignalboxError):
    code = "SB705"

    def __init__(self, job: str, why: str) -> None:
        self.job = job
        super().__init__(why)

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"job": self.job}


class TooFast(SignalboxError):
    """Nothing was done. ``rate``: the one that was reached; ``by``: account or address that reached it;
    ``retry_after``: seconds until one more is allowed."""

    code = "SB711"

    def __init__(self, rate: str, by: str, retry_after: float) -> None:
        self.rate = rate
        self.by = by
        self.retry_after = retry_after
        super().__init__(f"rate limit of {rate} per {by} exceeded; nothing was done")

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"rate": self.rate, "by": self.by, "retry_after": self.retry_after}


class TokenNeeded(SignalboxError):
    code = "SB438"

    def __init__(self) -> None:
        super().__init__("a session can only be created with an API token, not with a session or a login")
