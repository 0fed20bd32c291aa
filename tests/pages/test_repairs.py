"""Forcing and deleting: with a reason, on the version that was seen, by those who may."""

from __future__ import annotations

import pytest

from machines.engine import UnknownInstance

from .reading import fields, read

INSTANCE = "/machines/activation/instances/ATV-123:NBCSports/"
FORCE, DELETE = f"{INSTANCE}force/", f"{INSTANCE}delete/"
FORCED = {"state": "Active", "data": '{"failed": 2, "token": null}', "reason": "the provider called", "expect": "2"}


def test_forcing_moves_the_instance_and_stands_in_its_history(as_, engine, waiting):
    client = as_("supervisor", "sue")
    answer = client.post(FORCE, FORCED)
    assert answer.url == INSTANCE
    now = engine.get("activation", waiting.id)
    assert (now.state, now.data) == ("Active", {"failed": 2})
    step = engine.history("activation", waiting.id)[0]
    assert (step.actor, step.reason) == ("sue", "the provider called")
    assert "Forced: Waiting → Active, version 3" in read(client.get(INSTANCE)).text


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"reason": ""}, "Say why"),
        ({"reason": "   "}, "Say why"),
        ({"state": ""}, "Choose the state"),
        ({"state": "Actve"}, "Actve is not one of the available choices"),
        ({"data": "[1]"}, "Data to change is a JSON object"),
        ({"data": "{1"}, "This is not JSON"),
        ({"data": '{"unknown": 1}'}, "unknown"),
        ({"data": '{"failed": "x"}'}, "failed"),
        ({"expect": "x"}, "Not sent: force"),
    ],
)
def test_a_repair_that_makes_no_sense_is_a_400_in_its_form_and_changes_nothing(as_, engine, waiting, changes, word):
    answer = as_("supervisor").post(FORCE, FORCED | changes)
    assert answer.status_code == 400
    assert word in read(answer).text
    assert engine.get("activation", waiting.id).version == 2


def test_a_form_with_a_mistake_stays_open_and_filled(as_, waiting):
    page = read(as_("supervisor").post(FORCE, FORCED | {"data": "{1"}))
    repairs = page.one("details", class_="repairs-panel")
    assert "open" in repairs.attributes
    kept = fields(repairs.one("form", action=FORCE))
    assert (kept["state"], kept["data"], kept["reason"]) == ("Active", "{1", "the provider called")


@pytest.mark.parametrize(("address", "form"), [(FORCE, FORCED), (DELETE, {"reason": "r", "sure": "on", "expect": "2"})])
def test_a_repair_of_what_moved_meanwhile_is_a_conflict_that_can_be_sent_again(as_, engine, waiting, address, form):
    engine.fire("activation", waiting.id, "entitle", {"token": "no"}, actor="bob")
    client = as_("supervisor")
    answer = client.post(address, form)
    notice = read(answer).one(id="conflict")
    assert answer.status_code == 409
    assert "bob" in notice.text
    again = fields(notice.one("form")) | ({"sure": "on"} if "sure" in form else {})
    assert notice.one("form")["action"] == address
    assert client.post(address, again).status_code == 302


def test_deleting_takes_the_instance_and_leads_to_its_machine(as_, engine, waiting):
    client = as_("supervisor")
    answer = client.post(DELETE, {"reason": "a test", "sure": "on", "expect": "2"})
    assert answer.url == "/machines/activation/"
    assert "ATV-123:NBCSports deleted; it was in Waiting" in read(client.get(answer.url)).text
    with pytest.raises(UnknownInstance):
        engine.get("activation", waiting.id)


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ({"sure": "on", "expect": "2"}, "Say why"),
        ({"reason": "r", "expect": "2"}, "Tick this to delete"),
        ({"reason": "r", "sure": "on"}, "Not sent: delete"),
    ],
)
def test_deleting_asks_for_a_reason_and_a_tick(as_, engine, waiting, form, word):
    answer = as_("supervisor").post(DELETE, form)
    assert answer.status_code == 400
    assert word in read(answer).text
    assert engine.get("activation", waiting.id)


def test_deleting_states_the_jobs_that_go_with_it(as_, engine, devices):
    engine.create(devices, "one")
    text = (
        read(as_("supervisor").get("/machines/new_device/instances/one/")).one("details", class_="repairs-panel").text
    )
    assert "with its history and 1 open job" in text
