"""docs/patterns.md: a section for each pattern, every public name and error, and programs that run as they stand."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from dashboard.demo.examples.patterns import SECTIONS
from machines import patterns
from machines.conf.server import Server
from machines.engine.errors import SignalboxError
from machines.patterns import base
from tests.cases import for_each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "patterns.md").read_text(encoding="utf-8")
PARTS = {title: text for title, _, text in (part.partition("\n") for part in PAGE.split("\n## ")[1:])}
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_every_pattern_has_a_section_with_a_program_and_a_row_that_says_what_it_is_for():
    titles = [section.title for section in SECTIONS.values()]
    assert [title for title in PARTS if title in titles] == titles
    for section in SECTIONS.values():
        assert "```python" in PARTS[section.title], section.title
        (row,) = re.findall(rf"^\| \[{section.title}\]\(#[a-z-]+\) \| `{section.name}` \|.*\|$", PAGE, re.MULTILINE)
        assert all(cell.strip() for cell in row.strip("|").split("|")), row


@for_each("name", SECTIONS)
def test_a_pattern_has_its_module_and_its_tests(name):
    assert (ROOT / f"machines/patterns/{name}.py").is_file()
    assert list((ROOT / "tests/patterns").glob(f"test_{name}*.py"))


def test_every_error_stands_with_its_code():
    raised = {member for _, member in inspect.getmembers(base, inspect.isclass) if issubclass(member, SignalboxError)}
    rows = set(re.findall(r"^\| `(\w+)` \| `(SB\d{3})` \|", PARTS["Errors"], re.MULTILINE))
    assert {(one.__name__, one.code) for one in raised if one.__module__ == base.__name__} <= rows
    known = {one.code for one in raised} | {"SB401", "SB402", "SB403", "SB408", "SB411", "SB500", "SB510"}
    assert {code for _, code in rows} <= known


def test_every_public_name_is_told_of():
    assert [name for name in patterns.__all__ if not re.search(rf"\b{name}\b", PAGE)] == []


@pytest.mark.redis
def test_the_programs_of_the_page_run_one_after_the_other(tmp_path):
    assert len(PROGRAMS) > len(SECTIONS)
    names: dict = {}
    with Server(tmp_path / "server") as server:
        for program in PROGRAMS:
            exec(compile(program.replace("redis://localhost", server.url), "docs/patterns.md", "exec"), names)
        names["redis"].close()
