"""Presents the account pages: rights that a person holds, sessions of their tokens, and shared links.

A shared link opens a filtered page for a week, for everybody who may open the page. Each is a session
(``machines.patterns.Sessions``) of its creator, and holds the page and its terms. The rules are those of a shared view,
checked when the link is created and whenever it is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.models import SavedView
from dashboard.shared.permissions import MEANINGS, scope_of
from machines.connections import get_pattern
from machines.models import Token
from machines.patterns import Gone, Held, Session, Sessions
from machines.patterns.sessions import HANDLE
from machines.people import tokens


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


DAYS = 7  # from its creation, however often it is opened, so that its end can be shown
MAX_LINKS = 50  # of one person
MAX_BYTES = 16_384  # of a page and what narrows it, in any alphabet
PARTITIONS = 16


@dataclass(frozen=True, slots=True)
class Link:
    """Holds a link as its creator sees it. ``view``: what it opens; times in ms; ``token``: of one just made or
    renewed.
    """

    handle: str
    view: SavedView
    made: int
    expires: int
    token: str = ""


def make_link(user: Any, page: str, query: str) -> Link:
    """Create a link. Raise ValidationError as a shared view does, Full at ``MAX_LINKS``."""
    view = SavedView.for_all(user, page, query)
    return _link(
        _get_store().create(_make_subject(user), {"machine": view.machine, "page": view.page, "query": view.query})
    )


def renew_link(user: Any, handle: str) -> Link:
    """Replace the address of a link; the former one opens nothing. Its end stays. Raise Gone."""
    if not HANDLE.fullmatch(handle):
        raise Gone("link not found")
    return _link(_get_store().rotate_handle(_make_subject(user), handle))


def revoke_link(user: Any, handle: str) -> bool:
    """Revoke a link of the user; return whether there was one."""
    return bool(HANDLE.fullmatch(handle)) and _get_store().revoke_handle(_make_subject(user), handle)


def list_links(user: Any) -> list[Link]:
    """List the links of the user, the one that expires first in front."""
    return [_link(held) for held in _get_store().of(_make_subject(user))]


def open_link(user: Any, token: str) -> SavedView:
    """Return the view of a link. Raise Gone, ValidationError if the page cannot be shared any more, Forbidden."""
    state = _get_store().get(token).state
    view = SavedView.for_all(user, state["page"], state["query"])
    view.demand(user)
    return view


def _link(held: Held) -> Link:
    view = SavedView(**held.state)
    return Link(held.handle, view, held.created, held.expires, held.token if isinstance(held, Session) else "")


def _get_store() -> Sessions:
    return get_pattern(
        Sessions, "links", ttl=DAYS * 86_400, sliding=False, max_bytes=MAX_BYTES, most=MAX_LINKS, partitions=PARTITIONS
    )


def _make_subject(user: Any) -> str:
    return str(user.pk)
