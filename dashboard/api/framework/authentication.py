"""Authenticates a caller: by a token in the Authorization header, by a session made with one, or by the login of the
pages with its CSRF token.

A request that shows a token or a session of one is judged by that alone; the login beside it is not looked at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from django.http import HttpRequest
from ninja.security import APIKeyCookie, HttpBearer
from ninja.utils import check_csrf

from machines.audit.entries import source_of
from machines.models import Token
from machines.patterns import Session as TokenSession
from machines.people import last_seen, tokens
from machines.people.actor import Actor

from .rate_limits import Limit

SAFE = ("GET", "HEAD", "OPTIONS")
# Of a token or a session, wherever in an address it stands.
SHOWN = re.compile(rf"sb_[0-9a-f]{{12}}_|{tokens.SHOWN.pattern}", re.ASCII)


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


class Bearer(HttpBearer):
    """For the OpenAPI document: ``authenticate`` has been asked before an operation begins."""

    openapi_bearerFormat = "sb_<id>_<secret>"
    openapi_description = (
        "An API token created on the account page, with permissions, optional machines and an expiry; or a session"
        " created with one: `sbs_…`."
    )

    def __call__(self, request: HttpRequest) -> Caller | None:
        return getattr(request, "caller", None)

    def authenticate(self, request: HttpRequest, token: str) -> Caller | None:
        return getattr(request, "caller", None)


class Session(APIKeyCookie):
    """The same for the session of the pages."""

    param_name = "sessionid"
    openapi_description = "The login session of the pages. Changes also need X-CSRFToken."

    def __call__(self, request: HttpRequest) -> Caller | None:
        return getattr(request, "caller", None)

    def authenticate(self, request: HttpRequest, key: str | None) -> Caller | None:
        return getattr(request, "caller", None)
