"""Firing: what is fired is fired once, on the version that was seen, and what is not is explained."""

from __future__ import annotations

import pytest
from django.urls import reverse

from machines.conf import conf
from tests.configuration import configure
from tests.pages.reading import fields, read

ID = "ATV-123:NBCSports"
INSTANCE = "/machines/activation/instances/ATV-123:NBCSports/"
FIRE = f"{INSTANCE}fire/"


def action(page, event: str):
    """The form of an event on an instance's page."""
    return next(form for form in page.all("form", action=FIRE) if fields(form).get("event") == event)


def sent(client, event: str, **changes: str) -> dict[str, str]:
    """The event's form as it stands on the page, with some of it filled in."""
    return fields(action(read(client.get(INSTANCE)), event)) | changes


def test_an_event_fired_by_its_form_moves_the_instance_and_comes_back_with_a_word(as_, engine, waiting):
    client = as_("operator", "alice")
    form = sent(client, "entitle", **{"payload-token": "MTOB1J", "reason": "she called"})
    answer = client.post(FIRE, form)
    assert (answer.status_code, answer.url) == (302, INSTANCE)
    assert engine.get("activation", ID).state == "Active"
    assert "entitle: Waiting → Active, revision 3" in read(client.get(INSTANCE)).text


def test_the_history_says_who_and_why(as_, engine, waiting):
    client = as_("operator", "alice")
    client.post(FIRE, sent(client, "entitle", **{"payload-token": "MTOB1J", "reason": "she called"}))
    step = engine.history("activation", ID)[0]
    assert (step.actor, step.reason) == ("alice", "she called")


def test_an_empty_text_is_fired_when_the_box_beside_it_is_ticked(as_, engine, waiting):
    client = as_("operator")
    client.post(FIRE, sent(client, "entitle", **{"payload-token_~empty": "on"}))
    assert engine.history("activation", ID)[0].payload == {"token": ""}


def test_a_form_sent_twice_counts_once(as_, engine, waiting):
    client = as_("operator")
    form = sent(client, "entitle", **{"payload-token": "wrong"})
    client.post(FIRE, form)
    client.post(FIRE, form)
    assert engine.get("activation", ID).data["failed"] == 1
    assert "entitle was already applied" in read(client.get(INSTANCE)).text


def test_an_old_form_with_something_else_in_it_is_a_conflict_and_not_a_second_copy_of_the_first(as_, engine, waiting):
    client = as_("operator")
    form = sent(client, "entitle", **{"payload-token": "wrong"})
    client.post(FIRE, form)
    answer = client.post(FIRE, form | {"payload-token": "MTOB1J"})
    assert answer.status_code == 409
    assert engine.get("activation", ID).state == "Waiting"


def test_the_second_of_two_operators_is_told_and_nothing_is_overwritten(as_, engine, waiting):
    alice, bob = as_("operator", "alice"), as_("operator", "bob")
    form = sent(alice, "entitle", **{"payload-token": "late"})
    bob.post(FIRE, sent(bob, "entitle", **{"payload-token": "MTOB1J", "reason": "bob was first"}))
    answer = alice.post(FIRE, form)
    page = read(answer)
    notice = page.one(id="conflict")
    assert answer.status_code == 409
    assert "Conflict: fire entitle was not done" in notice.text
    assert "you acted on revision 2, it is now at revision 3 in Active" in notice.text
    assert "bob" in notice.text
    assert "bob was first" in notice.text
    assert "SB440" in notice.text
    assert engine.get("activation", ID).revision == 3


def test_who_saw_the_conflict_may_try_again_knowingly(as_, engine, waiting):
    alice = as_("operator", "alice")
    form = sent(alice, "entitle", **{"payload-token": "late"})
    engine.fire("activation", ID, "entitle", {"token": "wrong"}, actor="bob")
    page = read(alice.post(FIRE, form))
    assert fields(action(page, "entitle"))["payload-token"] == "late"
    again = fields(page.one(id="conflict").one("form"))
    assert again["expect"] == "3"
    assert alice.post(FIRE, again).status_code == 302
    step = engine.history("activation", ID)[0]
    assert (step.revision, step.payload) == (4, {"token": "late"})


def test_a_refused_event_is_explained_and_its_form_stays_filled(as_, engine, waiting):
    client = as_("operator")
    answer = client.post(FIRE, sent(client, "activate", **{"payload-token": "again", "reason": "a try"}))
    page = read(answer)
    assert answer.status_code == 422
    assert "Refused: fire activate. No change was made" in page.one(id="refused").text
    assert "The event activate is not accepted in state Waiting." in page.one(id="refused").text
    kept = fields(action(page, "activate"))
    assert (kept["payload-token"], kept["reason"]) == ("again", "a try")
    assert engine.get("activation", ID).revision == 2


@pytest.fixture
def door(engine, db) -> str:
    """An event whose guards can all fail; its instance has been tried three times."""
    engine.publish(
        {
            "id": "door",
            "initial": "Shut",
            "context": {"failed": 0, "code": "1234"},
            "events": {"open": {"payload": {"code": {"type": "string"}}}, "nudge": {"payload": {}}},
            "states": {
                "Shut": {
                    "on": {
                        "open": [{"target": "Open", "guard": "failed < 3 and event.code == code"}],
                        "nudge": [{"target": "Open", "guard": "failed < 3"}],
                    }
                },
                "Open": {"type": "final"},
            },
        }
    )
    engine.create("door", "front", {"failed": 3})
    return "/machines/door/instances/front/"


