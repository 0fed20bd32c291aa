"""The headings of the docs that the wheel carries are those of the docs."""

from __future__ import annotations

import pytest

from dashboard.overview.search import HEADINGS
from tests.docs import headings

pytestmark = pytest.mark.pure


def test_the_headings_that_the_search_finds_are_those_of_the_docs():
    assert HEADINGS.read_text(encoding="utf-8") == headings.render(), (
        "run: python -m tests.docs.headings dashboard/overview/docs_headings.json"
    )
