"""Refusals have one class and one code each, whichever way a request came in."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest
from django.core.exceptions import PermissionDenied

from dashboard.shared import permissions as pages
from machines.engine import SignalboxError, errors
from machines.people import errors as services
from machines.people import permissions

ROOT = Path(__file__).parents[2]


def defined(*folders: str) -> dict[str, list[str]]:
    """class -> the modules that define one of that name."""
    found = defaultdict(list)
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(str(file.relative_to(ROOT)))
    return found


@pytest.mark.parametrize("name", ["Forbidden", "NotAllowed"])
def test_a_refusal_is_defined_once(name):
    assert len(defined("machines", "dashboard")[name]) == 1


def test_pages_services_and_api_share_forbidden():
    assert services.Forbidden is permissions.Forbidden is pages.Forbidden
    error = permissions.Forbidden("fire", "order")
    assert isinstance(error, SignalboxError)
    assert isinstance(error, PermissionDenied)
    assert (error.code, error.facts()["right"], error.facts()["machine"]) == ("SB434", "fire", "order")
    assert errors.NotAllowed.code == "SB433"
