"""Errors of schedules, beside those of the engine."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from machines.engine.errors import BadInput, LookupFailed, SignalboxError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a schedule: where, what, and what would be right."""

    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class InvalidSchedule(BadInput):
    """``findings``: all that is wrong with a schedule. Nothing was changed."""

    code = "SB650"

    def __init__(self, name: object, findings: Sequence[Finding]) -> None:
        self.findings = list(findings)
        named = f"the schedule {name!r}" if isinstance(name, str) and name else "the schedule"
        super().__init__(f"{named} is invalid: " + "; ".join(map(str, self.findings)))

    def facts(self) -> dict[str, Any]:
        return super().facts() | {"findings": [asdict(finding) for finding in self.findings]}


class UnknownSchedule(LookupFailed):
    """There is no schedule of this name."""

    code = "SB651"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no schedule {name[:100]!r}")


class DeclaredSchedule(SignalboxError):
    """A schedule that code or a definition declares is changed and removed there; people pause, resume and run it."""

    code = "SB652"

    def __init__(self, name: str, source: str, verb: str) -> None:
        super().__init__(
            f"the schedule {name!r} is declared in {source}: {verb} it there; here it can be paused, resumed and run",
            schedule=name,
            source=source,
        )


class AuthorLost(SignalboxError):
    """The author may not do any more what the schedule does; ``why`` says what they lost."""

    code = "SB654"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f"the schedule {name!r} does not run, because {why}: take it over, and it runs in your name",
            schedule=name,
            why=why,
        )


class BackfillRefused(BadInput):
    """A range for a backfill is empty, not over yet, or has too many occurrences."""

    code = "SB653"
