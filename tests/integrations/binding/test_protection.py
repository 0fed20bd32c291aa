"""The two columns of a row follow the engine alone, also from asynchronous code and after a fault of the database."""

from __future__ import annotations

import asyncio
import copy
import pickle

import pytest
from asgiref.sync import sync_to_async
from django.core import serializers
from django.core.exceptions import SynchronousOnlyOperation
from django.db import models

from machines.fields import MirrorReadOnly
from machines.integrations.binding import state_columns

pytestmark = pytest.mark.django_db(transaction=True)


def order(**fields: object) -> models.Model:
    from .shop.models import Order

    return Order.objects.create(**fields)


def stored(row: models.Model) -> tuple[str, int]:
    found: tuple[str, int] = type(row).objects.values_list("status", "status_revision").get(pk=row.pk)
    return found


@pytest.mark.parametrize("name", ["fire", "explain", "available", "history", "refresh", "instance"])
def test_in_async_code_nothing_is_sent_and_the_error_names_the_thread(machines_there, name):
    row = order()

    async def call() -> None:
        found = getattr(row.status, name)
        found(*(["cancel"] if name in ("fire", "explain") else []))

    with pytest.raises(SynchronousOnlyOperation, match="sync_to_async"):
        asyncio.run(call())
    assert machines_there.get("order", str(row.pk)).revision == 1


def test_in_a_thread_of_async_code_an_event_is_fired(machines_there):
    row = order()

    async def call() -> None:
        await sync_to_async(row.status.fire)("cancel")

    asyncio.run(call())
    assert stored(row) == ("cancelled", 2)


def test_whatever_fails_after_the_step_the_caller_hears_of_the_step(machines_there, monkeypatch, caplog):
    def fail(*_: object) -> None:
        raise ZeroDivisionError("in a wrapper of the connection")

    row = order()
    with monkeypatch.context() as patch:
        patch.setattr(state_columns, "advance", fail)
        assert row.status.fire("cancel").state == "cancelled"
    assert "left for a worker: ZeroDivisionError" in caplog.text
    assert stored(row) == ("new", 1)


def test_a_user_and_a_program_do_not_fire_together(machines_there):
    row = order()
    with pytest.raises(TypeError, match="a user or an actor"):
        row.status.fire("cancel", user=object(), actor="shop")


@pytest.mark.parametrize("how", ["assign", "update", "bulk_update", "constructor", "upsert", "upsert of the revision"])
def test_nothing_but_the_engine_writes_the_revision(machines_there, how):
    row = order()
    row.status.fire("note")
    upsert = {"update_conflicts": True, "unique_fields": ["id"]}
    attempts = {
        "assign": lambda: setattr(row, "status_revision", 700),
        "update": lambda: type(row).objects.update(status_revision=50),
        "bulk_update": lambda: type(row).objects.bulk_update([row], ["status_revision"]),
        "constructor": lambda: order(status_revision=7),
        "upsert": lambda: type(row).objects.bulk_create([type(row)(pk=row.pk)], update_fields=["status"], **upsert),
        "upsert of the revision": lambda: type(row).objects.bulk_create(
            [type(row)(pk=row.pk)], update_fields=["status_revision"], **upsert
        ),
    }
    with pytest.raises(MirrorReadOnly):
        attempts[how]()
    assert stored(row) == ("new", 2)
    assert row.status_revision == 2


def test_an_upsert_of_other_columns_leaves_the_state(machines_there):
    row = order()
    type(row).objects.bulk_create(
        [type(row)(pk=row.pk, total=9)], update_conflicts=True, unique_fields=["id"], update_fields=["total"]
    )
    row.refresh_from_db()
    assert (row.total, row.status, row.status_revision) == (9, "new", 1)


def test_the_revision_is_a_number_that_is_read_again_copied_and_restored(machines_there):
    row = order(number="A-1")
    row.status.fire("cancel")
    for made in (copy.deepcopy(row.status_revision), pickle.loads(pickle.dumps(row.status_revision))):
        assert (type(made), made) == (int, 2)
    assert type(row).objects.only("total").get(pk=row.pk).status_revision == 2
    assert type(row).objects.get(status_revision=row.status_revision) == row
    row.full_clean()
    text = serializers.serialize("json", [row])
    type(row).objects.all().delete()
    for restored in serializers.deserialize("json", text):
        restored.save()
    assert stored(row) == ("cancelled", 2)


def test_refresh_mends_a_row_that_is_ahead_or_edited(machines_there):
    row = order()
    for state, revision in (("paid", 900), ("paid", 1)):
        type(row).objects.update(
            status=state_columns.MirroredText(state), status_revision=state_columns.MirroredRevision(revision)
        )
        found = type(row).objects.get(pk=row.pk)
        assert found.status.refresh() == "new"
        assert (stored(row), found.status.revision) == (("new", 1), 1)
