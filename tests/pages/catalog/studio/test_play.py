"""Playing the text that is written: steps, a text that has changed since, messages, limits, what cannot be played."""

from __future__ import annotations

import json
import secrets
from types import SimpleNamespace

import pytest

from machines.catalog import offload
from machines.catalog.editing import runs
from machines.engine import BadInput
from tests.pages.catalog.studio.test_try import ORDER, RUN
from tests.pages.reading import Element, fields, read

PLAY = "/machines/order/edit/play/"
TO = {"machine": "desk", "id": "'front'"}
CHAT = {
    "id": "chat", "initial": "Quiet",
    "states": {
        "Quiet": {
            "on": {
                "ask": {
                    "target": "Waiting",
                    "actions": {"send": {"event": "hello", "to": TO, "data": {"n": "1"}}},
                },
            }
        },
        "Waiting": {"on": {"answer": "Done"}},
        "Done": {"type": "final"},
    },
}  # fmt: skip


@pytest.fixture
def client(as_, engine, db):
    engine.publish(ORDER)
    return as_("publisher")


def play(client, definition, form: dict[str, str] | None = None, address: str = PLAY) -> Element:
    """What the tab shows."""
    text = definition if isinstance(definition, str) else json.dumps(definition)
    answer = client.post(address, (form or {}) | {"text": text, "format": "json"})
    assert answer.status_code == 200, answer.content
    return read(SimpleNamespace(content=answer.json()["html"].encode()))


def form_with(page: Element, do: str, event: str = "") -> dict[str, str]:
    forms = [fields(one) for one in page.all("form") if one.all("button", name="do", value=do)]
    return next(one for one in forms if not event or one.get("event") == event) | {"do": do}


def given(*steps: object) -> dict[str, str]:
    return {"run": runs.encode(runs.make(steps))}


def headline(page: Element) -> str:
    return page.one("section", aria_labelledby="step-title").text


def test_the_text_is_played_and_nothing_is_kept(client, engine):
    lit = ORDER | {"initial": "Failed", "description": "not published"}
    page = play(client, lit)
    assert "Created state Failed" in headline(page)
    page = play(client, lit, form_with(page, "event", "retry"))
    assert "Step 1 of 1 state Paying" in headline(page)
    page = play(client, lit, form_with(page, "job-done") | {"value": "7"})
    assert "The instance has ended" in page.text
    assert "machine: " in page.one("pre").text
    assert list(engine.find("order")) == []
    assert engine.live("order").version == 1


def test_on_another_text_it_says_which_steps_are_no_longer_possible(client):
    page = play(client, ORDER, given(*RUN))
    assert "state Paid" in headline(page)
    kept = form_with(page, "restart") | {"do": ""}
    states = ORDER["states"] | {"Failed": {"type": "final"}}
    page = play(client, ORDER | {"states": states}, kept)
    told = page.one("div", role="status").text
    assert "Step 5, fire retry, is refused now" in told
    assert "Step 6, job charge ends: 7, is not possible: the instance waits for no job of" in told
    assert [row.text for row in page.one("ol", class_="tried").all("li")][-1].endswith("not played")
    assert not play(client, ORDER, form_with(page, "restart") | {"do": ""}).all("div", role="status"), "it fits again"


def test_a_message_goes_out_and_comes_in_by_hand(client):
    page = play(client, CHAT, given("ask"))
    assert "hello to desk front" in page.one("section", aria_labelledby="sent-title").text
    reply = form_with(page, "message") | {"sender": "instance desk/front", "name": "answer", "value": '{"ok": true}'}
    page = play(client, CHAT, reply)
    assert "state Done" in headline(page)
    assert "is a message of another instance" in page.text, "no scenario has such a step"


def test_a_step_that_is_refused_keeps_the_run(client):
    page = play(client, ORDER, given(*RUN[:3]))
    page = play(client, ORDER, form_with(page, "job-done") | {"value": "{nonsense"})
    assert "Invalid JSON" in page.one("div", role="alert").text
    assert "Step 3 of 3" in headline(page)
    page = play(client, ORDER, form_with(page, "job-done") | {"name": "nobody"})
    assert "waits for no job" in page.one("div", role="alert").text
    assert "Step 3 of 3" in headline(page)
    long = json.dumps({"text": secrets.token_hex(8000)})
    page = play(client, ORDER, form_with(page, "other") | {"name": "pay", "value": long})
    assert "SB682" in page.one("div", role="alert").text
    assert "Step 3 of 3" in headline(page)


@pytest.mark.parametrize("run", ["<script>", "A" * 7000, runs.encode(runs.make([], {"nothing": 1}))])
def test_a_hostile_run_is_an_error_in_the_tab(client, run):
    assert "SB" in play(client, ORDER, {"run": run, "at": "x"}).one("div", role="alert").text


def test_what_cannot_be_played_says_why(client, as_):
    def ask(text: str) -> object:
        return client.post(PLAY, {"text": text}).json()

    assert "Correct the errors" in ask('{"states": ')["unread"]
    assert "bytes is played here" in ask(json.dumps(ORDER | {"description": "x" * 140_000}))["unread"]
    assert client.post(PLAY, {"text": "x" * 300_000}).status_code == 413
    person = int(client.session["_auth_user_id"])
    with offload.pool.turn(f"{person}:try"):
        assert client.post(PLAY, {"text": json.dumps(ORDER)}).status_code == 429
    assert "Created" in headline(play(client, ORDER, address="/machines/new/play/"))
    viewer = as_("viewer")
    assert "Created" in headline(play(viewer, ORDER))
    assert viewer.post("/machines/new/play/", {"text": json.dumps(ORDER)}).status_code == 403


def test_a_run_that_takes_long_ends(client, engine):
    restless = {"id": "ticks", "initial": "A", "states": {"A": {"after": {"1": {"target": "A", "reenter": True}}}}}
    with pytest.raises(BadInput, match="takes more than 0 s") as found:
        engine.simulate(restless, [{"advance": 5000}], seconds=0)
    assert found.value.code == "SB638"
