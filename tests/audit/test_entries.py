"""The audit: each entry says who did what and what came of it, stays as it is, and never hides what was done."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection, transaction
from django.test import RequestFactory
from django.urls import resolve

from machines.audit.entries import ACTIONS, AuditRecord, record, record_action, source_of
from machines.engine import Conflict, EngineUnavailable
from machines.models import AuditEntry, AuditIsAppendOnly

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return get_user_model().objects.create_user("alice")


@pytest.fixture
def request_of_alice(alice):
    request = RequestFactory().post("/machines/", REMOTE_ADDR="10.0.0.7")
    request.user, request.resolver_match = alice, None
    return request


@pytest.fixture
def entry(alice) -> AuditEntry:
    record(alice, "fire", machine="m", instance="i", target="go", reason="because", detail={"revision": 3})
    return AuditEntry.objects.get()


def test_an_entry_holds_all_it_was_given(alice):
    assert record(
        alice, "queue.purge", machine="m", instance="i", queue="q", target="t", reason="r", outcome="refused",
        detail={"count": 3}, source="page 10.0.0.7",
    )  # fmt: skip
    entry = AuditEntry.objects.values().get()
    assert (entry.pop("id"), entry.pop("at")) != (None, None)
    assert (entry.pop("number"), entry.pop("digest")) == (None, ""), "it is chained when the transaction commits"
    assert entry == {
        "actor": "alice", "actor_id": str(alice.pk), "action": "queue.purge", "machine": "m", "instance": "i",
        "queue": "q", "target": "t", "reason": "r", "outcome": "refused", "detail": {"count": 3},
        "source": "page 10.0.0.7", "request": "",
    }  # fmt: skip


def test_an_entry_outlives_the_account(entry, alice):
    pk = str(alice.pk)
    alice.delete()
    kept = AuditEntry.objects.get()
    assert (kept.actor, kept.actor_id) == ("alice", pk)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda entry: entry.save(),
        lambda entry: entry.delete(),
        lambda entry: AuditEntry.objects.update(actor="bob"),
        lambda entry: AuditEntry.objects.all().delete(),
        lambda entry: AuditEntry._base_manager.filter(pk=entry.pk).delete(),
        lambda entry: AuditEntry.objects.bulk_update([entry], ["actor"]),
        lambda entry: AuditEntry.objects.update_or_create({"actor": "bob"}, pk=entry.pk),
        lambda entry: AuditEntry.objects.bulk_create(
            [AuditEntry(pk=entry.pk, actor="bob")], update_conflicts=True, unique_fields=["id"], update_fields=["actor"]
        ),
    ],
    ids=["save", "delete", "update", "delete all", "base manager", "bulk update", "update or create", "upsert"],
)
def test_an_entry_is_neither_changed_nor_deleted(entry, attempt):
    with pytest.raises(AuditIsAppendOnly):
        attempt(entry)
    assert AuditEntry.objects.get().actor == "alice"


def test_an_entry_with_the_number_of_another_one_does_not_take_its_place(entry):
    with pytest.raises(IntegrityError), transaction.atomic():
        AuditEntry(pk=entry.pk, actor="bob", action="fire", outcome="done").save()
    assert AuditEntry.objects.get().actor == "alice"


def test_what_no_column_takes_is_kept_as_far_as_it_goes(alice):
    assert record(alice, "fire", machine="m" * 99, instance="a\0b\ud800" + "é" * 300, detail={"said": "\0\ud800"})
    entry = AuditEntry.objects.get()
    assert entry.machine == "m" * 64
    assert entry.instance.startswith("a\\0b\\ud800éé")
    assert len(entry.instance) == 200
    assert entry.detail == {"said": "\0\\ud800"}


@pytest.mark.parametrize("given", [{"action": "fly"}, {"outcome": "perhaps"}])
def test_an_action_or_outcome_nobody_knows_is_a_mistake_in_the_code(given):
    with pytest.raises(ValueError, match=r"fly|perhaps"):
        record("alice", **({"action": "fire"} | given))
    with pytest.raises(ValueError, match="worker.stop"):
        AuditRecord("alice", "fly")


@pytest.mark.parametrize(
    ("error", "outcome", "code"),
    [
        (Conflict("m", "i", expected=2, actual=3), "refused", "SB440"),
        (EngineUnavailable("Redis does not answer"), "failed", "SB500"),
        (KeyError("x"), "failed", "KeyError"),
        (LookupError("no way"), "refused", "LookupError"),
    ],
)
def test_what_an_action_raises_is_its_outcome_and_goes_on(request_of_alice, error, outcome, code):
    refusals = (LookupError,) if type(error) is LookupError else ()

    def act() -> None:
        with record_action("alice", "force", machine="m", instance="i", reason="why", refusals=refusals) as entry:
            entry.note(data={"a": 1})
            raise error

    with pytest.raises(type(error)):
        act()
    entry = AuditEntry.objects.get()
    assert (entry.outcome, entry.detail["code"], entry.detail["error"]) == (outcome, code, str(error))
    assert (entry.actor, entry.reason, entry.detail["data"]) == ("alice", "why", {"a": 1})


@pytest.mark.parametrize(
    ("path", "source"), [("/queues/", "page 10.0.0.7"), ("/api/v1/machines", "api 10.0.0.7")]
)  # the admin's own is shown where the admin is tested
def test_an_entry_says_by_which_door_and_from_where(request_of_alice, path, source):
    request_of_alice.resolver_match = resolve(path)
    with record_action("alice", "fire", source=source_of(request_of_alice)):
        pass
    assert AuditEntry.objects.get().source == source


def test_an_entry_that_cannot_be_written_stands_in_the_log_in_full_and_hides_nothing(request_of_alice, caplog):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE machines_auditentry RENAME TO elsewhere")
    with record_action("alice", "suspend", machine="m", instance="i", reason="to look at it") as entry:
        entry.note(after="Waiting")
    (logged,) = [
        record for record in caplog.records if record.name == "machines.audit.entries" and record.levelname == "ERROR"
    ]
    facts = json.loads(logged.getMessage().partition("): ")[2])
    assert (facts["actor"], facts["action"], facts["reason"]) == ("alice", "suspend", "to look at it")
    assert facts["detail"] == {"after": "Waiting"}


def test_every_action_fits_its_column():
    assert max(map(len, ACTIONS)) <= AuditEntry._meta.get_field("action").max_length
