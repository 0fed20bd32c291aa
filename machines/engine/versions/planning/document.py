"""Checks the JSON of a plan, and its options, before it becomes one: nothing in it is trusted. The findings of plans
have one code for each kind, which never changes once published (docs/versions.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from machines.engine import limits
from machines.engine.definitions import Finding, render
from machines.engine.definitions.durations import HINT, parse_duration

from .values import compile_value

WARNINGS = frozenset(["SB607", "SB608", "SB609"])
MOST_ENTRIES = 5000  # of one map
MOST_SOURCES = 1000
MOST_LETTERS = 100_000  # of what explains a plan
FORMAT = 1
_DIGEST = re.compile(r"[0-9a-f]{12}")
Path = tuple[str | int, ...]
Fault = tuple[Path, str]
Check = Callable[[Any, Path], Iterator[Fault]]


def make_plan_finding(code: str, path: str, message: str, hint: str = "") -> Finding:
    """Make a finding with the severity of its code."""
    return Finding(code, path, message, hint, "warning" if code in WARNINGS else "error")


def check_document(found: Any) -> list[Finding]:
    """Return a finding for each fault of the JSON of a plan; empty for a sound one."""
    faults = list(_check_plan(found))
    return [make_plan_finding("SB600", render(path), message) for path, message in faults[:500]]


def _check_plan(found: Any) -> Iterator[Fault]:
    if not isinstance(found, Mapping):
        yield (), f"expected an object, found {type(found).__name__}"
        return
    yield from _check_object(found, (), _PLAN, _OPTIONAL)
    if found.get("format") != FORMAT:
        yield ("format",), f"expected {FORMAT}, found {found.get('format')!r}"
    options = found.get("options")
    if isinstance(options, Mapping):
        yield from ((_locate(name), message) for name, message, _ in check_options(found.get("unmapped"), options))
        known = ("timers", "removed", "suspended", "actions", "keep_undo")
        yield from ((("options", str(name)), "no such option") for name in options if name not in known)
    sources = found.get("sources")
    if isinstance(sources, list) and not found.get("inverse_of"):
        for index, source in enumerate(sources):
            if isinstance(source, Mapping) and source.get("to") != found.get("to"):
                yield ("sources", index, "to"), "expected the version that the plan leads to"


def _locate(option: str) -> Path:
    return (option,) if option == "unmapped" else ("options", option)


def _check_object(
    found: Mapping[str, Any], path: Path, needed: dict[str, Check], optional: dict[str, Check]
) -> Iterator[Fault]:
    for key, check in (needed | optional).items():
        if key in found:
            yield from check(found[key], (*path, key))
        elif key in needed:
            yield (*path, key), f'"{key}" is missing'
    for key in found:
        if key not in needed and key not in optional:
            yield (*path, str(key)), "no such key"


def _version(value: Any, path: Path) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9:
        yield path, "expected the number of a version"


def _digest(value: Any, path: Path) -> Iterator[Fault]:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        yield path, "expected 12 hexadecimal digits"


def _digest_or_empty(value: Any, path: Path) -> Iterator[Fault]:
    if value != "":
        yield from _digest(value, path)


def _machine(value: Any, path: Path) -> Iterator[Fault]:
    why = limits.check_machine_name(value)
    if why is not None:
        yield path, f"the machine's name {why}"


def _is_text(value: Any, most: int = 2000) -> bool:
    """Tell whether databases and pages take it: no NUL, no half of a surrogate pair."""
    if not isinstance(value, str) or len(value) > most or "\0" in value:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _text(value: Any, path: Path) -> Iterator[Fault]:
    if not _is_text(value):
        yield path, "expected text without NUL and halves of surrogate pairs"


def _name(value: Any, path: Path) -> Iterator[Fault]:
    if not value or not _is_text(value, 500):
        yield path, "expected a name"


def _anything(value: Any, path: Path) -> Iterator[Fault]:
    yield from ()


def _object(value: Any, path: Path) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield path, "expected an object"


def _list_of(check: Check, least: int = 0, most: int = MOST_ENTRIES) -> Check:
    def run(value: Any, path: Path) -> Iterator[Fault]:
        if not isinstance(value, list) or not least <= len(value) <= most:
            yield path, f"expected a list of {least} to {most} entries"
            return
        for index, one in enumerate(value):
            yield from check(one, (*path, index))

    return run


def _map_of(check: Check) -> Check:
    def run(value: Any, path: Path) -> Iterator[Fault]:
        if not isinstance(value, Mapping) or len(value) > MOST_ENTRIES:
            yield path, f"expected an object of at most {MOST_ENTRIES} entries"
            return
        for key, one in value.items():
            yield from _name(key, (*path, str(key)))
            yield from check(one, (*path, str(key)))

    return run


def _expression(value: Any, path: Path) -> Iterator[Fault]:
    yield from ((path, message) for message, _ in compile_value(value).faults)


def _suggestion(value: Any, path: Path) -> Iterator[Fault]:
    kinds = [type(one) for one in value] if isinstance(value, list) else []
    if kinds not in ([str, str, float, str], [str, str, int, str]) or not all(
        _is_text(one, MOST_LETTERS) for one in value if isinstance(one, str)
    ):
        yield path, "expected a state, a state, a score and a reason"


def _finding(value: Any, path: Path) -> Iterator[Fault]:
    keys = ("code", "path", "message", "hint", "severity")
    if (
        not isinstance(value, Mapping)
        or set(value) != set(keys)
        or not all(_is_text(value[key], MOST_LETTERS) for key in keys)
    ):
        yield path, f"expected an object of {', '.join(keys)}"


def _source(value: Any, path: Path) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield path, "expected an object"
        return
    yield from _check_object(value, path, _SOURCE, {"back": _back})
    back = value.get("back")
    if isinstance(back, Mapping) and [back.get(key) for key in _ENDS] != [value.get(key) for key in _TURNED]:
        yield (*path, "back"), "expected the same versions, the other way round"


def _back(value: Any, path: Path) -> Iterator[Fault]:
    if isinstance(value, Mapping):
        yield from _check_object(value, path, _SOURCE, {})
    else:
        yield path, "expected an object"


_ENDS = ("version", "digest", "to", "to_digest")
_TURNED = ("to", "to_digest", "version", "digest")
_NAMES = _list_of(_name)
_SOURCE: dict[str, Check] = {
    "version": _version,
    "digest": _digest,
    "to": _version,
    "to_digest": _digest,
    "states": _map_of(_list_of(_name, 1, 100)),
    "unmapped_states": _NAMES,
    "reasons": _map_of(_text),
    "suggestions": _list_of(_suggestion),
    "data": _map_of(_expression),
    "fields": _map_of(_name),
    "added": _NAMES,
    "removed": _NAMES,
    "timers": _map_of(_list_of(_name, 2, 2)),
    "invokes": _map_of(_name),
    "histories": _map_of(_name),
}
_PLAN: dict[str, Check] = {
    "format": _anything,
    "machine": _machine,
    "to": _version,
    "unmapped": _anything,
    "options": _object,
    "sources": _list_of(_source, 1, MOST_SOURCES),
}
_OPTIONAL: dict[str, Check] = {
    "id": _digest, "inverse_of": _digest_or_empty, "findings": _list_of(_finding)
}  # fmt: skip


UNMAPPED = ("refuse", "keep", "suspend")
CHOICES = {"timers": ("entry", "now"), "removed": ("drop", "keep"), "suspended": ("move", "refuse")}
ACTIONS = ("exit", "entry")
OptionFault = tuple[str, str, str]  # name of the option, message, hint


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """``timers``: those without a counterpart run from the "entry" into their state or from "now". ``removed``: fields
    that the new version lacks are dropped, or kept beside the data. ``suspended``: such instances move, or are refused.
    ``actions``: which run, of "exit" and "entry". ``keep_undo``: how long an undo restores every byte; "0" is not
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


def check_options(unmapped: Any, options: Mapping[str, Any]) -> Iterable[OptionFault]:
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


def _check_actions(actions: Any) -> Iterable[OptionFault]:
    named = [] if isinstance(actions, str) or not isinstance(actions, Sequence) else list(actions)
    if (not named and actions not in ((), [])) or any(one not in ACTIONS for one in named):
        yield "actions", f"expected some of {', '.join(ACTIONS)}, found {actions!r}", "leave it out to run none"


def _read_undo(value: Any) -> int | None:
    """Return a duration in ms; None where it is none, or too long."""
    if value == "0":
        return 0
    length = parse_duration(value) if isinstance(value, str) else None
    return length if length is not None and length <= limits.MAX_DELAY else None
