"""Whoever is shown a sensitive value in clear stands in the audit: once, with machine, instance and field, without the
value."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from machines.approvals import actions as approvals
from machines.audit import reveals as disclosures
from machines.audit.redaction import MASK
from machines.audit.reveals import EVERY, LISTED, Memory, Viewer, collect_reveals, note, write_entry
from machines.catalog.errors import ApprovalNeeded
from machines.catalog.publishing import adopt
from machines.conf.encryption.field_codec import SecretKeyCodec
from machines.engine import Engine
from machines.instances import actions as instances
from machines.instances.bulks import Row
from machines.instances.bulks import actions as bulks
from machines.instances.bulks.store import Item, Note
from machines.models import AuditEntry
from machines.people import tokens
from machines.people.actor import Actor
from machines.people.permissions import RIGHTS
from tests.live.sockets import Socket, visitor
from tests.pages.instances.test_sensitive import PIN, SECRETS, addresses, body, having, vault
from tests.vault import NAME, SECRET, Filled, fill

__all__ = ["having", "vault"]
QUIET = ("/suspend/", "/resume/", "/delete/", "/reset/", "/force/", "/retry/", "/skip/", "/cancel/", "/new/")
"""Forms that hold the instance and do not show its data: reading it for them counts."""


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    """Nothing was written lately; its clock is the test's."""
    made = Memory(clock=lambda: made.now)  # type: ignore[attr-defined]
    made.now = 0.0  # type: ignore[attr-defined]
    monkeypatch.setattr(disclosures, "memory", made)
    return made


@pytest.fixture
def seer(having: Callable[..., Client]) -> Client:
    return having(reveal=True)


def reveals(**terms: Any) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(action="reveal", **terms).order_by("id"))


def told() -> list[tuple[str, str, list[str]]]:
    return [(entry.machine, entry.instance, entry.detail["shown"]) for entry in reveals()]


@pytest.mark.matrix
def test_no_address_shows_a_value_without_an_entry_and_none_leaves_one_that_shows_none(vault, seer, memory):
    """Entries name who saw what, and hold no value."""
    without, needless = [], []
    for address in addresses(vault):
        memory._written.clear()
        answer = seer.get(address)
        shown = [secret for secret in SECRETS if secret in body(answer)]
        entries = reveals(request=answer["X-Request-Id"])
        if shown and not entries:
            without.append((address, shown))
        if entries and not shown and not any(part in address for part in QUIET):
            needless.append((address, entries[0].detail))
    assert (without, needless) == ([], [])
    for entry in reveals():
        assert (entry.actor, entry.machine, entry.outcome) == ("reveal-True", NAME, "done")
        assert entry.source.endswith(" 127.0.0.1")
        assert entry.request
    text = json.dumps(list(AuditEntry.objects.filter(action="reveal").values()), default=str)
    assert [secret for secret in SECRETS if secret in text] == []


def test_a_page_of_an_instance_leaves_one_entry_with_all_it_showed(vault, seer):
    seer.get(reverse("signalbox:instance", args=[NAME, vault.shut]))
    assert told() == [(NAME, vault.shut, ["card", "copy"])]


@pytest.mark.matrix
def test_without_the_right_no_page_shows_it_and_there_is_nothing_to_tell(vault, having):
    client, shown = having(reveal=False), {}
    for address in addresses(vault):
        answer = client.get(address)
        assert answer.status_code < 500, address
        shown[address] = [secret for secret in SECRETS if secret in body(answer)]
    assert {address: found for address, found in shown.items() if found} == {}
    assert reveals() == []


def test_a_machine_without_sensitive_fields_leaves_none(engine, seer):
    engine.publish({"id": "plain", "initial": "a", "context": {"card": ""}, "states": {"a": {"on": {"x": "a"}}}})
    engine.create("plain", "p-1", {"card": SECRET})
    seer.get(reverse("signalbox:instance", args=["plain", "p-1"]))
    assert reveals() == []


def test_a_value_that_is_not_set_was_not_shown(engine, vault, seer):
    engine.create(NAME, "v-9", {"owner": "eve"})
    seer.get(reverse("signalbox:instance", args=[NAME, "v-9"]))
    assert reveals() == []


def test_looking_again_is_one_entry_for_some_minutes(vault, seer, memory):
    page = reverse("signalbox:instance", args=[NAME, vault.shut])
    for _ in range(5):
        seer.get(page)
    seer.get(f"{reverse('signalbox:api-live')}?topic=instance:{NAME}/{vault.shut}")
    assert len(reveals()) == 1
    memory.now = EVERY
    seer.get(page)
    assert len(reveals()) == 2


