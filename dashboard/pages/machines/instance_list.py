"""Which instances a page lists: what is searched for, oldest first or newest first, one keyset page at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import Http404, HttpRequest
from django.urls import reverse

from dashboard.pages.shared.redacted_engine import RedactedEngine
from dashboard.shared import instance_filter as seeking
from dashboard.shared.instance_filter import InstanceFilter
from dashboard.shared.state_counts import StateCounts
from machines.engine import BadInput, Engine, Page, Tally
from machines.services import Actor
from machines.services.reading import redactor_of

from .diagram_modes import DEFAULT, mode_of

SIZE = 50  # instances on a page
MAX_COUNTED = 5_000  # instances looked at for the figures of one page
NOTHING = Page([], None)


@dataclass(frozen=True, slots=True)
class FilterTerm:
    """One term of a search: its name, what was typed, and the address of the list without it."""

    name: str
    text: str
    without: str


@dataclass(frozen=True, slots=True)
class InstanceList:
    """``cursor`` is the engine's: the page stays put while instances before it come and go. ``back`` is one, too: the
    page ends before it.

    ``count``: the instances in its state, whatever else is searched for. ``view``: the terms of the drawing above the
    list; ``mode``: what that tells.
    """

    machine: str
    state: str | None
    count: int
    newest: bool = False
    cursor: str | None = None
    back: str | None = None
    view: Mapping[str, str] = field(default_factory=dict)
    sought: InstanceFilter = field(default_factory=InstanceFilter)
    mode: str = ""

    @classmethod
    def asked(cls, request: HttpRequest, track: StateCounts, *, strict: bool = True) -> InstanceList:
        """From ``?state=&older=15m&version=&tag=&actor=&error=&id=&by=serial&is=ATV-*&order=newest&cursor=&view=top``.

        A state the machine never had is a 404. ``strict``: raises BadInput where a term is none; otherwise it is said
        in ``sought.mistakes``.
        """
        given = request.GET
        hidden = redactor_of(Actor.of(request), track.name).fields
        sought = seeking.parse_filter(given, track.plan.outline, hidden)
        block = track.block(sought.state) if sought.state else None
        if sought.state and block is None:
            raise Http404(f"Machine {track.name} has no state {sought.state[:100]}.")
        if strict and sought.mistakes:
            raise next(iter(sought.mistakes.values()))
        return cls(
            track.name,
            sought.state,
            block.count if block else track.total,
            given.get("order") == "newest",
            given.get("cursor") or None,
            given.get("back") or None,
            track.plan.view,
            sought,
            mode_of(given.get("mode", "")).name,
        )

    # Reading

    def read(self, engine: Engine | RedactedEngine) -> Page:
        """``start`` of the page is the cursor of the page before."""
        if self.back:
            found = engine.find(self.machine, **self.terms, limit=SIZE, cursor=self.back, newest=not self.newest)
            return Page(found.instances[::-1], found.start, found.cursor)
        found = engine.find(self.machine, **self.terms, limit=SIZE, cursor=self.cursor, newest=self.newest)
        return replace(found, start=found.start if self.cursor else None)

    @property
    def is_first(self) -> bool:
        return not (self.cursor or self.back)

    def tally(self, engine: Engine | RedactedEngine) -> Tally:
        """How many there would be in each state if the list were of that one, and in all states together."""
        terms = {name: term for name, term in self.terms.items() if name != "state"}
        return engine.tally(self.machine, **terms, most=MAX_COUNTED)

    @property
    def terms(self) -> dict[str, Any]:
        """What is looked for, as ``Engine.find`` takes it."""
        return dict(self.sought.terms)

    @property
    def older(self) -> str:
        return self.sought.texts.get("older", "")

    @property
    def narrowed(self) -> bool:
        """Is the list shorter than the number of instances in its state?"""
        return bool(self.sought)

    # Addresses

    @property
    def bulk_url(self) -> str:
        """Where something is done with all that this list finds."""
        return self._elsewhere("bulk-new", cursor=None, order=None, view=None, fold=None, mode=None)

    @property
    def counts_url(self) -> str:
        """The figures of this search as JSON."""
        return self._elsewhere("counts", state=None, cursor=None, order=None, view=None, fold=None, mode=None)

    @property
    def rows_url(self) -> str:
        """What became of the rows of this page, as JSON."""
        return self._elsewhere("rows", view=None, fold=None, mode=None)

    def _elsewhere(self, name: str, **changes: object) -> str:
        query = urlsplit(self.url(**changes)).query
        address = reverse(name, args=[self.machine])
        return f"{address}?{query}" if query else address

    def url(self, *, fragment: bool = False, **changes: object) -> str:
        """The address of this list with some of its terms changed; defaults are left out of it."""
        mode = None if self.mode == DEFAULT.name else self.mode
        terms: dict[str, Any] = {**self.view, "mode": mode, **self.sought.texts}
        terms |= {"order": "newest" if self.newest else None, "cursor": self.cursor, "back": self.back} | changes
        if "cursor" in changes:
            terms["back"] = changes.get("back")
        query = urlencode({name: term for name, term in terms.items() if term})
        address = reverse("instances" if fragment else "machine", args=[self.machine])
        return f"{address}?{query}" if query else address

    def before_url(self, start: str) -> str:
        """The page that ends where this one begins."""
        return self.url(cursor=None, back=start)

    @property
    def query(self) -> str:
        """What a saved view keeps: all but the place in the list."""
        return urlsplit(self.first_url).query

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
    def whole_url(self) -> str:
        return self.url(cursor=None, **dict.fromkeys(seeking.NAMES))

    @property
    def chips(self) -> Iterator[FilterTerm]:
        texts = self.sought.texts
        for name, text in texts.items():
            if name == "is":
                yield FilterTerm(texts["by"], text, self.url(cursor=None, by=None, **{"is": None}))
            elif name != "by":
                yield FilterTerm(name, text, self.url(cursor=None, **{name: None}))

    @property
    def kept(self) -> dict[str, str]:
        """What the search form sends along beside its own terms."""
        terms = {"order": "newest" if self.newest else "", **self.view}
        terms |= {"mode": "" if self.mode == DEFAULT.name else self.mode}
        return {name: term for name, term in terms.items() if term}

    @property
    def order_said(self) -> str:
        texts = self.sought.texts
        if "is" in texts or "id" in texts or "error" in texts:
            return "Sorted by the searched value, or by time in state."
        return "Shortest time in state first." if self.newest else "Longest time in state first."


def read_page(listing: InstanceList, engine: Engine | RedactedEngine) -> tuple[Page, Tally | None, BadInput | None]:
    """The page of a list, its figures where it is narrowed, and why it cannot be searched for, if so."""
    if listing.sought.mistakes:
        return NOTHING, None, None
    try:
        return listing.read(engine), listing.tally(engine) if listing.narrowed else None, None
    except BadInput as mistake:
        return NOTHING, None, mistake
