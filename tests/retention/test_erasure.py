"""Erasing one person's data: nothing of it is left in a dump of Redis and of the database, and the audit goes on."""

from __future__ import annotations

import io

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from machines.audit.entries import record
from machines.engine import UnknownInstance
from machines.instances.archive.store import get_archive
from machines.models import AuditEntry, Delivery, Webhook
from machines.retention import search

from .conftest import run

EVE, ADA = "eve.öç@example.org", "ada@example.org"


def dump(engine) -> bytes:
    """All that Redis holds, the key names, and every cell of the database, the archive unpacked."""
    found = [b""]
    for place, entries in search.walk(engine):
        found += [place.key, *(part for entry in entries for part in entry)]
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            cursor.execute(f'SELECT * FROM "{model._meta.db_table}"')
            found += [
                cell if isinstance(cell, bytes) else str(cell).encode() for row in cursor.fetchall() for cell in row
            ]
    for kept in get_archive().walk("parcel"):
        held = kept.restore()
        found += [text.encode() for text in (*held.raw.values(), *held.steps)]
    return b"\0".join(found)


def holds(engine, text: str) -> bool:
    escaped = text.encode("unicode_escape").replace(rb"\x", rb"\u00")
    return text.encode() in (found := dump(engine)) or escaped in found


def erase(*words: str) -> str:
    output = io.StringIO()
    call_command("machine", "erase", *words, "--reason", "a request of 3 March", stdout=output)
    return output.getvalue()


@pytest.fixture
def spread(engine, duty, ship, admin_client):
    """Data of two people, in every store there is."""
    busy = {"invoke": {"src": "mail", "queue": "mail", "input": {"to": "email"}}, "on": {"done": "Shipped"}}
    more = {
        "New": {"on": {
            "pay": {"target": "Paid", "actions": {"set": {"note": "event.note"}}}, "drop": "Dropped",
            "mail": {"target": "Mailing", "actions": [{"emit": {"type": "mailed", "data": {"to": "email"}}}]}}},
        "Mailing": busy, "Paid": {"on": {"ship": "Shipped"}},
        "Shipped": {"type": "final"}, "Dropped": {"type": "final"},
    }  # fmt: skip
    ship("old-eve", email=EVE, note=f"for {EVE}", retain="1d", states=more)
    ship("old-ada", email=ADA, retain="1d", states=more)
    run(duty)
    hook = Webhook.objects.create(name="hook", url="https://example.org/", secret="s", maker="ann")
    for name, email in (("eve", EVE), ("ada", ADA)):
        engine.create("parcel", name, {"email": email}, key=f"make-{name}")
        engine.fire("parcel", name, "mail", key="once", reason=f"asked by {email}")
        engine.enqueue("parcel", "tell", {"to": email}, queue="tell", unique=f"tell {email}")
        record("ann", "fire", machine="parcel", instance=name, target="mail", reason=f"asked by {email}",
               outcome="done", detail={"payload": {"to": email}})  # fmt: skip
        Delivery.objects.create(
            webhook=hook, message=name, key=f"msg-{name}", type="mailed", body=f'{{"to":"{email}"}}'
        )
        engine.client.rpush(engine.keys.prefix + "notes", f"note of {email}")
        engine.client.hset(engine.keys.partition("bulk").bulk_items("b1"), f"1:{name}", f'["{email}"]')
    return engine


def test_nothing_of_a_value_is_left_anywhere(spread):
    assert holds(spread, EVE)
    said = erase("parcel", "--where", f"email={EVE}")
    assert not holds(spread, EVE)
    assert "instances: 2" in said
    assert "archived instances: 1" in said
    assert "a second search of Redis, the database and the archive found nothing" in said
    for id in ("eve", "old-eve"):
        with pytest.raises(UnknownInstance):
            spread.get("parcel", id)


def test_others_keep_theirs(spread):
    before = dump(spread).count(ADA.encode())
    erase("parcel", "--where", f"email={EVE}")
    assert dump(spread).count(ADA.encode()) == before
    assert spread.get("parcel", "ada").data["email"] == ADA
    assert get_archive().find("parcel", "old-ada") is not None
    assert len(spread.jobs("parcel", "tell")) == 1


def test_the_audit_says_who_did_what_without_the_value(spread):
    erase("parcel", "--where", f"email={EVE}")
    entry = AuditEntry.objects.get(instance="eve", action="fire")
    assert (entry.actor, entry.target, entry.outcome) == ("ann", "mail", "done")
    assert (entry.reason, entry.detail) == ("asked by •••", {"payload": {"to": "•••"}})
    erasure = AuditEntry.objects.get(action="machine.erase")
    assert (erasure.machine, erasure.target, erasure.reason) == ("parcel", "email", "a request of 3 March")
    assert erasure.detail["instances"] == 2
    assert erasure.detail["left"] == 0


def test_one_instance_goes_with_what_is_sensitive_in_it_wherever_that_stands(spread):
    record("ann", "fire", machine="parcel", instance="p", outcome="done", reason="asked by solo@example.org")
    spread.create("parcel", "solo", {"email": "solo@example.org"}, key="make")
    spread.fire("parcel", "solo", "pay", {"note": "solo@example.org"}, key="once")
    said = erase("parcel/solo")
    assert "instances: 1" in said
    assert "outcomes of idempotency keys: 2" in said
    assert "texts masked in machines_auditentry: 1" in said
    assert not holds(spread, "solo@example.org")


def test_an_archived_copy_of_another_instance_is_left_and_told(spread):
    with pytest.raises(CommandError, match="1 places still hold a value"):
        erase("parcel/eve")
    erase("parcel/old-eve")
    assert not holds(spread, EVE)


def test_what_another_instance_holds_is_left_and_told(spread):
    spread.create("parcel", "friend", {"note": f"a friend of {EVE}"})
    with pytest.raises(CommandError, match="still hold a value"):
        erase("parcel", "--where", f"email={EVE}")
    assert spread.get("parcel", "friend").data["note"].endswith(EVE)
    erase("parcel/friend")
    erase("parcel", "--where", f"email={EVE}") if holds(spread, EVE) else None
    assert not holds(spread, EVE)


def test_a_cached_answer_of_the_api_goes_too(spread, admin_user):
    client = Client()
    client.force_login(admin_user)
    made = client.post(
        "/api/v1/machines/parcel/instances", {"id": "web", "data": {"email": EVE}}, content_type="application/json",
        headers={"Idempotency-Key": "k1"},
    )  # fmt: skip
    assert made.status_code in (201, 403)
    erase("parcel", "--where", f"email={EVE}")
    assert not holds(spread, EVE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["parcel"], "name an instance"),
        (["parcel/x", "--where", "email=a@b.c"], "name an instance"),
        (["parcel", "--where", "email"], "--where takes"),
        (["parcel", "--where", "email=abc"], "too short"),
        (["parcel/nobody"], "nobody"),
        (["nothing/x"], "nothing"),
    ],
)
def test_bad_words_are_named(spread, words, said):
    with pytest.raises(CommandError, match=said):
        erase(*words)


def test_a_value_that_nobody_has_is_nothing_to_do(spread):
    assert "instances: 0" in erase("parcel", "--where", "email=nobody@example.org")
