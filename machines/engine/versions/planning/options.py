"""The policies of a plan: what becomes of timers, removed fields, suspended instances and actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from machines.engine import limits
from machines.engine.definitions.durations import HINT, parse_duration

UNMAPPED = ("refuse", "keep", "suspend")
CHOICES = {"timers": ("entry", "now"), "removed": ("drop", "keep"), "suspended": ("move", "refuse")}
ACTIONS = ("exit", "entry")
Fault = tuple[str, str, str]  # name of the option, message, hint


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """``timers``: those without a counterpart run from the "entry" into their state or from "now". ``removed``: fields
    that the new version lacks are dropped, or kept beside the data. ``suspended``: such instances move, or are refused.
    ``actions``: which run, of "exit" and "entry". ``keep_undo``: how long the way back restores every byte; "0" is not
    at all."""

    timers: str = "entry"
    removed: str = "drop"
    suspended: str = "move"
    actions: tuple[str, ...] = ()
    keep_undo: str = "7d"

    @property
    def undo(self) -> int:
        """Return the time for which the undo record is kept, in ms."""
        return _read_undo(self.keep_undo) or 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"actions": list(self.actions)}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> PlanOptions:
        known = {one.name for one in fields(cls)}
        values = {name: value for name, value in found.items() if name in known}
        return cls(**values | {"actions": tuple(values.get("actions", ()))})


def check_options(unmapped: Any, options: Mapping[str, Any]) -> Iterable[Fault]:
    """Return what is wrong with the policies, each with its name."""
    for name, value, choices in [
        ("unmapped", unmapped, UNMAPPED),
        *((name, options.get(name), choices) for name, choices in CHOICES.items()),
    ]:
        if value not in choices:
            yield name, f"expected one of {', '.join(choices)}, found {value!r}", ""
    yield from _check_actions(options.get("actions"))
    if _read_undo(options.get("keep_undo")) is None:
        yield "keep_undo", f"expected a duration, found {options.get('keep_undo')!r}", HINT


def _check_actions(actions: Any) -> Iterable[Fault]:
    named = [] if isinstance(actions, str) or not isinstance(actions, Sequence) else list(actions)
    if (not named and actions not in ((), [])) or any(one not in ACTIONS for one in named):
        yield "actions", f"expected some of {', '.join(ACTIONS)}, found {actions!r}", "leave it out to run none"


def _read_undo(value: Any) -> int | None:
    """Return a duration in ms; None where it is none, or too long."""
    if value == "0":
        return 0
    length = parse_duration(value) if isinstance(value, str) else None
    return length if length is not None and length <= limits.MAX_DELAY else None
