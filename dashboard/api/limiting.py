"""How many requests a caller may make: one budget for each token and user, and one for each address of strangers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from machines.connections import get_throttle
from machines.engine import rates
from machines.patterns import Verdict

STRANGERS = (60, 60)  # failed requests of one address, and the seconds they are counted in


class TooMany(Exception):
    """``limit``: the one that was reached."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(f"{limit.quota} requests in {limit.window} s are allowed; come back later")
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Limit:
    """One budget as it is after this request. ``window`` in seconds."""

    name: str
    quota: int
    window: int
    verdict: Verdict

    def mark(self, response: HttpResponse) -> None:
        """As the IETF's draft on RateLimit header fields has it, in its structured form."""
        response["RateLimit-Policy"] = f'"{self.name}";q={self.quota};w={self.window}'
        reset = math.ceil(self.verdict.reset_after)
        response["RateLimit"] = f'"{self.name}";r={self.verdict.remaining};t={reset}'
        if not self.verdict.allowed:
            response["Retry-After"] = str(max(1, math.ceil(self.verdict.retry_after)))


def spend(key: str) -> Limit | None:
    """One request of a known caller; None where there is no limit. Raises TooMany."""
    parsed = rates.parse(settings.SIGNALBOX_API_RATE)
    if parsed is None:
        return None
    quota, window = parsed[0], parsed[1] / 1000
    return _taken(Limit("caller", quota, math.ceil(window), get_throttle().take("api", key, limit=quota, per=window)))


def spend_stranger(request: HttpRequest) -> Limit:
    """One request that showed nothing that holds. Raises TooMany."""
    quota, window = STRANGERS
    address = request.META.get("REMOTE_ADDR") or "unknown"
    verdict = get_throttle().take("api.stranger", address, limit=quota, per=window)
    return _taken(Limit("stranger", quota, window, verdict))


def _taken(limit: Limit) -> Limit:
    if not limit.verdict.allowed:
        raise TooMany(limit)
    return limit
