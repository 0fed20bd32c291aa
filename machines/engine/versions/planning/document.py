"""Checks the JSON of a plan, and its options, before it becomes one: nothing in it is trusted. The findings of plans
have one code for each kind, which never changes once published (docs/versions.md)."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from itertools import repeat
from typing import Any, Literal, Union, get_args, get_origin

from machines.engine import limits
from machines.engine.definitions import FieldOutline, Finding, render
from machines.engine.definitions.checks.types import NULL, Inference, Types, is_impossible
from machines.engine.definitions.compiled import read_hints
from machines.engine.definitions.durations import HINT, parse_duration
from machines.engine.definitions.findings import Report, quote
from machines.engine.definitions.model import Value
from machines.engine.definitions.place import Place, PlainCopier, TooLarge
from machines.engine.definitions.values import read_value
from machines.engine.expressions import Expression, Node, Use
from machines.engine.expressions.translator import INSTANCE_FACTS
from machines.engine.versions.content import VersionContent

SAFE = {("boolean", "integer"), ("boolean", "number")} | {(one, "string") for one in ("integer", "number", "boolean")}
"""Conversions that every value survives."""


@dataclass(frozen=True, slots=True)
class CompiledValue:
    """The tree of an expression, or of JSON with expressions inside. ``faults``: message and hint of each."""

    tree: Node
    expressions: tuple[Expression, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()


def compile_value(value: Any) -> CompiledValue:
    """Compile a text as an expression; other JSON stands for itself, as in a definition. Never raises."""
    report = Report()
    try:
        copied = PlainCopier(report.add).copy(value, ())
    except TooLarge:
        return CompiledValue(["null"], (), (("the value is too large", ""),))
    found: Value | None = None if report.has_errors else read_value(Place(copied, (), report))
    faults = tuple((finding.message, finding.hint) for finding in report.findings())
    if found is None:
        return CompiledValue(["null"], (), faults)
    return CompiledValue(found.tree, tuple(expression for _, expression in found.parts), faults)


def check_uses(value: CompiledValue, old: VersionContent, report: Report) -> Iterator[tuple[str, str]]:
    """Return message and hint for each name in the expressions that the old version does not have."""
    for expression in value.expressions:
        for use in expression.uses:
            yield from _check_use(use, expression, old, report)


def _check_use(use: Use, expression: Expression, old: VersionContent, report: Report) -> Iterator[tuple[str, str]]:
    here = f"at character {use.offset + 1} of {quote(expression.text)}"
    hint = report.suggestions.hint
    if use.kind == "data" and use.name not in old.fields:
        yield f"version {old.number} has no data field {quote(use.name)}, {here}", hint(use.name, old.fields)
    elif use.kind in ("payload", "trigger"):
        word = "event" if use.kind == "payload" else "trigger"
        yield f"{word}.{use.name} means nothing in a plan, {here}", "read the instance's data"
    elif use.kind == "instance" and use.name not in INSTANCE_FACTS:
        yield f"no fact of the instance called {quote(use.name)}, {here}", hint(use.name, INSTANCE_FACTS)
    elif use.kind == "state" and old.outline.state(use.name) is None:
        yield f"version {old.number} has no state {quote(use.name)}, {here}", hint(use.name, old.names)


def infer_types(value: CompiledValue, old: VersionContent) -> tuple[Types, list[str]]:
    """Return the types that a value may have, and what in it can never be evaluated."""
    wrong: list[str] = []
    data = {field.name: field.types for field in old.fields.values()}
    types = Inference(data, None, lambda code, message: wrong.append(message)).types(value.tree)
    return types, wrong


def judge_types(types: Types, wanted: FieldOutline) -> str:
    """Return "never" where no value of the types fits a field, "maybe" where some do not, else ""."""
    if "any" in wanted.types or types is None:
        return ""
    found = types - NULL or types
    if is_impossible(found, frozenset(wanted.types)):
        return "never"
    if "integer" in found and is_safe("integer", wanted.types):
        found -= {"number"}  # of a calculation; a fraction is refused where it happens, as in an action
    return "" if all(is_safe(one, wanted.types) for one in found) else "maybe"


def is_safe(type_name: str, wanted: tuple[str, ...]) -> bool:
    """Tell whether every value of a type fits a field of the wanted types as it is."""
    return "any" in wanted or type_name in wanted or (type_name == "integer" and "number" in wanted)


def can_fail(old: FieldOutline, new: FieldOutline) -> bool:
    """Tell whether the copy of a field to one of the same meaning can fail for some value."""
    if "any" in new.types:
        return False
    return not all(is_safe(one, new.types) or any((one, to) in SAFE for to in new.types) for one in old.types)


WARNINGS = frozenset(["SB607", "SB608", "SB609"])
MOST_ENTRIES = 5000  # of one map
MOST_SOURCES = 1000
MOST_LETTERS = 100_000  # of one text
LONGEST_NAME = 500
FORMAT = 1
_DIGEST = re.compile(r"[0-9a-f]{12}")
Path = tuple[str | int, ...]
Fault = tuple[Path, str]
Check = Callable[[Any, Path], Iterator[Fault]]


def make_plan_finding(code: str, path: str, message: str, hint: str = "") -> Finding:
    """Make a finding with the severity of its code."""
    return Finding(code, path, message, hint, "warning" if code in WARNINGS else "error")


def check_document(kind: type, found: Any) -> list[Finding]:
    """Return a finding for each fault of the JSON of a plan; empty for a sound one. ``kind``: the record that it
    becomes, whose annotations say what each of its parts is."""
    faults = [*_check(kind, found, ()), *(_check_whole(found) if isinstance(found, Mapping) else ())]
    return [make_plan_finding("SB600", render(path), message) for path, message in faults[:500]]


def _check_whole(found: Mapping[str, Any]) -> Iterator[Fault]:
    if found.get("format") != FORMAT:
        yield ("format",), f"expected {FORMAT}, found {found.get('format')!r}"
    options, sources = found.get("options"), found.get("sources")
    if isinstance(options, Mapping):
        yield from ((_locate(name), message) for name, message, _ in check_options(found.get("unmapped"), options))
        known = {one.name for one in fields(PlanOptions)}
        yield from ((("options", str(name)), "no such option") for name in options if name not in known)
    for index, source in enumerate(sources if isinstance(sources, list) else ()):
        if not isinstance(source, Mapping):
            continue
        if source.get("to") != found.get("to") and not found.get("inverse_of"):
            yield ("sources", index, "to"), "expected the version that the plan leads to"
        back = source.get("back")
        if isinstance(back, Mapping) and [back.get(key) for key in _ENDS] != [source.get(key) for key in _TURNED]:
            yield ("sources", index, "back"), "expected the same versions, the other way round"


def _locate(option: str) -> Path:
    return (option,) if option == "unmapped" else ("options", option)


def _check(hint: Any, value: Any, path: Path) -> Iterator[Fault]:
    """Check that a part of a plan is what an annotation says: a record, a list, an object by name, a text, a number."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        yield from _check(inner[0], value, path)
    elif is_dataclass(hint):
        yield from _check_record(hint, value, path)
    elif origin is tuple:
        several = inner[-1] is ...
        if not isinstance(value, list) or (len(value) > MOST_ENTRIES if several else len(value) != len(inner)):
            yield path, f"expected a list of {f'at most {MOST_ENTRIES}' if several else len(inner)} entries"
            return
        hints = repeat(inner[0]) if several else inner
        for index, (one, part) in enumerate(zip(hints, value, strict=False)):
            yield from _check(one, part, (*path, index))
    elif origin is dict:
        if not isinstance(value, Mapping) or len(value) > MOST_ENTRIES:
            yield path, f"expected an object of at most {MOST_ENTRIES} entries"
            return
        for name, part in value.items():
            if not _is_text(name) or not 1 <= len(name) <= LONGEST_NAME:
                yield (*path, str(name)), _NO_NAME
            yield from _check(inner[1], part, (*path, str(name)))
    elif (hint is str or get_origin(hint) is Literal) and not _is_text(value):
        yield path, "expected text without NUL and halves of surrogate pairs"
    elif hint in (int, float) and (
        isinstance(value, bool) or not isinstance(value, int if hint is int else int | float)
    ):
        yield path, "expected a number"


