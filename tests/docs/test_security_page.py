"""The page about security: each promise names what shows it, and that is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.cases import for_each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/.-]+)(?:::(\w+))?`")


def promises() -> dict[str, str]:
    """Promise -> what it is shown by, as the table has it."""
    table = PAGE.partition("## What is promised")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {row[0]: row[-1] for row in rows[1:]}


def test_each_promise_names_a_test_or_a_command():
    assert len(promises()) > 25
    for promise, shown in promises().items():
        assert NAMED.search(shown) or re.search(r"`make \w+`", shown), promise


@for_each("path, test", sorted(set(NAMED.findall(PAGE))))
def test_what_is_named_is_there(path: str, test: str):
    place = ROOT / path
    assert place.exists(), path
    if place.is_dir():
        assert list(place.rglob("test_*.py")), path
    elif place.name.startswith("test_"):
        found = {node.name for node in ast.parse(place.read_text(encoding="utf-8")).body if hasattr(node, "name")}
        assert any(name.startswith("test_") for name in found), path
        assert not test or test in found, f"{path} has no {test}"


def test_each_command_that_is_named_is_there():
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make (\w+)", PAGE)):
        assert re.search(rf"^{target}:", made, re.MULTILINE), target


def test_every_test_of_safety_shows_a_promise():
    named = {path for path, _ in NAMED.findall(PAGE)}
    there = {f"tests/security/{file.name}" for file in (ROOT / "tests" / "security").glob("test_*.py")}
    assert there - named == set()
