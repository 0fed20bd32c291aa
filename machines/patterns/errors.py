"""Errors that only patterns raise, beside BadInput, EngineUnavailable and EngineFault. Each has a stable ``code``."""

from __future__ import annotations

from typing import Any

from machines.engine.errors import BadInput, LookupFailed, SignalboxError


class PatternError(SignalboxError):
    """A pattern refused; nothing was changed."""

    code = "SB489"


class Changed(PatternError):
    """Another client wrote first. ``expected`` and ``actual``: revisions, None where there are none. ``tried``:
    number of tries. ``found``: the current contents, where the refusal carries them."""

    code = "SB481"

    def __init__(
        self, what: str, *, expected: int | None, actual: int | None, tried: int = 1, found: Any = None
    ) -> None:
        self.what, self.expected, self.actual, self.tried, self.found = what, expected, actual, tried, found
        subject = f"{what} is at revision {actual}, not {expected}" if (expected, actual) != (None, None) else what
        often = f", {tried} times in a row" if tried > 1 else ""
        super().__init__(f"{subject}: someone else wrote it first{often}")

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"expected": self.expected, "actual": self.actual}


class Gone(LookupFailed):
    """The object does not exist: it has expired, was revoked, or never existed."""

    code = "SB482"


class Overflow(BadInput):
    """A number would leave the range of exact integers. Nothing was changed."""

    code = "SB483"


class Full(PatternError):
    """There is no room for another item, and nothing may be removed to make room."""

    code = "SB484"


class Taken(PatternError):
    """Another client holds the object. ``retry_after``: seconds until it is free at the latest, if not renewed."""

    code = "SB485"

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class Lost(PatternError):
    """The object is no longer held: its time ran out, or another client holds it now."""

    code = "SB486"
