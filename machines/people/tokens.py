"""API tokens and their sessions: create, check, revoke.

A token reads ``sb_<handle>_<secret>``. The handle is public and finds the row; the secret, 256 random bits, is kept as
its SHA-256 alone (a slow hash guards what people choose; nobody guesses this), and compared in constant time. A
revoked row stays, so that what the audit says of a handle can still be looked up.

A session is a short-lived credential that a program sends in place of its token. It reads
``sbs_<part>.<handle>.<secret>``. It may do what its token may at that moment: a token that is revoked or ends, or whose
owner is switched off, ends its sessions with it. It also carries a state of the program's own.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from machines.connections import get_pattern
from machines.patterns import Gone, Held, Session, Sessions

from . import last_seen
from .models import Token
from .permissions import EVERYTHING, NOTHING, RIGHTS, Scope

MAX_DAYS = 365
MAX_EACH = 50  # usable tokens of one owner
MAX_MACHINES = 100  # names in one token
SHAPE = re.compile(r"sb_([0-9a-f]{12})_([0-9a-f]{64})", re.ASCII)
NO_SECRET = hashlib.sha256(b"").hexdigest()


class BadToken(Exception):
    """A token that opens nothing; ``str()`` says why, without a word of what it held."""


class Unmakeable(ValueError):
    """A token that cannot be made as asked for; ``field`` is what has to be changed."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a token goes at most. ``machines``: a Scope; the caller intersects it with the permissions of the
    owner."""

    rights: frozenset[str]
    machines: Scope

    def covers(self, right: str, machine: str = "") -> bool:
        """Tell whether the token covers a right on that machine; without one: on all of them, as a right held
        globally."""
        return right in self.rights and (machine in self.machines if machine else self.machines.all)

    def scope(self, right: str) -> Scope:
        return self.machines if right in self.rights else NOTHING


def reach_of(token: Token) -> Reach:
    return Reach(frozenset(token.rights), Scope(False, frozenset(token.machines)) if token.machines else EVERYTHING)


def make(
    owner: Any, name: str, rights: Iterable[str], *, machines: Iterable[str] = (), days: int = 90
) -> tuple[Token, str]:
    """Make a token; return it and its text, which is not kept and cannot be shown again. ``view`` is always among its
    rights.

    Raises Unmakeable. The caller has asked whether ``owner`` is who asks, and writes the audit.
    """
    wanted, names = {"view", *rights}, sorted(set(machines))
    if unknown := sorted(wanted - set(RIGHTS)):
        raise Unmakeable("rights", f"there is no right {', '.join(unknown)}; there are {', '.join(RIGHTS)}")
    if not name.strip() or len(name) > 80:
        raise Unmakeable("name", "enter a name of 1 to 80 characters")
    if not 1 <= days <= MAX_DAYS:
        raise Unmakeable("days", f"a token is valid for 1 to {MAX_DAYS} days")
    if len(names) > MAX_MACHINES:
        raise Unmakeable("machines", f"a token has at most {MAX_MACHINES} machines; select none for all")
    now = timezone.now()
    if Token.holding(owner, now).count() >= MAX_EACH:
        raise Unmakeable("name", f"you have {MAX_EACH} active tokens, the maximum; revoke one first")
    handle, secret = secrets.token_hex(6), secrets.token_hex(32)
    token = Token.objects.create(
        owner=owner, name=name.strip(), handle=handle, digest=_digest(secret), created=now,
        rights=[right for right in RIGHTS if right in wanted], machines=names, expires=now + timedelta(days=days),
    )  # fmt: skip
    return token, f"sb_{handle}_{secret}"


def check(text: str, *, now: datetime | None = None) -> Token:
    """Return the token that ``text`` is, with its owner. Raises BadToken for one that is none, ended, or whose owner
    is."""
    now = now or timezone.now()
    parts = SHAPE.fullmatch(text)
    if parts is None:
        raise BadToken("invalid token: the format is sb_<id>_<secret>")
    token = Token.objects.select_related("owner").filter(handle=parts[1]).first()
    # Compared in any case, so that the time it takes does not tell which handles there are.
    same = secrets.compare_digest(token.digest if token else NO_SECRET, _digest(parts[2]))
    if token is None or not same:
        raise BadToken("token not found")
    return _check_usable(token, now)


def get_by_handle(handle: str, *, now: datetime | None = None) -> Token:
    """Return the token of that handle, for who has shown what was made with it. Raises BadToken as ``check`` does."""
    token = Token.objects.select_related("owner").filter(handle=handle).first()
    if token is None:
        raise BadToken("token not found")
    return _check_usable(token, now or timezone.now())


def revoke(token: Token) -> bool:
    """Revoke a token; tell whether it held until now. It opens nothing from here on."""
    return Token.objects.filter(pk=token.pk, revoked=None).update(revoked=timezone.now()) > 0


def _check_usable(token: Token, now: datetime) -> Token:
    if (state := token.state(now)) != "active":
        raise BadToken(f"the token is {state}")
    if not token.owner.is_active:
        raise BadToken("the token's owner is not active")
    last_seen.noting.token(token.pk)
    return token


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


BEGINNING = "sbs_"
TTL, LEAST_TTL, MAX_TTL = 900, 60, 86_400  # seconds since the last use
LIFETIME = 86_400  # seconds after which one ends however much it is used
MOST = 50  # of one token
PARTITIONS = 16
NO_SESSION = "session not found or expired: create a new one with your token"
SHOWN = re.compile(r"sbs_\d{1,2}\.[0-9a-f]{16}\.", re.ASCII)  # of a session, wherever in a text it stands


def make_session(token: Token, state: Mapping[str, Any] | None = None, *, ttl: float = TTL) -> tuple[Session, str]:
    """Make a session of a token; return it and its text, which is not kept. Raises Full, BadInput,
    EngineUnavailable."""
    made = get_sessions().create(token.handle, state, ttl=ttl)
    return made, BEGINNING + made.token


def check_session(text: str, *, now: datetime | None = None) -> tuple[Session, Token]:
    """Return the session that ``text`` is, and its token. Raises BadToken for one that opens nothing,
    EngineUnavailable."""
    try:
        session = get_sessions().get(text.removeprefix(BEGINNING) if text.startswith(BEGINNING) else "")
    except Gone:
        raise BadToken(NO_SESSION) from None
    return session, get_by_handle(session.subject, now=now)


def list_sessions(held: Iterable[Token]) -> list[Held]:
    """Return the sessions of some tokens, in one round trip; ``subject`` is the token's handle."""
    handles = [token.handle for token in held]
    return [one for found in get_sessions().of_each(handles).values() for one in found] if handles else []


def get_sessions() -> Sessions:
    """Return the sessions of all tokens, each under the handle of its token."""
    return get_pattern(Sessions, "api", ttl=TTL, lifetime=LIFETIME, most=MOST, partitions=PARTITIONS)
