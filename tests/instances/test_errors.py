"""Refusals have one class and one code each, whichever way a request came in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.exceptions import PermissionDenied

from dashboard.shared import permissions as pages
from machines.engine import SignalboxError, errors
from machines.people import errors as services
from machines.people import permissions

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["Forbidden", "NotAllowed"])
def test_a_refusal_is_defined_once(name):
    files = [file for folder in ("machines", "dashboard") for file in (ROOT / folder).rglob("*.py")]
    found = [file for file in files if re.search(rf"^\s*class {name}\b", file.read_text(encoding="utf-8"), re.M)]
    assert len(found) == 1


def test_pages_services_and_api_share_forbidden():
    assert services.Forbidden is permissions.Forbidden is pages.Forbidden
    error = permissions.Forbidden("fire", "order")
    assert isinstance(error, SignalboxError)
    assert isinstance(error, PermissionDenied)
    assert (error.code, error.facts()["right"], error.facts()["machine"]) == ("SB434", "fire", "order")
    assert errors.NotAllowed.code == "SB433"
