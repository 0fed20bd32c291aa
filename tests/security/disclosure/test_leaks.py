"""What is marked sensitive leaves by no door: pages, API, sockets, files, the admin, the log, the audit, webhooks.

One value is planted wherever one can come to lie (``planted``); every door is opened by a person who holds every right
but ``reveal``, and all that came is searched for it.
"""

from __future__ import annotations

import json
import logging.config
from collections.abc import Iterator
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.conf import settings as configured
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from dashboard.models import SavedView
from dashboard.site.log_format import Line
from machines.catalog.publishing import adopt
from machines.engine import Engine
from machines.models import Approval, AuditEntry, Delivery, Machine, Webhook
from machines.people.actor import Actor
from machines.people.permissions import RIGHTS
from machines.webhooks import management, sender
from machines.webhooks.fan_out import FanOut
from machines.worker import Job
from machines.worker.registry import Registry
from tests.live.sockets import Socket, visitor
from tests.pages.table import TABLE
from tests.webhooks.conftest import receiver
from tests.worker.builders import drain

from . import planted
from .planted import EVENTS, NAME, PIN, PLANT, PLANTS, QUEUE, Planted, plant

__all__ = ["receiver"]
MINE = "my own pin"
REPAIRS: dict[str, dict[str, Any]] = {
    "edit": {"changes": {"size": 3}}, "force": {"state": "Open"}, "reset": {}, "suspend": {}, "delete": {},
}  # fmt: skip


@pytest.fixture
def found(engine: Engine, transactional_db: None) -> Planted:
    made = plant(engine)
    adopt(NAME)
    return made


@pytest.fixture
def person(user_of):
    """A client of staff with every right there is, or all but the one to see what is sensitive."""

    def made(*, reveal: bool = False) -> Client:
        user = user_of("nobody", f"reveals-{reveal}")
        rights = [permission.partition(".")[2] for right, permission in RIGHTS.items() if reveal or right != "reveal"]
        user.user_permissions.set(Permission.objects.filter(codename__in=rights))
        user.is_staff = True
        user.save()
        client = Client()
        client.force_login(user)
        client.user = user
        return client

    return made


def body(answer: Any) -> str:
    raw = b"".join(answer.streaming_content if answer.streaming else [answer.content]).decode()
    return raw + str(dict(answer.headers))


def told(texts: dict[str, str]) -> dict[str, str]:
    """Of what came by each door, the part that holds what must not be in it."""
    return {door: text[max(0, text.find(p) - 100) :][:200] for door, text in texts.items() for p in PLANTS if p in text}


# What is read


def pages(found: Planted, approval: int) -> Iterator[str]:
    """Every address of the pages, with what is planted in the place of its arguments."""
    ids = {
        "job": (found.dead, found.leased), "bulk": found.bulks, "approval": (str(approval),),
        "draft": ("7",), "plan": ("7",),
    }  # fmt: skip
    for name, entry in TABLE.items():
        if entry.right is None:
            continue
        given = dict(entry.arguments) | {
            key: value for key, value in {"machine": NAME, "queue": QUEUE}.items() if key in entry.arguments
        }
        kind = name.partition("-")[0]
        every = ids.get(kind, (found.shut, found.charging, found.leasing, found.waiting))
        if "id" in given and (kind in ids or "machine" in given):
            yield from (reverse(f"signalbox:{name}", kwargs=given | {"id": id}) for id in every)
        else:
            yield reverse(f"signalbox:{name}", kwargs=given) + entry.query
    yield from terms(found)


def terms(found: Planted) -> Iterator[str]:
    """Terms of an address that show more."""
    instance, queue = (
        reverse("signalbox:instance", args=[NAME, found.shut]),
        reverse("signalbox:queue", args=[NAME, QUEUE]),
    )
    machine = reverse("signalbox:machine", args=[NAME])
    yield from (f"{instance}?{query}" for query in ("at=1", "at=1&with=2", "before=2"))
    yield from (f"{queue}?place={place}" for place in ("dead", "leased", "ready", "delayed"))
    yield from (f"{machine}?{query}" for query in ("error=any", "mode=failures", "mode=age", "state=Shut", "view=top"))
    yield reverse("signalbox:bulk-list")
    for n in range(len(found.bulks)):
        yield reverse("signalbox:instance", args=["bulk", f"b-{n}"])
        yield f"{reverse('signalbox:bulk', args=[f'b-{n}'])}?verdict=refused"
    for job in range(1, 40):
        yield reverse("signalbox:job", args=["bulk", f"0-{job}"])
    yield from (f"{reverse('signalbox:api-live')}?topic={topic}" for topic in topics(found))
    yield f"{reverse('signalbox:search')}?q=p-1"
    yield f"{reverse('signalbox:search-suggestions')}?q=p-1"


