"""A door to move by the API, whatever has to be there for each operation, and callers with rights."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.test import Client
from guardian.shortcuts import assign_perm

from dashboard.models import SavedView
from machines import diagrams
from machines.engine import Engine, Instance, WorkerInfo
from machines.engine.definitions import outline
from machines.engine.sm_commands import call
from machines.instances.bulks import Bulk, Order
from machines.jobs.failures.duties import FailureFollower
from machines.models import Approval, Delivery, Draft, FailureGroup, Machine, StoredPlan, Webhook
from machines.people import tokens
from machines.people.permissions import RIGHTS
from machines.schedules import Schedules
from tests.instances.bulks.builders import step, work_off

from .table import DOOR, KEY, NIGHTLY

ALL = tuple(RIGHTS)


class Caller:
    """Sends requests to the API, with a token unless it has none, and gives back what came."""

    def __init__(self, token: str = "", client: Client | None = None) -> None:
        self.token = token
        self.client = client or Client()

    def session(self, **options: Any) -> Caller:
        """The same with a session of its token."""
        return Caller(tokens.make_session(tokens.check(self.token), **options)[1], self.client)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        sent = {} if body is None else {"data": body if isinstance(body, str) else json.dumps(body)}
        sender = getattr(self.client, method.lower())
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return sender(f"/api/v1{path}", **sent, content_type="application/json", headers=named)

    def get(self, path: str, **headers: str) -> Any:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self("POST", path, {} if body is None else body, **headers)


@pytest.fixture(scope="session")
def drawing() -> str:
    """Laying it out takes longer than all the rest of a test."""
    return diagrams.draw(outline(DOOR))


@pytest.fixture
def door(engine: Engine, db: None, drawing: str) -> Engine:
    """The machine, published, with one instance of it, ``front``, shut."""
    published = engine.publish(DOOR)
    row = Machine.objects.create(name="door", current=1)
    drawn = {"drawing": drawing, "drawing_format": diagrams.DRAWING}
    row.versions.create(number=1, definition=DOOR, digest=published.digest, **drawn)
    engine.create("door", "front", {"serial": "D-1", "pin": "4711"})
    return engine


@pytest.fixture
def user_of(db: None) -> Callable[..., Any]:
    """A user with rights: globally, or ``on`` one machine."""

    def made(name: str, *rights: str, on: str = "") -> Any:
        user = get_user_model().objects.create_user(name)
        codes = {right: RIGHTS[right].partition(".")[2] for right in rights}
        if on:
            row = Machine.objects.get(name=on)
            for code in codes.values():
                if code != "view_auditentry":
                    assign_perm(code, user, row)
        else:
            found = Permission.objects.filter(content_type__app_label="machines", codename__in=codes.values())
            user.user_permissions.set(found)
        return user

    return made


@pytest.fixture
def caller(user_of: Callable[..., Any], prefix: str) -> Callable[..., Caller]:
    """Somebody with a token. ``rights``: of the user; ``scopes``: of the token, the same unless it says others."""

    def made(*rights: str, on: str = "", scopes: tuple[str, ...] = ALL, machines: tuple[str, ...] = ()) -> Caller:
        user = user_of(f"user-{time.monotonic_ns()}", *rights, on=on)
        return Caller(tokens.make(user, "a test", scopes, machines=machines)[1])

    return made


@pytest.fixture
def boss(caller: Callable[..., Caller]) -> Caller:
    """Who may do everything."""
    return caller(*ALL)


@pytest.fixture
def stand(door: Engine, user_of: Callable[..., Any]) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Puts there what an operation needs, by the word of its case; what its path is filled with."""
    yield lambda word: BUILDERS[word](door, user_of) or {}
    door.client.delete(KEY)


def locked(engine: Engine, *_: Any) -> None:
    engine.fire("door", "front", "lock", {"pin": "4711"})


def failed(engine: Engine, retry: bool, *_: Any) -> None:
    locked(engine)
    (job,) = engine.take("door", "oiling", "w")
    engine.fail(job, "no oil", retry=retry)


def bulk(engine: Engine, *_: Any) -> Bulk:
    return Bulk.start(engine, Order("door", "suspend", "ann", "a test", {"state": "shut"}), id="b1")


