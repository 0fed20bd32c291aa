"""Limits how many requests a caller may make: one budget for each token and user, one for each address, one for callers
without credentials.

What takes long counts as several: a body that is read at length by its size, before; and what it took, after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse

from machines.conf import conf
from machines.connections import get_throttle
from machines.engine import rates
from machines.patterns import Verdict
from machines.patterns.throttle import MAX_LIMIT
from machines.people.limits import network_of, spend_if_available

PER_ADDRESS = 10  # times as many as for one caller: services behind one address have a token each
AHEAD = 20  # requests of an address that are taken at once, where that is next to nothing of its budget
PER_BYTES = 10_000  # of a body that is read at length count as one more request
PER_CPU = 0.01  # seconds of processor time, as one more
STRANGERS = (60, 60)  # failed requests of one address, and the seconds they are counted in


class TooMany(Exception):
    """``limit``: the one that was reached."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(f"the limit is {limit.quota} requests in {limit.window} s; try again later")
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Limit:
    """One budget as it is after this request. ``window`` in seconds."""

    name: str
    quota: int
    window: int
    verdict: Verdict

    def mark(self, response: HttpResponse) -> None:
        """Write the limit into the headers, in the structured form of the IETF's draft on RateLimit header fields."""
        response["RateLimit-Policy"] = f'"{self.name}";q={self.quota};w={self.window}'
        reset = math.ceil(self.verdict.reset_after)
        response["RateLimit"] = f'"{self.name}";r={self.verdict.remaining};t={reset}'
        if not self.verdict.allowed:
            response["Retry-After"] = str(max(1, math.ceil(self.verdict.retry_after)))


def cost_of(size: int) -> int:
    """Return the cost, in requests, of a request whose body of ``size`` bytes is read at length."""
    return 1 + size // PER_BYTES


def spend(key: str, address: str, cost: int = 1) -> Limit | None:
    """Charge a known caller for a request that counts as ``cost``. Return the caller's own budget after that, or None
    if there is no limit. Raises TooMany."""
    parsed = rates.parse_rate(conf.API_RATE)
    if parsed is None:
        return None
    quota, window = parsed[0], parsed[1] / 1000
    verdict = spend_if_available(get_throttle().take, "api", key, limit=quota, per=window, cost=min(cost, quota))
    own = _check(Limit("caller", quota, math.ceil(window), verdict))
    _spend_address(address, min(quota * PER_ADDRESS, MAX_LIMIT), window)
    return own


def charge(key: str, cpu: float) -> Limit | None:
    """Charge ``cpu`` seconds of processor time, known only after the request. If less is left, take all that is
    left."""
    parsed, cost = rates.parse_rate(conf.API_RATE), int(cpu / PER_CPU)
    if parsed is None or cost < 1:
        return None
    quota, window = parsed[0], parsed[1] / 1000
    verdict = spend_if_available(get_throttle().take, "api", key, limit=quota, per=window, cost=min(cost, quota))
    if not verdict.allowed and verdict.remaining:
        verdict = spend_if_available(get_throttle().take, "api", key, limit=quota, per=window, cost=verdict.remaining)
    return Limit("caller", quota, math.ceil(window), replace(verdict, allowed=True))


def _spend_address(address: str, quota: int, window: float) -> None:
    """Charge the address. Part of so large a budget may be taken ahead, so that few requests ask Redis about it."""
    ahead = max(1, min(AHEAD, quota // 1000))
    verdict = spend_if_available(
        get_throttle().take, "api.address", network_of(address), limit=quota, per=window, ahead=ahead
    )
    _check(Limit("address", quota, math.ceil(window), verdict))


def spend_stranger(request: HttpRequest) -> Limit:
    """Charge a request without valid credentials. Raises TooMany."""
    quota, window = STRANGERS
    address = network_of(request.META.get("REMOTE_ADDR") or "")
    verdict = spend_if_available(get_throttle().take, "api.stranger", address, limit=quota, per=window)
    return _check(Limit("stranger", quota, window, verdict))


def _check(limit: Limit) -> Limit:
    if not limit.verdict.allowed:
        raise TooMany(limit)
    return limit
