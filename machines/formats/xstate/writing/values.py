"""Writes values: a text is an expression and gets braces; any other value stays as it is."""

from __future__ import annotations

from typing import Any

from machines.engine import expressions
from machines.formats.xstate.dialect import unbrace


def write_value(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {key: write_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [write_value(item) for item in value]
    return value


def write_expression(text: str) -> str:
    return f"{{{{ {text.strip()} }}}}"


def write_guard(guard: Any) -> Any:
    """Write a guard. Return None for a guard that always holds."""
    if guard is None or guard is True:
        return None
    return write_expression(guard if isinstance(guard, str) else "False")


def text_meant(expression: str) -> str | None:
    """Return the text of an expression that is only a text, as in ``"'calm'"``; None for any other."""
    tree = expressions.read(expression).tree
    return tree[1] if tree[0] == "str" else None


def fields_read(value: Any) -> set[str]:
    """Return the data fields that a value depends on."""
    if isinstance(value, str):
        return {use.name for use in expressions.read(value).uses if use.kind == "data"}
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {name for item in items for name in fields_read(item)}


def _text(expression: str) -> str:
    meant = text_meant(expression)
    if meant is None or unbrace(meant) is not None:
        return write_expression(expression)
    return meant
