"""Finds the implementations of a config's names, if the text has them: ``setup({guards, actions, delays})``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from machines.engine.definitions.place import Place
from machines.engine.definitions.report import quote
from machines.formats.xstate.context import Scope
from machines.formats.xstate.dialect import unbrace

from . import scripts

MAX_DEPTH = 8  # names that refer to names
MAX_LOOKUPS = 5000  # in one document: names that refer to many names would otherwise multiply


def of(kind: str, name: str, scope: Scope) -> Place | None:
    """Return the implementation of a name; None if there is none, or if names refer to each other without end."""
    found = scope.reading.implementations
    kinds = found.get(kind) if found and isinstance(found.value, dict) else None
    scope.reading.lookups += 1
    too_much = scope.depth > MAX_DEPTH or scope.reading.lookups > MAX_LOOKUPS
    if kinds is None or not isinstance(kinds.value, dict) or too_much:
        return None
    return kinds.get(name)


def deeper(scope: Scope, params: Any = None) -> Scope:
    return replace(scope, depth=scope.depth + 1, params=params)


def guard(name: str, scope: Scope, place: Place, read_guard: Callable[[Place, Scope], str | bool]) -> str | None:
    """Return the expression of a named guard. Code that cannot be translated is reported."""
    found = of("guards", name, scope)
    if found is None:
        return None
    code = unbrace(found.value) if isinstance(found.value, str) else None
    if code is None:
        return str(read_guard(found, deeper(scope, scope.params)))
    translated = scripts.translate(code, scope, found, condition=True)
    if isinstance(translated, str):
        return translated
    message = f"the guard {quote(name)} cannot be translated: {translated.why}"
    place.report.add("SB140", place.path, message, translated.hint or "write it as an expression")
    return name
