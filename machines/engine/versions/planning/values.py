"""Compiles the expressions of a plan, and checks them against the fields of the versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from machines.engine.definitions import FieldOutline
from machines.engine.definitions.checks.types import NULL, Inference, Types, describe_types, is_impossible
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


__all__ = ["CompiledValue", "can_fail", "check_uses", "compile_value", "describe_types", "infer_types", "judge_types"]
