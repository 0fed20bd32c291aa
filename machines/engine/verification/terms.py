"""Terms of expressions: what a guard reads, and the constants it is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from machines.engine.expressions import list_parts, walk

Node = list[Any]
Term = tuple[str, ...]
"""("data", field, key, ...) or ("event", key, ...)."""

LITERALS = {"null": None, "true": True, "false": False}
UNSTEADY = frozenset({"now", "instance", "trigger"})
RANDOM = frozenset({"random", "random_token"})
TEXT_CALLS = frozenset({"lower", "upper", "strip", "startswith", "endswith", "split", "len"})


def is_node(part: Any) -> bool:
    return isinstance(part, list) and bool(part) and isinstance(part[0], str)


def read_term(node: Any) -> Term | None:
    """Return the term that a node is; None for anything else."""
    if not is_node(node):
        return None
    match node:
        case ["data", str(name)]:
            return ("data", name)
        case ["event"]:
            return ("event",)
        case ["get", inner, ["str", str(key)]]:
            found = read_term(inner)
            return None if found is None else (*found, key)
        case ["because", _, inner]:
            return read_term(inner)
    return None


def read_literal(node: Any) -> tuple[Any, ...] | None:
    """Return the values of a literal: one, or those of a list of literals; None for anything else."""
    if not is_node(node):
        return None
    if node[0] in ("num", "str"):
        return (node[1],)
    if node[0] in LITERALS and len(node) == 1:
        return (LITERALS[node[0]],)
    if node[0] == "neg" and is_node(node[1]) and node[1][0] == "num":
        return (-node[1][1],)
    if node[0] == "list":
        parts = [read_literal(part) for part in node[1:]]
        return None if None in parts else tuple(value for part in parts if part for value in part)
    return None


def read_operand(operator: str, node: Any) -> tuple[Any, ...] | None:
    """Return the constants that an operator compares with; None where it is no plain comparison: of lists, or of a part
    of a text."""
    is_list = is_node(node) and node[0] == "list"
    return read_literal(node) if is_list == (operator in ("in", "not in")) else None


def list_fields(node: Any) -> set[str]:
    """List the data fields that an expression reads."""
    return {found[1] for found in walk(node) if found[0] == "data"}


def is_unsteady(node: Any) -> bool:
    """Tell whether an expression reads what neither data nor payload decides: clock, chance, the instance."""
    return any(found[0] in UNSTEADY or (found[0] == "call" and found[1] in RANDOM) for found in walk(node))


def list_links(node: Node) -> Iterator[tuple[str, Any, Any]]:
    """Yield (operator, left, right) for each comparison of a ``cmp`` node."""
    left = node[1]
    for operator, right in node[2:]:
        yield operator, left, right
        left = right


def list_conditions(node: Any) -> Iterator[Node]:
    """Yield the parts of a condition that are true or false by themselves: what stands between and, or and not."""
    if not is_node(node):
        return
    if node[0] in ("and", "or", "not", "because"):
        for part in list_parts(node):
            yield from list_conditions(part)
    else:
        yield node