def topics(found: Planted) -> list[str]:
    instances = [f"instance:{NAME}/{id}" for id in (found.shut, found.charging, found.leasing, found.waiting)]
    jobs = [f"job:{NAME}/{id}" for id in (found.dead, found.leased)]
    bulks = [f"instance:bulk/{bulk}" for bulk in found.bulks]
    return ["overview", "queues", "workers", f"machine:{NAME}", f"queue:{NAME}/{QUEUE}", *instances, *jobs, *bulks]


def admin(found: Planted) -> Iterator[str]:
    pk = Machine.objects.get(name=NAME).pk
    for id in (found.shut, found.charging, found.leasing, found.waiting):
        yield f"{reverse('admin:machines_machine_instance', args=[pk])}?id={id}"
    yield reverse("admin:machines_machine_instances", args=[pk])
    yield reverse("admin:machines_machine_change", args=[pk])
    yield reverse("admin:machines_machine_history", args=[pk])
    yield reverse("admin:machines_auditentry_changelist")
    for entry in AuditEntry.objects.all():
        yield reverse("admin:machines_auditentry_change", args=[entry.pk])


def operations(client: Client, found: Planted, approval: int) -> Iterator[str]:
    """Every GET of the API."""
    places = {
        "machine": [NAME], "id": [found.shut, found.charging, found.leasing, found.waiting], "queue": [QUEUE],
        "job": [found.dead, found.leased], "approval": [str(approval)], "webhook": ["7"],
    }  # fmt: skip
    queries = {"jobs": [f"?place={place}" for place in ("dead", "leased")], "instances": ["?error=any", "?state=Shut"]}
    for path, item in client.get("/api/v1/openapi.json").json()["paths"].items():
        if "get" not in item:
            continue
        addresses = [path]
        for part in path.split("/"):
            if part.startswith("{"):
                named = part.strip("{}").split(":")[-1]
                values = found.bulks if "/bulks/" in path else places.get(named, ["1"])
                addresses = [address.replace(part, value) for address in addresses for value in values]
        for address in addresses:
            yield from [address, *(address + query for query in queries.get(address.rsplit("/", 1)[-1], ()))]


# What is tried


def tries(client: Client, found: Planted) -> Iterator[tuple[str, Any]]:
    """Everything that looks at an event or a repair, or does it: what came back."""
    instance = f"/api/v1/machines/{NAME}/instances/{found.shut}"
    pk = Machine.objects.get(name=NAME).pk
    for event in EVENTS:
        payload = {"pin": MINE} if event in ("open", "dig") else {}
        form = {"event": event, "reason": "", "expect": version(found)} | {
            f"payload-{name}": text for name, text in payload.items()
        }
        asked = {"event": event, "payload": payload}
        page = reverse("signalbox:fire", args=[NAME, found.shut])
        yield f"{event} looked at on its page", client.post(page, form | {"check": "1"})
        yield f"{event} on its page", client.post(page, form)
        screen = f"{reverse('admin:machines_machine_instance', args=[pk])}?id={found.shut}"
        yield f"{event} in the admin", client.post(screen, form)
        yield f"{event} by API", post(client, f"{instance}/events", asked)
        yield f"{event} explained", post(client, f"{instance}/explanations", asked)
        many = {"calls": [asked | {"id": found.shut}]}
        yield f"{event} among many", post(client, f"/api/v1/machines/{NAME}/events", many)
    look = {"reason": "a test", "preview": "1", "expect": version(found)}
    for name, asked in REPAIRS.items():
        yield f"{name} by API", post(client, f"{instance}/repairs/{name}/preview", asked)
        yield f"{name} on its page", client.post(reverse(f"signalbox:{name}", args=[NAME, found.shut]), look)
    yield "create", post(client, f"/api/v1/machines/{NAME}/instances", {"id": "p-9", "data": {"card": 1, "code": "x"}})


def version(found: Planted) -> int:
    from machines.connections import get_engine

    return get_engine().get(NAME, found.shut).revision


def post(client: Client, path: str, sent: dict[str, Any]) -> Any:
    return client.post(path, json.dumps(sent), content_type="application/json")


@pytest.fixture
def approval(found: Planted, person) -> int:
    """What somebody who may see everything asked for, and another may decide."""
    asker = person(reveal=True)
    form = {"event": "settle", "expect": version(found), "reason": "late", "payload-pin": PIN}
    assert asker.post(reverse("signalbox:fire", args=[NAME, found.shut]), form).status_code == 302
    return Approval.objects.get().pk


