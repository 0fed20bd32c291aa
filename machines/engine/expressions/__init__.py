"""Expressions: a safe subset of Python's expression syntax, compiled to a JSON tree.

Python never evaluates one. The tree goes into the program of a definition, and the functions
library inside Redis turns it into closures; ``docs/definition-reference.md`` lists the language.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from machines.engine.limits import RESERVED_FIELDS

from .functions import FUNCTIONS, Function
from .source import Expression, ExpressionError, Node, Source, Use
from .translator import FAILED, Translator

__all__ = [
    "FUNCTIONS",
    "Expression",
    "ExpressionError",
    "Function",
    "Node",
    "Use",
    "parse",
    "read",
    "references",
]


def read(text: str, *, guard: bool = False, depth: int = 0) -> Expression:
    """Read an expression. Never raises: errors are in ``problems``. ``depth``: how deep the expression is nested
    already."""
    try:
        source = Source(text)
        tree = source.parse()
        translator = Translator(source, depth)
        node = translator.guard(tree) if guard else translator.translate(tree)
    except ExpressionError as error:
        return Expression(text.strip(), FAILED, problems=(error,))
    return Expression(source.text, node, tuple(translator.uses), tuple(translator.problems))


def parse(text: str, names: Collection[str] | None = None, *, guard: bool = False) -> Node:
    """Return the JSON tree of an expression. Raises ExpressionError for the first problem.

    ``names`` are the data fields that exist; None accepts every name. ``guard`` wraps each boolean leaf as
    ``["because", source text, node]`` so that a refusal can be explained.
    """
    expression = read(text, guard=guard)
    if expression.problems:
        raise expression.problems[0]
    for use in expression.uses:
        if names is not None and use.kind == "data" and use.name not in names:
            raise ExpressionError(f'no data field "{use.name}"', use.offset)
    return expression.tree


def references(tree: Node) -> set[str]:
    """Return the names a tree reads: data fields, and ``event``, ``now``, ``instance``, ``trigger`` where they
    occur."""
    return set(_references(tree))


def _references(tree: Node) -> Iterator[str]:
    operator, *parts = tree
    if operator == "data":
        yield parts[0]
    elif operator in RESERVED_FIELDS and not parts:
        if operator in ("event", "now", "instance", "trigger"):
            yield operator
    elif operator == "because":
        yield from _references(parts[1])
    elif operator == "obj":
        for _, value in parts:
            yield from _references(value)
    elif operator == "cmp":
        yield from _references(parts[0])
        for _, value in parts[1:]:
            yield from _references(value)
    elif operator not in ("num", "str", "in"):
        for part in parts:
            if isinstance(part, list):
                yield from _references(part)
