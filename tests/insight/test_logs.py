"""A log from elsewhere is held against a definition: what fits, what does not, and what nobody can tell."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from machines.insight.discovery import check_log, discover
from machines.insight.errors import BadLog, BadSearch
from tests.insight.test_discovery import HEAD, write

ORDER = {
    "id": "order", "initial": "New",
    "states": {
        "New": {"on": {"pay": {"target": "Paid", "actions": {"raise": "checked"}}, "drop": "Gone"}},
        "Paid": {"on": {"checked": "Ready", "hold": "New"}},
        "Ready": {"description": "Ready to go", "on": {"note": {}, "send": "Sent"}},
        "Sent": {"after": {"1d": "Gone"}},
        "Gone": {"on": {"revive": "New"}},
    },
}  # fmt: skip


def test_events_and_states_that_follow_the_definition_fit():
    log = write(
        ["pay", "note", "send"], ["New", "Paid", "Ready to go", "send"], ["pay", "send", "revive"], ["(create)"]
    )
    found = check_log(log, ORDER, 3)
    assert (found.extent.instances, found.extent.steps, found.fitting, found.unchecked) == (4, 11, 4, 1)
    assert found.deviations == ()


def test_deviations_have_a_place_a_count_and_an_example():
    log = write(["pay", "send"], ["send", "revive"], ["send", "lost", "note"], ["New", "New"], ["New", "Sent"])
    found = check_log(log, ORDER, 3)
    rows = [(one.version, one.source, one.target, one.event, one.count, one.example) for one in found.deviations]
    assert rows == [
        (3, "New", "", "send", 2, "c1"),
        (3, "New", "New", "", 1, "c3"),
        (3, "New", "Sent", "", 1, "c4"),
        (3, "Sent", "", "lost", 1, "c2"),  # it has no such name
        (3, "Sent", "", "note", 1, "c2"),
    ]
    assert found.fitting == 1
    few = check_log(log, ORDER, 3, most=1)
    assert (len(few.deviations), few.extent.left_out, few.fitting) == (1, 4, 1)


def test_a_log_fits_the_draft_that_was_made_of_it():
    log = write(["Check & send", "Check / send", "End"], ["Check & send", "End"])
    definition = discover(log).definition
    assert check_log(log, definition, 1).deviations == ()
    assert [one.event for one in check_log(write(["End"]), definition, 1).deviations] == [""]


def test_what_happens_by_itself_and_what_is_called_alike_are_no_deviations():
    states = {
        "A": {"on": {"go": "B"}},
        "B": {"description": "Waiting", "always": "C"},
        "C": {"description": "Waiting", "on": {"q": "D"}},
        "D": {"description": "C"},
    }
    definition = {"id": "order", "initial": "A", "states": states}
    log = write(["A", "B", "C", "q"], ["A", "Waiting", "q"], ["A", "C", "q"], ["(create)", "(migrate)", "q"])
    assert check_log(log, definition, 1).deviations == ()


def test_states_of_regions_are_refused():
    region = {"initial": "A", "states": {"A": {}}}
    both = {"type": "parallel", "states": {"One": region, "Two": {"initial": "B", "states": {"B": {}}}}}
    with pytest.raises(BadSearch, match="parallel regions"):
        check_log(write("a"), {"id": "order", "initial": "Both", "states": {"Both": both}}, 1)


def test_the_command_holds_a_file_against_a_version(engine, transactional_db, tmp_path):
    engine.publish(ORDER)
    engine.publish(ORDER | {"states": ORDER["states"] | {"New": {"on": {"send": "Sent"}}}})
    file = tmp_path / "log.csv"

    def call(text: str, *words: str) -> list[str]:
        out = io.StringIO()
        file.write_text(text)
        call_command("insight", "conformance", "order", "--log", str(file), *words, stdout=out)
        return out.getvalue().splitlines()

    log = write(["pay", "send"], ["send"])
    assert call(log, "--version", "1") == [
        "2 instances, 3 steps; 1 fit v1, 0 steps unchecked", "        1  New > ?  send  e.g. c1",
    ]  # fmt: skip
    assert call(log)[0] == "2 instances, 3 steps; 1 fit v2, 0 steps unchecked"
    for text, words in (
        (HEAD + "c,pay,2026-01-02\nc,send,2026-01-01", r"line 3: .* before that of line 2 \(SB693\)"),
        (log[:-20], r"line 4: .*number of columns.*SB693"),
        ("", r"no column .*SB693"),
    ):  # fmt: skip
        with pytest.raises(CommandError, match=words):
            call(text)
    with pytest.raises(CommandError, match=r"order.*\(SB"):
        call(log, "--version", "9")
    with pytest.raises(BadLog, match="half a file"):
        check_log("<log><trace>", ORDER, 1)
