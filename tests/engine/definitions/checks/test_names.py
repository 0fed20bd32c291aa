"""Which names are allowed, and why others are not."""

from __future__ import annotations

import pytest

from machines.engine import limits
from tests.cases import for_each

ODD = ["a:b", "a/b", "a{b}", 'say "hi"', "two words", "😀", "ATV-123:NBCSports", "日本語"]


@pytest.mark.parametrize("check", [limits.check_machine_name, limits.check_queue_name, limits.check_handler_name])
def test_plain_names_stand_in_keys_and_urls(check):
    for name in ("a", "_a", "A.b-c_9", "x" * 64):
        assert check(name) is None
    for name in ("", "9a", "-a", ".a", "x" * 65, "a\n", *ODD, None, 3, b"a"):
        assert check(name)


@for_each("name", ODD)
def test_odd_instance_ids_and_state_names_are_welcome(name):
    assert limits.check_instance_id(name) is None
    assert limits.check_state_name(name) is None


@for_each("name", ["", "   ", "a\0b", "a\nb", "\x7f", "\x85", "\u2028", "\ud800", "é" * 101, None, 7])
def test_ids_that_break_keys_or_logs_are_refused(name):
    assert limits.check_instance_id(name)


def test_an_instance_id_is_measured_in_bytes():
    assert limits.check_instance_id("é" * 100) is None
    assert limits.check_instance_id("é" * 101) == "must be at most 200 bytes long, not 202"


@for_each("name", ["", " a", "a ", "a\tb", "\0", "x" * 101, "\ud800", None])
def test_state_names_that_cannot_be_shown_are_refused(name):
    assert limits.check_state_name(name)


@for_each("name", ["go", "door.open", "a:b/c{d}", "😀", "x" * 100])
def test_event_names_are_words(name):
    assert limits.check_event_name(name) is None
    assert limits.check_external_event_name(name) is None


@for_each("name", ["", "a b", "a\u00a0b", "*", "a.*", "x" * 101, "a\0", None])
def test_other_event_names_are_refused(name):
    assert limits.check_event_name(name)


@for_each("name", ["done.invoke.x", "error.x", "done.", "error.", "after.t1", "after.lunch", "after.t", "after.t1.x"])
def test_events_of_the_engine_are_not_fired_from_outside(name):
    assert limits.check_event_name(name) is None
    assert "the engine's own" in str(limits.check_external_event_name(name))


@for_each("name", ["after", "done", "error", "doner.x", "afters.t1", "Done.x", "x.done.y"])
def test_events_that_only_look_like_those_of_the_engine_may_be_fired(name):
    assert limits.check_external_event_name(name) is None


@pytest.mark.parametrize("id", ["late", "a b", "x" * 100, "*"])
def test_a_send_may_be_called_nearly_anything(id):
    assert limits.check_send_id(id) is None


@pytest.mark.parametrize("id", ["", "x" * 101, "a\nb", None])
def test_other_names_of_sends_are_refused(id):
    assert limits.check_send_id(id)


@pytest.mark.parametrize("name", ["a", "snake_case9", "len"])
def test_fields_are_bare_names_in_expressions(name):
    assert limits.check_field_name(name) is None


@for_each("name", ["", "_a", "9a", "a-b", "é", "class", "event", "trigger", "now", "In", "null", "x" * 65, None])
def test_other_field_names_are_refused(name):
    assert limits.check_field_name(name)
