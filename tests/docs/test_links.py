"""Every link of the docs leads to a file, and one with an anchor to a heading of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cases import for_each

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "deploy/README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.md")),
]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def read_text(page: Path) -> str:
    """Return the page without code, where brackets mean something else."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]+`", "`code`", text)


def collect_anchors(page: Path) -> set[str]:
    """Return the anchors of a page, made from its headings as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


@pytest.mark.pure
@for_each("page", PAGES)
def test_every_link_leads_to_a_file_and_a_heading(page: Path):
    for target, anchor in LINK.findall(read_text(page)):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links to {target}, which does not exist"
        if anchor and file.suffix == ".md":
            assert anchor in collect_anchors(file), f"{page.name} links to {target}#{anchor}, which is no heading"
