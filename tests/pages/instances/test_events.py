"""What the page says of each event before anyone fires it: right for every payload, or said to depend."""

from __future__ import annotations

import pytest

from dashboard.instances.presenters import list_event_actions, list_events
from dashboard.shared import version_view


@pytest.fixture
def action(engine, db):
    """The actions of a machine with one state ``A`` and these transitions on ``go``, by event."""

    def made(transitions: list[dict], payload: dict | None = None, data: dict | None = None, **states: dict):
        events = {} if payload is None else {"go": {"payload": payload}}
        definition = {
            "id": "m",
            "initial": "A",
            "context": {"n": 3, "name": "x", "anything": None},
            "events": events,
            "states": {"A": {"on": {"go": transitions}}, "B": {}, **states},
        }
        version = engine.publish(definition).version
        instance = engine.create("m", data=data)
        plan = version_view.load_version("m", version)
        explained = engine.explain_all("m", instance.id, [name for name in list_events(plan) if name])
        return {one.event: one for one in list_event_actions(explained, plan, instance)}

    return made


@pytest.mark.parametrize(
    ("guard", "verdict", "kind"),
    [
        (None, "open", "holds"),
        ("n == 3", "open", "holds"),
        ("n < 3", "refused", "fails"),
        ("event.x == n", "depends", "depends"),
        ("event.x > n", "depends", "depends"),
        ("n < 3 and event.x == n", "refused", "fails"),
        ("event.x == n and n < 3", "depends", "depends"),
        ("n < 3 or event.x == n", "depends", "depends"),
        ("n == 3 or event.x == n", "depends", "depends"),  # it holds; that is more than is known for sure
        ("anything > 3", "refused", "error"),
        ("not event.x", "depends", "depends"),
        ('"event" == name', "refused", "fails"),
    ],
)
def test_a_guard_is_judged_by_what_it_reads(action, guard, verdict, kind):
    transition = {"target": "B"} | ({"guard": guard} if guard else {})
    found = action([transition])["go"]
    assert (found.verdict, found.routes[0].kind) == (verdict, kind)


def test_what_does_not_hold_says_why(action):
    assert action([{"target": "B", "guard": "n < 3"}])["go"].routes[0].why == ["n < 3 is false: n = 3"]


def test_what_depends_gives_no_reason_yet(action):
    assert action([{"target": "B", "guard": "event.x == n"}])["go"].routes[0].why == []


def test_routes_stand_in_the_order_they_are_tried(action):
    found = action([{"target": "B", "guard": "event.x == n"}, {"guard": "n == 3"}, {"target": "B"}])["go"]
    assert [route.kind for route in found.routes] == ["depends", "holds", "later"]
    assert [route.target for route in found.routes] == ["B", None, "B"]
    assert found.verdict == "open"


def test_an_event_the_state_does_not_listen_to_is_idle_and_comes_last(action):
    found = action([{"target": "B"}], B={"on": {"back": "A"}})
    assert list(found) == ["go", "back"]
    assert found["back"].verdict == "idle"
    assert "no transition accepts it" in found["back"].refusal


def test_a_required_field_makes_it_depend(action):
    found = action([{"target": "B", "guard": "event.x > 1"}], {"x": {"type": "integer", "required": True}})["go"]
    assert found.verdict == "depends"
    assert found.form.fields["x"].required


def test_a_required_field_leaves_an_event_idle_where_no_state_listens(action):
    payload = {"x": {"type": "integer", "required": True}}
    found = action([], payload, B={"on": {"go": "A"}})["go"]
    assert (found.verdict, found.refusal) == ("idle", "Not accepted in A.")


def test_a_declared_payload_takes_no_other_field(action):
    assert set(action([{"target": "B"}], {"x": 1})["go"].form.fields) == {"x"}


def test_an_undeclared_payload_has_the_fields_that_are_read_and_takes_others(action):
    assert set(action([{"target": "B", "guard": "event.x == event.y"}])["go"].form.fields) == {"x", "y", "*"}


def test_a_state_that_listens_to_a_pattern_takes_any_name(action):
    found = action([{"target": "B"}], A={"on": {"door.*": "B"}})
    assert found[""].verdict == "depends"


def test_asking_changes_nothing(action, engine):
    action([{"target": "B"}])
    assert engine.counts("m")["A"] == 1
    assert sum(engine.counts("m").values()) == 1
