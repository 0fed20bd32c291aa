"""docs/formats.md names every format, how its files end, and whether it is read and written."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from machines.formats import FORMATS, READERS, SUFFIXES, WRITERS
from machines.formats.xstate.context import INVOKE_KEYS, MACHINE_KEYS, STATE_KEYS, VERBS
from tests.cases import for_each
from tests.engine.definitions.finding_codes import CODES

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
ROWS = {match[1]: match[0] for match in re.finditer(r"^\| `(\w+)` \|.*\|$", PAGE.split("\n## ")[0], re.M)}


def test_every_format_has_a_row_that_says_what_can_be_done_with_it():
    assert set(ROWS) == set(FORMATS)
    for name, row in ROWS.items():
        _, _, read, written, _ = (cell.strip() for cell in row.strip("|").split("|"))
        assert (read == "yes", written == "yes") == (name in READERS, name in WRITERS), name


@for_each("suffix", SUFFIXES)
def test_every_ending_is_in_the_row_of_its_format(suffix):
    assert f"`{suffix}`" in ROWS[SUFFIXES[suffix]]


def test_every_code_of_the_page_exists():
    assert set(re.findall(r"SB\d{3}", PAGE)) <= set(CODES)


def test_what_xstate_has_no_place_for_is_listed():
    written = PAGE.split("### Written")[-1].split("\n## ")[0]
    for key in (*INVOKE_KEYS, *MACHINE_KEYS, *STATE_KEYS):
        assert f"`{key}`" in written, key
    assert {verb for verb in VERBS if f"`{verb}`" in written} == {
        "unset",
        "append",
        "enqueue",
        "if",
        "foreach",
        "block",
    }


def test_the_program_on_the_page_is_one():
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        ast.parse(block)


def test_links_lead_somewhere():
    docs = Path(__file__).parents[2] / "docs"
    for file in re.findall(r"\]\(([\w-]+\.md)", PAGE):
        assert (docs / file).exists(), file
    anchors = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", PAGE, re.M)
    }
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= anchors
