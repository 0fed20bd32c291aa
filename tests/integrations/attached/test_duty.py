"""Workers compare attached tables with their mirrors: when it is due, when a person asks, one at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from machines.engine import EngineUnavailable
from machines.integrations.attached import actions as mirrors
from machines.integrations.attached import detach, reconcile
from machines.integrations.attached.reconcile import ReconcileDuty
from machines.models import AuditEntry, Reconciliation
from machines.people.actor import Actor
from tests.configuration import configure


@pytest.fixture
def rows(mirrored):
    from .store.models import Purchase

    Purchase.objects.bulk_create([Purchase(state="confirmed") for _ in range(3)])
    return Purchase.objects


def states(engine, mirrored) -> list[str]:
    return [one.state for one in engine.find(mirrored.machine)]


def compare(work: ReconcileDuty) -> None:
    """Makes a pass, and those that a slow machine needs to end what it began."""
    work.run_once()
    while any(row.is_running for row in Reconciliation.objects.all()):
        work.run_once()


def test_a_worker_compares_what_is_due_and_says_what_it_found(engine, mirrored, rows):
    work = ReconcileDuty(engine)
    compare(work)
    assert states(engine, mirrored) == ["confirmed"] * 3
    found = Reconciliation.objects.get(machine=mirrored.machine)
    assert (found.is_running, found.read, found.held_until) == (False, 6, None)
    assert found.report["counts"] == {"missing": 3}
    assert found.report["mended"] == 3
    rows.update(state="shipped")
    compare(work)
    assert states(engine, mirrored) == ["confirmed"] * 3  # not due for an hour
    Reconciliation.objects.update(ended=timezone.now() - timedelta(hours=2))
    compare(work)
    assert states(engine, mirrored) == ["shipped"] * 3


def test_a_person_may_ask_and_the_setting_may_say_that_only_people_do(
    admin_user, admin_client, engine, mirrored, rows, settings
):
    configure(settings, RECONCILE=0)
    work = ReconcileDuty(engine)
    compare(work)
    assert Reconciliation.objects.get().begun is None
    address = reverse("signalbox:machine", args=[mirrored.machine])
    engine.publish({"id": mirrored.machine, "initial": "new", "states": {"new": {}, "confirmed": {}}})
    assert "not compared yet" in admin_client.get(address).content.decode()
    admin_client.post(reverse("signalbox:reconcile", args=[mirrored.machine]))
    assert "admin asked for a comparison" in admin_client.get(address).content.decode()
    assert AuditEntry.objects.get(action="machine.reconcile").outcome == "done"
    compare(work)
    page = admin_client.get(address).content.decode()
    assert "mended: 3." in page
    assert "Compare now" in page
    assert mirrors.describe_mirror(Actor(admin_user, "page"), mirrored.machine)[0].wanted_by == ""


def test_one_worker_at_a_time_and_another_one_after_its_death(engine, mirrored, rows, monkeypatch):
    monkeypatch.setattr("machines.conf.server_share.SPELL", 0.0)
    monkeypatch.setattr(reconcile, "SPELL", 0.0)
    monkeypatch.setattr("machines.integrations.attached.reconcile.PAGE", 1)
    first, second = ReconcileDuty(engine), ReconcileDuty(engine)
    second._holder = "elsewhere:1"
    first.run_once()
    second.run_once()
    found = Reconciliation.objects.get()
    assert (found.is_running, found.holder) == (True, first._holder)
    Reconciliation.objects.update(held_until=timezone.now() - timedelta(seconds=1))  # the first one is dead
    while Reconciliation.objects.get().is_running:
        second.run_once()
    assert Reconciliation.objects.get().holder == "elsewhere:1"
    assert states(engine, mirrored) == ["confirmed"] * 3
    first.run_once()  # it was only slow: it finds that its run is another worker's
    assert Reconciliation.objects.get().holder == "elsewhere:1"


def test_what_fails_is_told_and_tried_again_when_it_is_due(engine, mirrored, rows, monkeypatch, admin_user):
    def fail(self):
        raise EngineUnavailable("the connection was refused")

    monkeypatch.setattr("machines.integrations.attached.reconcile.Reconcile.pages", fail)
    ReconcileDuty(engine).run_once()
    assert "Redis did not answer" in mirrors.describe_mirror(Actor(admin_user, "page"), mirrored.machine)[0].error
    assert not Reconciliation.objects.get().is_running


def test_a_worker_without_the_model_leaves_it_to_others(engine, mirrored, rows):
    detach(mirrored)
    ReconcileDuty(engine).run_once()
    assert not Reconciliation.objects.exists()