def _check_record(kind: Any, value: Any, path: Path) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield path, f"expected an object, found {type(value).__name__}"
        return
    hints = {name: hint for name, hint in read_hints(kind).items() if name != "back" or "back" not in path}
    for name, hint in hints.items():
        if name in value:
            below = (*path, name)
            faults = list(_check(hint, value[name], below))
            yield from faults or (_RULES[name](value[name], below) if name in _RULES else ())
        elif name not in _OPTIONAL:
            yield (*path, name), f'"{name}" is missing'
    yield from (((*path, str(name)), "no such key") for name in value if name not in hints and name not in _BESIDE)


def _is_text(value: Any) -> bool:
    """Tell whether databases and pages take it: no NUL, no half of a surrogate pair."""
    if not isinstance(value, str) or len(value) > MOST_LETTERS or "\0" in value:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _check_version(value: Any, path: Path) -> Iterator[Fault]:
    if not 1 <= value <= 10**9:
        yield path, "expected the number of a version"


def _check_digest(value: Any, path: Path) -> Iterator[Fault]:
    if not _DIGEST.fullmatch(value):
        yield path, "expected 12 hexadecimal digits"


def _check_inverse(value: Any, path: Path) -> Iterator[Fault]:
    if value:
        yield from _check_digest(value, path)


