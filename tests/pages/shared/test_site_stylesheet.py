"""The one stylesheet of every page is made of the files that people edit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[3]


def test_the_stylesheet_of_every_page_is_up_to_date():
    done = subprocess.run([sys.executable, ".ci/stylesheet", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_file_that_the_stylesheet_names_is_there():
    text = (ROOT / "static/signalbox/site.css").read_text(encoding="utf-8")
    addresses = {part.split('"')[0] for part in text.split('url("')[1:]}
    assert addresses
    assert [one for one in addresses if not (ROOT / "static/signalbox" / one).exists()] == []
