"""Instances of the product's machines take no events, repairs, creation and deletion by hand: each machine at each
door."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from machines import catalog
from machines.catalog import builtin_machines, publishing
from machines.catalog.errors import SystemMachine
from machines.engine import Engine
from machines.instances import actions as instances
from machines.instances.bulks import BULK, Bulk, Order
from machines.instances.bulks import actions as bulks
from machines.integrations.binding.checks import check_name
from machines.integrations.binding.field import MachineField
from machines.jobs import actions as jobs
from machines.jobs import queue_actions as queues
from machines.mapreduce import MapReduce
from machines.mapreduce import actions as runs
from machines.mapreduce.store import RUN
from machines.models import AuditEntry, Machine
from machines.people import tokens
from machines.people.actor import Actor
from machines.people.permissions import RIGHTS
from machines.schedules import InvalidSchedule
from machines.schedules import actions as schedules
from machines.testing.job_runner import JobRunner
from tests.cases import for_each
from tests.instances.bulks.builders import finished, parcels, previewed

ID, WHY = "x-1", "a test"
SHIPPED = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in Path(catalog.__file__).parent.parent.rglob("definitions/*.json")
    if path.stem in builtin_machines.NAMES
}
CODE = "SB449"


@pytest.fixture
def machines(engine: Engine, db: None) -> list[str]:
    """The machines of the product, each with an instance."""
    assert set(SHIPPED) == builtin_machines.NAMES
    for definition in SHIPPED.values():
        publishing.publish(definition)
        engine.create(definition["id"], ID)
    return sorted(SHIPPED)


@pytest.fixture
def boss(person) -> Any:
    return person("root", boss=True)


def event_of(machine: str) -> str:
    """An event that needs no payload."""
    events = SHIPPED[machine].get("events", {})
    return next((name for name, event in events.items() if not event.get("payload")), "go")


def browse(user: Any, name: str, *arguments: str, **sent: Any) -> tuple[int, str]:
    client = Client()
    client.force_login(user)
    answer = client.post(reverse(f"signalbox:{name}", args=arguments), {"reason": WHY, "key": "k"} | sent)
    return answer.status_code, answer.content.decode()


def call(user: Any, address: str, **body: Any) -> tuple[int, str]:
    token, secret = tokens.make(user, "a test", tuple(RIGHTS))
    headers = {"Authorization": f"Bearer {secret}"}
    answer = Client().post(f"/api/v1{address}", json.dumps(body), content_type="application/json", headers=headers)
    token.delete()  # an account has fifty at most
    return answer.status_code, answer.content.decode()


def by_admin(user: Any, machine: str) -> tuple[int, str]:
    number = Machine.objects.get(name=machine).pk
    client = Client()
    client.force_login(user)
    address = f"{reverse('admin:machines_machine_instance', args=[number])}?id={ID}"
    answer = client.post(address, {"event": event_of(machine), "expect": "1", "reason": WHY})
    return answer.status_code, answer.content.decode()


STATES = {name: next(iter(definition["states"])) for name, definition in SHIPPED.items()}
ASKED: dict[str, Callable[[str], dict[str, Any]]] = {
    "force": lambda machine: {"state": STATES[machine]}, "edit": lambda machine: {"changes": {}},
    "retry": lambda machine: {"invoke": "work"}, "skip": lambda machine: {"invoke": "work"},
    "cancel": lambda machine: {"invoke": "work"},
}  # fmt: skip


def asked(name: str, machine: str) -> dict[str, Any]:
    return ASKED[name](machine) if name in ASKED else {}


HTTP: dict[str, Callable[[Any, str], tuple[int, str]]] = {
    "page: create": lambda user, m: browse(user, "create", m),
    "page: fire": lambda user, m: browse(user, "fire", m, ID, event=event_of(m), expect="1"),
    "page: check": lambda user, m: browse(user, "fire", m, ID, event=event_of(m), expect="1", check="1"),
    "admin: fire": by_admin,
    "api: create": lambda user, m: call(user, f"/machines/{m}/instances", id="x-2"),
    "api: fire": lambda user, m: call(user, f"/machines/{m}/instances/{ID}/events", event=event_of(m)),
    "api: fire many": lambda user, m: call(
        user, f"/machines/{m}/events", calls=[{"id": ID, "event": event_of(m)}]
    ),
    "api: bulk": lambda user, m: call(user, f"/machines/{m}/bulks", action="delete", filter={}, reason=WHY),
    **{
        f"api: {name}": lambda user, m, name=name: call(
            user, f"/machines/{m}/instances/{ID}/repairs/{name}", reason=WHY, **asked(name, m)
        )
        for name in instances.REPAIRS
    },
    **{
        f"api: preview {name}": lambda user, m, name=name: call(
            user, f"/machines/{m}/instances/{ID}/repairs/{name}/preview", **asked(name, m)
        )
        for name in instances.REPAIRS
    },
}  # fmt: skip


@pytest.mark.matrix
@for_each("door", HTTP)
def test_no_door_of_the_site_moves_an_instance(engine, machines, boss, door):
    for machine in machines:
        status, text = HTTP[door](boss, machine)
        assert status >= 400 or door == "api: fire many"
        assert CODE in text or "a machine of the product" in text
        assert engine.get(machine, ID).revision == 1
        assert len(engine.find(machine).instances) == 1


@for_each("name", instances.REPAIRS)
def test_the_pages_of_repairs_are_closed(engine, machines, boss, name):
    """Whatever the form holds."""
    for machine in machines:
        status, _ = browse(boss, name, machine, ID, expect="1", state=STATES[machine], invoke="work", changes="{}")
        assert status >= 400
        assert engine.get(machine, ID).revision == 1


SERVICES: dict[str, Callable[[Actor, str], Any]] = {
    "create": lambda actor, m: instances.create(actor, m, "x-2"),
    "fire": lambda actor, m: instances.fire(actor, m, ID, event_of(m)),
    "look": lambda actor, m: instances.preview_event(actor, m, ID, event_of(m)),
    **{
        name: lambda actor, m, name=name: instances.repair(actor, name, m, ID, reason=WHY, **asked(name, m))
        for name in instances.REPAIRS
    },
}


@pytest.mark.parametrize("who", ["a superuser", "the command line"])
@for_each("action", SERVICES)
def test_no_service_moves_one_and_the_audit_says_who_tried(engine, machines, boss, action, who):
    actor = Actor.console() if who == "the command line" else Actor(boss, "page 192.0.2.1")
    for machine in machines:
        with pytest.raises(SystemMachine, match="a machine of the product"):
            SERVICES[action](actor, machine)
        assert engine.get(machine, ID).revision == 1
        if action != "look":
            entry = AuditEntry.objects.get(action=action, machine=machine)
            assert (entry.actor, entry.outcome, entry.detail["code"]) == (actor.name, "refused", CODE)


def test_no_bulk_action_moves_them(machines, boss):
    for machine, action in product(machines, ("fire", "delete", "suspend")):
        order = Order(machine, action, "boss", WHY, event="stop" if action == "fire" else "")
        with pytest.raises(Exception, match="a machine of the product"):
            bulks.start(Actor(boss, "page"), order)


@pytest.mark.parametrize(
    "what",
    [{"do": "fire", "instance": ID, "event": "stop"}, {"do": "fire_all", "event": "stop", "filter": {}},
     {"do": "create"}, {"do": "enqueue", "src": "bulk.remove"}],
    ids=lambda what: what["do"],
)  # fmt: skip
def test_no_schedule_moves_them(machines, boss, what):
    for machine, by in product(machines, (Actor(boss, "page"), Actor.console())):
        document = {"name": "nightly", "when": {"every": "1h"}, "what": what | {"machine": machine}}
        with pytest.raises(InvalidSchedule, match="a machine of the product"):
            schedules.put(by, document)


@pytest.mark.parametrize("src", ["bulk.remove", "map_reduce.remove", "schedules.work"])
def test_no_schedule_asks_for_the_product_s_work(order, boss, src):
    document = {"name": "n", "when": {"every": "1h"}, "what": {"do": "enqueue", "machine": "order", "src": src}}
    with pytest.raises(InvalidSchedule, match="a name of the product's own handlers"):
        schedules.put(Actor(boss, "page"), document)


def test_no_command_erases_one(engine, machines):
    for machine in machines:
        with pytest.raises((CommandError, SystemMachine), match="a machine of the product"):
            call_command("machine", "erase", f"{machine}/{ID}", reason=WHY, stdout=io.StringIO())
        assert engine.get(machine, ID)


def test_no_model_field_follows_one():
    for machine in SHIPPED:
        (problem,) = check_name(MachineField(machine))
        assert "the product's own" in problem.msg


def test_a_job_of_a_bulk_is_not_taken_away(order, boss):
    parcels(order, 2)
    bulk = previewed(order)
    bulk.run("ann")
    (job,) = order.jobs(BULK, "act")
    with pytest.raises(SystemMachine):
        jobs.withdraw(Actor(boss, "page"), BULK, job, reason=WHY)
    with pytest.raises(SystemMachine):
        queues.purge(Actor(boss, "page"), BULK, "act", reason=WHY, place="ready", expect=1)
    assert order.jobs(BULK, "act")
    queues.pause(Actor(boss, "page"), BULK, "act", reason=WHY)


# What stays: their own pages and operations


def test_a_bulk_that_is_over_is_removed_on_its_page(order, boss):
    parcels(order, 2)
    bulk = finished(order)
    status, _ = browse(boss, "bulk-remove", bulk.id)
    assert (status, Bulk(order, bulk.id).get().state) == (302, "removing")
    assert AuditEntry.objects.get(action="bulk.remove").outcome == "done"
    JobRunner(order, None).run([BULK], None, 10, False)
    assert bulk.id not in [one.id for one in order.find(BULK).instances]


def test_a_run_is_retried_and_removed_on_its_page(order, boss):
    run = MapReduce("totals", engine=order, map_function="sum", reduce_function="sum")
    run.add_items([1, 2])
    order.force(RUN, run.id, "failed", actor="w", reason=WHY)
    publishing.adopt(RUN)
    client = Client()
    client.force_login(boss)
    page = client.get(reverse("signalbox:instance", args=[RUN, run.id])).content.decode()
    assert "Retry the run" in page
    assert "Fire retry" not in page
    assert (browse(boss, "run-retry", RUN, run.id)[0], order.get(RUN, run.id).state) == (302, "mapping")
    assert (browse(boss, "run-remove", RUN, run.id)[0], order.get(RUN, run.id).state) == (302, "removing")
    assert [entry.outcome for entry in AuditEntry.objects.filter(action__startswith="run.")] == ["done", "done"]


def test_a_run_takes_the_right_to_operate(order, actor):
    run = MapReduce("totals", engine=order, map_function="sum", reduce_function="sum")
    run.add_items([1])
    with pytest.raises(Exception, match="you may not"):
        runs.act(actor("oscar", "view", "fire"), run.id, "remove")
    assert order.get(RUN, run.id).state == "collecting"


def test_the_page_of_an_instance_offers_nothing_to_fire(machines, boss):
    client = Client()
    client.force_login(boss)
    for machine in machines:
        page = client.get(reverse("signalbox:instance", args=[machine, ID])).content.decode()
        assert "A machine of the product" in page
        assert "Try anyway" not in page
        assert 'id="repairs"' not in page
