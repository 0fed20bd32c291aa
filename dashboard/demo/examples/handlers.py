"""Does the work that the sample machines ask for.

``new_device.json``: a new device walks through five queues, and its service gets activated.
``service_activation.json``: a service is activated while marketing looks for offers. ``payment.json``: the bank is
asked. ``delivery.json``: someone takes the article from its shelf, and the customer gets a mail. It also has the
viewing figures for map-reduce.

Each step may run more than once (its worker may die before saying so), so each call into the
``activation`` machine carries the job's key: sent twice, it moves the account once.
"""

import logging
import random
import time
from collections import Counter
from typing import Any
from zlib import crc32

from machines.conf import conf
from machines.connections import get_engine
from machines.engine import Instance, errors
from machines.mapreduce import mapper, reducer
from machines.worker import Job, handler

log = logging.getLogger(__name__)

ACCOUNTS = "activation"
CONFIRM_FROM = 300  # an amount
PRICES_AFTER = 45  # seconds
OUT_OF_STOCK = {"anvil"}
PARTNERS = ("music", "sports", "films", "news", "games")  # whom marketing asks for an offer
SILENT = {"HBO": 0.4}  # how often this provider does not answer
SLOW = {"Showtime": 8.0}  # how many times as long as others this provider takes
OVERRUN = {"Arte": 0.2}  # how often a partner cannot cope with everybody who wants this service


@handler("do_start")
def do_start(job: Job) -> dict[str, Any]:
    """Record the request, which must name a device and a service."""
    _work(job)
    return {"account": _find_account(job)}


@handler("do_activate")
def do_activate(job: Job) -> dict[str, Any]:
    """Activate the service for the device. Return the code, a random one if the request had none."""
    _work(job)
    account = _find_account(job)
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
    """Ask the provider, with the code that the device shows."""
    _work(job, SLOW.get(job.data["service"], 1.0))
    if _happens(SILENT, job):
        raise TimeoutError(f"the provider of {job.data['service']} does not answer")
    entitled = get_engine().fire(
        ACCOUNTS, _find_account(job), "entitle", {"token": job.data["token"]}, key=f"{job.key}:entitle", actor=job.actor
    )
    return {"status": entitled.state}


@handler("do_finish")
def do_finish(job: Job) -> dict[str, Any]:
    """Return the final state of the account."""
    _work(job)
    account: Instance = get_engine().get(ACCOUNTS, _find_account(job))
    log.info("%s is %s", account.id, account.state)
    return {"status": account.state}


@handler("do_close")
def do_close(job: Job) -> None:
    """Close the books on a request that has ended; its instance may be gone by then."""
    _work(job)
    log.info("%(request)s is closed: %(service)s on %(device)s", job.payload)


@handler("process_todo")
def process_todo(job: Job) -> dict[str, Any]:
    """Take the next request, which must name a device and a service."""
    _work(job)
    return {"account": _find_account(job)}


@handler("add_device")
def add_device(job: Job) -> dict[str, Any]:
    """Make the device eligible for offers: each partner is asked for one."""
    for asked, partner in enumerate(PARTNERS):
        job.progress(asked, len(PARTNERS), f"asking {partner}")
        _work(job, 0.5)
        if _happens(OVERRUN, job):
            raise ConnectionError(f"{partner} is overrun: everybody wants {job.data['service']}")
    return {"offers": len(PARTNERS)}


@handler("fetch_prices")
def fetch_prices(job: Job) -> None:
    """Fetch the prices of the partners, whose service answers only some time after it was asked first: a job of one
    attempt dies, and one that is retried later ends well."""
    _work(job, 0.5)
    if time.time() < job.taken.created / 1000 + PRICES_AFTER:
        raise ConnectionError("the prices of the partners cannot be reached")


@handler("charge_card")
def charge_card(job: Job) -> dict[str, Any]:
    """Charge small amounts at once; for large ones the bank wants to hear from the customer."""
    _work(job)
    approved = job.data["amount"] < CONFIRM_FROM
    return {"approved": approved, "receipt": f"B-{crc32(job.key.encode()) % 10**6:06d}" if approved else ""}


@handler("pick")
def pick(job: Job) -> dict[str, Any]:
    """Pick the article from its shelf. One article is always out of stock until someone fills its shelf."""
    _work(job)
    return {"found": job.data["restocked"] or job.data["article"] not in OUT_OF_STOCK}


@handler("tell")
def send_mail(job: Job) -> None:
    """Send a mail to the customer, if this were a real shop."""
    _work(job)
    log.info("%s: your %s is on its way", job.instance, job.data["article"])


@mapper
def minutes_watched(views: list[list[Any]]) -> dict[str, int]:
    """Return service -> minutes, of views that are [device, service, minutes]."""
    time.sleep(_read_pace())
    found: Counter[str] = Counter()
    for _device, service, minutes in views:
        found[service] += minutes
    return dict(found)


@reducer
def add_up(parts: list[dict[str, int]]) -> dict[str, int]:
    """Return service -> minutes, of all chunks together, the most watched first."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(total.most_common())


def _find_account(job: Job) -> str:
    """Return the id of the account's instance: device:service."""
    device, service = job.data["device"], job.data["service"]
    if not device or not service:
        raise ValueError("a new device needs a device and a service")
    return f"{device}:{service}"


def _happens(chances: dict[str, float], job: Job) -> bool:
    return random.random() < chances.get(job.data["service"], 0.0)


def _work(job: Job, share: float = 1.0) -> None:
    """Work as long as a real handler would, so that there is a queue to look at."""
    if pace := _read_pace():
        job.wait(pace * share)


def _read_pace() -> float:
    """Return the seconds of work, around the demo's pace; none outside of the demo."""
    return conf.DEMO_PACE / 1000 * random.uniform(0.5, 1.5)
