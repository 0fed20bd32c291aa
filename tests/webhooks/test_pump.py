"""Each message becomes one delivery for each webhook that wants it, whoever looks and however often."""

import json

from machines.models import Delivery, LogCursor, LogGap, Webhook
from machines.webhooks import management
from machines.webhooks.fan_out import GROUP, FanOut, matches_filter
from tests.cases import for_each
from tests.engine.builders import fields, machine, publish
from tests.engine.instances.racing import in_threads


def look(engine) -> bool:
    return FanOut(engine, wait=0.0).look()


def ring(engine, bell, times=1):
    for n in range(times):
        engine.fire(bell, "front", "ring", {"by": str(n)})


def test_each_message_comes_in_once_however_often_and_by_however_many_it_is_looked_for(
    engine, bell, hook, transactional_db
):
    hook(), hook("rung", types=["bell.*"])
    ring(engine, bell, 5)
    engine.fire(bell, "front", "note")
    in_threads([lambda: _looked(engine)] * 4)
    look(engine)
    assert sorted(Delivery.objects.values_list("webhook__name", "type")) == sorted(
        [("all", "bell.rung")] * 5 + [("rung", "bell.rung")] * 5 + [("all", "noted")]
    )
    assert LogGap.objects.count() == 0


def _looked(engine):
    from django.db import connection

    try:
        return look(engine)
    finally:
        connection.close()


def test_what_was_emitted_before_or_while_it_was_paused_is_not_sent(engine, bell, hook, actor):
    ring(engine, bell, 3)
    webhook = hook()
    look(engine)
    assert Delivery.objects.count() == 0
    management.pause(actor, webhook.pk)
    ring(engine, bell, 2)
    management.resume(actor, webhook.pk)
    ring(engine, bell)
    look(engine)
    assert [json.loads(row.body)["data"]["payload"]["by"] for row in Delivery.objects.all()] == ["0"]
    assert LogGap.objects.count() == 0


def test_changes_of_a_roll_out_go_to_webhooks_that_name_them(engine, bell, hook):
    hook()
    hook("changes", types=["signalbox.rollout"])
    engine.publish(engine.definition(bell) | {"description": "two"}, rollout=5)
    engine.set_rollout(bell, 20, actor="ann")
    engine.stop_rollout(bell, actor="bob", reason="slow")
    look(engine)
    rows = Delivery.objects.order_by("pk")
    assert {row.webhook.name for row in rows} == {"changes"}
    payloads = [json.loads(row.body)["data"]["payload"] for row in rows]
    assert payloads == [
        {"action": "start", "version": 2, "percent": 5, "actor": "", "reason": ""},
        {"action": "set", "version": 2, "percent": 20, "actor": "ann", "reason": ""},
        {"action": "stop", "version": 2, "percent": 0, "actor": "bob", "reason": "slow"},
    ]


def test_entries_that_were_gone_before_they_were_read_are_a_gap_that_is_told(engine, bell, hook):
    hook()
    ring(engine, bell, 2)
    look(engine)
    log = engine.keys.partition(bell).log
    read = engine.client.xinfo_stream(log)["last-generated-id"]
    ring(engine, bell, 5)
    engine.client.xtrim(log, maxlen=2, approximate=False)
    look(engine)
    gap = LogGap.objects.get()
    assert (gap.machine, gap.partition, gap.lost, gap.after) == (bell, 0, 3, read)
    assert Delivery.objects.count() == 4
    look(engine)
    ring(engine, bell)
    engine.client.xtrim(log, maxlen=1, approximate=False)  # of what was read
    look(engine)
    assert (LogGap.objects.count(), Delivery.objects.count()) == (1, 5)
    ring(engine, bell, 3)
    engine.client.xtrim(log, maxlen=0, approximate=False)
    look(engine)
    assert [gap.lost for gap in LogGap.objects.all()] == [3, 3]


