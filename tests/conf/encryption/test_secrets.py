"""Secrets and pending approvals are encrypted in the database; keys are replaced beside a live installation."""

from __future__ import annotations

import json
from importlib import import_module

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from machines.alarms import routes
from machines.approvals import actions as approvals
from machines.conf.encryption import ciphers, rotation
from machines.engine.keys import choose_partition
from machines.instances.bulks import BULK, Bulk, Order
from machines.instances.bulks import actions as bulks
from machines.models import Approval, Webhook
from machines.people.actor import Actor
from machines.webhooks import management, sender
from machines.worker.registry import discover
from tests.instances.bulks.builders import work_off

from .conftest import CANARY, dump_redis, dump_sql

WORD = "cannot be decrypted: its key is neither SECRET_KEY nor one of SECRET_KEY_FALLBACKS"
MIGRATION = import_module("machines.migrations.0025_encrypted_secrets")


def read_all() -> list[object]:
    rows = Webhook.objects.order_by("name").values_list("url", "secret", "former")
    return [*rows, *Approval.objects.values_list("asked")]


def replace_key(settings, *, keep: bool) -> None:
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY] if keep else []
    settings.SECRET_KEY = "another key, as long as a key should be: 0123456789"


def rotate(capsys) -> str:
    call_command("secrets", "rotate")
    return capsys.readouterr().out


def test_no_dump_of_sql_or_redis_holds_a_secret(held, cleaner, prefix):
    sql = dump_sql()
    in_redis = dump_redis(cleaner, prefix)
    assert "the customer asked" in sql
    assert "Refunded" in in_redis
    for secret in held.secrets:
        assert secret not in sql
        assert secret not in in_redis
    assert read_all()[0][0].startswith("https://hooks.example.com/")


def test_each_purpose_has_its_own_key(held):
    stored = ciphers.encrypt("whsec_1", "webhook.secret")
    assert ciphers.decrypt(stored, "webhook.secret") == "whsec_1"
    moved = ciphers.decrypt(stored, "webhook.url")
    assert isinstance(moved, ciphers.Unreadable)
    assert "whsec_1" not in moved


def test_one_command_replaces_the_key_of_everything_and_may_run_twice(held, settings, capsys):
    before = read_all()
    replace_key(settings, keep=True)
    assert read_all() == before
    report = rotate(capsys)
    for name, count in (("Webhook.url", 2), ("Webhook.secret", 2), ("Webhook.former", 1), ("Approval.asked", 1)):
        assert f"machines.{name}: {count} encrypted, 0 up to date" in report
    stored = dump_sql()
    assert "machines.Webhook.url: 0 encrypted, 2 up to date" in rotate(capsys)
    assert dump_sql() == stored
    settings.SECRET_KEY_FALLBACKS = []
    assert read_all() == before


def test_what_is_written_while_the_command_runs_stays(held, settings, capsys, monkeypatch):
    replace_key(settings, keep=True)

    def write_first(stored: str, purpose: str) -> str | None:
        if purpose == "webhook.secret":
            Webhook.objects.filter(name="billing").update(secret="whsec_newer")
        return ciphers.renew(stored, purpose)

    monkeypatch.setattr(rotation, "renew", write_first)
    assert "Webhook.secret: 1 encrypted, 0 up to date, 1 changed meanwhile: run this again" in rotate(capsys)
    assert Webhook.objects.get(name="billing").secret == "whsec_newer"


def test_without_the_key_everything_says_so_and_nothing_is_lost(held, settings, as_, caplog, user_of):
    before, stored, key = read_all(), dump_sql(), settings.SECRET_KEY
    replace_key(settings, keep=False)
    client = as_("supervisor", "bob")
    for name, id in (("webhook", held.webhook.pk), ("alarm-route", held.route.pk), ("approval", held.request.pk)):
        page = client.get(reverse(f"signalbox:{name}", args=[id]))
        assert (page.status_code, WORD in page.content.decode()) == (200, True), name
    for name in ("webhooks", "alarm-routes", "approvals"):
        assert client.get(reverse(f"signalbox:{name}")).status_code == 200
    bob = Actor(user_of("supervisor", "carl"), "test")
    with pytest.raises(ciphers.SecretUnreadable, match=WORD):
        approvals.approve(bob, held.request.pk)
    page = client.post(reverse("signalbox:approval-approve", args=[held.request.pk]), follow=True)
    assert WORD in page.content.decode()
    assert WORD in caplog.text
    with pytest.raises(CommandError) as refused:
        call_command("secrets", "rotate")
    assert f"machines.Webhook.secret of {held.webhook.pk}" in str(refused.value)
    assert WORD in str(refused.value)
    settings.SECRET_KEY = key
    assert read_all() == before
    assert all(row in dump_sql() for row in stored.splitlines() if "$fernet$" in row)
    assert approvals.approve(bob, held.request.pk).state == "done"


