"""The page about durability promises what tests show, and names them."""

import re

import pytest

from tests.installation.processes import ROOT

NAMED = re.compile(r"`(test_\w+)`")
WRITTEN = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)
NO_FAULTS = ("test_page.py",)


@pytest.fixture
def named():
    return set(NAMED.findall((ROOT / "docs" / "durability.md").read_text()))


@pytest.fixture
def written():
    files = [file for file in (ROOT / "tests" / "faults").glob("test_*.py") if file.name not in NO_FAULTS]
    return {name for file in files for name in WRITTEN.findall(file.read_text())}


def test_each_test_it_names_exists_and_each_fault_is_on_the_page(named, written):
    assert named == written
