"""Links to views: an address that opens a page as somebody narrowed it, for a week, for whoever may open that page.

Each is a session (``machines.patterns.Sessions``) of who made it, and holds the page and what narrows it. The rules are
those of a shared view, asked when it is made and again whenever it is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.models import SavedView
from machines.connections import get_pattern
from machines.engine.connection.client import Client
from machines.patterns import Gone, Held, Session, Sessions
from machines.patterns.sessions import HANDLE

DAYS = 7  # from when it was made, however often it is opened: whoever gets it can be told until when it holds
MAX_LINKS = 50  # of one person
MAX_BYTES = 16_384  # of a page and what narrows it, in any alphabet
PARTITIONS = 16


@dataclass(frozen=True, slots=True)
class Link:
    """One as its maker sees it: ``view`` is what it opens, kept nowhere else; times in ms. ``token``: of one that was
    just made or renewed, else ""."""

    handle: str
    view: SavedView
    made: int
    expires: int
    token: str = ""


def container(redis: Client, prefix: str) -> Sessions:
    return Sessions(
        redis, "links", prefix=prefix, ttl=DAYS * 86_400, sliding=False, max_bytes=MAX_BYTES, most=MAX_LINKS,
        partitions=PARTITIONS,
    )  # fmt: skip


def make_link(user: Any, page: str, query: str) -> Link:
    """Raises ValidationError as a shared view does, Full where there are ``MOST``."""
    view = SavedView.for_all(user, page, query)
    return _link(_links().create(_subject(user), {"machine": view.machine, "page": view.page, "query": view.query}))


def renew_link(user: Any, handle: str) -> Link:
    """Another address for it; the former one opens nothing from here on. Its end stays. Raises Gone."""
    if not HANDLE.fullmatch(handle):
        raise Gone("link not found")
    return _link(_links().rotate_handle(_subject(user), handle))


def revoke_link(user: Any, handle: str) -> bool:
    """Whether it held until now, and was theirs."""
    return bool(HANDLE.fullmatch(handle)) and _links().revoke_handle(_subject(user), handle)


def list_links(user: Any) -> list[Link]:
    """The one that ends first in front."""
    return [_link(held) for held in _links().of(_subject(user))]


def open_link(user: Any, token: str) -> SavedView:
    """What it opens. Raises Gone; ValidationError for a page that is not there any more, or may not be shown to others
    now; Forbidden where the user may not open it."""
    state = _links().get(token).state
    view = SavedView.for_all(user, state["page"], state["query"])
    view.demand(user)
    return view


def _link(held: Held) -> Link:
    view = SavedView(**held.state)
    return Link(held.handle, view, held.created, held.expires, held.token if isinstance(held, Session) else "")


def _links() -> Sessions:
    return get_pattern(container)


def _subject(user: Any) -> str:
    return str(user.pk)