def test_a_further_field_of_the_same_instance_is_told(engine, vault, seer):
    page = reverse("signalbox:instance", args=[NAME, vault.shut])
    seer.get(page)
    engine.edit(NAME, vault.shut, {"code": 9021077}, actor="ann", reason="a test")
    seer.get(page)
    assert [shown for *_, shown in told()] == [["card", "copy"], ["card", "code", "copy"]]


def test_others_and_other_doors_are_told_apart(vault, seer, db):
    page, api = (
        reverse("signalbox:instance", args=[NAME, vault.shut]),
        f"/api/v1/machines/{NAME}/instances/{vault.shut}",
    )
    seer.get(page)
    seer.get(page, REMOTE_ADDR="192.0.2.7")
    user = seer.get(page).wsgi_request.user
    made, text = tokens.make(user, "a test", tuple(RIGHTS))
    for _ in range(2):
        Client().get(api, headers={"Authorization": f"Bearer {text}"})
    assert [entry.source for entry in reveals()] == [
        "page 127.0.0.1", "page 192.0.2.7", f"api 127.0.0.1 token {made.handle}",
    ]  # fmt: skip


def test_a_list_is_one_entry_with_those_that_are_new_in_it(engine, vault, seer):
    api = f"/api/v1/machines/{NAME}/instances"
    seer.get(api)
    seer.get(api)
    engine.create(NAME, "v-8", {"card": SECRET})
    seer.get(api)
    first, second = reveals()
    assert (first.instance, first.detail) == (
        "", {"shown": ["card", "code", "copy"], "instances": ["v-1", "v-2", "v-3"], "count": 3},
    )  # fmt: skip
    assert (second.instance, second.detail) == ("v-8", {"shown": ["card"]})


def test_a_file_of_results_is_told_for_the_request_that_asked_for_it(vault, seer):
    answer = seer.get(reverse("signalbox:bulk-results", args=[vault.bulk]))
    assert SECRET in body(answer)
    (entry,) = reveals()
    assert (entry.request, entry.machine, entry.detail["shown"]) == (answer["X-Request-Id"], NAME, ["error"])


def test_many_rows_of_results_are_one_entry(vault, seer):
    """A file is made piece by piece, after its request is over."""
    viewer = Actor(seer.get("/").wsgi_request.user, "page")
    told, plain = Note("refused", f"it is not {SECRET}", "it is not so"), Note.of_all("taken", "")
    rows = [Row(Item(f"i-{number}", 1, "Shut", 1), told if number else plain, None) for number in range(50)]
    bulks.redact_rows(viewer, NAME, rows)
    (entry,) = reveals()
    assert (entry.detail["count"], entry.detail["shown"]) == (49, ["error"])


def test_a_long_list_names_some_and_says_how_many(vault, seer):
    viewer = Viewer(seer.get("/").wsgi_request.user, "page")
    write_entry(viewer, NAME, {f"i-{number}": frozenset({"card"}) for number in range(LISTED + 50)})
    (entry,) = reveals()
    assert (len(entry.detail["instances"]), entry.detail["count"]) == (LISTED, LISTED + 50)


def test_an_event_and_its_refusal_are_told_to_whoever_sent_it(vault, seer):
    answer = seer.post(
        reverse("signalbox:fire", args=[NAME, vault.shut]), {"event": "open", "expect": "2", "f-pin": PIN, "pin": PIN}
    )
    assert answer.status_code in (302, 400, 409)
    assert {entry.actor for entry in reveals()} <= {"reveal-True"}


def test_what_a_second_person_has_done_was_not_shown_to_the_first(vault, having, memory):
    having(reveal=True)

    def actor(name: str) -> Actor:
        user = get_user_model().objects.create_user(name)
        codes = [permission.partition(".")[2] for permission in RIGHTS.values()]
        user.user_permissions.set(Permission.objects.filter(codename__in=codes))
        return Actor(user, f"page of {name}")

    ann, bob = actor("ann"), actor("bob")
    with pytest.raises(ApprovalNeeded) as needed:
        instances.fire(ann, NAME, vault.shut, "settle", {"pin": PIN}, reason="a test")
    filed = approvals.ask(ann, needed.value)
    memory._written.clear()
    AuditEntry.objects.all()._raw_delete("default")
    assert approvals.approve(bob, filed.pk).state == "done"
    assert reveals(actor="ann") == []


def test_an_entry_that_could_not_be_written_is_tried_again(vault, seer, monkeypatch):
    user = seer.get("/").wsgi_request.user
    monkeypatch.setattr(disclosures, "record", lambda *_, **__: False)
    write_entry(Viewer(user, "page"), NAME, {"v-1": frozenset({"card"})})
    monkeypatch.undo()
    write_entry(Viewer(user, "page"), NAME, {"v-1": frozenset({"card"})})
    assert told() == [(NAME, "v-1", ["card"])]


