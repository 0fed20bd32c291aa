"""Templates are read line by line: no line is wider than a screen. A formatter is no way there: spaces between inline
elements are seen on the page, so lines are broken by hand where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import for_each

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
LONGEST = 160
TEMPLATES = sorted(
    path.relative_to(ROOT)
    for folder in ("templates", "machines/templates", "dashboard/templates", "dashboard/demo/examples/templates")
    for path in (ROOT / folder).rglob("*.html")
)


def test_there_are_templates():
    assert len(TEMPLATES) > 60


@for_each("template", TEMPLATES)
def test_no_line_of_a_template_is_long(template):
    lines = (ROOT / template).read_text(encoding="utf-8").splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > LONGEST] == []
