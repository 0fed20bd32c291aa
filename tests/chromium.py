"""The browser that tests drive."""

from __future__ import annotations

import shutil

from tests.conftest import missing

# The headless build shows the same pages with a third less of the processor.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")


def find_chromium() -> str:
    """The path of the browser. Skips the test where there is none, and fails it in CI."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        missing("Chromium", "install it (Debian: apt-get install chromium)")
    return found
