"""What others wrote is in the repository as they published it."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

UPLOT = Path(__file__).parents[2] / "static/vendor/uplot"
OURS = b"export default uPlot;\n"  # makes the published script a module


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("uPlot.min.js", "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"),
        ("uPlot.min.css", "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"),
    ],
)
def test_the_chart_library_is_the_published_one(name, digest):
    assert sha256((UPLOT / name).read_bytes().removesuffix(OURS)).hexdigest() == digest
    assert "1.6.32" in (UPLOT / "README.md").read_text()
    assert "MIT" in (UPLOT / "LICENSE").read_text()
