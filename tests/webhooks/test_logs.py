"""The group of webhooks on the logs: shared by workers, kept from loss, there only while somebody wants messages."""

import json
import threading

import pytest
from django.db import OperationalError

from machines.audit.redaction import MASK
from machines.models import Delivery, LogCursor, LogGap, Webhook
from machines.patterns import log_group
from machines.webhooks import fan_out, management
from machines.webhooks.fan_out import GROUP, ConsumerGroup, FanOut
from tests.engine.builders import fields, machine, publish
from tests.engine.instances.racing import in_threads

KEEP, BOUND = 10_000, 100_000  # entries


def ring(engine, bell, times=1):
    for n in range(times):
        engine.fire(bell, "front", "ring", {"by": str(n)})


def log_of(engine, bell):
    return engine.keys.partition(bell).log


def groups(engine, bell):
    return [row["name"] for row in engine.client.xinfo_groups(log_of(engine, bell))]


def fill(engine, bell, count):
    pipeline = engine.client.pipeline(transaction=False)
    for n in range(count):
        pipeline.xadd(log_of(engine, bell), {"kind": "log", "name": "filler", "data": "null"})
        if n % 5000 == 0:
            pipeline.execute()
    pipeline.execute()


def test_one_pass_that_waits_is_woken_by_the_message(engine, bell, hook, transactional_db):
    hook()
    waiting = FanOut(engine, wait=2.0)
    waiting.look()

    def late():
        while not int(engine.client.info("clients")["blocked_clients"]):
            pass
        ring(engine, bell)

    def looked():
        from django.db import connection

        try:
            return waiting.look()
        finally:
            connection.close()

    in_threads([looked, late])
    assert Delivery.objects.count() == 1


def test_what_a_worker_took_and_did_not_finish_is_another_ones(engine, bell, hook, monkeypatch):
    hook()
    ring(engine, bell, 5)
    dead = ConsumerGroup(engine)
    assert len(dead.take((bell, 0)).entries) == 5  # and it is never heard of again
    FanOut(engine, wait=0).look()
    assert Delivery.objects.count() == 0
    monkeypatch.setattr(log_group, "IDLE", 0.001)
    FanOut(engine, wait=0).look()
    assert Delivery.objects.count() == 5
    assert engine.client.xpending(log_of(engine, bell), GROUP)["pending"] == 0


