"""A shop whose orders take certain people, or a second person; and the people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission

from machines.catalog import publishing
from machines.engine import Engine
from machines.people.actor import Actor
from machines.people.permissions import RIGHTS

ORDER = {
    "id": "order",
    "initial": "Open",
    "context": {
        "type": "object",
        "properties": {"amount": {"type": "integer", "default": 5}, "card": {"type": "string", "sensitive": True}},
    },
    "approval": ["delete", "force", "fire:refund"],
    "events": {"refund": {"payload": {"card": {"type": "string", "sensitive": True}}}},
    "states": {
        "Open": {
            "on": {
                "refund": {"target": "Refunded", "guard": "amount < 10"},
                "close": {"target": "Closed", "allow": ["treasury"]},
                "ship": "Shipped",
            }
        },
        "Refunded": {"on": {"reopen": "Open"}},
        "Closed": {"type": "final"},
        "Shipped": {"on": {"back": "Open"}},
    },
}


@pytest.fixture
def order(engine: Engine, db: None) -> Engine:
    """The machine, with one instance of it, ``o-1``, open."""
    publishing.publish(ORDER)
    engine.create("order", "o-1")
    return engine


@pytest.fixture
def person(prefix: str, db: None) -> Callable[..., Any]:
    """A member of staff with these rights; "all" has every one."""

    def made(name: str, *rights: str, group: str = "", boss: bool = False) -> Any:
        user = get_user_model().objects.create_user(name, is_staff=True, is_superuser=boss)
        wanted = tuple(RIGHTS) if rights == ("all",) else rights
        codes = [RIGHTS[right].partition(".")[2] for right in wanted]
        found = Permission.objects.filter(codename__in=codes, content_type__app_label="machines")
        user.user_permissions.set(found)
        if group:
            user.groups.set([Group.objects.get_or_create(name=group)[0]])
        return user

    return made


@pytest.fixture
def actor(person: Callable[..., Any]) -> Callable[..., Actor]:
    def made(name: str, *rights: str, **more: Any) -> Actor:
        return Actor(person(name, *(rights or ("all",)), **more), "test")

    return made
