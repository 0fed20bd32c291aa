"""Transitions are recorded once they are committed, and never what a rollback took back."""

from __future__ import annotations

from contextlib import suppress

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction

from machines.connections import get_engine
from machines.integrations.attached import acting_as, attach, mirror
from tests.configuration import configure


@pytest.fixture
def purchase(mirrored):
    from .store.models import Purchase

    return Purchase.objects.create()


def state_of(engine, mirrored, row) -> str:
    return engine.get(mirrored.machine, str(row.pk)).state


def test_a_transition_is_a_step_of_the_instance_with_its_event_and_user(engine, mirrored, purchase, events):
    purchase.confirm(by=get_user_model()(username="ann"))
    purchase.save()
    step = engine.history(mirrored.machine, str(purchase.pk))[0]
    assert (step.event, step.actor, step.configuration) == ("confirm", "ann", ["confirmed"])
    assert engine.counts(mirrored.machine)["confirmed"] == 1
    assert events(purchase) == ["(create)", "confirm"]


def test_nothing_is_recorded_before_the_commit_and_all_of_it_after(engine, mirrored, purchase, events):
    with acting_as("import"), transaction.atomic():
        purchase.confirm()
        purchase.save()
        purchase.ship()
        purchase.save()
        assert events(purchase) == ["(create)"]
    assert events(purchase) == ["(create)", "confirm", "ship"]
    assert engine.get(mirrored.machine, str(purchase.pk)).actor == "import"


def test_a_rollback_records_nothing_and_one_to_a_savepoint_only_what_is_left(engine, mirrored, purchase, events):
    from .store.models import Purchase

    with suppress(ZeroDivisionError), transaction.atomic():
        purchase.confirm()
        purchase.save()
        raise ZeroDivisionError
    with transaction.atomic():
        again = Purchase.objects.get(pk=purchase.pk)
        with suppress(ZeroDivisionError), transaction.atomic():
            again.cancel()
            again.save()
            lost = Purchase.objects.create()
            raise ZeroDivisionError
        again.refresh_from_db()
        again.ship()
        again.save()
        with transaction.atomic():
            kept = Purchase.objects.create(state="shipped")
    assert events(purchase) == ["(create)", "ship"]
    assert state_of(engine, mirrored, kept) == "shipped"
    assert len(engine.find(mirrored.machine)) == 2, lost


def test_a_method_that_raises_goes_to_its_error_state_or_nowhere(engine, mirrored, purchase, events):
    with pytest.raises(ValueError):
        purchase.ship(raises=True)
    purchase.save()
    assert state_of(engine, mirrored, purchase) == "failed"
    purchase.retry(to="confirmed")
    purchase.save()
    purchase.ship()
    purchase.save()
    purchase.remind()
    purchase.save()
    assert events(purchase) == ["(create)", "ship", "retry", "ship", "remind"]
    assert state_of(engine, mirrored, purchase) == "shipped"


def test_a_state_is_recorded_by_the_save_that_writes_it(engine, mirrored, purchase, events):
    purchase.confirm()
    purchase.save(update_fields=["paid"])
    assert events(purchase) == ["(create)"]
    purchase.save(update_fields=["state"])
    assert events(purchase) == ["(create)", "confirm"]


def test_two_fields_of_a_model_are_two_machines_and_rows_of_a_child_count(engine, mirrored):
    from .store.models import Gift, Purchase

    parcels = attach(Purchase, "parcel", name="parcels")
    gift = Gift.objects.create()
    gift.pack()
    gift.save()
    gift.confirm()
    gift.save()
    assert engine.get("mirror.parcels", str(gift.pk)).state == "Packed"
    assert state_of(engine, mirrored, gift) == "confirmed"
    assert engine.history(parcels.machine, str(gift.pk))[0].event == "pack"
    gift.delete()
    assert not engine.find(parcels.machine)
    assert not engine.find(mirrored.machine)


def test_of_two_commits_in_the_wrong_order_the_later_row_stays(engine, mirrored, purchase, monkeypatch):
    late = []
    monkeypatch.setattr(mirror, "record", lambda *call: late.append(call))
    purchase.confirm()
    purchase.save()
    purchase.cancel()
    purchase.save()
    monkeypatch.undo()
    for call in (*reversed(late), *late):
        mirror.record(*call)
    assert state_of(engine, mirrored, purchase) == "canceled"


def test_without_redis_the_commit_stands_and_reconcile_catches_up(engine, mirrored, purchase, settings, caplog):
    from .store.models import Purchase

    there = settings.SIGNALBOX["REDIS_URL"]
    configure(settings, REDIS_URL="unix:///nonexistent/redis.sock")
    purchase.confirm()
    purchase.save()
    configure(settings, REDIS_URL=there)
    assert Purchase.objects.get(pk=purchase.pk).state == "confirmed"
    assert "while Redis is away" in caplog.text
    assert state_of(engine, mirrored, purchase) == "new"

    from machines.integrations.attached.reconcile import Reconcile

    assert Reconcile(get_engine(), mirrored).run().mended == 1
    assert state_of(engine, mirrored, purchase) == "confirmed"
