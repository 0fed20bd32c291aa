"""docs/conformance.md as it was written last, and what any such page must keep."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from machines.engine.definitions.findings import make_finding
from tests.engine.definitions.finding_codes import CODES

from . import page, public_machines, waivers
from .result import Result, Status
from .suite import Case

pytestmark = pytest.mark.pure
COMMITTED = Path(__file__).parents[2] / "docs" / "conformance.md"


def result(name, status=Status.PASSED, reason=""):
    return Result(Case("group", name, Path("x.scxml")), status, reason, 0.1)


def test_the_page_in_docs_has_no_failed_case_and_today_s_waivers():
    text = COMMITTED.read_text(encoding="utf-8")
    assert "| passed |" in text
    assert not re.search(r"^\| [^|]+ \| failed \| ", text, re.MULTILINE)
    for waiver in waivers.WAIVERS:
        assert f"- {waiver.reason}: {waiver.why}" in text


def test_what_stops_public_machines_adds_up_and_is_on_the_page():
    for row in public_machines.ROWS:
        assert row.machines >= 20
        assert row.machines - row.read == sum(count for count, _ in row.stops), row.reader
    assert COMMITTED.read_text(encoding="utf-8").endswith("\n" + public_machines.section())


def test_every_waiver_goes_by_codes_that_findings_have():
    for waiver in waivers.WAIVERS:
        assert waiver.codes <= set(CODES)


def test_one_finding_that_is_no_reason_to_waive_spoils_the_waiver():
    http, typo = make_finding("SB142", "", "HTTP"), make_finding("SB101", "", "no such state")
    assert waivers.reason([http, http]) == "HTTP event processor"
    assert waivers.reason([http, typo]) == ""
    assert waivers.reason([]) == ""


def test_the_same_results_give_the_same_page():
    assert page.render("suite", [result("a")]) == page.render("suite", [result("a")])


def test_what_a_reason_holds_stays_in_its_cell():
    text = page.render("suite", [result("a", Status.FAILED, "in a|b, expected *c* of <d>")])
    assert r"| a | failed | in a\|b, expected \*c\* of \<d> |" in text
