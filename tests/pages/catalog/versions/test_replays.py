"""Recorded histories on another version: divergences by class, with pictures of both versions."""

from __future__ import annotations

import pytest

from tests.pages.reading import read

FIRST = {
    "id": "lamp", "initial": "off",
    "states": {"off": {"on": {"press": "on"}}, "on": {"on": {"press": "off"}}, "dim": {"on": {"press": "off"}}},
}  # fmt: skip
SECOND = FIRST | {"states": FIRST["states"] | {"off": {"on": {"press": "dim"}}}}
PAGE = "/machines/lamp/versions/replay/"


@pytest.fixture
def lamps(engine, db) -> str:
    engine.publish(FIRST)
    for id in ("a", "b"):
        engine.create("lamp", id)
        engine.fire("lamp", id, "press")
    engine.publish(SECOND)
    return "lamp"


def test_what_a_version_would_have_done_otherwise_is_shown_by_class(as_, lamps):
    page = read(as_("supervisor").get(f"{PAGE}?version=2&sample=10&run=1"))
    (picture, other) = [image["src"] for image in page.all("img")]
    assert "2 × press in off" in page.text
    assert "in=on" in picture
    assert "in=dim" in other


def test_on_its_own_version_nothing_differs(as_, lamps):
    page = read(as_("supervisor").get(f"{PAGE}?version=1&sample=10&run=1"))
    assert "No divergences" in page.text


def test_the_pictures_highlight_where_a_step_ended(as_, lamps):
    answer = as_("viewer").get("/machines/lamp/versions/step.svg?version=2&in=dim&taken=t1&in=<b>")
    assert answer["Content-Type"].startswith("image/svg+xml")
    assert b"current" in answer.content.partition(b"</style>")[2]
    assert as_("viewer", "other").get("/machines/lamp/versions/step.svg?version=x").status_code == 404


def test_running_takes_the_right_to_operate(as_, lamps):
    client = as_("viewer")
    assert not read(client.get(PAGE)).all("button", name="run")
    assert client.get(f"{PAGE}?version=2&run=1").status_code == 403


@pytest.mark.parametrize("query", ["version=9", "version=2&sample=0", "version=2&sample=99999", "sample=x"])
def test_a_form_that_does_not_fit_is_a_400(as_, lamps, query):
    assert as_("supervisor").get(f"{PAGE}?{query}&run=1").status_code == 400


def test_moves_there_and_back_tell_how_states_correspond(as_, engine, db):
    engine.publish(FIRST)
    engine.create("lamp", "a")
    engine.fire("lamp", "a", "press")
    states = {"off": {"on": {"press": "lit"}}, "lit": {"on": {"press": "off"}}}
    engine.publish(FIRST | {"states": states})
    plan = engine.plan("lamp", 2, states={"on": "lit", "dim": "lit"})
    engine.migrate(plan)
    engine.migrate(plan.inverse())
    client = as_("supervisor")
    for version in (1, 2):
        assert "No divergences" in read(client.get(f"{PAGE}?version={version}&sample=10&run=1")).text
