"""Errors of what people may do; other rooms have their own.

::

    SignalboxError
    ├── Forbidden         of ``machines.people.permissions``: the right is missing, or the token's scope does not hold
    it
    ├── TooFast           more events in a short time than one account or address may send
    │   └── GuessedTooOften   the same of what compares hidden values, of one instance
    ├── SignInNeeded      the action asks for a sign-in of the last minutes, which no token has
    └── TokenNeeded       only a token makes sessions: neither a session nor a person

The engine's ``NotAllowed`` is the group rule.
"""

from collections.abc import Sequence

from machines.engine import SignalboxError

from .permissions import Forbidden as Forbidden


class TooFast(SignalboxError):
    """Nothing was done. ``rate``: the one that was reached; ``by``: account or address that reached it;
    ``retry_after``: seconds until one more is allowed."""

    code = "SB711"

    def __init__(self, rate: str, by: str, retry_after: float) -> None:
        super().__init__(
            f"rate limit of {rate} per {by} exceeded; nothing was done", rate=rate, by=by, retry_after=retry_after
        )


class GuessedTooOften(TooFast):
    """``fields``: hidden ones that decide or compute what was asked."""

    code = "SB717"
    shown = ("machine", "fields")

    def __init__(self, machine: str, fields: Sequence[str], rate: str, retry_after: float) -> None:
        super().__init__(rate, "person and instance", retry_after)
        self.machine = machine
        self.fields = list(fields)
        self.message = (
            f"this reads {', '.join(self.fields)} of {machine}, which {'is' if len(self.fields) == 1 else 'are'} hidden"
            f" from you: {rate} for each person and instance without the right to reveal; nothing was done"
        )
        self.args = (self.message,)


class SignInNeeded(SignalboxError):
    """Nothing was done. ``minutes``: how old a sign-in may be for this action."""

    code = "SB664"

    def __init__(self, action: str, minutes: int, *, token: bool) -> None:
        way = "a person has to do it on a page" if token else "log in again and repeat it"
        super().__init__(
            f"{action} needs a login within the last {minutes} minutes: {way}; nothing was done",
            action=action,
            minutes=minutes,
        )


class TokenNeeded(SignalboxError):
    code = "SB438"

    def __init__(self) -> None:
        super().__init__("a session can only be created with an API token, not with a session or a login")