def test_a_redis_that_forgot_is_told_and_what_it_kept_is_not_sent_twice(engine, bell, hook):
    hook()
    ring(engine, bell, 5)
    look(engine)
    engine.client.xgroup_destroy(engine.keys.partition(bell).log, GROUP)
    LogCursor.objects.update(read="99999999999999-0", position=50)  # SQL knows more than this server ever had
    look(engine)
    assert (LogGap.objects.get().lost, Delivery.objects.count()) == (0, 5)
    ring(engine, bell)
    look(engine)
    assert (LogGap.objects.count(), Delivery.objects.count()) == (1, 6)


def test_a_machine_published_later_and_many_partitions_are_read_from_their_start(engine, bell, hook, redis_url, prefix):
    from machines.engine import Engine

    hook(machines=[])
    spread = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    later = publish(spread, machine("later", {"A": {"entry": {"emit": {"type": "begun"}}}}))
    for n in range(12):
        spread.create(later, f"i{n}")
    look(spread)
    assert Delivery.objects.filter(type="begun").count() == 12
    assert len(set(Delivery.objects.values_list("machine", "message"))) == 12
    spread.client.close()


@for_each("types, type, expected", [
        (["*"], "any.thing", True), (["bell.*"], "bell.rung", True), (["bell.*"], "bellxrung", False),
        (["a", "b"], "b", True), (["a"], "ab", False), (["*.rung"], "bell.rung", True), (["b*.r*g"], "bell.rung", True),
        (["[a-z]+"], "abc", False), (["."], "x", False), ([], "x", False), (["a\nb"], "a\nb", True),
    ])  # fmt: skip
def test_a_star_stands_for_any_characters_and_everything_else_for_itself(types, type, expected):
    assert matches_filter(Webhook(types=types, machines=[]), "m", type, 1) is expected
    assert not matches_filter(Webhook(types=["*"], machines=["other"]), "m", type, 1)
    assert not matches_filter(Webhook(types=["*"], since=2), "m", type, 1)


def test_sensitive_values_never_leave(engine, db, hook, receiver):
    emits = {"emit": {"type": "paid", "data": {"card": "card", "told": "'no ' + card", "sum": "sum"}}}
    definition = machine(
        "till",
        {"Open": {"on": {"pay": {"target": "Open", "actions": [{"set": {"card": "event.card"}}, emits]}}}},
        context=fields(
            card={"type": "string", "default": "", "sensitive": True}, sum={"type": "integer", "default": 3}
        ),
    )
    till = publish(engine, definition)
    hook("till", machines=[till])
    for id in ("one", "gone"):
        engine.create(till, id)
        engine.fire(till, id, "pay", {"card": "4111-2222"})
    engine.fire(till, "one", "pay", {"card": "5555-6666"})
    engine.delete(till, "gone", actor="sue", reason="a test")
    look(engine)
    bodies = {row.instance: row.body for row in Delivery.objects.order_by("-pk")}
    assert "4111" not in "".join(bodies.values())
    assert "5555" not in "".join(bodies.values())
    assert json.loads(bodies["one"])["data"]["payload"]["sum"] == 3
    assert json.loads(bodies["gone"])["data"]["payload"] == "•••"


def test_hostile_messages_are_sent_as_they_are_in_plain_ascii(engine, db, hook, receiver):
    from machines.webhooks import sender

    text = "<script>\u202e\r\nX-Evil: 1 '; DROP"
    states = {"A": {"entry": {"emit": {"type": "<script>\u202e", "data": {"t": "t"}}}}}
    name = publish(engine, machine("odd", states, context=fields(t={"type": "string", "default": ""})))
    hook(machines=[name])
    engine.create(name, "é<b>", {"t": text})
    look(engine)
    assert sender.send_due() == 1
    ((_, headers, body),) = receiver.requests
    assert "X-Evil" not in headers
    assert body.isascii()
    assert json.loads(body)["data"]["payload"]["t"] == text
