"""Forcing and deleting: with a reason, on the version that was seen, by those who may."""

from __future__ import annotations

import pytest

from machines.engine import UnknownInstance
from machines.models import AuditEntry
from tests.pages.reading import fields, read

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
    assert "Forced: Waiting → Active, revision 3" in read(client.get(INSTANCE)).text


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"reason": ""}, "Enter a reason"),
        ({"reason": "   "}, "Enter a reason"),
        ({"state": ""}, "Choose a state"),
        ({"state": "Actve"}, "Actve is not one of the available choices"),
        ({"data": "[1]"}, "Enter a JSON object"),
        ({"data": "{1"}, "Invalid JSON"),
        ({"data": '{"unknown": 1}'}, "unknown"),
        ({"data": '{"failed": "x"}'}, "failed"),
        ({"expect": "x"}, "Not sent: force"),
    ],
)
def test_a_repair_that_makes_no_sense_is_a_400_in_its_form_and_changes_nothing(as_, engine, waiting, changes, word):
    answer = as_("supervisor").post(FORCE, FORCED | changes)
    assert answer.status_code == 400
    assert word in read(answer).text
    assert engine.get("activation", waiting.id).revision == 2


def test_a_form_with_a_mistake_stays_filled(as_, waiting):
    page = read(as_("supervisor").post(FORCE, FORCED | {"data": "{1"}))
    kept = fields(page.one("section", class_="repair-panel").one("form", action=FORCE))
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
    assert "ATV-123:NBCSports deleted; last state: Waiting" in read(client.get(answer.url)).text
    with pytest.raises(UnknownInstance):
        engine.get("activation", waiting.id)


@pytest.mark.parametrize(
    ("form", "word"),
    [
        ({"sure": "on", "expect": "2"}, "Enter a reason"),
        ({"reason": "r", "expect": "2"}, "Tick the box to confirm the deletion"),
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
    page = read(as_("supervisor").get("/machines/new_device/instances/one/delete/"))
    shown = page.one("section", class_="preview-panel").text
    assert "job withdrawn" in shown
    assert "deleted, with its history" in shown


# Choosing, looking, doing


def links(page) -> list[str]:
    return [a.text for a in page.one("details", class_="repairs-panel").all("a")]


def shown(answer) -> str:
    return read(answer).one("section", class_="preview-panel").text


def test_the_panel_offers_what_makes_sense_now(as_, engine, waiting, devices):
    client = as_("supervisor")
    assert links(read(client.get(INSTANCE))) == [
        "Edit data", "Force state", "Reset instance", "Suspend instance", "Delete instance",
    ]  # fmt: skip
    engine.suspend("activation", waiting.id, actor="sue", reason="a test")
    assert "Resume instance" in links(read(client.get(INSTANCE)))
    engine.create(devices, "one")
    assert links(read(client.get("/machines/new_device/instances/one/")))[:2] == ["Skip job", "Cancel job"]


def test_a_preview_shows_before_and_after_and_changes_nothing(as_, engine, waiting):
    client = as_("supervisor")
    before = engine.get("activation", waiting.id)
    told = shown(client.post(FORCE, FORCED | {"preview": "1", "reason": ""}))
    assert "Waiting → Active" in told
    assert "failed 0 → 2" in told
    assert 'token "MTOB1J" → not set' in told
    assert engine.get("activation", waiting.id) == before
    assert not AuditEntry.objects.exists()


def test_what_was_looked_at_is_what_is_done(as_, engine, waiting):
    client = as_("supervisor")
    form = read(client.post(FORCE, FORCED | {"preview": "1"})).one("form", action=FORCE)
    sent = fields(form) | {"reason": "looked at"}
    other = client.post(FORCE, sent | {"state": "Suspended"})
    assert other.status_code == 400
    assert "Waiting → Suspended" in shown(other)
    assert engine.get("activation", waiting.id).revision == 2
    assert client.post(FORCE, sent).url == INSTANCE
    assert engine.get("activation", waiting.id).state == "Active"


def test_data_is_edited_field_by_field(as_, engine, waiting):
    client, edit = as_("supervisor", "sue"), f"{INSTANCE}edit/"
    form = read(client.get(edit)).one("form", action=edit)
    sent = fields(form) | {"data-failed": "2", "unset": "token"}
    told = shown(client.post(edit, sent | {"preview": "1"}))
    assert "→ 2" in told
    assert client.post(edit, sent | {"reason": "typed wrong"}).url == INSTANCE
    now = engine.get("activation", waiting.id)
    assert (now.state, now.data) == ("Waiting", {"failed": 2})
    step = engine.history("activation", waiting.id)[0]
    assert (step.event, step.actor, step.reason) == ("(edit)", "sue", "typed wrong")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.outcome, entry.detail["changes"]) == ("edit", "done", {"failed": 2, "token": None})


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"data-failed": "two"}, "Enter a whole number"),
        ({}, "Change at least one field"),
        ({"data-token": "x", "unset": "token"}, "token has both"),
        ({"unset": "nothing"}, "nothing is not one of the available choices"),
    ],
)
def test_an_edit_that_makes_no_sense_is_a_400_in_its_form(as_, engine, waiting, changes, word):
    answer = as_("supervisor").post(f"{INSTANCE}edit/", {"reason": "r", "expect": "2"} | changes)
    assert answer.status_code == 400
    assert word in read(answer).text
    assert engine.get("activation", waiting.id).revision == 2