@pytest.fixture
def lines(caplog) -> Iterator[list[str]]:
    """Every line of the log, at any level, as the site writes it."""
    written: list[str] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            record.asked = ""
            written.append(Line("{levelname} {name}: {message}", style="{").format(record))

    keeper = Keeper(level=0)
    root = logging.getLogger()
    root.addHandler(keeper)
    with caplog.at_level(logging.DEBUG):
        yield written
    root.removeHandler(keeper)


@pytest.mark.matrix
def test_no_door_shows_what_is_planted_behind_it(found, person, approval, lines, engine):
    planted.hook()
    client, came = person(), {}
    for door, answer in tries(client, found):
        assert answer.status_code < 500, door
        came[door] = body(answer)
    FanOut(engine, wait=0.0).look()
    for address in (*pages(found, approval), *operations(client, found, approval), *admin(found)):
        answer = client.get(address)
        assert answer.status_code < 500, address
        came[address] = body(answer)
    came["the log"] = "\n".join(line for line in lines if "DEBUG django" not in line)
    came["the audit"] = "\n".join(str(vars(entry)) for entry in AuditEntry.objects.exclude(actor="reveals-True"))
    came["the admin's log"] = "\n".join(entry.change_message for entry in LogEntry.objects.all())
    came["deliveries"] = "\n".join(Delivery.objects.values_list("body", flat=True))
    assert len(came) > 300
    assert told(came) == {}, "\n".join(f"{door}: {part!r}" for door, part in told(came).items())


def test_a_replay_names_no_value_that_a_failing_step_read(found, person, engine):
    shut = planted.PLANTED["states"]["Shut"]
    ring = {"ring": {"actions": {"set": {"size": "int(stretch)"}}}}
    states = planted.PLANTED["states"] | {"Shut": shut | {"on": shut["on"] | ring}}
    engine.publish(planted.PLANTED | {"states": states})
    address = f"{reverse('signalbox:version-replay', args=[NAME])}?version=2&sample=20&run=1"
    assert "not a number" in body(person(reveal=True).get(address))  # it fails there, and says of which value
    assert told({address: body(person().get(address))}) == {}


# What is shared


@pytest.mark.parametrize(
    "query", [f"error={PLANT}", "error=any&error=declined", "by=card&is=4", f"error=%20{PLANT}%20"]
)
def test_what_others_are_given_finds_by_no_error_text_and_no_hidden_field(found, person, query):
    boss, page = person(reveal=True), reverse("signalbox:machine", args=[NAME])
    for shared, status in (("", 302), ("on", 400)):
        form = {"name": f"mine {shared}", "page": page, "query": query, "shared": shared}
        assert boss.post(reverse("signalbox:view-save"), form).status_code == status
    asked = {"name": "by API", "page": page, "query": query, "shared": True}
    assert post(boss, "/api/v1/views", asked).status_code == 422
    mine = SavedView.objects.get()
    assert (
        boss.post(reverse("signalbox:view-rename", args=[mine.pk]), {"name": "ours", "shared": "on"}).status_code == 400
    )
    assert not SavedView.objects.filter(shared=True).exists()


def test_that_any_error_stands_against_an_instance_can_be_shared(found, person):
    form = {"name": "broken", "page": reverse("signalbox:machine", args=[NAME]), "query": "error=any", "shared": "on"}
    assert person().post(reverse("signalbox:view-save"), form).status_code == 302


def test_a_view_that_was_shared_before_its_field_was_marked_is_shown_to_who_may_reveal_alone(found, person):
    boss, other, page = person(reveal=True), person(), reverse("signalbox:machine", args=[NAME])
    keeper = get_user_model().objects.create_user("keeper")
    for number, query in enumerate((f"error={PLANT}", f"by=card&is={PLANT}", "by=owner&is=ann")):
        made = SavedView(owner=keeper, name=f"view {number}", page=page, machine=NAME, query=query, shared=True)
        SavedView.objects.bulk_create([made])
    for address in (page, reverse("signalbox:overview"), "/api/v1/views"):
        assert PLANT in body(boss.get(address)), address
        seen = body(other.get(address))
        assert PLANT not in seen, address
        assert "view 2" in seen, address


# What is pushed, and what workers write


async def test_no_frame_of_a_socket_holds_it_whatever_moves(engine, transactional_db):
    found = await database_sync_to_async(plant)(engine)
    _, cookie = await visitor("watcher", *(right for right in RIGHTS if right != "reveal"))
    socket = Socket(cookie)
    await socket.connect()
    watched = [*topics(found), f"instance:{NAME}/none", "instance:bulk/b-0"]
    await socket.subscribe(*watched, f"job:{NAME}/nonsense", "nonsense")
    for topic in topics(found):
        await socket.sees(topic)
    await database_sync_to_async(moves)(engine, found)
    await socket.until(lambda screen: screen.values[f"instance:{NAME}/{found.shut}"]["revision"] >= 6)
    await socket.until(lambda screen: screen.values[f"job:{NAME}/{found.leased}"]["place"] == "dead")
    assert told({f"frame {n}": json.dumps(frame) for n, frame in enumerate(socket.screen.frames)}) == {}
    await socket.disconnect()


