"""Errors of work that a helper process did not finish.

::

    SignalboxError
    └── OffloadError
        ├── AtOnce      the person has a task under way already
        ├── NoHelper    all helpers are busy, or none can be started
        └── Overrun     it took more processor time or memory than it may
"""

from __future__ import annotations

from typing import Any

from machines.engine.errors import SignalboxError


class OffloadError(SignalboxError):
    """Nothing was done. ``retry_after``: seconds until it may be worth another try, 0 where it never is."""

    retry_after = 0

    def facts(self) -> dict[str, Any]:
        return super().facts() | ({"retry_after": self.retry_after} if self.retry_after else {})


class AtOnce(OffloadError):
    code = "SB712"
    retry_after = 1

    def __init__(self) -> None:
        super().__init__("you have a definition under way already: they are read one after the other")


class NoHelper(OffloadError):
    code = "SB714"
    retry_after = 5

    def __init__(self, why: str) -> None:
        super().__init__(f"nobody can do this now: {why}")


class Overrun(OffloadError):
    """``seconds``: of processor time that it may take."""

    code = "SB716"

    def __init__(self, seconds: float, what: str = "") -> None:
        self.seconds = seconds
        super().__init__(what or f"it takes more than {seconds:g} s of computing: make it smaller or simpler")

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"seconds": self.seconds}