def test_one_that_dies_after_the_transaction_leaves_no_second_delivery(engine, bell, hook, monkeypatch):
    hook()
    ring(engine, bell, 3)
    with monkeypatch.context() as patch:
        patch.setattr(ConsumerGroup, "finish", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            FanOut(engine, wait=0).look()
    keys = set(Delivery.objects.values_list("key", flat=True))
    monkeypatch.setattr(log_group, "IDLE", 0.001)
    FanOut(engine, wait=0).look()
    assert set(Delivery.objects.values_list("key", flat=True)) == keys
    assert len(keys) == 3
    assert engine.client.xpending(log_of(engine, bell), GROUP)["pending"] == 0


def test_what_the_database_did_not_take_is_given_back_at_once(engine, bell, hook, monkeypatch):
    hook()
    ring(engine, bell, 3)
    engine.client.xtrim(log_of(engine, bell), maxlen=2, approximate=False)
    broken = FanOut(engine, wait=0)
    with monkeypatch.context() as patch:
        patch.setattr(
            fan_out, "_make_deliveries", lambda *_: (_ for _ in ()).throw(OperationalError("database is locked"))
        )
        with pytest.raises(OperationalError):
            broken.look()
    FanOut(engine, wait=0).look()
    assert Delivery.objects.count() == 2
    ring(engine, bell)
    broken.look()
    assert [gap.lost for gap in LogGap.objects.all()] == [1]  # told by the one who found it


def test_the_group_is_there_while_a_webhook_is_active_and_no_longer(engine, bell, hook, actor):
    ring(engine, bell)
    webhook = hook()
    assert groups(engine, bell) == [GROUP]
    ring(engine, bell, 2)
    FanOut(engine, wait=0).look()
    management.pause(actor, webhook.pk)
    looker = FanOut(engine, wait=0)
    looker.look()
    assert (groups(engine, bell), LogCursor.objects.count(), looker.pause()) == ([], 0, FanOut.IDLE)
    ring(engine, bell)
    management.resume(actor, webhook.pk)
    ring(engine, bell)
    looker.look()
    assert (groups(engine, bell), Delivery.objects.count()) == ([GROUP], 3)
    Webhook.objects.all().delete()
    looker.look()
    assert groups(engine, bell) == []


def test_a_group_that_is_not_there_begins_where_it_was_noted_last(engine, bell, hook):
    """As after an update from a release that kept its place in SQL alone."""
    hook()
    ring(engine, bell, 4)
    log = log_of(engine, bell)
    ids = [id for id, _ in engine.client.xrange(log)]
    engine.client.xgroup_destroy(log, GROUP)
    LogCursor.objects.update_or_create(machine=bell, partition=0, defaults={"read": ids[1], "position": 2})
    FanOut(engine, wait=0).look()
    assert set(Delivery.objects.values_list("message", flat=True)) == {f"{bell}:0:{id}" for id in ids[2:]}
    ConsumerGroup(engine).note()
    assert LogCursor.objects.values_list("read", "position").get() == (ids[3], 4)
    ring(engine, bell, 2)
    engine.client.xgroup_destroy(log, GROUP)
    engine.client.xtrim(log, maxlen=1, approximate=False)
    FanOut(engine, wait=0).look()
    assert (Delivery.objects.count(), LogGap.objects.get().lost) == (3, 1)


def test_aligning_puts_the_group_at_the_end_of_every_log(engine, bell):
    ring(engine, bell, 3)
    fan_out.align(engine)
    assert LogCursor.objects.get().position == engine.client.xlen(log_of(engine, bell)) == 3
    assert ConsumerGroup(engine).take((bell, 0)).entries == []


def test_a_log_keeps_what_the_group_has_not_done_up_to_a_bound(engine, bell, hook):
    hook()
    ring(engine, bell)
    fill(engine, bell, KEEP + 500)
    ring(engine, bell, 65)
    log = log_of(engine, bell)
    assert engine.client.xlen(log) == KEEP + 566
    looker = FanOut(engine, wait=0)
    while looker.look():
        pass
    assert Delivery.objects.count() == 66
    assert KEEP <= engine.client.xlen(log) <= KEEP + 200
    fill(engine, bell, BOUND)
    ring(engine, bell, 65)
    length = engine.client.xlen(log)
    assert BOUND <= length <= BOUND + 200
    taken = ConsumerGroup(engine).take((bell, 0))
    assert taken.lost == BOUND + 65 - length
    engine.client.xgroup_destroy(log, GROUP)
    ring(engine, bell, 65 * 11)  # a part at a time
    assert engine.client.xlen(log) <= KEEP + 200


def test_something_else_in_the_place_of_a_log_holds_up_no_other(engine, bell, hook, caplog):
    hook(machines=[])
    publish(engine, machine("other", {"A": {"entry": {"emit": {"type": "begun"}}}}))
    engine.client.set(log_of(engine, "other"), "x")
    looker = FanOut(engine, wait=0)
    ring(engine, bell)
    looker.look()
    ring(engine, bell)
    looker.look()
    assert Delivery.objects.count() == 2
    assert caplog.text.count("the log of other:0 cannot be read") == 1
    assert engine.client.get(log_of(engine, "other")) == "x"


FOREIGN = [
    {"version": "x"},
    {"version": "inf"},
    {"data": "[" * 100_000},
    {"name": "a\0b"},
    {"name": "a" * 300},
    {"instance": "i" * 300},
    {"kind": ""},
]


def test_what_no_machine_emitted_holds_up_nothing_behind_it(engine, bell, hook, caplog):
    hook()
    for more in FOREIGN:
        engine.client.xadd(log_of(engine, bell), {"kind": "emit", "name": "foreign"} | more)
    ring(engine, bell)
    engine.client.xadd(log_of(engine, bell), {"kind": "emit", "name": "late"}, id=f"{2**64 - 1}-1")
    looker = FanOut(engine, wait=0)
    looker.look()
    assert list(Delivery.objects.order_by("pk").values_list("type", flat=True)) == ["foreign"] * 3 + ["bell.rung"]
    assert caplog.text.count("4 entries of the log of bell:0 are no messages") == 1
    assert engine.client.xpending(log_of(engine, bell), GROUP)["pending"] == 0


def test_of_a_damaged_instance_nothing_is_told_and_others_go_on(engine, db, hook):
    emits = {"emit": {"type": "told", "data": {"pin": "pin"}}}
    till = machine(
        "till",
        {"A": {"on": {"go": {"target": "A", "actions": emits}}}},
        context=fields(pin={"type": "string", "default": "1234", "sensitive": True}),
    )
    name = publish(engine, till)
    hook(machines=[name])
    for id in ("damaged", "sound"):
        engine.create(name, id)
        engine.fire(name, id, "go")
    key = engine.keys.partition(name).instance("damaged")
    engine.client.delete(key)
    engine.client.set(key, "x")
    FanOut(engine, wait=0).look()
    bodies = dict(Delivery.objects.values_list("instance", "body"))
    assert json.loads(bodies["damaged"])["data"]["payload"] == MASK
    assert "1234" not in "".join(bodies.values())
    assert set(bodies) == {"damaged", "sound"}


def test_a_group_that_is_made_while_another_worker_takes_it_away_begins_again(engine, bell, hook, monkeypatch):
    """That worker had seen the moment before, in which there was no webhook."""
    ring(engine, bell, 2)
    hook()
    late, drop = ConsumerGroup(engine), LogCursor.delete

    def made_anew(cursor):
        fan_out.align(engine)
        return drop(cursor)

    with monkeypatch.context() as patch:
        patch.setattr(LogCursor, "delete", made_anew)
        late.drop()
    assert (groups(engine, bell), LogCursor.objects.count()) == ([], 0)  # or it would stay when the webhook is gone
    ring(engine, bell, 3)
    FanOut(engine, wait=0).look()
    assert (groups(engine, bell), LogCursor.objects.count(), Delivery.objects.count()) == ([GROUP], 1, 3)


def test_workers_read_side_by_side(engine, bell, hook, transactional_db):
    hook()
    ring(engine, bell, 30)
    over, pages = threading.Barrier(4), []

    def worker():
        mine = ConsumerGroup(engine)
        over.wait()
        for _ in range(12):
            taken = mine._take((bell, 0))
            pages.append([id for id, _ in taken.entries])
            if taken.entries:
                mine.finish((bell, 0), taken)

    in_threads([worker] * 4)
    ids = [id for page in pages for id in page]
    assert len(ids) == len(set(ids)) == 30