def test_a_guard_that_fails_is_explained_with_the_values_it_saw(as_, door):
    client = as_("operator")
    page = read(client.post(f"{door}fire/", {"event": "nudge", "expect": "1", "key": "k"}))
    assert "failed < 3 is false: failed = 3" in page.one(id="refused").text


def test_what_would_be_refused_is_shown_before_anyone_fires(as_, door):
    text = read(as_("operator").get(door)).one("section", class_="actions-panel").text
    assert "nudge blocked" in text
    assert "failed < 3 is false: failed = 3" in text


def test_what_would_happen_is_answered_without_doing_it(as_, engine, waiting):
    client = as_("operator")
    answer = client.post(FIRE, sent(client, "entitle", **{"payload-token": "MTOB1J", "check": "1"}))
    page = read(answer)
    assert answer.status_code == 200
    assert "Preview: Waiting → Active" in page.one(id="preview").text
    assert "expires = " in page.one(id="preview").text
    assert fields(action(page, "entitle"))["payload-token"] == "MTOB1J"
    assert engine.get("activation", ID).revision == 2


def test_what_would_be_refused_is_answered_too(as_, door):
    page = read(as_("operator").post(f"{door}fire/", {"event": "nudge", "expect": "1", "check": "1"}))
    assert "Preview: would be refused" in page.one(id="preview").text


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ({"event": "entitle", "expect": "many"}, "Not sent: fire entitle"),
        ({"event": "entitle", "expect": "many"}, "SB701"),
        ({"event": "entitle", "expect": "2", "payload-token": "a\0b"}, "SB701"),
        ({"event": "entitle"}, "Not sent: fire entitle"),
        ({"event": "entitle", "expect": "-1"}, "Not sent"),
        ({"event": "entitle", "expect": "2", "reason": "x" * 1001}, "Not sent"),
        ({"event": "entitle", "expect": "2", "payload-token": "x" * 70_000}, "SB701"),
        ({"event": "entitle", "expect": "2", "payload-token": "x" * 65_535}, "SB411"),
        ({"event": "entitle", "expect": "9" * 30}, "SB402"),
        ({"event": "done.invoke.x", "expect": "2"}, "SB401"),
        ({"event": "", "expect": "2"}, "SB401"),
        ({"event": "two words", "expect": "2"}, "SB401"),
        ({"event": "a\0b", "expect": "2"}, "SB401"),
        ({"event": "x" * 101, "expect": "2"}, "SB401"),
    ],
)
def test_a_form_that_makes_no_sense_is_a_400_on_the_page_and_changes_nothing(as_, engine, waiting, form, word):
    answer = as_("operator").post(FIRE, form)
    assert answer.status_code == 400
    assert word in read(answer).one(id="mistake").text
    assert engine.get("activation", ID).revision == 2


def test_an_event_nobody_knows_is_refused_with_its_own_code(as_, waiting):
    answer = as_("operator").post(FIRE, {"event": "explode", "expect": "2"})
    assert answer.status_code == 422
    assert "The machine has no event explode. SB431" in read(answer).one(id="refused").text


def test_fields_nobody_declared_are_refused_by_the_engine_and_said_beside_the_form(as_, engine, db):
    engine.publish(
        {
            "id": "open",
            "initial": "A",
            "context": {"n": 1},
            "states": {"A": {"on": {"go": {"guard": "event.n > 1", "actions": {"set": {"n": "event.n"}}}}}},
        }
    )
    engine.create("open", "one")
    client, address = as_("operator"), "/machines/open/instances/one/"
    names = fields(read(client.get(address)).all("form", action=f"{address}fire/")[0])
    assert {"payload-n", "payload-*"} <= names.keys()
    answer = client.post(f"{address}fire/", {"event": "go", "expect": "1", "payload-n": "1"})
    assert answer.status_code == 422
    answer = client.post(f"{address}fire/", {"event": "go", "expect": "1", "payload-n": "5"})
    assert answer.status_code == 302
    assert engine.get("open", "one").data == {"n": 5}


def test_a_reload_after_a_refusal_leads_back_to_the_instance(as_, waiting):
    answer = as_("operator").get(FIRE)
    assert (answer.status_code, answer.url) == (302, INSTANCE)


def test_an_instance_deleted_meanwhile_is_a_404_that_leads_back_to_its_machine(as_, engine, waiting):
    client = as_("operator")
    form = sent(client, "entitle", **{"payload-token": "MTOB1J"})
    engine.delete("activation", ID)
    answer = client.post(FIRE, form)
    assert answer.status_code == 404
    assert "SB421" in read(answer).text
    assert read(answer).one("a", href=reverse("signalbox:machine", args=["activation"]))


def test_when_redis_does_not_answer_the_same_form_can_be_sent_again(as_, engine, waiting, settings):
    """Sessions are on a server that does; only the engine is away."""
    client = as_("operator")
    form = sent(client, "entitle", **{"payload-token": "MTOB1J"})
    there = conf.REDIS_URL
    configure(settings, REDIS_URL="unix:///nonexistent/signalbox.sock")
    answer = client.post(FIRE, form)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    again = fields(next(form for form in read(answer).all("form") if form["action"] == FIRE))
    assert again == form
    configure(settings, REDIS_URL=there)
    assert client.post(FIRE, again).status_code == 302
    assert engine.get("activation", ID).state == "Active"


def test_two_forms_of_one_page_do_not_share_a_key(as_, waiting):
    page = read(as_("operator").get(INSTANCE))
    keys = [fields(form)["key"] for form in page.all("form", action=FIRE)]
    assert len(keys) == len(set(keys)) == 2
