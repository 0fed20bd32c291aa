"""How a case ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from .suite import Case


class Status(StrEnum):
    PASSED = "passed"
    WAIVED = "waived"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Result:
    """``reason`` is one line; empty when passed. ``seconds`` is real time."""

    case: Case
    status: Status
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Tally:
    """How many cases ended how."""

    passed: int
    waived: int
    failed: int

    @property
    def all(self) -> int:
        return self.passed + self.waived + self.failed

    def __str__(self) -> str:
        cases = "1 case" if self.all == 1 else f"{self.all} cases"
        return f"{cases}: {self.passed} passed, {self.waived} waived, {self.failed} failed"


def tally(results: Iterable[Result]) -> Tally:
    statuses = [result.status for result in results]
    return Tally(*(statuses.count(status) for status in (Status.PASSED, Status.WAIVED, Status.FAILED)))


def by_group(results: Iterable[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.case.group, []).append(result)
    return groups
