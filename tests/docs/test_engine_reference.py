"""docs/engine-reference.md is made from the source and must be what the source says now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from machines.engine import errors
from machines.engine.connection import library
from tests.docs import engine_reference

pytestmark = pytest.mark.pure
PAGE = Path(__file__).parents[2] / "docs" / "engine-reference.md"


def test_the_page_is_what_the_source_says():
    assert PAGE.read_text(encoding="utf-8") == engine_reference.render(), (
        "run: python -m tests.docs.engine_reference docs/engine-reference.md"
    )


def test_every_function_has_a_complete_header():
    for header in engine_reference.read_headers():
        missing = {"KEYS", "ARGV", "Returns", "Notifies", "Cost"} - set(header.fields)
        assert header.purpose, header.name
        assert not missing, f"{header.name} does not say: {', '.join(sorted(missing))}"


def test_every_function_file_is_registered_in_the_library():
    text = library.text()
    for header in engine_reference.read_headers():
        assert f"function_name = '{header.name}'" in text


def test_every_code_an_error_is_raised_with_is_declared():
    """Narrower codes are given where the error is raised; each must be in the table that the page is made from."""
    sources = library.FOLDER.parent.rglob("*.py")
    texts = [source.read_text(encoding="utf-8") for source in sources]
    raised = {code for text in texts for code in re.findall(r'\bcode="(SB\d+)"', text)}
    raised |= {getattr(errors, name) for text in texts for name in re.findall(r"\bcode=([A-Z_]+)\b", text)}
    listed = " ".join(one for text in texts for one in re.findall(r"\bcode in \((.*)\)", text))
    assert raised | set(re.findall(r"SB\d+", listed)) == set(errors.NARROWER)
