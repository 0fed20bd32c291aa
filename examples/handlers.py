"""The work the sample machines ask for.

``new_device.json``: a new device walks through four queues, and its service gets activated. ``payment.json``: the
bank is asked. ``delivery.json``: someone takes the article from its shelf, and the customer is told.

Each step may run more than once (its worker may die before saying so), so each call into the
``activation`` machine carries the job's key: said twice, it moves the account once.
"""

from __future__ import annotations

import logging
import random
from typing import Any
from zlib import crc32

from django.conf import settings

from machines.connections import get_engine
from machines.engine import Instance, errors
from machines.worker import Job, handler

log = logging.getLogger(__name__)

ACCOUNTS = "activation"
CONFIRM_FROM = 300  # an amount
OUT_OF_STOCK = {"anvil"}


@handler("do_start")
def do_start(job: Job) -> dict[str, Any]:
    """The request is recorded: it must name a device and a service."""
    _work(job)
    return {"account": _account(job)}


@handler("do_activate")
def do_activate(job: Job) -> dict[str, Any]:
    """Activates the service for the device and returns the code, a random one if the request had none."""
    _work(job)
    account = _account(job)
    engine = get_engine()
    try:
        engine.create(ACCOUNTS, account, key=f"{job.key}:create", actor=job.actor)
    except errors.InstanceExists:
        log.debug("%s is known already", account)
    try:
        activated = engine.fire(
            ACCOUNTS, account, "activate", {"token": job.data["token"]}, key=f"{job.key}:activate", actor=job.actor
        )
    except errors.Refused:
        activated = engine.get(ACCOUNTS, account)  # activated before: the code that was given then holds
    return {"token": activated.data["token"]}


@handler("do_entitlement")
def do_entitlement(job: Job) -> dict[str, Any]:
    """The provider is asked, with the code the device shows."""
    _work(job)
    entitled = get_engine().fire(
        ACCOUNTS, _account(job), "entitle", {"token": job.data["token"]}, key=f"{job.key}:entitle", actor=job.actor
    )
    return {"status": entitled.state}


@handler("do_finish")
def do_finish(job: Job) -> dict[str, Any]:
    """The end: says what became of the account."""
    _work(job)
    account: Instance = get_engine().get(ACCOUNTS, _account(job))
    log.info("%s is %s", account.id, account.state)
    return {"status": account.state}


@handler("charge_card")
def charge_card(job: Job) -> dict[str, Any]:
    """Small amounts are taken at once; for large ones the bank wants to hear from the customer."""
    _work(job)
    approved = job.data["amount"] < CONFIRM_FROM
    return {"approved": approved, "receipt": f"B-{crc32(job.key.encode()) % 10**6:06d}" if approved else ""}


@handler("pick")
def pick(job: Job) -> dict[str, Any]:
    """One article is always out of stock until someone fills up its shelf."""
    _work(job)
    return {"found": job.data["restocked"] or job.data["article"] not in OUT_OF_STOCK}


@handler("tell")
def tell(job: Job) -> None:
    """A mail to the customer, if this were a real shop."""
    _work(job)
    log.info("%s: your %s is on its way", job.instance, job.data["article"])


def _account(job: Job) -> str:
    """The id of the account's instance: device:service."""
    device, service = job.data["device"], job.data["service"]
    if not device or not service:
        raise ValueError("a new device needs a device and a service")
    return f"{device}:{service}"


def _work(job: Job) -> None:
    """Takes as long as real work would, around the demo's pace, so that there is a queue to look at."""
    pace = settings.SIGNALBOX_DEMO_PACE / 1000
    if pace:
        job.wait(pace * random.uniform(0.5, 1.5))