def test_a_delivery_without_its_key_waits_and_a_new_secret_ends_that(held, settings):
    management.test(held.actor, held.webhook.pk)
    replace_key(settings, keep=False)
    assert sender.send_due() == 1
    delivery = held.webhook.deliveries.get()
    assert (delivery.state, WORD in delivery.last["error"]) == ("waiting", True)
    routes.change(held.actor, held.route.pk, url="https://chat.example.com/services/new")
    after, secret = routes.rotate(held.actor, held.route.pk)
    assert Webhook.objects.get(name="ops").secrets(timezone.now()) == [secret]
    assert after.receiver.former == ""


def test_a_saved_row_keeps_what_cannot_be_decrypted(held, settings):
    before, key = read_all(), settings.SECRET_KEY
    replace_key(settings, keep=False)
    for webhook in Webhook.objects.all():
        webhook.save()
    settings.SECRET_KEY = key
    assert read_all() == before


def test_the_migration_encrypts_what_is_there_and_back(held):
    before = read_all()
    MIGRATION.decrypt_values(apps, None)
    plain = dump_sql()
    assert all(secret in plain for secret in held.secrets)
    assert read_all() == before
    MIGRATION.encrypt_values(apps, None)
    encrypted = dump_sql()
    assert not any(secret in encrypted for secret in held.secrets)
    assert read_all() == before


def start_bulk(held, **more: object) -> Bulk:
    asked = {"event": "refund", "payload": {"card": f"{CANARY}-card"}} | more
    return bulks.start(held.actor, Order("order", "fire", "ann", "the shop was closed", {"state": "Open"}, **asked))


def test_what_a_bulk_sends_is_encrypted_in_redis_and_arrives(held, cleaner, prefix, engine):
    discover()
    bulk = start_bulk(held)
    work_off(engine)
    assert CANARY not in dump_redis(cleaner, prefix)
    assert bulk.order().payload == {"card": f"{CANARY}-card"}
    assert bulk.rows()[0].verdict.word == "taken"


def test_the_command_renews_what_bulks_send_and_encrypts_that_of_former_releases(
    held, settings, capsys, cleaner, prefix, engine
):
    bulk, plain = start_bulk(held), start_bulk(held)
    start_bulk(held, payload={})
    key = engine.keys.partition(BULK, choose_partition(plain.id, 1)).bulk_order(plain.id)
    old = json.loads(cleaner.hget(key, "order"))
    del old["arguments"]
    cleaner.hset(key, "order", json.dumps(old | {"payload": {"card": f"{CANARY}-card"}, "changes": {}, "result": None}))
    assert plain.order().payload == bulk.order().payload
    replace_key(settings, keep=True)
    assert "arguments of bulk actions: 2 encrypted, 1 up to date" in rotate(capsys)
    assert "arguments of bulk actions: 0 encrypted, 3 up to date" in rotate(capsys)
    settings.SECRET_KEY_FALLBACKS = []
    assert plain.order().payload == bulk.order().payload == {"card": f"{CANARY}-card"}
    assert CANARY not in dump_redis(cleaner, prefix)


def test_a_bulk_without_its_key_moves_nothing_and_says_so(held, settings, engine, as_):
    discover()
    bulk = start_bulk(held)
    replace_key(settings, keep=False)
    with pytest.raises(ciphers.SecretUnreadable, match=WORD):
        work_off(engine)
    assert as_("supervisor", "bob").get(reverse("signalbox:bulk", args=[bulk.id])).status_code == 200
    with pytest.raises(ciphers.SecretUnreadable, match=WORD):
        bulks.again(held.actor, bulk.id, reason="once more")
    with pytest.raises(CommandError, match=f"arguments of bulk actions of {bulk.id}"):
        call_command("secrets", "rotate")
    assert engine.get("order", "o-1").state == "Open"


def test_of_a_factor_whole_values_of_its_secrets_are_renewed(settings):
    codes = [ciphers.encrypt(text, rotation.FACTORS) for text in ("one", "two")]
    passkey = {"name": "$fernet$abc", "credential": codes[0]}
    stored = json.dumps({**passkey, "secret": codes[0], "migrated_codes": codes, "used_mask": 0})
    assert rotation._renew_within(stored) == stored
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another-key-0123456789", [settings.SECRET_KEY]
    found = json.loads(rotation._renew_within(stored))
    settings.SECRET_KEY_FALLBACKS = []
    assert [ciphers.decrypt(one, rotation.FACTORS) for one in (found["secret"], *found["migrated_codes"])] == [
        "one", "one", "two",
    ]  # fmt: skip
    assert (found["name"], found["credential"], found["used_mask"]) == ("$fernet$abc", codes[0], 0)
    assert rotation._renew_within(json.dumps({"seed": codes[0]})) is None
