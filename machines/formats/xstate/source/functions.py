"""Functions that a script declares beside its machine: each call of one is replaced by what it returns."""

from __future__ import annotations

from machines.formats.scxml.ecmascript.parsing import SyntaxProblem
from machines.formats.scxml.ecmascript.scope import Function
from machines.formats.scxml.ecmascript.translator import function_of
from machines.formats.xstate.context import Reading
from machines.formats.xstate.dialect import braced

from .typescript import parse

MAX_FUNCTIONS = 200  # of one script


def of(reading: Reading) -> dict[str, Function]:
    """Those whose parameters are plain names; parsed when the first expression is read."""
    if reading.functions is None:
        reading.functions = {}
        place = reading.implementations.get("functions") if reading.implementations else None
        for name, written in list((place.value if place else {}).items())[:MAX_FUNCTIONS]:
            found = _function(braced(written) or "")
            if found is not None:
                reading.functions[name] = found
    return reading.functions


def _function(text: str) -> Function | None:
    try:
        script, node = parse(text)
    except SyntaxProblem:
        return None
    is_function = node.type in ("arrow_function", "function_expression") and not text.startswith("async")
    return function_of(script, node) if is_function else None
