"""Which instances a page lists: by state and time in it, oldest first or newest first, one keyset page at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import Http404, HttpRequest
from django.urls import reverse

from dashboard.pages.modes import DEFAULT, mode_of
from dashboard.pages.sought import Sought
from dashboard.pages.tracks import Track
from machines.engine import BadInput, Engine, Page
from machines.engine.definitions import durations

SIZE = 50  # instances on a page


@dataclass(frozen=True, slots=True)
class Listing:
    """``cursor`` is the engine's: the page stays put while instances before it come and go.

    ``folded``: the diagram above the list shows the top level alone. ``older``: a length such as "15m", for those alone
    that have been in their state for as long. ``sought``: an indexed data field and what it is to hold. ``mode``:
    what the diagram tells.
    """

    machine: str
    state: str | None
    count: int
    newest: bool = False
    cursor: str | None = None
    folded: bool = False
    older: str = ""
    sought: Sought = field(default_factory=Sought)
    mode: str = ""

    @classmethod
    def asked(cls, request: HttpRequest, track: Track) -> Listing:
        """From ``?state=&older=15m&by=serial&is=ATV-*&order=newest&cursor=&view=top``.

        A state the machine never had is a 404.
        """
        state = request.GET.get("state") or None
        block = track.block(state) if state else None
        if state and block is None:
            raise Http404(f"Machine {track.name} has no state {state[:100]}.")
        count = block.count if block else track.total
        newest, cursor = request.GET.get("order") == "newest", request.GET.get("cursor") or None
        older = request.GET.get("older", "")
        if older and durations.milliseconds(older) is None:
            raise BadInput(f"{older[:100]!r} is no length of time; {durations.HINT}")
        return cls(
            track.name,
            state,
            count,
            newest,
            cursor,
            track.plan.folded,
            older,
            Sought.asked(request, track.plan.outline),
            mode_of(request.GET.get("mode", "")).name,
        )

    def read(self, engine: Engine) -> Page:
        return engine.find(self.machine, **self.terms, limit=SIZE, cursor=self.cursor, newest=self.newest)

    @property
    def terms(self) -> dict[str, Any]:
        """What is looked for, as ``Engine.find`` takes it; None where it does not matter."""
        older_than = None if self.older_ms is None else self.older_ms / 1000
        return {"state": self.state, "older_than": older_than, **dict(self.sought.terms)}

    @property
    def bulk_url(self) -> str:
        """Where something is done with all that this list finds."""
        query = urlsplit(self.url(cursor=None, order=None, view=None, mode=None)).query
        address = reverse("bulk-new", args=[self.machine])
        return f"{address}?{query}" if query else address

    @property
    def older_ms(self) -> int | None:
        return durations.milliseconds(self.older) if self.older else None

    def url(self, *, fragment: bool = False, **changes: object) -> str:
        """The address of this list with some of its terms changed; defaults are left out of it."""
        order, view = "newest" if self.newest else None, "top" if self.folded else None
        older = self.older or None
        mode = None if self.mode == DEFAULT.name else self.mode
        terms = {"view": view, "mode": mode, "state": self.state, "older": older}
        terms |= {"by": self.sought.by, "is": self.sought.text}
        terms |= {"order": order, "cursor": self.cursor} | changes
        query = urlencode({name: term for name, term in terms.items() if term})
        address = reverse("instances" if fragment else "machine", args=[self.machine])
        return f"{address}?{query}" if query else address

    @property
    def other_view_url(self) -> str:
        return self.url(view=None if self.folded else "top")

    @property
    def own_url(self) -> str:
        return self.url()

    @property
    def fragment_url(self) -> str:
        return self.url(fragment=True)

    @property
    def first_url(self) -> str:
        return self.url(cursor=None)

    @property
    def other_order_url(self) -> str:
        return self.url(cursor=None, order=None if self.newest else "newest")

    @property
    def all_url(self) -> str:
        return self.url(cursor=None, state=None)

    @property
    def narrowed(self) -> bool:
        """Is the list shorter than the number beside its state?"""
        return bool(self.older or self.sought)

    @property
    def kept(self) -> dict[str, str]:
        """What the search form sends along."""
        terms = {"state": self.state, "order": "newest" if self.newest else "", "view": "top" if self.folded else ""}
        terms |= {"mode": "" if self.mode == DEFAULT.name else self.mode}
        return {name: term for name, term in terms.items() if term}

    @property
    def whole_url(self) -> str:
        return self.url(cursor=None, older=None, by=None, **{"is": None})

    @property
    def any_age_url(self) -> str:
        return self.url(cursor=None, older=None)
