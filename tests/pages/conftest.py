"""Users by role, published machines, and instances with odd names."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from machines.engine import Engine, WorkerInfo
from machines.engine.sm_commands import call
from machines.instances.bulks import Bulk, Order
from machines.models import (
    AlarmRoute,
    Approval,
    Delivery,
    Draft,
    FailedJob,
    FailureGroup,
    FailurePart,
    StoredPlan,
    Webhook,
)
from machines.people.permissions import RIGHTS, ROLES
from machines.schedules import Schedules

from .table import DOOR, OF_BULK, OF_KEY, OF_SCHEDULE, OF_WORKER

EXAMPLES = Path(__file__).parents[2] / "examples"
TOKEN = {"token": "MTOB1J"}


def add_failure(pk: int, machine: str) -> None:
    """A group with one job of a machine that is not there any more."""
    at = int(time.time() * 1000)
    group = FailureGroup.objects.create(
        pk=pk, key=str(pk), handler="work", kind="ValueError", shape="it is <number>", first_seen=at, last_seen=at
    )
    FailurePart.objects.create(
        group=group, machine=machine, count=1, first_seen=at, last_seen=at, versions=[1], queues=["todo"]
    )
    FailedJob.objects.create(group=group, machine=machine, queue="todo", job="0-9999", died=at)


def example(name: str) -> dict:
    return json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture
def user_of(db: None) -> Callable:
    """A user with the rights of a role; "nobody" logs in and holds none."""

    def made(role: str, name: str = ""):
        user = get_user_model().objects.create_user(name or f"the-{role}", password="let me in")
        rights = ROLES.get(role, ())
        codes = [RIGHTS[right].partition(".")[2] for right in rights]
        user.user_permissions.set(Permission.objects.filter(codename__in=codes, content_type__app_label="machines"))
        return user

    return made


@pytest.fixture
def as_(user_of: Callable, prefix: str) -> Callable[[str], Client]:
    """A client logged in with a role; "anonymous" is not logged in."""

    def made(role: str, name: str = "") -> Client:
        client = Client()
        if role != "anonymous":
            client.force_login(user_of(role, name))
        return client

    return made


@pytest.fixture
def activation(engine, db: None) -> str:
    """The activation machine, published; its name."""
    return engine.publish(example("activation")).name


@pytest.fixture
def devices(engine, db: None) -> str:
    """The machine whose states feed queues, published; its name."""
    return engine.publish(example("new_device")).name


@pytest.fixture
def unhandled(engine, db: None) -> str:
    """The same machine without ``onError``: an instance stays where its job died; its name."""
    definition = example("new_device")
    for state in definition["states"].values():
        state.get("invoke", {}).pop("onError", None)
    return engine.publish(definition).name


@pytest.fixture
def waiting(engine, activation: str):
    """ATV-123:NBCSports, waiting for the code MTOB1J, at version 2."""
    engine.create(activation, "ATV-123:NBCSports")
    return engine.fire(activation, "ATV-123:NBCSports", "activate", TOKEN)


@pytest.fixture
def delivery(engine, db: None) -> str:
    """The machine with states in states, published, with the machine it runs; its name."""
    engine.publish(example("payment"))
    return engine.publish(example("delivery")).name


@pytest.fixture
def paying(engine, delivery: str):
    """R-1, which waits for its payment."""
    engine.create(delivery, "R-1", {"article": "lamp", "amount": 20})
    return engine.get(delivery, "R-1")


@pytest.fixture
def order(engine, paying):
    """R-1, paid and packed: at version 3 in Packed, Open and Expecting."""
    for machine, queue, result in (
        ("payment", "bank", {"approved": True, "receipt": "B-1"}),
        ("delivery", "warehouse", {"found": True}),
    ):
        (job,) = engine.take(machine, queue, "a-worker")
        engine.complete(job, result)
    return engine.get("delivery", paying.id)


@pytest.fixture
def filled(engine, waiting, devices) -> Iterator[None]:
    """Something at each address, and a machine that none of them is about."""
    engine.publish(example("payment"))
    furnish(engine)
    yield
    engine.client.delete(OF_KEY["key"])


def furnish(engine: Engine) -> None:
    """What stands at the addresses of the table, beside machines."""
    call(engine.client, "SM.SET", OF_KEY["key"], DOOR)
    engine.create("new_device", "one")
    Bulk.start(engine, Order("activation", "suspend", "sue", "a test"), id=OF_BULK["id"])
    what = {"do": "enqueue", "machine": "new_device", "src": "start"}
    Schedules(engine).put({**OF_SCHEDULE, "when": {"cron": "30 2 * * *"}, "what": what})
    Approval.objects.create(
        pk=7, machine="activation", instance="ATV-123:NBCSports", action="suspend", reason="a test", asker="sue",
        asker_id="0",
    )  # fmt: skip
    now = int(time.time() * 1000)
    engine.beat(WorkerInfo(OF_WORKER["worker"], "box", 1, [], in_hand=0, started=now, seen=now))
    engine.client.persist(engine.keys.worker(OF_WORKER["worker"]))  # it has no end, however slow the tests are
    Draft.objects.create(pk=7, machine="activation", base=1, text=json.dumps(example("activation")), author="sue")
    other = example("new_device")
    other["states"]["start"]["tags"] = ["new"]
    plan = engine.plan("new_device", engine.publish(other).version)
    StoredPlan.objects.create(
        pk=7, machine="new_device", to=plan.to, plan=plan.as_dict(), plan_id=plan.id, author="sue"
    )
    add_failure(7, "new_device")
    hook = Webhook.objects.create(
        pk=7, name="listener", url="https://hooks.example/", types=["*"], secret="whsec_" + "a" * 44
    )
    Delivery.objects.create(pk=7, webhook=hook, message="activation:0:1-0", key="msg_1", type="begun", body="{}")
    receiver = Webhook.objects.create(
        pk=8, name="ops", url="https://ops.example/", types=[], secret="whsec_" + "a" * 44, for_alarms=True
    )
    AlarmRoute.objects.create(pk=7, receiver=receiver)
    Delivery.objects.create(pk=8, webhook=receiver, message="alarm:7:0", key="msg_2", type="signalbox.alarm", body="{}")
