"""What a transaction asks for happens once after its commit, and never after a rollback."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection, transaction
from django.utils import timezone

from machines.connections import get_engine, get_pattern
from machines.engine import BadInput
from machines.integrations.binding import delivery, outbox
from machines.models import Approval, AuditEntry, OutboxEntry
from machines.patterns import Throttle
from machines.people.errors import Forbidden
from machines.signals import delivered
from tests.conftest import NOWHERE, configure

from . import machines

pytestmark = pytest.mark.django_db(transaction=True)


def order(**fields):
    from .shop.models import Order

    return Order.objects.create(**fields)


def entry(pending) -> OutboxEntry:
    return OutboxEntry.objects.get(pk=pending.pk)


@pytest.fixture
def outcomes():
    """What the signal told."""
    told: list[tuple[str, str, str]] = []

    def note(sender, entry, error, **_):
        told.append((entry.kind, entry.event, entry.outcome))

    delivered.connect(note)
    yield told
    delivered.disconnect(note)


def test_creating_and_firing_in_one_transaction_happens_in_order_after_the_commit(machines_there, outcomes):
    with transaction.atomic():
        row = order(total=1)
        pending = row.status.fire("pay", {"amount": 1}, actor="shop")
        second = row.status.fire("ship")
        assert pending.waits
        assert (row.status, machines_there.live("order").total) == ("", 0)
    assert row.status == "packing, printing"
    assert outcomes == [("create", "", "applied"), ("fire", "pay", "applied"), ("fire", "ship", "applied")]
    assert (entry(pending).revision, entry(second).revision, entry(second).payload) == (2, 3, {})


def test_nothing_is_sent_after_a_rollback(machines_there):
    row = order()
    with transaction.atomic():
        row.status.fire("cancel")
        transaction.set_rollback(True)
    assert machines_there.get("order", str(row.pk)).state == "new"
    assert not OutboxEntry.objects.filter(kind="fire").exists()


def test_a_savepoint_that_is_rolled_back_takes_only_its_own_events(machines_there):
    with transaction.atomic():
        row = order()
        with transaction.atomic():
            row.status.fire("cancel")
            transaction.set_rollback(True)
        row.status.fire("pay", {"amount": 0})
    assert row.status == "paid"


def test_without_redis_a_transaction_commits_and_a_worker_sends_later(machines_there, settings, deliver, monkeypatch):
    row, url = order(), settings.SIGNALBOX["REDIS_URL"]
    configure(settings, REDIS_URL=NOWHERE)
    with transaction.atomic():
        row.total = 3
        row.save()
        pending = row.status.fire("cancel")
    assert entry(pending).waits
    configure(settings, REDIS_URL=url)
    monkeypatch.setattr(delivery, "_away_until", 0.0)
    deliver()
    row.refresh_from_db()
    assert (row.status, row.total) == ("cancelled", 3)


def test_a_refusal_is_kept_told_and_does_not_hold_up_what_comes_after(machines_there, outcomes, caplog):
    row = order(total=5)
    with transaction.atomic():
        pending = row.status.fire("pay", {"amount": 1})
        row.status.fire("cancel")
    found = entry(pending)
    assert (found.state, found.outcome) == ("failed", "SB430")
    assert "amount" in found.message
    assert outcomes[1:] == [("fire", "pay", "SB430"), ("fire", "cancel", "applied")]
    assert "pay on order" in caplog.text
    assert row.status == "cancelled"


def test_an_event_that_expects_another_revision_fails(machines_there):
    row = order()
    with transaction.atomic():
        pending = row.status.fire("cancel", expect=7)
    assert (entry(pending).outcome, row.status) == ("SB440", "new")


def test_a_wrong_argument_is_refused_at_once(machines_there):
    row = order()
    with transaction.atomic(), pytest.raises(BadInput):
        row.status.fire("")


def test_a_machine_that_is_published_later_gets_what_waits(engine, deliver):
    row = order(total=2)
    assert row.status == ""
    assert OutboxEntry.objects.get().waits
    machines.publish(engine)
    OutboxEntry.objects.update(due=timezone.now())
    deliver()
    row.refresh_from_db()
    assert row.status == "new"


def test_a_row_outside_of_a_transaction_with_a_creation_that_waits_is_fired_at(engine, deliver):
    row = order(total=2)
    machines.publish(engine)
    assert row.status.fire("pay", {"amount": 2}).state == "paid"
    OutboxEntry.objects.update(due=timezone.now())
    deliver()
    assert OutboxEntry.objects.get().outcome == "applied"  # the instance was created for this entry
    assert row.status == "paid"


def test_rows_of_bulk_create_get_their_instances_from_a_worker(machines_there):
    from .shop.models import Order

    Order.objects.bulk_create([Order(total=n) for n in range(3)])
    worker = outbox.OutboxSender()
    while worker.run_once():
        pass
    assert list(Order.objects.values_list("status", "status_revision")) == [("new", 1)] * 3
    assert outbox.create_missing(Order._meta.get_field("status"), "default") == (0, None)
    assert not OutboxEntry.objects.exists()


def test_data_that_cannot_be_made_holds_up_no_other_row(machines_there, monkeypatch, caplog):
    from .shop.models import Order

    field = Order._meta.get_field("status")
    monkeypatch.setattr(field, "data", lambda row: {"total": 1 // row.total})
    Order.objects.bulk_create([Order(total=0), Order(total=1)])
    assert outbox.create_missing(field, "default")[0] == 1
    assert "ZeroDivisionError" in caplog.text


def test_rows_whose_creation_fails_do_not_hide_those_behind_them(machines_there, monkeypatch, deliver, caplog):
    from .shop.models import Order

    field = Order._meta.get_field("status")
    monkeypatch.setattr(field, "data", lambda row: {"total": "much"} if row.number < "2" else {"total": 1})
    Order.objects.bulk_create([Order(number=str(n)) for n in range(4)])
    count, after = outbox.create_missing(field, "default", most=2)
    assert count == 2
    assert outbox.create_missing(field, "default", after=after, most=2)[0] == 2
    assert outbox.create_missing(field, "default", most=9)[0] == 0
    deliver()
    assert list(Order.objects.order_by("number").values_list("status", flat=True)) == ["", "", "new", "new"]
    assert list(OutboxEntry.objects.values_list("state", "outcome")) == [("failed", "SB410")] * 2


def test_many_rows_take_one_call_and_a_few_queries_a_page(machines_there, monkeypatch, django_assert_max_num_queries):
    from .shop.models import Order

    monkeypatch.setattr(outbox.create_missing, "__kwdefaults__", {"after": None, "most": 100})
    Order.objects.bulk_create([Order(total=n) for n in range(1000)])
    worker, calls = outbox.OutboxSender(), []
    caller = delivery.get_engine()._caller
    many = caller.many
    monkeypatch.setattr(caller, "many", lambda sent: calls.append(len(sent)) or many(sent))
    with django_assert_max_num_queries(100):
        while worker.run_once():
            pass
    assert calls == [100] * 10
    assert set(Order.objects.values_list("status", "status_revision")) == {("new", 1)}


def test_an_instance_that_another_worker_created_is_taken(machines_there):
    from .shop.models import Order

    (row,) = Order.objects.bulk_create([Order(total=3)])
    machines_there.create("order", str(row.pk), {"total": 3})
    assert outbox.create_missing(Order._meta.get_field("status"), "default") == (1, None)
    row.refresh_from_db()
    assert (row.status, OutboxEntry.objects.count()) == ("new", 0)


def test_rows_of_a_machine_that_is_not_published_wait_for_it(engine):
    from .shop.models import Order

    Order.objects.bulk_create([Order(total=3)])
    worker = outbox.OutboxSender()
    assert worker.run_once() is False
    machines.publish(engine)
    worker._swept = -float("inf")
    get_pattern(Throttle).forget("bind.sweep", "turn")
    worker.run_once()
    assert Order.objects.get().status == "new"


# Fields that were renamed or removed


def waiting(**fields) -> OutboxEntry:
    facts = {"key": "k", "kind": "create", "machine": "order", "instance": "77", "payload": {"total": 1}} | fields
    return OutboxEntry.objects.create(**facts)


def test_an_entry_of_a_field_that_was_renamed_is_delivered_by_its_machine(machines_there, deliver):
    made = waiting(field="shop.Order.state")
    deliver()
    assert (entry(made).state, entry(made).outcome) == ("done", "applied")
    assert machines_there.get("order", "77").data["total"] == 1


def test_an_entry_whose_field_was_removed_fails_and_says_why(machines_there, caplog):
    made = waiting(field="shop.Invoice.status", machine="invoice", made_at=timezone.now() - timedelta(hours=2))
    outbox.OutboxSender().run_once()
    told = "the project has no field shop.Invoice.status, and none with the machine 'invoice'"
    assert (entry(made).state, entry(made).outcome, entry(made).message) == ("failed", "no_field", told)
    assert told in caplog.text


def test_an_entry_of_a_field_that_this_release_does_not_know_yet_waits_an_hour(machines_there, deliver, caplog):
    made = waiting(field="shop.Invoice.status", machine="invoice")
    deliver()
    assert entry(made).state == "waiting"
    assert entry(made).due > timezone.now()
    assert "has no field shop.Invoice.status" in entry(made).message
    assert "waits: the project has no field" in caplog.text


def test_entries_of_the_last_field_of_a_project_fail_too(machines_there, monkeypatch):
    made = waiting(field="shop.Order.status", made_at=timezone.now() - timedelta(hours=2))
    monkeypatch.setattr(outbox.registry, "list_fields", list)
    outbox.OutboxSender().run_once()
    assert entry(made).outcome == "no_field"


# A process that dies, and one that comes back late


def test_an_entry_that_was_sent_and_not_settled_is_not_done_twice(machines_there, deliver):
    row = order()
    with transaction.atomic():
        pending = row.status.fire("note")
    assert entry(pending).revision == 2
    OutboxEntry.objects.filter(pk=pending.pk).update(state="waiting", due=timezone.now(), outcome="")
    deliver()
    found = entry(pending)
    assert (found.outcome, found.revision) == ("applied", 2)
    assert len(row.status.history()) == 2


def test_a_process_that_stood_still_does_not_send_behind_later_events(machines_there, monkeypatch, deliver):
    row = order()
    with transaction.atomic():
        monkeypatch.setattr(delivery, "send_soon", lambda *_: None)
        first = row.status.fire("pay", {"amount": 0}, actor="first")
        row.status.fire("ship", actor="second")
    (late,) = delivery.claim("default")
    OutboxEntry.objects.filter(pk=first.pk).update(due=timezone.now())  # its lease is over
    deliver()
    delivery.send(late)
    assert [step.event for step in row.status.history()] == ["ship", "pay", "(create)"]


def test_two_processes_never_claim_one_entry(machines_there, monkeypatch):
    monkeypatch.setattr(delivery, "send_soon", lambda *_: None)
    with transaction.atomic():
        for _ in range(20):
            order()
    taken: list[int] = []

    def take() -> None:
        try:
            for _ in range(10):
                taken.extend(one.entry.pk for one in delivery.claim("default"))
        finally:
            connection.close()

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(set(taken))
    assert len(taken) == 20


@pytest.mark.parametrize("arrived", [True, False])
def test_after_a_day_the_history_says_whether_an_event_arrived(machines_there, deliver, monkeypatch, arrived):
    row = order()
    monkeypatch.setattr(delivery, "send_soon", lambda *_: None)
    with transaction.atomic():
        pending = row.status.fire("note", reason="because")
    delivery.claim("default")
    if arrived:
        machines_there.fire("order", str(row.pk), "note", reason="because")
    old = timezone.now() - timedelta(days=2)
    OutboxEntry.objects.filter(pk=pending.pk).update(tried_at=old, due=timezone.now(), key="a-key-that-is-forgotten")
    deliver()
    found = entry(pending)
    assert (found.state, found.outcome, found.revision) == ("done", "applied", 2)
    assert [step.event for step in row.status.history()] == ["note", "(create)"]


def test_an_event_of_which_the_history_is_gone_is_not_sent_again(machines_there, deliver, monkeypatch):
    row = order()
    monkeypatch.setattr(delivery, "send_soon", lambda *_: None)
    with transaction.atomic():
        pending = row.status.fire("note")
    delivery.claim("default")
    machines_there.delete("order", str(row.pk), reason="test")
    OutboxEntry.objects.filter(pk=pending.pk).update(tried_at=timezone.now() - timedelta(days=2), due=timezone.now())
    deliver()
    assert (entry(pending).state, entry(pending).outcome) == ("failed", "unknown")


def test_old_entries_go(machines_there):
    order()
    OutboxEntry.objects.update(ended_at=timezone.now() - timedelta(days=8))
    outbox.prune("default")
    assert not OutboxEntry.objects.exists()


# A person behind the event


@pytest.fixture
def clerk() -> User:
    user = User.objects.create_user("clerk")
    user.user_permissions.add(*Permission.objects.filter(codename__in=["fire_machine", "view_machine"]))
    return User.objects.get(pk=user.pk)


def test_a_person_needs_the_right_also_in_a_transaction(machines_there):
    row, stranger = order(), User.objects.create_user("stranger")
    with pytest.raises(Forbidden):
        row.status.fire("cancel", user=stranger)
    with transaction.atomic(), pytest.raises(Forbidden):
        row.status.fire("cancel", user=stranger)
    assert row.status.available(stranger) == []
    assert row.status.refresh() == "new"


def test_a_persons_event_is_in_the_audit_with_its_outcome(machines_there, clerk):
    row = order()
    with transaction.atomic():
        row.status.fire("pay", {"amount": 0}, user=clerk, reason="paid in cash")
    assert row.status == "paid"
    found = AuditEntry.objects.get(action="fire")
    assert (found.actor, found.target, found.reason, found.outcome) == ("clerk", "pay", "paid in cash", "done")


def test_the_groups_of_a_transition_hold_for_a_person(machines_there, clerk):
    row = order()
    assert "waive" not in [event.name for event in row.status.available(clerk)]
    with transaction.atomic():
        pending = row.status.fire("waive", user=clerk)
    assert (entry(pending).state, entry(pending).outcome) == ("failed", "SB433")
    clerk.groups.add(Group.objects.create(name="managers"))
    with transaction.atomic():
        row.status.fire("waive", user=clerk)
    assert row.status == "paid"


def test_an_event_that_needs_a_second_person_is_asked_for(machines_there, clerk):
    row = order()
    row.status.fire("pay", {"amount": 0})
    with transaction.atomic():
        pending = row.status.fire("refund", user=clerk, reason="unhappy")
    assert (entry(pending).outcome, row.status) == ("approval", "paid")
    assert Approval.objects.get().action == "fire:refund"


def test_what_waits_holds_an_encrypted_field_as_ciphertext(machines_there, settings):
    whole = {"type": "integer", "default": 0}
    fields = {"total": whole, "paid": whole, "card": {"type": "string", "encrypted": True}}
    configure(settings, CODEC="machines.conf.encryption.field_codec.SecretKeyCodec")
    get_engine().publish({**machines.ORDER, "context": {"type": "object", "properties": fields}})
    row = order()
    with transaction.atomic():
        pending = row.status.fire("note", {"card": "4111-7CANARY"})
        assert entry(pending).payload["card"].startswith("enc:1:card:")
    payload = machines_there.history("order", str(row.pk))[0].payload
    assert get_engine().decrypt(payload) == {"card": "4111-7CANARY"}
