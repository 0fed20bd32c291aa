"""Firing in the admin: through the engine, on the version that was seen, and always with a log entry."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group

from machines.catalog.admin import instance_url
from machines.catalog.publishing import publish
from machines.models import AuditEntry, Machine
from tests.configuration import configure

from .conftest import ID


@pytest.fixture
def operator(staff):
    return staff("view", "fire", name="olga")


def fire(client, machine: Machine, event: str, expect: object, **fields: object):
    return client.post(instance_url(machine, ID), {"event": event, "expect": expect, **fields}, follow=True)


def test_each_event_has_a_form_with_a_field_for_its_payload(operator, machine: Machine, instance: str) -> None:
    page = operator.get(instance_url(machine, ID)).content.decode()
    assert 'value="Fire entitle"' in page
    assert 'name="payload-token"' in page
    assert "the code that was entered" in page
    assert '<input type="hidden" name="expect" value="2">' in page
    assert "not accepted in Waiting" in page


def test_a_fired_event_moves_the_instance_and_is_logged(operator, machine: Machine, instance: str, engine) -> None:
    fields = {"payload-token": "T0KEN", "reason": "customer called"}
    page = fire(operator, machine, "entitle", 2, **fields).content.decode()
    assert "is in Active, revision 3." in page
    assert '<g id="state-3" class="node state current"' in page
    entry = LogEntry.objects.get()
    assert entry.user.username == "olga"
    assert entry.object_repr == f"activation / {ID}"
    assert entry.change_message == f"Fired entitle at {ID}: Waiting → Active, revision 3."
    step = engine.history("activation", ID)[0]
    assert (step.actor, step.reason, step.event) == ("olga", "customer called", "entitle")


def test_a_blank_field_is_not_sent(operator, machine: Machine, engine) -> None:
    engine.create("activation", ID)
    fire(operator, machine, "activate", 1, **{"payload-token": ""})
    assert len(engine.get("activation", ID).data["token"]) == 6


def test_an_empty_text_is_sent_when_the_box_beside_it_is_ticked(operator, machine: Machine, instance, engine) -> None:
    fire(operator, machine, "entitle", 2, **{"payload-token": "", "payload-token_~empty": "on"})
    assert engine.history("activation", ID)[0].payload == {"token": ""}


def test_a_refusal_is_explained_and_logged_and_changes_nothing(operator, machine, instance, engine) -> None:
    response = fire(operator, machine, "activate", 2, **{"payload-token": "X"})
    page = " ".join(response.content.decode().split())
    assert response.status_code == 409
    assert "Refused: the event was not fired." in page
    assert "no transition accepts it" in page
    assert "SB430" in page
    assert engine.get("activation", ID).revision == 2
    assert LogEntry.objects.get().change_message.startswith(f"Refused: activate at {ID}: event 'activate'")


def test_every_guard_that_did_not_hold_is_named(operator, engine, db) -> None:
    gate = {
        "id": "gate",
        "initial": "Shut",
        "context": {"tickets": 0, "open": False},
        "states": {
            "Shut": {"on": {"enter": [{"target": "In", "guard": "tickets > 0"}, {"target": "In", "guard": "open"}]}},
            "In": {"type": "final"},
        },
    }
    machine = publish(gate).machine
    engine.create("gate", ID)
    page = fire(operator, machine, "enter", 1).content.decode()
    assert "tickets &gt; 0 is false: tickets = 0" in page
    assert "open is false" in page


def test_the_second_of_two_operators_gets_a_conflict(operator, staff, machine, instance, engine) -> None:
    other = staff("view", "fire", name="otto")
    fire(operator, machine, "entitle", 2, **{"payload-token": "WRONG"})
    response = fire(other, machine, "entitle", 2, **{"payload-token": "T0KEN"})
    page = response.content.decode()
    assert response.status_code == 409
    assert "Conflict: the instance changed. The event was not fired." in page
    assert "is at revision 3, not 2" in page
    assert 'value="T0KEN"' in page
    assert '<input type="hidden" name="expect" value="3">' in page
    assert engine.get("activation", ID).state == "Waiting"
    entry = LogEntry.objects.get(user__username="otto")
    assert entry.change_message.startswith(f"Conflict: entitle at {ID}: ")
    assert "SB440" in entry.change_message


def test_firing_again_after_a_conflict_works(operator, machine, instance, engine) -> None:
    engine.fire("activation", ID, "entitle", {"token": "WRONG"})
    assert fire(operator, machine, "entitle", 2, **{"payload-token": "T0KEN"}).status_code == 409
    assert fire(operator, machine, "entitle", 3, **{"payload-token": "T0KEN"}).status_code == 200
    assert engine.get("activation", ID).state == "Active"


@pytest.mark.parametrize("expect", ["", "two", "-1", "2.5", "1e999"])
def test_a_version_that_is_no_number_fires_nothing(operator, machine, instance, engine, expect: str) -> None:
    assert fire(operator, machine, "entitle", expect).status_code == 400
    assert engine.get("activation", ID).revision == 2


def test_an_event_nobody_knows_is_refused_and_logged(operator, machine, instance, engine) -> None:
    page = fire(operator, machine, "explode<b>", 2)
    assert page.status_code == 409
    assert b"SB431" in page.content
    assert b"<b>" not in page.content.replace(b"<b>0</b>", b"")
    assert LogEntry.objects.get().change_message.startswith("Refused: explode<b> at ")


@pytest.mark.parametrize("event", ["", "done.invoke.x", "two words", "x" * 200, "nul\x00"])
def test_an_event_name_that_is_not_allowed_fires_nothing(operator, machine, instance, engine, event: str) -> None:
    assert fire(operator, machine, event, 2).status_code in (400, 409)
    assert engine.get("activation", ID).revision == 2


def test_firing_takes_a_csrf_token(operator, machine, instance, engine) -> None:
    operator.handler.enforce_csrf_checks = True
    assert fire(operator, machine, "entitle", 2, **{"payload-token": "T0KEN"}).status_code == 403
    assert engine.get("activation", ID).revision == 2


def test_looking_does_not_fire(operator, machine, instance, engine) -> None:
    operator.get(instance_url(machine, ID) + "&event=entitle&expect=2&payload-token=T0KEN")
    assert engine.get("activation", ID).revision == 2


def test_an_outage_is_said_and_not_hidden(operator, machine, instance, settings) -> None:
    caches = settings.CACHES
    configure(settings, REDIS_URL="unix:///nonexistent/admin.sock")
    response = operator.get(instance_url(machine, ID))
    assert (response.status_code, caches) == (503, settings.CACHES)
    assert b"SB500" in response.content


def test_an_event_for_a_certain_group_is_refused_to_others_and_that_is_recorded(operator, engine, db) -> None:
    open_door = {"open": {"target": "Open", "allow": ["porters"]}}
    door = {"id": "door", "initial": "Shut", "states": {"Shut": {"on": open_door}, "Open": {"type": "final"}}}
    machine = publish(door).machine
    engine.create("door", ID)
    response = fire(operator, machine, "open", 1)
    assert response.status_code == 403
    assert "only for members of porters" in response.content.decode()
    assert AuditEntry.objects.get().outcome == "refused"
    get_user_model().objects.get(username="olga").groups.add(Group.objects.create(name="porters"))
    assert "is in Open, revision 2." in fire(operator, machine, "open", 1).content.decode()
