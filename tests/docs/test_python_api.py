"""docs/python-api.md is made from the source, and every public name on it has a docstring."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import python_api

pytestmark = pytest.mark.pure

PAGE = Path(__file__).parents[2] / "docs" / "python-api.md"


def test_the_page_is_what_the_source_says_now():
    assert PAGE.read_text(encoding="utf-8") == python_api.render(), (
        "run: python -m tests.docs.python_api docs/python-api.md"
    )


def test_every_public_method_has_a_docstring():
    entries = [*python_api.list_entries(), *python_api.list_field_entries()]
    assert len(entries) > 150
    assert [f"{entry.owner}.{entry.name}".strip(".") for entry in entries if not entry.text] == []


def test_every_record_and_error_says_what_it_is():
    for one in (*python_api.list_records(), *python_api.list_errors()):
        text = one.__doc__ or python_api.write_error(one)
        assert not text.startswith(f"{one.__name__}("), f"{one.__name__} has only the docstring of its dataclass"


def test_the_page_has_the_names_of_the_contract():
    page = PAGE.read_text(encoding="utf-8")
    for name in ("publish", "create", "fire", "explain", "history", "fire_many", "find", "force", "tick"):
        assert f"#### `Engine.{name}`\n" in page
        assert f"[`{name}`](#engine{name})" in page, "awaited"
    for name in ("AsyncEngine", "Instance", "Explanation", "Refused", "Conflict", "EngineUnavailable"):
        assert f"### {name}\n" in page
