"""Limits how often people may act.

Events and repairs by hand: one budget for each account, a wider one for each address. Pages and admin spend it
(``SIGNALBOX_FIRE_RATE``). The API has a budget of its own for whatever it is asked; jobs, bulks, approved requests and
the command line have none.
"""

import logging
from collections.abc import Callable
from typing import Any

from machines.audit.entries import REFUSED, record
from machines.conf import conf
from machines.connections import get_pattern, is_spread
from machines.engine import EngineUnavailable, rates
from machines.patterns import Throttle, Verdict
from machines.patterns.throttle import MAX_LIMIT

from .actor import Actor
from .client_address import network_of
from .errors import TooFast

log = logging.getLogger(__name__)

DOORS = ("page", "admin")
PER_ADDRESS = 5  # times as many as for an account: colleagues share one
BY_ACCOUNT, BY_ADDRESS, LOGGED = "fire.account", "fire.address", "fire.told"


def spend_rate(actor: Actor, action: str, **about: str) -> None:
    """Count one event, repair or new instance by a person at a page. Raises TooFast, and stands in the audit as
    ``action``, refused, once in the time of the rate. ``about``: as ``machines.audit.entries.record`` takes it."""
    rate = rates.parse_rate(conf.FIRE_RATE)
    if rate is None or actor.door not in DOORS:
        return
    quota, per = rate[0], rate[1] / 1000
    limits = [
        (BY_ACCOUNT, actor.id, min(quota, MAX_LIMIT)),
        (BY_ADDRESS, network_of(actor.address), min(quota * PER_ADDRESS, MAX_LIMIT)),
    ]
    try:
        results = get_pattern(Throttle).take_all(limits, per=per)
    except EngineUnavailable:
        return  # what comes next says so, with all that belongs to it
    for (by, key, limit), verdict in zip(limits, results, strict=True):
        if not verdict.allowed:
            error = TooFast(rates.format_rate(limit, rate[1]), by.rpartition(".")[2], verdict.retry_after)
            _record_refusal(actor, action, error, f"{by} {key}", per, about)
            raise error


def spend_if_available(take: Callable[..., Verdict], name: str, key: str, *, limit: int, **terms: Any) -> Verdict:
    """Spend a budget by ``take`` or ``count`` of a throttle. While the node of a cluster that holds the budget does not
    answer, allow the request and count nothing: that node must not close what the others store."""
    try:
        return take(name, key, limit=limit, **terms)
    except EngineUnavailable as error:
        if not is_spread():
            raise
        log.warning("the limit %s is not counted: %s", name, error)
        return Verdict(True, limit, 0.0, 0.0)


def _record_refusal(actor: Actor, action: str, error: TooFast, key: str, per: float, about: dict[str, str]) -> None:
    """Record a refusal once: the same person can be refused a million times."""
    if get_pattern(Throttle).count(LOGGED, key, limit=1, per=per).allowed:
        detail = {"error": error.message, "code": error.code, "by": error.by}
        record(actor.user, action, source=actor.source, outcome=REFUSED, detail=detail, **about)
