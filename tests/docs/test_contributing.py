"""Each row of the table "to change X, go to Y" has a path, and every path on the page exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cases import for_each

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## To change X, go to Y")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| (?!to change|---)(.+?) \| (.+) \|$", TABLE, re.MULTILINE)
TOP = ("machines", "dashboard", "static", "templates", "tests", "benchmarks", "examples", "docs")
PATHS = sorted(set(re.findall(rf"`((?:{'|'.join(TOP)})/[\w/.-]+)`", PAGE)))
LARGEST = 2  # levels below the root at which a folder may stand for the files in it


def test_each_row_of_the_table_has_a_path():
    assert len(ROWS) >= 10
    for duty, places in ROWS:
        assert set(re.findall(r"`([\w/.-]+/[\w/.-]+)`", places)) & set(PATHS), duty


@for_each("path", PATHS)
def test_every_path_on_the_page_exists(path: str):
    assert (ROOT / path).exists(), path


@for_each("duty, places", ROWS)
def test_a_row_names_files_or_one_folder_that_is_a_noun(duty: str, places: str):
    for path in re.findall(r"`([\w-]+/[\w/.-]+)`", places):
        assert (ROOT / path).is_file() or path.count("/") >= LARGEST, f"{duty}: {path} is too large a place"


FOLDERS = "|".join((*TOP, ".ci"))


@for_each("page", sorted((ROOT / "docs").glob("*.md")))
def test_every_path_in_backticks_exists(page: Path):
    text = page.read_text(encoding="utf-8")
    paths = set(re.findall(rf"`((?:{FOLDERS})/[\w/.-]+)(?:::\w+)?`", text))
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []
