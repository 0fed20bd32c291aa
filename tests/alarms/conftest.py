"""A machine whose service level is broken, and people with rights on it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission

from machines.engine import WorkerInfo
from machines.people.actor import Actor
from machines.people.permissions import RIGHTS, ROLES
from tests.engine.builders import machine
from tests.pages.conftest import as_, user_of  # noqa: F401  fixtures

DESK = machine("desk", {"Open": {"sla": "15m", "on": {"take": "Taken"}}, "Taken": {}})
KEY = "sla:desk/Open"


@pytest.fixture
def desk(engine, db) -> str:
    """One instance that is late for an hour; a worker runs."""
    now = int(time.time() * 1000)
    engine.publish(DESK)
    engine.create("desk", "old", now=now - 3_600_000)
    engine.beat(WorkerInfo("w1", "box", 1, [], in_hand=0, started=now, seen=now + 3_600_000, version="0.1.0"))
    return "desk"


@pytest.fixture
def actor_of(db) -> Callable[..., Actor]:
    """An actor with the rights of a role."""

    def made(role: str, name: str = "") -> Actor:
        user = get_user_model().objects.create_user(name or f"the-{role}", password="let me in")
        codes = [RIGHTS[right].partition(".")[2] for right in ROLES.get(role, ())]
        user.user_permissions.set(Permission.objects.filter(codename__in=codes, content_type__app_label="machines"))
        return Actor(user, "page 127.0.0.1")

    return made
