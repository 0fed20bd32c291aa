"""Attempts: signed, tried again for a day, given up, switched off; what a receiver does never holds up another."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import threading
from datetime import timedelta

import pytest
from django.utils import timezone

from machines.models import Delivery, Webhook
from machines.webhooks import management, sender
from machines.webhooks.fan_out import FanOut
from machines.webhooks.http_post import PostResult
from tests.configuration import configure
from tests.engine.instances.racing import in_threads


def pumped(engine) -> list[Delivery]:
    pump = FanOut(engine, wait=0.0)
    while pump.look():
        pass
    return list(Delivery.objects.order_by("pk"))


def ring(engine, bell, by="sue"):
    engine.fire(bell, "front", "ring", {"by": by})


def signed_by(secret: str, headers: dict, body: bytes) -> bool:
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    right = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return f"v1,{right}" in headers["webhook-signature"].split(" ")


def test_a_message_arrives_signed_as_the_standard_says(engine, bell, hook, receiver):
    webhook = hook()
    ring(engine, bell)
    (delivery,) = pumped(engine)
    assert sender.send_due() == 1
    ((path, headers, body),) = receiver.requests
    found = json.loads(body)
    assert path == "/hook?a=b"
    assert headers["Content-Type"] == "application/json"
    assert headers["webhook-id"] == delivery.key
    assert abs(int(headers["webhook-timestamp"]) - timezone.now().timestamp()) < 60
    assert signed_by(webhook.secret, headers, body)
    assert found["type"] == "bell.rung"
    assert found["data"] == {"machine": bell, "instance": "front", "revision": 2, "payload": {"by": "sue"}}
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries, delivery.last["status"]) == ("sent", 1, 204)
    assert sender.send_due() == 0


def test_one_that_fails_is_tried_again_with_the_same_id_until_it_is_through(engine, bell, hook, receiver):
    hook()
    receiver.answers = [500, 302, 429, 204]
    receiver.headers = {"Location": "http://127.0.0.1:1/elsewhere", "Retry-After": "200"}
    receiver.body = b"not \x00 today <script>" + b"x" * 100_000
    ring(engine, bell)
    pumped(engine)
    now = timezone.now()
    for waited in (0, 200, 400, 700):
        assert sender.send_due(clock=lambda at=now + timedelta(seconds=waited): at) == 1
        assert sender.send_due(clock=lambda at=now + timedelta(seconds=waited + 4): at) == 0  # not at once
    delivery = Delivery.objects.get()
    assert [attempt["status"] for attempt in delivery.attempts] == [500, 302, 429, 204]
    assert "redirect" in delivery.attempts[1]["error"]
    assert len({headers["webhook-id"] for _, headers, _ in receiver.requests}) == 1
    assert delivery.attempts[0]["said"].startswith("not   today <script>x")
    assert len(delivery.attempts[0]["said"]) <= 300
    assert (delivery.state, Webhook.objects.get().failures) == ("sent", 0)


def test_after_a_day_it_is_given_up_and_sending_it_again_starts_anew(engine, bell, hook, receiver, actor):
    webhook = hook()
    receiver.answers = [503] * 11
    ring(engine, bell)
    (delivery,) = pumped(engine)
    now = timezone.now()
    for _ in range(11):
        assert sender.send_due(clock=lambda at=now: at) == 1
        now += timedelta(seconds=28_800 * 1.3)
        Delivery.objects.update(made_at=now)  # by count alone
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries) == ("dead", 11)
    assert 20 * 3600 < sum(sender.SCHEDULE) < 28 * 3600
    assert all(0.8 * base <= sender.pause(n) <= 1.2 * base for n, base in enumerate(sender.SCHEDULE, 1))
    management.redeliver(actor, webhook.pk, delivery.pk)
    assert sender.send_due() == 1
    delivery.refresh_from_db()
    assert (delivery.state, delivery.tries, len(delivery.attempts)) == ("sent", 1, 12)


def test_one_that_was_down_for_longer_than_a_day_gets_no_old_news(engine, bell, hook, receiver):
    hook()
    receiver.answers = [500]
    ring(engine, bell)
    pumped(engine)
    sender.send_due(clock=lambda: timezone.now() + timedelta(hours=27))
    assert Delivery.objects.get().state == "dead"


def test_gone_switches_it_off_and_nothing_more_is_sent(engine, bell, hook, receiver):
    hook()
    receiver.answers = [410]
    ring(engine, bell)
    ring(engine, bell)
    pumped(engine)
    sender.send_due()
    webhook = Webhook.objects.get()
    assert (webhook.active, "410" in webhook.stopped) == (False, True)
    asked = len(receiver.requests)
    assert sender.send_due(clock=lambda: timezone.now() + timedelta(hours=1)) == 0
    assert len(receiver.requests) == asked


def test_one_that_hangs_is_left_after_its_time_and_holds_up_no_other(engine, bell, hook, receiver, monkeypatch):
    hook()
    receiver.hang.clear()
    ring(engine, bell)
    pumped(engine)
    with monkeypatch.context() as patch:
        patch.setattr("machines.webhooks.http_post.WHOLE", 0.3)
        sender.send_due()
    receiver.hang.set()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.last["status"]) == ("waiting", 0)
    assert "no response" in delivery.last["error"]
    hook("other", types=["bell.*"])
    for _ in range(100):  # a backlog of the one that failed
        ring(engine, bell)
    pumped(engine)
    now = timezone.now()
    Webhook.objects.filter(name="all").update(rest_until=now + timedelta(hours=1))
    sender.send_due()
    assert Delivery.objects.filter(webhook__name="other", state="sent").count() == 4
    assert Delivery.objects.filter(webhook__name="all", state="sent").count() == 0  # it rests


def test_services_that_hang_take_no_thread_from_others(engine, bell, hook, monkeypatch):
    together = threading.Barrier(2 * sender.BATCH)

    async def post(delivery, now):
        await asyncio.gather(*(asyncio.to_thread(together.wait, 20) for _ in range(2 * sender.BATCH)))
        return PostResult(now, 0, 204)

    hook()
    ring(engine, bell)
    pumped(engine)
    monkeypatch.setattr(sender, "post", post)
    for name in ("cpu_count", "process_cpu_count"):  # by which Python sizes its own
        monkeypatch.setattr(os, name, lambda: 1, raising=False)
    assert sender.send_due() == 1
    assert Delivery.objects.get().state == "sent"


def test_nobody_there_is_an_attempt_that_failed(engine, bell, hook, receiver, settings):
    configure(settings, WEBHOOK_PORTS=[9])
    hook(url="http://127.0.0.1:9/x")
    ring(engine, bell)
    pumped(engine)
    sender.send_due()
    assert "Connect" in Delivery.objects.get().last["error"]


def test_a_port_that_is_not_open_to_webhooks_any_more_is_an_attempt_that_failed(engine, bell, hook, receiver, settings):
    hook()
    ring(engine, bell)
    pumped(engine)
    configure(settings, WEBHOOK_PORTS=[])
    sender.send_due()
    assert "SIGNALBOX_WEBHOOK_PORTS" in Delivery.objects.get().last["error"]
    assert receiver.requests == []


def test_the_next_address_is_tried_where_nobody_answers_at_the_first(engine, bell, hook, receiver, monkeypatch):
    async def both(url):
        return ["127.0.0.9", "127.0.0.1"]  # the receiver listens at the second alone

    monkeypatch.setattr("machines.webhooks.http_post.resolve", both)
    hook()
    ring(engine, bell)
    pumped(engine)
    sender.send_due()
    assert len(receiver.requests) == 1
    assert Delivery.objects.get().state == "sent"


def test_workers_that_race_send_each_delivery_once(engine, bell, hook, receiver, transactional_db):
    hook()
    for n in range(4):
        ring(engine, bell, by=str(n))
    pumped(engine)
    now = timezone.now()
    held = in_threads([lambda: [row.pk for row in _claimed(now)]] * 4)
    taken = [pk for rows in held for pk in rows]
    assert len(taken) == len(set(taken)) == 4
    lost = now + sender.LEASE + timedelta(seconds=1)
    (again, *_) = sender.claim(lost)  # their worker died
    sender.settle(again, sender.PostResult(lost, 1, 204), lost)
    stale = Delivery(pk=again.pk, claim="another's", webhook=again.webhook, made_at=now)
    sender.settle(stale, sender.PostResult(lost, 1, 500), lost)
    assert Delivery.objects.get(pk=again.pk).state == "sent"


def _claimed(now):
    from django.db import connection

    try:
        return sender.claim(now)
    finally:
        connection.close()


def test_both_secrets_are_valid_for_a_day_after_the_change(engine, bell, hook, receiver, actor):
    webhook = hook()
    old = webhook.secret
    _, new = management.rotate(actor, webhook.pk)
    ring(engine, bell)
    pumped(engine)
    sender.send_due()
    management.test(actor, webhook.pk)
    sender.send_due(clock=lambda: timezone.now() + timedelta(days=1, seconds=1))
    (_, first, body), (_, second, later) = receiver.requests
    assert signed_by(old, first, body)
    assert signed_by(new, first, body)
    assert signed_by(new, second, later)
    assert not signed_by(old, second, later)
    assert new != old
    assert len(base64.b64decode(new.removeprefix("whsec_"))) == 32


def test_the_duties_of_a_worker_do_it_all(engine, transactional_db, bell, hook, receiver):
    hook()
    ring(engine, bell)
    FanOut(engine).run_once()
    assert sender.Sender().run_once()
    assert not sender.Sender().run_once()
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("duty", [lambda engine: FanOut(engine), lambda engine: sender.Sender()])
def test_without_its_tables_a_worker_goes_on(engine, transactional_db, duty, monkeypatch):
    from django.db import OperationalError

    def broken(*args, **kwargs):
        raise OperationalError("no such table")

    monkeypatch.setattr(Webhook.objects, "filter", broken)
    monkeypatch.setattr(Delivery.objects, "filter", broken)
    assert duty(engine).run_once() is False


def test_a_worker_has_both_duties_and_one_that_ends_with_its_work_has_none(engine):
    from machines.management.commands.worker import _duties, _scheduler
    from machines.worker.options import Options

    def duties(options):
        return set(_duties(options, _scheduler(options)))

    assert {"webhook pump", "webhook sender", "webhook prune"} <= duties(Options())
    assert duties(Options(drain=True)) == set()


def test_over_the_rate_of_its_receiver_a_delivery_waits_and_another_receiver_does_not(
    engine, bell, hook, receiver, settings
):
    configure(settings, WEBHOOK_RATE="2/h")
    hook("one"), hook("two")  # to the same host
    for _ in range(2):
        ring(engine, bell)
    assert len(pumped(engine)) == 4
    assert [sender.send_due() for _ in range(2)] == [2, 0]
    waiting = Delivery.objects.filter(state="waiting")
    assert [(delivery.tries, delivery.due <= timezone.now()) for delivery in waiting] == [(0, True), (0, True)]
    configure(settings, WEBHOOK_HOSTS=["127.0.0.1", "localhost"])
    Webhook.objects.filter(name="two").update(url=receiver.url.replace("127.0.0.1", "localhost"))
    left = Delivery.objects.filter(state="waiting", webhook__name="two").count()
    assert sender.send_due() == left
    configure(settings, WEBHOOK_RATE="off")
    assert sender.send_due() == 2 - left


def test_without_redis_deliveries_go_out_all_the_same(engine, bell, hook, receiver, settings):
    hook()
    ring(engine, bell)
    pumped(engine)
    configure(settings, REDIS_URL="unix:///nonexistent/none.sock")
    assert sender.send_due() == 1
