"""machines.submission: text in, a definition with all its findings out, whatever the text is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines.submission import read

from .samples import BROKEN, door

DEFINITION = json.dumps(door())


@pytest.mark.parametrize("text", [DEFINITION, f"\n\t {DEFINITION}", DEFINITION.encode(), f"\ufeff{DEFINITION}"])
def test_json_is_known_by_its_brace(text: str | bytes) -> None:
    submission = read(text)
    assert submission.summary in ("no findings", "1 error")
    assert (submission.definition == door()) is not submission.errors


def test_what_does_not_begin_with_a_brace_is_yaml() -> None:
    assert read("id: door\ninitial: A\nstates: {A: {type: final}}\n").definition is not None


def test_the_name_of_a_file_decides_before_its_content() -> None:
    assert [finding.code for finding in read("id: door", name="door.json").errors] == ["SB131"]


def test_a_format_can_be_asked_for() -> None:
    assert read("id: door", format="json").errors
    assert [finding.code for finding in read("<scxml/>", format="scxml").errors] == ["SB130"]


def test_findings_of_reading_and_of_checking_are_the_same_kind() -> None:
    assert read("{").definition is None
    assert read("{").summary == "1 error"
    assert read(json.dumps(BROKEN)).summary == "2 errors"
    assert read(json.dumps(BROKEN)).definition == BROKEN


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_it_never_raises(text: str | bytes) -> None:
    assert read(text).summary
