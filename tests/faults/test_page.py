"""The page about durability promises what tests show, and names them."""

import re

import pytest

from tests.installation.processes import ROOT

NAMED = re.compile(r"`(test_\w+)`")
WRITTEN = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)
NO_FAULTS = ("test_page.py",)


PAGE = (ROOT / "docs" / "durability.md").read_text()
OTHERS = re.compile(r"`(tests/[a-z_/]+\.py)`")  # files elsewhere that the page names beside their tests


@pytest.fixture
def named():
    return set(NAMED.findall(PAGE))


@pytest.fixture
def elsewhere():
    return {name for file in OTHERS.findall(PAGE) for name in WRITTEN.findall((ROOT / file).read_text())}


@pytest.fixture
def written():
    files = [file for file in (ROOT / "tests" / "faults").glob("test_*.py") if file.name not in NO_FAULTS]
    return {name for file in files for name in WRITTEN.findall(file.read_text())}


def test_each_test_it_names_exists_and_each_fault_is_on_the_page(named, written, elsewhere):
    assert written - named == set()
    assert named - written - elsewhere == set()
