"""Presents the account pages: rights that a person holds, and sessions of their tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from machines.models import Token
from machines.patterns import Held
from machines.people import tokens
from machines.people.permissions import MEANINGS, scope_of


@dataclass(frozen=True, slots=True)
class HeldRight:
    """Holds a right of a person. ``machines``: where it applies, empty for all machines."""

    right: str
    meaning: str
    machines: tuple[str, ...] = ()


def list_rights(user: Any) -> list[HeldRight]:
    found = []
    for right, meaning in MEANINGS.items():
        scope = scope_of(user, right)
        if scope:
            found.append(HeldRight(right, meaning, () if scope.all else tuple(sorted(scope.names))))
    return found


@dataclass(frozen=True, slots=True)
class TokenSession:
    """Holds one session and the token it was created with."""

    held: Held
    token: Token


def sessions_of(user: Any) -> list[TokenSession]:
    """List the sessions of the active tokens. Sessions of other tokens open nothing, and expire."""
    owned = {token.handle: token for token in Token.holding(user)}
    return [TokenSession(held, owned[held.subject]) for held in tokens.list_sessions(owned.values())]
