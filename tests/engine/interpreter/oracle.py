"""A second opinion on expressions: trees, their text, and what they are worth in Python.

A tree is a tuple ``(form, part, ...)``. The oracle walks it; it never evaluates text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Tree = tuple[Any, ...]


class Wrong(Exception):
    """The expression has no value."""


class Unsure(Exception):
    """It may well have one, but this oracle does not say which."""


def text(tree: Tree) -> str:
    """The expression as a definition holds it."""
    form, *parts = tree
    if form == "leaf":
        return f"event.v{parts[0]}"
    shown = [text(part) if isinstance(part, tuple) else part for part in parts]
    if form in ("and", "or"):
        return "(" + f" {form} ".join(shown) + ")"
    if form == "not":
        return f"(not {shown[0]})"
    if form == "neg":
        return f"(-{shown[0]})"
    if form == "if":
        return f"({shown[1]} if {shown[0]} else {shown[2]})"
    if form in ("bin", "cmp"):
        return "(" + " ".join(shown) + ")"
    if form == "get":
        return f"{shown[0]}[{shown[1]}]"
    if form == "list":
        return "[" + ", ".join(shown) + "]"
    return f"{shown[0]}(" + ", ".join(shown[1:]) + ")"


def value(tree: Tree, leaves: list[Any]) -> Any:
    """What the tree is worth. Numbers are floats throughout. Raises Wrong or Unsure."""
    form, *parts = tree
    if form == "leaf":
        return leaves[parts[0]]
    if form in ("and", "or"):
        return _logic(form, parts, leaves)
    if form == "if":
        return value(parts[1] if value(parts[0], leaves) else parts[2], leaves)
    if form == "cmp":
        return _chain(parts, leaves)
    given = [value(part, leaves) if isinstance(part, tuple) else part for part in parts]
    return FORMS[form](*given)


def _logic(form: str, parts: list[Tree], leaves: list[Any]) -> Any:
    for part in parts:
        found = value(part, leaves)
        if bool(found) == (form == "or"):
            return found
    return found


def _chain(parts: list[Any], leaves: list[Any]) -> bool:
    left = value(parts[0], leaves)
    for operator, part in zip(parts[1::2], parts[2::2], strict=True):
        right = value(part, leaves)
        if not COMPARISONS[operator](left, right):
            return False
        left = right
    return True


def kind(found: Any) -> str:
    if isinstance(found, bool):
        return "boolean"
    return {float: "number", str: "string", list: "array", dict: "object", type(None): "null"}[type(found)]


def same(a: Any, b: Any) -> bool:
    """Equal as the language means it: True is not 1."""
    if kind(a) != kind(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


def less(a: Any, b: Any) -> bool:
    if kind(a) == kind(b) == "array":
        for x, y in zip(a, b, strict=False):
            if not same(x, y):
                return less(x, y)
        return len(a) < len(b)
    if kind(a) != kind(b) or kind(a) not in ("number", "string"):
        raise Wrong
    return bool(a < b)


def inside(item: Any, container: Any) -> bool:
    if isinstance(container, str):
        return _text(item) in container
    if isinstance(container, dict):
        return isinstance(item, str) and item in container
    if isinstance(container, list):
        return any(same(item, other) for other in container)
    raise Wrong


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": same,
    "!=": lambda a, b: not same(a, b),
    "<": less,
    "<=": lambda a, b: not less(b, a),
    ">": lambda a, b: less(b, a),
    ">=": lambda a, b: not less(a, b),
    "in": inside,
    "not in": lambda a, b: not inside(a, b),
}


def _number(found: Any) -> float:
    if kind(found) != "number":
        raise Wrong
    return float(found)


def _text(found: Any) -> str:
    if kind(found) != "string":
        raise Wrong
    return str(found)


def _list(found: Any) -> list[Any]:
    if kind(found) != "array":
        raise Wrong
    return list(found)


def _finite(found: Any) -> float:
    if isinstance(found, complex) or not math.isfinite(found):
        raise Wrong
    return float(found)


def _binary(a: Any, operator: str, b: Any) -> Any:
    if operator == "+" and kind(a) == kind(b) and kind(a) in ("string", "array"):
        return a + b
    x, y = _number(a), _number(b)
    try:
        return _finite(
            {
                "+": lambda: x + y,
                "-": lambda: x - y,
                "*": lambda: x * y,
                "/": lambda: x / y,
                "//": lambda: x // y,
                "%": lambda: x % y,
                "**": lambda: x**y,
            }[operator]()
        )
    except (ZeroDivisionError, OverflowError) as error:
        raise Wrong from error


def _get(container: Any, key: Any) -> Any:
    if isinstance(container, dict):
        return container.get(_text(key))
    if not isinstance(container, (list, str)):
        raise Wrong
    at = _number(key)
    if not at.is_integer():
        raise Wrong
    return container[int(at)] if -len(container) <= at < len(container) else None


def _extreme(better: Callable[[Any, Any], bool], *given: Any) -> Any:
    items = given[0] if len(given) == 1 and kind(given[0]) == "array" else list(given)
    if not items or items[0] is None:
        raise Wrong
    best = items[0]
    for item in items[1:]:
        if better(item, best):
            best = item
    return best


def _string(found: Any) -> str:
    if kind(found) in ("array", "object"):
        raise Unsure
    if kind(found) != "number":
        return str(found)
    if abs(found) >= 1e14 or 0 < abs(found) < 1e-300:
        raise Unsure
    return str(int(found)) if found.is_integer() else repr(found)


def _length(found: Any) -> float:
    if kind(found) not in ("string", "array", "object"):
        raise Wrong
    return float(len(found))


def _sorted(found: Any) -> list[Any]:
    items = _list(found)
    for item in items:
        if len(items) > 1 and kind(item) not in ("number", "string", "array"):
            raise Wrong
    result: list[Any] = []
    for item in items:  # insertion keeps equal items in their order
        at = len(result)
        while at and less(item, result[at - 1]):
            at -= 1
        result.insert(at, item)
    return result


def _sum(found: Any) -> float:
    total = 0.0
    for item in _list(found):
        total += _number(item)
    return _finite(total)


def _rounded(found: Any, digits: Any) -> float:
    places = 0.0 if digits is None else _number(digits)
    if not places.is_integer():
        raise Wrong
    return _finite(round(_number(found), int(places)))


def _object(found: Any) -> dict[str, Any]:
    if kind(found) != "object":
        raise Wrong
    return dict(found)


def _joined(found: Any, separator: Any) -> str:
    return _text(separator).join(map(_text, _list(found)))


def _split(found: Any, separator: Any) -> list[str]:
    if not _text(separator):
        raise Wrong
    return _text(found).split(separator)


CALLS: dict[str, tuple[int, Callable[..., Any]]] = {
    "len": (1, _length),
    "abs": (1, lambda n: abs(_number(n))),
    "floor": (1, lambda n: float(math.floor(_number(n)))),
    "ceil": (1, lambda n: float(math.ceil(_number(n)))),
    "round": (2, _rounded),
    "str": (1, _string),
    "bool": (1, bool),
    "lower": (1, lambda t: _ascii(_text(t)).lower()),
    "upper": (1, lambda t: _ascii(_text(t)).upper()),
    "strip": (1, lambda t: _text(t).strip(" \t\n\v\f\r")),
    "startswith": (2, lambda t, p: _text(t).startswith(_text(p))),
    "endswith": (2, lambda t, p: _text(t).endswith(_text(p))),
    "contains": (2, lambda c, i: inside(i, c)),
    "split": (2, _split),
    "join": (2, _joined),
    "keys": (1, lambda o: sorted(_object(o), key=str.encode)),
    "values": (1, lambda o: [_object(o)[key] for key in sorted(_object(o), key=str.encode)]),
    "sum": (1, _sum),
    "sorted": (1, _sorted),
    "min": (2, lambda *items: _extreme(less, *items)),
    "max": (2, lambda *items: _extreme(lambda a, b: less(b, a), *items)),
}


def _ascii(found: str) -> str:
    if not found.isascii():
        raise Unsure
    return found


FORMS: dict[str, Callable[..., Any]] = {
    "not": lambda found: not found,
    "neg": lambda found: -_number(found),
    "bin": _binary,
    "get": _get,
    "list": lambda *items: list(items),
    "call": lambda name, *given: CALLS[name][1](*given),
}