def test_what_is_shown_after_a_request_is_written_at_once(vault, seer):
    viewer = Viewer(seer.get("/").wsgi_request.user, "page")
    with collect_reveals() as found:
        note(viewer, NAME, {"v-1": ["card"]})
        assert (bool(found), reveals()) == (True, [])
    note(viewer, NAME, {"v-2": ["card"], "v-3": []})
    assert told() == [(NAME, "v-2", ["card"])]


@pytest.mark.pure
def test_memory_is_bounded_and_forgets_the_old_first(monkeypatch):
    monkeypatch.setattr(disclosures, "MOST", 3)
    now = [0.0]
    memory, card = Memory(lambda: now[0]), frozenset({"card"})

    def keys(count: int) -> Iterator[tuple[str, str, str, str]]:
        return (("1", "page", NAME, f"i-{number}") for number in range(count))

    assert [memory.fresh(key, card) for key in keys(3)] == [True] * 3
    assert [memory.fresh(key, card) for key in keys(3)] == [False] * 3
    now[0] = EVERY
    assert [memory.fresh(key, card) for key in keys(5)] == [True] * 5
    assert len(memory._written) <= 3


# Sockets


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("direct", [False, True], ids=["sent", "written"])
async def test_a_socket_leaves_one_entry_for_each_instance_it_shows(engine: Engine, direct: bool) -> None:
    filled: Filled = await database_sync_to_async(fill)(engine)
    await database_sync_to_async(adopt)(NAME)
    _, cookie = await visitor("eve", "view", "reveal")
    socket = Socket(cookie, direct=direct)
    await socket.connect()
    topics = [f"instance:{NAME}/{filled.shut}", f"job:{NAME}/{filled.dead}", f"machine:{NAME}"]
    for topic in topics:
        await socket.subscribe(topic)
        await socket.until(lambda screen, topic=topic: topic in screen.values)
    engine.edit(NAME, filled.shut, {"owner": "zoe"}, actor="ann", reason="a test")
    await socket.until(lambda screen: screen.values[topics[0]]["data"]["owner"] == "zoe")
    await socket.disconnect()
    found = await database_sync_to_async(lambda: sorted(told()))()
    assert found == [(NAME, filled.shut, ["card", "copy"]), (NAME, filled.charging, ["error"])]
    requests = await database_sync_to_async(lambda: set(AuditEntry.objects.values_list("request", flat=True)))()
    assert len(requests - {""}) == len(requests) == 1, "each entry has the id of the socket's request"
    assert bool(socket.direct) is direct


@pytest.mark.django_db(transaction=True)
async def test_a_socket_without_the_right_leaves_none(engine: Engine) -> None:
    filled: Filled = await database_sync_to_async(fill)(engine)
    await database_sync_to_async(adopt)(NAME)
    _, cookie = await visitor("eve", "view")
    socket = Socket(cookie)
    await socket.connect()
    topic = f"instance:{NAME}/{filled.shut}"
    await socket.subscribe(topic)
    await socket.until(lambda screen: topic in screen.values)
    await socket.disconnect()
    assert await database_sync_to_async(told)() == []


@pytest.mark.django_db(transaction=True)
async def test_a_socket_shows_nobody_an_encrypted_field(engine: Engine, redis_url: str, prefix: str) -> None:
    fields = {"card": {"type": "string", "encrypted": True}, "note": {"type": "string", "sensitive": True}}
    on = {"pay": {"actions": [{"set": {"card": "event.card", "note": "'paid'"}}]}}
    coded = Engine.from_url(redis_url, prefix=prefix, codec=SecretKeyCodec())
    context = {"type": "object", "properties": fields}
    coded.publish({"id": "safe", "initial": "A", "context": context, "states": {"A": {"on": on}}})
    sealed = [coded.encrypt("safe", {"card": card}) for card in (SECRET, f"{SECRET}-2")]
    coded.client.close()
    await database_sync_to_async(adopt)("safe")
    engine.create("safe", "s-1", sealed[0])
    _, cookie = await visitor("eve", "view", "reveal")
    socket = Socket(cookie)
    await socket.connect()
    topic = "instance:safe/s-1"
    await socket.subscribe(topic)
    await socket.until(lambda screen: topic in screen.values)
    engine.fire("safe", "s-1", "pay", sealed[1])
    await socket.until(lambda screen: screen.values[topic]["revision"] == 2)
    await socket.disconnect()
    assert socket.screen.values[topic]["data"] == {"card": MASK, "note": "paid"}
    assert not any(text in json.dumps(socket.screen.frames) for text in (SECRET, "enc:1:"))
    assert await database_sync_to_async(lambda: sorted(told()))() == [("safe", "s-1", ["note"])]
