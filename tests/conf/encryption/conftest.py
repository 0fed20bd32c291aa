"""Secrets of every kind, and an action that waits for a second person."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import redis
from django.db import connection

from machines.alarms import routes
from machines.approvals import actions as approvals
from machines.catalog.errors import ApprovalNeeded
from machines.instances import actions as instances
from machines.models import AlarmRoute, Approval, Webhook
from machines.people.actor import Actor
from machines.webhooks import management
from tests.pages.conftest import as_, user_of
from tests.people.orders import order

__all__ = ["as_", "order", "user_of"]
CANARY = "zq7CANARY"


@dataclass(frozen=True, slots=True)
class Held:
    """``secrets``: texts that no dump may hold."""

    actor: Actor
    webhook: Webhook
    route: AlarmRoute
    request: Approval
    secrets: list[str]


@pytest.fixture
def held(order, user_of) -> Held:
    actor = Actor(user_of("supervisor", "ann"), "test")
    webhook, first = management.make(actor, name="billing", url=f"https://hooks.example.com/{CANARY}-hook")
    webhook, second = management.rotate(actor, webhook.pk)
    route, third = routes.make(actor, name="ops", url=f"https://chat.example.com/services/{CANARY}-route")
    with pytest.raises(ApprovalNeeded) as needed:
        instances.fire(actor, "order", "o-1", "refund", {"card": f"{CANARY}-card"}, reason="the customer asked")
    return Held(actor, webhook, route, approvals.ask(actor, needed.value), [CANARY, first, second, third])


def dump_sql() -> str:
    """Every value of every table, as the database has it."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found += [repr(row) for row in cursor.fetchall()]
    return "\n".join(found)


def dump_redis(client: redis.Redis, prefix: str) -> str:
    """Every value of every key of this test."""
    read = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1),
        b"stream": client.xrange,
        b"none": lambda key: None,  # it has expired since
    }
    return "\n".join(repr(read[client.type(key)](key)) for key in client.scan_iter(match=f"{prefix}*", count=10_000))
