"""The site under attack: some machines with instances, somebody who works there, and somebody who attacks."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

from benchmarks.room.fleet import Member, fleet
from benchmarks.room.seeding import _fill
from benchmarks.site import Site
from machines.engine import Engine

INSTANCES = 24_000
ATTACKER, PASSWORD = "mallory", "not-guessed-by-anybody-7"
HERE, THERE = "127.0.0.1", "127.0.0.2"  # of whoever works, and of the attacker


@dataclass(frozen=True, slots=True)
class Scene:
    """``worker``: a cookie; ``token`` and ``cookie`` are the attacker's, who may view and no more."""

    origin: str
    worker: str
    cookie: str
    token: str
    machine: str
    ids: list[str]


def fill(url: str, prefix: str) -> list[Member]:
    engine, now = Engine.from_url(url, prefix=prefix), int(time.time() * 1000)
    members = fleet(INSTANCES)
    for member in members:
        engine.publish(member.definition)
        _fill(url, member, now)
    return members


def prepare(site: Site, members: list[Member]) -> Scene:
    """Django is set up: the site has logged its own person in."""
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group
    from django.test import Client

    from machines.access import tokens

    os.environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)
    user: Any = get_user_model().objects.create_user(ATTACKER, password=PASSWORD)
    user.groups.add(Group.objects.get(name="viewer"))
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    cookie = f"{name}={client.cookies[name].value}"
    _, token = tokens.make(user, "attack", [])
    largest = max(members, key=lambda member: member.size)
    ids = [id for id, *_ in largest.instances(int(time.time() * 1000))]
    return Scene(site.address.rstrip("/"), site.cookie, cookie, token, largest.name, ids)
