"""The codes of the pages stand in troubleshoot.md, all of them and no others."""

from __future__ import annotations

import re
from pathlib import Path

from dashboard.shared.errors import statuses

PAGE = Path(__file__).parents[2] / "docs" / "troubleshoot.md"


def test_every_code_of_the_pages_is_documented_and_no_other():
    raised = {value for name, value in vars(statuses).items() if name.isupper() and str(value).startswith("SB7")}
    assert set(re.findall(r"^\| `(SB7\d\d)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) == raised
