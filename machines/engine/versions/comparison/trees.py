"""Compares parts of programs: as JSON, without the texts that stand beside expressions."""

from __future__ import annotations

import json
from typing import Any


def strip(node: Any) -> Any:
    """Return a part of a program without the source texts of its guards."""
    if isinstance(node, list):
        if len(node) == 3 and node[0] == "because" and isinstance(node[1], str):
            return strip(node[2])
        return [strip(one) for one in node]
    if isinstance(node, dict):
        return {key: strip(one) for key, one in node.items() if key != "text"}
    return node


def freeze(node: Any) -> str:
    """Return a text that is equal for equal parts."""
    return json.dumps(strip(node), sort_keys=True, ensure_ascii=False)


def freeze_source(value: Any) -> str:
    """Return a text that is equal for equal parts of documents; the order of keys has no meaning."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def show(value: Any) -> str:
    """Format a value of a definition in a line."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