def moves(engine: Engine, found: Planted) -> None:
    for event in ("ring", "send", "ring"):
        engine.fire(NAME, found.shut, event, {}, reason=f"of {planted.CARD}")
    (job,) = engine.jobs(NAME, QUEUE, place="leased")
    engine.fail(job, f"declined: {planted.CARD}", kind="Declined", retry=False)


def test_a_worker_logs_no_word_of_it(engine, db, lines):
    """A handler that fails, one that returns what its machine refuses, one that says how far it is, a timer that
    fails, and a message nobody takes."""
    engine.publish(planted.PLANTED)
    registry = Registry()

    @registry.handler("deliver")
    def deliver(job: Job) -> None:
        job.progress(1, 2, f"at {planted.CARD}")
        raise ValueError(f"declined: {planted.CARD} {planted.CODE}") from KeyError(planted.CARD)

    for id in ("p-1", "p-2"):
        engine.create(NAME, id, planted.VALUES)
    engine.fire(NAME, "p-1", "deliver", {})
    engine.fire(NAME, "p-2", "wait", {}, now=engine.live(NAME).now - 5000)
    drain(engine, registry)
    assert "declined" in engine.jobs(NAME, QUEUE, place="dead")[0].error
    assert any("Delivering" not in line and "failed, now dead: ValueError" in line for line in lines)
    assert told({line[:60]: line for line in lines}) == {}


# Addresses of webhooks, which hold secrets of their receivers


def test_the_audit_has_of_a_webhook_where_it_leads_and_no_path(engine, person):
    boss = person(reveal=True)
    made = {"name": "out", "url": f"https://hooks.example:443/{PLANT}?token={PLANT}", "types": "*"}
    assert boss.post(reverse("signalbox:webhook-make"), made).status_code == 200
    hook = Webhook.objects.get()
    other = {"name": "out", "url": f"http://[2606:4700::1]/x/{PLANT}-2", "types": "*"}
    boss.post(reverse("signalbox:webhook-change", args=[hook.pk]), other)
    boss.post(reverse("signalbox:webhook-change", args=[hook.pk]), other | {"name": "still out"})
    boss.post(reverse("signalbox:webhook-delete", args=[hook.pk]), {"name": "still out"})
    refused = {"name": "in", "url": f"https://10.0.0.1/{PLANT}", "types": "*"}
    assert boss.post(reverse("signalbox:webhook-make"), refused).status_code == 400
    entries = list(AuditEntry.objects.filter(action__startswith="webhook.").order_by("pk"))
    assert [entry.detail.get("url") for entry in entries] == [
        "https://hooks.example", "http://[2606:4700::1]", "http://[2606:4700::1]", "http://[2606:4700::1]", None,
    ]  # fmt: skip
    prints = [entry.detail.get("fingerprint") for entry in entries[:4]]
    assert prints[0] != prints[1] == prints[2] == prints[3]
    came = {
        address: body(boss.get(address))
        for address in (reverse("signalbox:audit"), reverse("signalbox:audit-export"), "/api/v1/audit")
    }
    assert told(came | {"the audit": str([vars(entry) for entry in entries])}) == {}


def test_nor_does_it_show_the_path_that_a_former_release_wrote(engine, person):
    boss, url = person(reveal=True), f"https://hooks.example:8443/{PLANT}"
    boss.user.is_superuser = True
    boss.user.save()
    entry = AuditEntry.objects.create(actor="ann", action="webhook.make", outcome="done", detail={"url": url, "n": 1})
    change = reverse("admin:machines_auditentry_change", args=[entry.pk])
    came = {
        a: body(boss.get(a))
        for a in (reverse("signalbox:audit"), reverse("signalbox:audit-export"), "/api/v1/audit", change)
    }
    assert told(came) == {}
    assert all("https://hooks.example:8443" in text for text in came.values())


def test_the_log_has_no_address_of_a_webhook(lines, engine, receiver, settings, person):
    """The HTTP client would write each of them down."""
    logging.config.dictConfig(configured.LOGGING)
    hook = planted.hook()
    hook.url = f"{receiver.url}&{PLANT}"
    hook.save()
    management.test(Actor(person(reveal=True).user, "page 192.0.2.1"), hook.pk)
    assert sender.send_due() == 1
    assert receiver.requests
    assert told({"the log": "\n".join(lines)}) == {}
