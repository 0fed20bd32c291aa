"""Computes the difference of two values as a JSON merge patch (RFC 7396)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Inexpressible(Exception):
    """A null appeared inside the value: a merge patch cannot say that, where null means "remove"."""


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that turns ``old`` into ``new``; empty when they are the same. Raises Inexpressible."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = _check_whole(value)
        elif isinstance(value, dict) and isinstance(old[key], dict):
            inner = changes(old[key], value)
            if inner:
                patch[key] = inner
        elif not same(old[key], value):
            patch[key] = _check_whole(value)
    return patch


def same(left: Any, right: Any) -> bool:
    """Compare two values as JSON does: true is not 1, at any depth."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _check_whole(value: Any) -> Any:
    """Return a value that a patch sets. Lists are replaced as they are; objects merge, so nulls in them would be lost.
    Raises Inexpressible."""
    if value is None:
        raise Inexpressible
    if isinstance(value, dict):
        for inner in value.values():
            _check_whole(inner)
    return value


def merge(value: Any, patch: Any) -> Any:
    """Apply RFC 7396's MergePatch, as a client does with a delta. Leaves ``value`` as it was."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(value) if isinstance(value, Mapping) else {}
    for key, change in patch.items():
        if change is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), change)
    return result
