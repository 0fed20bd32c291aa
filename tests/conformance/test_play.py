"""Documents of our own through the runner: what passes, what fails and with which words."""

from __future__ import annotations

import pytest

from . import documents
from .documents import event, write
from .play import play
from .result import Status
from .suite import find


@pytest.fixture
def played(tmp_path, engine):
    def run(name, body, initial="", *events):
        write(tmp_path, name, body, initial, *events)
        (case,) = [case for case in find(tmp_path).cases if case.name == name]
        return play(case, engine)

    return run


def test_the_right_configuration_after_every_event_passes(played):
    result = played("switch", documents.SWITCH, "off", event("flip", "on"), event("flip", "off"))
    assert (result.status, result.reason) == (Status.PASSED, "")


def test_configurations_are_sets_of_leaf_states(played):
    assert played("two", documents.TWO, "right l1", event("go", "right l2")).status is Status.PASSED


def test_a_wrong_configuration_fails_and_says_where(played):
    result = played("switch", documents.SWITCH, "off", event("flip", "on"), event("flip", "on"))
    assert (result.status, result.reason) == (Status.FAILED, "after event 2 (flip): in off, expected on")


def test_a_wrong_start_fails_and_says_so(played):
    assert played("switch", documents.SWITCH, "on").reason == "at the start: in off, expected on"


def test_an_event_nobody_listens_for_is_thrown_away(played):
    result = played("switch", documents.SWITCH, "off", event("unheard", "off"), event("flip", "on"))
    assert result.status is Status.PASSED


def test_what_is_due_while_a_case_waits_happens_at_its_own_moment(played, monkeypatch):
    """``out`` is sent when the lamp dims at 10 s, so it is due at 15 s and not at 5 s after the wait."""
    waits = []
    monkeypatch.setattr("time.sleep", waits.append)
    steps = (event("press", "on"), event("noise", "on", 9_999), event("noise", "dimmed", 2), event("x", "off", 4_999))
    assert played("lamp", documents.LAMP, "off", *steps).reason == ""
    assert waits == [], "seconds of the case are not waited for"


def test_a_document_is_run_until_its_own_verdict(played):
    assert played("patient", documents.PATIENT).reason == ""


def test_a_document_that_ends_in_fail_shows_its_way_there(played):
    result = played("wrong", documents.WRONG)
    assert result.status is Status.FAILED
    assert result.reason.startswith("ends in fail: ")


def test_a_document_without_a_verdict_is_not_waited_for_for_ever(played):
    assert played("stuck", documents.STUCK).reason.startswith("stays in start with nothing left to happen")


def test_a_document_that_never_rests_is_given_up(played):
    assert played("restless", documents.RESTLESS).reason.startswith("still busy after 20 rounds at one moment")


def test_documents_named_by_src_are_found_beside_the_case(played, tmp_path):
    write(tmp_path, "helper", documents.HELPER)
    assert played("parent", documents.PARENT).reason == ""


def test_what_is_waived_is_told_by_the_finding(played):
    result = played("http", documents.HTTP)
    assert (result.status, result.reason) == (Status.WAIVED, "HTTP event processor")


def test_a_document_refused_for_another_reason_fails(played):
    result = played("broken", '<state id="pass"><transition></state>')
    assert result.status is Status.FAILED
    assert result.reason.startswith("refused: SB131 line 1")