def previewed(engine: Engine, *_: Any) -> Bulk:
    made = bulk(engine)
    work_off(engine)
    return made


def running(engine: Engine, *_: Any) -> Bulk:
    made = previewed(engine)
    made.run("ann")
    return made


def asked(engine: Engine, user_of: Callable[..., Any]) -> dict[str, Any]:
    asker = user_of("asker", "view", "fire", "operate")
    made = Approval.objects.create(
        machine="door", instance="front", action="force", asked={"state": ["opened"]}, expect=1, reason="a test",
        asker="asker", asker_id=str(asker.pk), target="opened",
    )  # fmt: skip
    return {"asked": made.pk}


def hook(_: Engine, user_of: Callable[..., Any]) -> dict[str, Any]:
    made = Webhook.objects.create(name="hook", url="https://example.com/", types=["*"], secret="s", maker="ann")
    sent = Delivery.objects.create(webhook=made, message="m", key="k", type="t", body="{}", state="dead")
    return {"hook": made.pk, "delivery": sent.pk}


def draft(*_: Any) -> dict[str, Any]:
    text = json.dumps(DOOR | {"description": "a door"})
    return {"draft": Draft.objects.create(machine="door", base=1, text=text, author="ann", note="describe it").pk}


def plan(engine: Engine, *_: Any) -> dict[str, Any]:
    """A second version, which is not current, and a plan that leads there."""
    engine.publish(DOOR | {"description": "a second door"})
    engine.publish(DOOR)
    made = engine.plan("door", 2)
    return {"plan": StoredPlan.objects.create(machine="door", to=2, plan=made.as_dict(), plan_id=made.id).pk}


def failure(engine: Engine, *_: Any) -> dict[str, Any]:
    """A group with one dead job."""
    if engine.get("door", "front").state != "locked":
        locked(engine)
    for job in engine.take("door", "oiling", "w"):
        engine.fail(job, "no oil", retry=False)
    FailureFollower(engine).look()
    return {"failure": FailureGroup.objects.get(parts__machine="door").pk}


def rollout(engine: Engine, *_: Any) -> None:
    engine.publish(DOOR | {"description": "a second door"}, rollout=5)


def view(_: Engine, user_of: Callable[..., Any]) -> dict[str, Any]:
    """Somebody else's, so that deleting it answers as if it were not there."""
    keeper = user_of("keeper", "view")
    return {"view": SavedView.objects.create(owner=keeper, name="all", page="/machines/door/", shared=True).pk}


def key(engine: Engine, *_: Any) -> None:
    door = {"initial": "shut", "current": "", "reason": "", "map": {"shut": ["open"], "open": ["shut"]}}
    call(engine.client, "SM.SET", KEY, json.dumps(door))


def worker(engine: Engine, *_: Any) -> None:
    now = int(time.time() * 1000)
    engine.beat(WorkerInfo("box:1/2", "box", 1, ["door/oiling", "other/secret"], in_hand=0, started=now, seen=now))


def _quietly(build: Callable[..., Any]) -> Callable[..., None]:
    def built(*given: Any) -> None:
        build(*given)

    return built


BUILDERS: dict[str, Callable[..., Any]] = {
    "shut": _quietly(lambda *_: None),
    "locked": locked,
    "dead": lambda engine, _: failed(engine, False),
    "delayed": lambda engine, _: failed(engine, True),
    "suspended": _quietly(lambda engine, _: engine.suspend("door", "front", actor="ann", reason="a test")),
    "bulk": _quietly(bulk),
    "schedule": _quietly(lambda engine, _: Schedules(engine).put(NIGHTLY)),
    "previewed": _quietly(previewed),
    "running": _quietly(running),
    "paused": _quietly(lambda engine, _: running(engine).pause("ann")),
    "asked": asked,
    "draft": draft,
    "plan": plan,
    "rollout": _quietly(rollout),
    "failure": failure,
    "worker": worker,
    "hook": hook,
    "view": view,
    "key": key,
}

__all__ = ["ALL", "BUILDERS", "Caller", "Instance", "cache", "step"]
