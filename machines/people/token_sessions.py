"""Sessions of API tokens: a short-lived credential that a program sends in place of its token.

A session reads ``sbs_<part>.<handle>.<secret>``. It may do what its token may at that moment: a token that is revoked
or ends, or whose owner is switched off, ends its sessions with it. It also carries a state of the program's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from machines.connections import get_pattern
from machines.patterns import Gone, Held, Session, Sessions

from . import tokens
from .models.token import Token
from .tokens import BadToken

BEGINNING = "sbs_"
TTL, LEAST_TTL, MAX_TTL = 900, 60, 86_400  # seconds since the last use
LIFETIME = 86_400  # seconds after which one ends however much it is used
MOST = 50  # of one token
PARTITIONS = 16
NO_SESSION = "session not found or expired: create a new one with your token"
SHOWN = re.compile(r"sbs_\d{1,2}\.[0-9a-f]{16}\.", re.ASCII)  # of a session, wherever in a text it stands


def make(token: Token, state: Mapping[str, Any] | None = None, *, ttl: float = TTL) -> tuple[Session, str]:
    """Make a session of a token; return it and its text, which is not kept. Raises Full, BadInput,
    EngineUnavailable."""
    made = _get_sessions().create(token.handle, state, ttl=ttl)
    return made, BEGINNING + made.token


def check(text: str, *, now: datetime | None = None) -> tuple[Session, Token]:
    """Return the session that ``text`` is, and its token. Raises BadToken for one that opens nothing,
    EngineUnavailable."""
    try:
        session = _get_sessions().get(text.removeprefix(BEGINNING) if text.startswith(BEGINNING) else "")
    except Gone:
        raise BadToken(NO_SESSION) from None
    return session, tokens.get_by_handle(session.subject, now=now)


def put(session: Session, state: Mapping[str, Any], *, expect: int | None = None) -> Session:
    """Store a session. Raises Gone, Changed, BadInput, EngineUnavailable."""
    return _get_sessions().put(session.token, state, expect=expect)


def rotate(session: Session) -> tuple[Session, str]:
    """Give the session another text. Raises Gone where another request was first, EngineUnavailable."""
    turned = _get_sessions().rotate(session.token)
    return turned, BEGINNING + turned.token


def of(held: Iterable[Token]) -> list[Held]:
    """Return the sessions of some tokens, in one round trip; ``subject`` is the token's handle."""
    handles = [token.handle for token in held]
    return [one for found in _get_sessions().of_each(handles).values() for one in found] if handles else []


def revoke(token: Token, handle: str) -> bool:
    """Revoke a session; tell whether it held until now."""
    return _get_sessions().revoke_handle(token.handle, handle)


def revoke_all(token: Token) -> int:
    """Revoke all sessions; return how many ended."""
    return _get_sessions().revoke_all(token.handle)


def _get_sessions() -> Sessions:
    return get_pattern(Sessions, "api", ttl=TTL, lifetime=LIFETIME, most=MOST, partitions=PARTITIONS)
