"""A Dramatiq broker whose worker reports ends."""

from __future__ import annotations

import os

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import CurrentMessage, Retries

from machines.integrations.tasks.dramatiq import Reports

broker = RedisBroker(url=os.environ["REDIS_URL"], namespace=f"{os.environ['SIGNALBOX_PREFIX']}dramatiq", middleware=[])
broker.add_middleware(Reports())
broker.add_middleware(Retries(max_retries=1, min_backoff=1, max_backoff=2))
broker.add_middleware(CurrentMessage())
dramatiq.set_broker(broker)


@dramatiq.actor
def charge(amount):
    if amount < 0:
        raise ValueError("less than nothing")
    return {"paid": amount} if amount else {1}


@dramatiq.actor
def charge_later(amount):
    if not CurrentMessage.get_current_message().options.get("retries"):
        raise LookupError("not yet")
    return {"paid": amount}