def test_a_reset_leads_back_to_the_beginning(as_, engine, waiting):
    client, reset = as_("supervisor"), f"{INSTANCE}reset/"
    page = read(client.get(reset))
    assert "Waiting → New" in page.one("section", class_="preview-panel").text
    sent = fields(page.one("form", action=reset)) | {"reason": "start over"}
    assert client.post(reset, sent).url == INSTANCE
    assert engine.get("activation", waiting.id).state == "New"


@pytest.fixture
def device(engine, devices):
    """A device whose job fails until it is dead, or waits for its next attempt; the address of its page."""
    engine.create(devices, "one")
    return "/machines/new_device/instances/one/"


def test_a_job_is_skipped_with_a_result(as_, engine, device):
    client, before = as_("supervisor", "sue"), engine.get("new_device", "one")
    (wait,) = engine.waits("new_device", "one")
    skip = f"{device}skip/"
    page = read(client.get(f"{skip}?invoke={wait.invoke}"))
    assert "job withdrawn" in page.one("section", class_="preview-panel").text
    sent = fields(page.one("form", action=skip)) | {"reason": "done by hand"}
    assert client.post(skip, sent).url == device
    now = engine.get("new_device", "one")
    assert now.configuration != before.configuration
    assert not set(now.jobs) & set(before.jobs)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.outcome, entry.target, entry.actor) == ("skip", "done", wait.invoke, "sue")


def test_a_job_that_waits_is_tried_now(as_, engine, device):
    (job,) = [job for queue in engine.queues("new_device") for job in engine.take("new_device", queue, "w")]
    engine.fail(job, "later", delay=3_600_000)
    client, retry = as_("supervisor"), f"{device}retry/"
    page = read(client.get(retry))
    assert job.id in page.one("section", class_="preview-panel").text
    assert client.post(retry, fields(page.one("form", action=retry)) | {"reason": "now"}).url == device
    assert engine.job("new_device", job.id).place == "ready"


def test_a_cancel_of_what_went_meanwhile_is_not_done(as_, engine, device):
    (wait,) = engine.waits("new_device", "one")
    sent = {"invoke": wait.invoke, "reason": "r", "expect": "1"}
    engine.force("new_device", "one", engine.get("new_device", "one").configuration, actor="bob", reason="first")
    client = as_("supervisor")
    assert client.post(f"{device}cancel/", sent).status_code == 409
    assert engine.get("new_device", "one").revision == 2


def test_the_same_form_sent_twice_counts_once(as_, engine, waiting):
    client, edit = as_("supervisor"), f"{INSTANCE}edit/"
    sent = fields(read(client.get(edit)).one("form", action=edit)) | {"data-failed": "1", "reason": "r"}
    assert [client.post(edit, sent).status_code for _ in range(2)] == [302, 302]
    assert engine.get("activation", waiting.id).revision == 3
