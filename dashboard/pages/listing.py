"""Which instances a page lists: by state, oldest first or newest first, one keyset page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404, HttpRequest
from django.urls import reverse

from dashboard.pages.tracks import Track
from machines.engine import Engine, Page

SIZE = 50  # instances on a page


@dataclass(frozen=True, slots=True)
class Listing:
    """``cursor`` is the engine's: the page stays put while instances before it come and go.

    ``folded``: the diagram above the list shows the top level alone.
    """

    machine: str
    state: str | None
    count: int
    newest: bool = False
    cursor: str | None = None
    folded: bool = False

    @classmethod
    def asked(cls, request: HttpRequest, track: Track) -> Listing:
        """From ``?state=&order=newest&cursor=&view=top``. A state the machine never had is a 404."""
        state = request.GET.get("state") or None
        block = track.block(state) if state else None
        if state and block is None:
            raise Http404(f"Machine {track.name} has no state {state[:100]}.")
        count = block.count if block else track.total
        newest, cursor = request.GET.get("order") == "newest", request.GET.get("cursor") or None
        return cls(track.name, state, count, newest, cursor, track.plan.folded)

    def read(self, engine: Engine) -> Page:
        return engine.find(self.machine, state=self.state, limit=SIZE, cursor=self.cursor, newest=self.newest)

    def url(self, *, fragment: bool = False, **changes: object) -> str:
        """The address of this list with some of its terms changed; defaults are left out of it."""
        order, view = "newest" if self.newest else None, "top" if self.folded else None
        terms = {"view": view, "state": self.state, "order": order, "cursor": self.cursor} | changes
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
