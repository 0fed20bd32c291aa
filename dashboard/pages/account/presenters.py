"""What the account pages show: rights a person holds, and sessions of their tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.shared.access import MEANINGS, scope_of
from machines.access import token_sessions
from machines.models import Token
from machines.patterns import Held as HeldSession


@dataclass(frozen=True, slots=True)
class HeldRight:
    """A right somebody holds. ``machines``: where, empty for all of them."""

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
    """One session and the token it was made with."""

    held: HeldSession
    token: Token


def sessions_of(user: Any) -> list[TokenSession]:
    """Of the tokens that hold; those of others open nothing and end by themselves."""
    tokens = {token.handle: token for token in Token.holding(user)}
    return [TokenSession(held, tokens[held.subject]) for held in token_sessions.of(tokens.values())]
