"""Authenticates a caller: by a token in the Authorization header, by a session made with one, or by the login of the
pages with its CSRF token. Charges the budgets of requests: of the caller, of its address, of strangers.

A request that shows a token or a session of one is judged by that alone; the login beside it is not looked at.
"""

import math
import re
from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from machines.audit.entries import source_of
from machines.conf import conf
from machines.connections import get_pattern
from machines.engine import rates
from machines.models import Token
from machines.patterns import Session as TokenSession
from machines.patterns import Throttle, Verdict
from machines.patterns.throttle import MAX_LIMIT
from machines.people import last_seen, tokens
from machines.people.actor import Actor
from machines.people.client_address import network_of
from machines.people.limits import spend_if_available

SAFE = ("GET", "HEAD", "OPTIONS")
# Of a token or a session, wherever in an address it stands.
SHOWN = re.compile(rf"sb_[0-9a-f]{{12}}_|{tokens.SHOWN.pattern}", re.ASCII)


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


class Unauthorized(Exception):
    """Nobody is known by what was sent; ``str()`` says why. ``limit``: what such requests have left."""

    limit: Limit | None = None


class NoCsrf(Exception):
    """A session sent something that changes things without its CSRF token."""


class InAddress(Exception):
    """A token stands in the address, where proxies, logs and histories keep it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """``key`` names who is counted and remembered: a token with its sessions, a login by its user. ``token``: what was
    shown, or what the ``session`` that was shown is one of."""

    actor: Actor
    key: str
    token: Token | None = None
    session: TokenSession | None = None


def authenticate(request: HttpRequest) -> Caller:
    """Return the caller whose credentials the request shows. Raises Unauthorized, NoCsrf, InAddress."""
    if SHOWN.search(request.get_full_path()):
        raise InAddress("the URL contains a token: send it as Authorization: Bearer, and revoke this one")
    header = request.headers.get("Authorization", "")
    return _authenticate_token(request, header) if header else _authenticate_session(request)


def _authenticate_token(request: HttpRequest, header: str) -> Caller:
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized("the Authorization header reads: Bearer sb_<id>_<secret>, or Bearer sbs_<session>")
    try:
        token, session = _find_credentials(text.strip())
    except tokens.BadToken as error:
        raise Unauthorized(str(error)) from None
    request.user = token.owner
    by = f"token {token.handle} session {session.handle}" if session else f"token {token.handle}"
    actor = Actor(token.owner, f"{source_of(request)} {by}", tokens.reach_of(token))
    return Caller(actor, f"token:{token.handle}", token, session)


def _find_credentials(text: str) -> tuple[Token, TokenSession | None]:
    if not text.startswith(tokens.BEGINNING):
        return tokens.check(text), None
    session, token = tokens.check_session(text)
    return token, session


def _authenticate_session(request: HttpRequest) -> Caller:
    if not request.user.is_authenticated:
        raise Unauthorized("send a token as Authorization: Bearer sb_<id>_<secret>, or sign in")
    if request.method not in SAFE and check_csrf(request) is not None:
        raise NoCsrf
    last_seen.noting.person(request.user.pk)
    return Caller(Actor.of(request), f"user:{request.user.pk}")


class Authentication:
    """Gives the framework the caller, who is known before an operation begins."""

    def __call__(self, request: HttpRequest) -> Caller | None:
        return getattr(request, "caller", None)

    def authenticate(self, request: HttpRequest, shown: str | None) -> Caller | None:
        return self(request)


class Bearer(Authentication, HttpBearer):
    """Describes tokens in the OpenAPI document."""

    openapi_bearerFormat = "sb_<id>_<secret>"
    openapi_description = (
        "An API token created on the account page, with permissions, optional machines and an expiry; or a session"
        " created with one: `sbs_…`."
    )


class Session(Authentication, APIKeyCookie):
    """Describes the login of the pages."""

    param_name = "sessionid"
    openapi_description = "The login session of the pages. Changes also need X-CSRFToken."


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
    verdict = spend_if_available(get_pattern(Throttle).take, "api", key, limit=quota, per=window, cost=min(cost, quota))
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
    verdict = spend_if_available(get_pattern(Throttle).take, "api", key, limit=quota, per=window, cost=min(cost, quota))
    if not verdict.allowed and verdict.remaining:
        verdict = spend_if_available(
            get_pattern(Throttle).take, "api", key, limit=quota, per=window, cost=verdict.remaining
        )
    return Limit("caller", quota, math.ceil(window), replace(verdict, allowed=True))


def _spend_address(address: str, quota: int, window: float) -> None:
    """Charge the address. Part of so large a budget may be taken ahead, so that few requests ask Redis about it."""
    ahead = max(1, min(AHEAD, quota // 1000))
    verdict = spend_if_available(
        get_pattern(Throttle).take, "api.address", network_of(address), limit=quota, per=window, ahead=ahead
    )
    _check(Limit("address", quota, math.ceil(window), verdict))


def spend_stranger(request: HttpRequest) -> Limit:
    """Charge a request without valid credentials. Raises TooMany."""
    quota, window = STRANGERS
    address = network_of(request.META.get("REMOTE_ADDR") or "")
    verdict = spend_if_available(get_pattern(Throttle).take, "api.stranger", address, limit=quota, per=window)
    return _check(Limit("stranger", quota, window, verdict))


def _check(limit: Limit) -> Limit:
    if not limit.verdict.allowed:
        raise TooMany(limit)
    return limit
