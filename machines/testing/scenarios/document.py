"""What a scenario file holds. ``line`` is a line of the file, from 1; 0 for what no file holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["event", "after", "job"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a scenario file. ``path``: the keys that lead to it, ``scenarios[0].steps[1].then``."""

    code: str
    line: int
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f" {self.path}" if self.path else ""
        return f"{self.code}{where}: {self.message}" + (f"; {self.hint}" if self.hint else "")


@dataclass(frozen=True, slots=True)
class Given:
    """How a scenario begins. ``time``: ms since the epoch, None for the present; ``events``: what is done before the
    first step, each of which must succeed."""

    data: dict[str, Any] = field(default_factory=dict)
    id: str = ""
    time: int | None = None
    events: tuple[When, ...] = ()


@dataclass(frozen=True, slots=True)
class When:
    """One thing that happens.

    ``kind``: "event" (``name``, ``payload``, ``actor``, and ``groups`` for a person who is a member of these alone),
    "after" (``delay`` ms pass) or "job" (the job of the invoke or handler ``name`` ends as ``outcome``: "done" with
    ``result``, or "failed" with ``error``). ``machine``: another machine that the event goes to, or whose job it is;
    ``retry``: the failed attempt is one of several.
    """

    kind: Kind
    name: str = ""
    payload: dict[str, Any] | None = None
    machine: str = ""
    actor: str = ""
    groups: tuple[str, ...] | None = None
    delay: int = 0
    outcome: str = ""
    result: Any = None
    error: str = ""
    error_kind: str = ""
    retry: bool = False

    def __str__(self) -> str:
        to = f" of {self.machine}" if self.machine and self.kind == "job" else ""
        to = f" to {self.machine}" if self.machine and self.kind == "event" else to
        if self.kind == "after":
            return f"after {format_delay(self.delay)}"
        return f"{self.kind} {self.name}{f' {self.outcome}' if self.outcome else ''}{to}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """How an event is refused. ``why`` is a part of the explanation; ``code`` that of the error. Empty: any."""

    why: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that was sent. ``to``: the machine, empty for one that was emitted; ``payload``: some of its fields."""

    event: str
    to: str = ""
    payload: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Then:
    """What holds after a step. None, or an empty tuple of states: not asserted."""

    states: tuple[str, ...] = ()
    data: dict[str, Any] | None = None
    refused: Refusal | None = None
    jobs: tuple[str, ...] | None = None
    messages: tuple[Message, ...] | None = None
    transitions: tuple[str, ...] | None = None
    done: bool | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What happens, and what then holds; one of both may be None."""

    when: When | None
    then: Then | None
    line: int = 0
    path: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run of one instance."""

    name: str
    machine: str
    given: Given
    steps: tuple[Step, ...]
    description: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    """The scenarios of a file. ``lines``: path of a value -> its line, for what is found later."""

    machine: str
    scenarios: tuple[Scenario, ...]
    path: Path | None = None
    lines: dict[str, int] = field(default_factory=dict, compare=False)

    def find_line(self, path: str) -> int:
        """Return the line that a path leads to, or that of the nearest value around it."""
        found = [where for where in self.lines if path == where or path.startswith((f"{where}.", f"{where}["))]
        return self.lines[max(found, key=len)] if found else 0


def format_delay(ms: int) -> str:
    """Format ms in the largest units that say it exactly: ``1d 30s``."""
    parts = []
    for unit, length in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        if ms >= length:
            parts.append(f"{ms // length}{unit}")
            ms %= length
    return " ".join(parts) or "0s"