def _check_machine(value: Any, path: Path) -> Iterator[Fault]:
    why = limits.check_machine_name(value)
    if why is not None:
        yield path, f"the machine's name {why}"


def _check_names(value: Any, path: Path) -> Iterator[Fault]:
    """Check a list of names, or an object of names or of such lists."""
    for at, one in value.items() if isinstance(value, Mapping) else enumerate(value):
        if not isinstance(one, str):
            yield from _check_names(one, (*path, at))
        elif not 1 <= len(one) <= LONGEST_NAME:
            yield (*path, at), _NO_NAME


def _check_places(value: Any, path: Path) -> Iterator[Fault]:
    yield from _check_names(value, path)
    yield from (((*path, name), "expected 1 to 100 states") for name, to in value.items() if not 1 <= len(to) <= 100)


def _check_expressions(value: Any, path: Path) -> Iterator[Fault]:
    for name, one in value.items():
        yield from (((*path, name), message) for message, _ in compile_value(one).faults)


def _check_sources(value: Any, path: Path) -> Iterator[Fault]:
    if not 1 <= len(value) <= MOST_SOURCES:
        yield path, f"expected 1 to {MOST_SOURCES} sources"


_NO_NAME = f"expected a name of at most {LONGEST_NAME} letters"
_ENDS = ("version", "digest", "to", "to_digest")
_TURNED = ("to", "to_digest", "version", "digest")
_OPTIONAL = frozenset(["back", "findings", "inverse_of"])
_BESIDE = frozenset(["format", "id"])
"""Keys of a plan that no field of its record holds."""
_RULES: dict[str, Check] = {
    "version": _check_version,
    "to": _check_version,
    "digest": _check_digest,
    "to_digest": _check_digest,
    "machine": _check_machine,
    "inverse_of": _check_inverse,
    "states": _check_places,
    "data": _check_expressions,
    "sources": _check_sources,
} | dict.fromkeys(["unmapped_states", "fields", "added", "removed", "timers", "invokes", "histories"], _check_names)
"""What a field has to fulfil beside its annotation."""


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
