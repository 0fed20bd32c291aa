"""Reads values of actions, inputs and payloads: a text is an expression, other JSON stands for itself."""

import json
from typing import Any

from machines.engine import expressions, limits
from machines.engine.expressions import Expression, ExpressionError, Node
from machines.engine.expressions.translator import FAILED, format_number

from .findings import Path, Report, quote
from .model import Guard, Value
from .place import BROKEN, Place, require_key


def read_value(place: Place) -> Value:
    """Read a value; every text inside objects and arrays is an expression."""
    builder = _Builder(place.report)
    tree = builder.build(place.value, place.path, 0)
    return Value(tree, describe_value(place.value), tuple(builder.parts))


def read_object(place: Place) -> tuple[Value | None, tuple[str, ...]]:
    """Read a value that must be an object (the input of a job, the data of an event), and its keys."""
    if not place.is_object("an object of values", 'write {"name": "expression"}'):
        return None, ()
    return read_value(place), tuple(place.value)


def read_expression(place: Place) -> Value | None:
    """Read ``{"expr": "..."}``: an expression where a text would stand for itself."""
    if not place.is_object("an object with expr", 'write {"expr": "expression"}'):
        return None
    place.refuse_unknown(("expr",))
    found = require_key(place, "expr")
    return None if found.text("an expression in quotes") is None else read_value(found)


def read_guard(place: Place) -> Guard | None:
    """Read a guard; None when there is none, or one that is literally true."""
    if place.broken or place.value is True:
        return None
    if place.value is False:
        return Guard(Expression("False", ["because", "False", ["false"]]), place.path)
    text = place.text("an expression in quotes", 'write it as text, such as "failed < 3"')
    if text is None:
        return None
    expression = expressions.read(text, guard=True)
    report_problems(expression, place.path, place.report)
    return Guard(expression, place.path)


def report_problems(expression: Expression, path: Path, report: Report) -> None:
    for problem in expression.problems:
        hint = problem.hint
        if problem.kind == "function":
            hint = report.suggestions.hint(problem.name, expressions.FUNCTIONS)
        report.add("SB109" if problem.kind == "syntax" else "SB120", path, _point_at(problem, expression), hint)


def _point_at(problem: ExpressionError, expression: Expression) -> str:
    if not problem.offset:
        return f"{problem.message} in {quote(expression.text)}" if expression.text else "the expression is empty"
    return f"{problem.message} at character {problem.offset + 1} of {quote(expression.text)}"


def describe_value(value: Any) -> str:
    """Format a value for people: expressions without the quotes of JSON."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {describe_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(describe_value(item) for item in value) + "]"
    return "…" if value is BROKEN else json.dumps(value)


class _Builder:
    """Builds the tree of one value and collects its expressions."""

    def __init__(self, report: Report) -> None:
        self.parts: list[tuple[Path, Expression]] = []
        self._report = report
        self._nodes = 0

    def build(self, value: Any, path: Path, depth: int) -> Node:
        self._nodes += 1
        if self._nodes == limits.MAX_EXPRESSION_NODES + 1:
            self._report.add("SB111", path, f"the value has more than {limits.MAX_EXPRESSION_NODES} parts")
        if self._nodes > limits.MAX_EXPRESSION_NODES:
            return FAILED
        if depth > limits.MAX_JSON_DEPTH:
            self._report.add("SB111", path, f"nested more than {limits.MAX_JSON_DEPTH} levels deep")
            return FAILED
        if isinstance(value, str):
            return self._expression(value, path, depth)
        if isinstance(value, dict):
            return ["obj", *([key, self.build(item, (*path, key), depth + 1)] for key, item in value.items())]
        if isinstance(value, list):
            return ["list", *(self.build(item, (*path, index), depth + 1) for index, item in enumerate(value))]
        return _literal(value)

    def _expression(self, text: str, path: Path, depth: int) -> Node:
        expression = expressions.read(text, depth=depth)
        report_problems(expression, path, self._report)
        self.parts.append((path, expression))
        return expression.tree


def _literal(value: Any) -> Node:
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int | float):
        return ["num", format_number(value)]
    return ["null"]
