"""Expressions: a safe subset of Python's expression syntax, compiled to a JSON tree.

Python never evaluates one. The tree goes into the program of a definition, and the functions
library inside Redis turns it into closures; ``docs/definition-reference.md`` lists the language.
"""

from collections.abc import Collection, Iterator

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
    "list_links",
    "list_parts",
    "parse",
    "read",
    "references",
    "walk",
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


def list_parts(node: Node) -> list[Node]:
    """List the sub-expressions of a node."""
    operator, *rest = node
    if operator in ("obj", "cmp"):
        first = [rest[0]] if operator == "cmp" else []
        return first + [value for _, value in rest[len(first) :]]
    if operator in ("data", "str", "num", "in"):
        return []
    return [part for part in rest if isinstance(part, list)]


def list_links(node: Node) -> Iterator[tuple[str, Node, Node]]:
    """Yield (operator, left, right) for each comparison of a ``cmp`` node."""
    left = node[1]
    for operator, right in node[2:]:
        yield operator, left, right
        left = right


def walk(tree: Node) -> Iterator[Node]:
    """Yield a node and all nodes inside it."""
    yield tree
    for part in list_parts(tree):
        yield from walk(part)


def references(tree: Node) -> set[str]:
    """Return the names a tree reads: data fields, and ``event``, ``now``, ``instance``, ``trigger`` where they
    occur."""
    facts = ("event", "now", "instance", "trigger")
    return {node[1] if node[0] == "data" else node[0] for node in walk(tree) if node[0] in ("data", *facts)}
