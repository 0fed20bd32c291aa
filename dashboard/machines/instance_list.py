"""Lists the instances of a machine by a filter, oldest or newest first, one keyset page at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import Http404, HttpRequest

from dashboard.shared.addresses.page_addresses import find_page_address
from dashboard.shared.figures.state_counts import StateCounts
from dashboard.shared.redacted_engine import RedactedEngine
from dashboard.shared.search import instance_filter as seeking
from dashboard.shared.search import query_line
from dashboard.shared.search.instance_filter import InstanceFilter
from machines.catalog import builtin_machines
from machines.catalog.mirrors import is_mirror
from machines.engine import BadInput, Page, Tally
from machines.instances.queries import redactor_of
from machines.people.actor import Actor

from .columns import TIME, USUAL, Column, choose_columns, list_columns, write_columns
from .diagrams.diagram_modes import DEFAULT, mode_of

SIZE = 50  # instances on a page
MAX_COUNTED = 5_000  # instances looked at for the figures of one page
NOTHING = Page([], None)
USUAL_MODE = ("mode", DEFAULT.name)  # left out of addresses


@dataclass(frozen=True, slots=True)
class FilterTerm:
    """Holds one term of a filter: its name, its text, and the address of the list without it."""

    name: str
    text: str
    without: str


@dataclass(frozen=True, slots=True)
class InstanceList:
    """Holds the terms of a list.

    ``cursor`` is the engine's: the page is stable while instances before it come and go. ``back`` is a cursor that the
    page ends before. ``count``: the instances in its state, whatever else is filtered. ``view``: the terms of the
    diagram above the list; ``mode``: the mode of the diagram; ``columns``: those shown, of ``all_columns``.
    """

    machine: str
    state: str | None
    count: int
    newest: bool = False
    cursor: str | None = None
    back: str | None = None
    view: Mapping[str, str] = field(default_factory=dict)
    filter: InstanceFilter = field(default_factory=InstanceFilter)
    mode: str = ""
    columns: tuple[Column, ...] = USUAL
    all_columns: tuple[Column, ...] = ()

    @classmethod
    def from_request(cls, request: HttpRequest, track: StateCounts, *, strict: bool = True) -> InstanceList:
        """Read ``?state=&older=15m&version=&tag=&actor=&error=&id=&by=serial&is=ATV-*&order=newest&cursor=&view=top``.

        An unknown state is a 404. ``strict``: raise BadInput for an invalid term; otherwise it is in
        ``filter.mistakes``.
        """
        given = request.GET
        hidden = redactor_of(Actor.of(request), track.name).fields
        parsed = seeking.parse_filter(given, track.view.outline, hidden)
        block = track.block(parsed.state) if parsed.state else None
        if parsed.state and block is None:
            raise Http404(f"Machine {track.name} has no state {parsed.state[:100]}.")
        if strict and parsed.mistakes:
            raise next(iter(parsed.mistakes.values()))
        return cls(
            track.name,
            parsed.state,
            block.count if block else track.total,
            given.get("order") == "newest",
            given.get("cursor") or None,
            given.get("back") or None,
            track.view.terms,
            parsed,
            mode_of(given.get("mode", "")).name,
            choose_columns(given, track.view.outline),
            tuple(list_columns(track.view.outline)),
        )

    # Reading

    def read(self, engine: RedactedEngine) -> Page:
        """Read the page. Its ``start`` is the cursor of the previous page."""
        if self.back:
            found = engine.find(self.machine, **self.terms, limit=SIZE, cursor=self.back, newest=not self.newest)
            return replace(found, instances=found.instances[::-1], cursor=found.start, start=found.cursor)
        found = engine.find(self.machine, **self.terms, limit=SIZE, cursor=self.cursor, newest=self.newest)
        return replace(found, start=found.start if self.cursor else None)

    @property
    def is_mirror(self) -> bool:
        """Return whether the instances follow rows, which only methods of their model change."""
        return is_mirror(self.machine)

    @property
    def is_system(self) -> bool:
        """Return whether the machine is the product's, whose own pages change its instances."""
        return self.machine in builtin_machines.NAMES

    @property
    def is_first(self) -> bool:
        return not (self.cursor or self.back)

    def tally(self, engine: RedactedEngine) -> Tally:
        """Count the instances in each state, and in all states together, by the filter without its state."""
        terms = {name: term for name, term in self.terms.items() if name != "state"}
        return engine.tally(self.machine, **terms, most=MAX_COUNTED)

    @property
    def terms(self) -> dict[str, Any]:
        """Return the terms for ``Engine.find``."""
        return dict(self.filter.terms)

    @property
    def older(self) -> str:
        return self.filter.texts.get("older", "")

    @property
    def narrowed(self) -> bool:
        """Return whether the list is filtered by more than its state."""
        return bool(self.filter)

    @property
    def size(self) -> int:
        return SIZE

    # Addresses

    @property
    def bulk_url(self) -> str:
        """Return the address of a bulk action on this list."""
        return self._make_address("bulk-new", cursor=None, order=None, view=None, fold=None, mode=None, cols=None)

    @property
    def counts_url(self) -> str:
        """Return the address of the counts of this filter as JSON."""
        return self._make_address(
            "counts", state=None, cursor=None, order=None, view=None, fold=None, mode=None, cols=None
        )

    @property
    def rows_url(self) -> str:
        """Return the address of the current state of the rows as JSON."""
        return self._make_address("rows", view=None, fold=None, mode=None)

    @property
    def csv_url(self) -> str:
        """Return the address of the list as CSV; the order counts, the page does not."""
        return self._make_address("instances-csv", cursor=None, view=None, fold=None, mode=None, cols=None)

    @property
    def json_url(self) -> str:
        """Return the address of the list as JSON."""
        return self._make_address("instances-json", cursor=None, view=None, fold=None, mode=None, cols=None)

    def _make_address(self, name: str, **changes: object) -> str:
        query = urlsplit(self.url(**changes)).query
        address = find_page_address(f"signalbox:{name}", self.machine)
        return f"{address}?{query}" if query else address

    def url(self, *, fragment: bool = False, **changes: object) -> str:
        """Return the address of this list with changed terms. Defaults are left out."""
        texts = self.filter.texts
        terms: dict[str, Any] = {**self.view, "mode": self.mode, **texts, "cols": write_columns(self.columns)}
        terms |= {"order": "newest" if self.newest else None, "cursor": self.cursor, "back": self.back} | changes
        if "cursor" in changes:
            terms["back"] = changes.get("back")
        query = urlencode({name: term for name, term in terms.items() if term and (name, term) != USUAL_MODE})
        address = find_page_address("signalbox:instances" if fragment else "signalbox:machine", self.machine)
        return f"{address}?{query}" if query else address

    @property
    def query(self) -> str:
        """Return the terms that a saved view keeps: all but the cursor."""
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
        texts = self.filter.texts
        for name, text in texts.items():
            if name == "is":
                yield FilterTerm(texts["by"], text, self.url(cursor=None, by=None, **{"is": None}))
            elif name != "by":
                yield FilterTerm(name, text, self.url(cursor=None, **{name: None}))

    @property
    def kept(self) -> dict[str, str]:
        """Return the terms that the filter form sends besides its own."""
        terms = {"order": "newest" if self.newest else "", **self.view, "cols": write_columns(self.columns) or ""}
        terms |= {"mode": self.mode}
        return {name: term for name, term in terms.items() if term and (name, term) != USUAL_MODE}

    @property
    def kept_by_columns(self) -> dict[str, str]:
        """Return the terms that the form of the columns sends besides its own."""
        return {**self.kept, **self.filter.texts, "cols": ""}

    @property
    def time_column(self) -> Column:
        """Return the column that the list is sorted by."""
        return TIME

    @property
    def order_said(self) -> str:
        texts = self.filter.texts
        if "is" in texts or "id" in texts or "error" in texts:
            return "Sorted by the searched value, or by time in state."
        return "Shortest time in state first." if self.newest else "Longest time in state first."


def read_query(request: HttpRequest, machine: str) -> str:
    """Return the address of the list that the query line means, with its terms one by one; "" if it is not valid.

    The line is the whole filter: terms of the address that it leaves out are dropped.
    """
    try:
        texts = query_line.read_line(request.GET["query"].strip())
    except BadInput:
        return ""
    dropped = {*seeking.NAMES, "query", "cursor", "back"}
    kept = {name: text for name, text in request.GET.items() if name not in dropped and text}
    query = urlencode(kept | texts)
    address = find_page_address("signalbox:machine", machine)
    return f"{address}?{query}#instances" if query else f"{address}#instances"


def read_page(listing: InstanceList, engine: RedactedEngine) -> tuple[Page, Tally | None, BadInput | None]:
    """Return a page of the list, its counts if it is filtered, and the error if the filter is invalid."""
    if listing.filter.mistakes:
        return NOTHING, None, None
    try:
        return listing.read(engine), listing.tally(engine) if listing.narrowed else None, None
    except BadInput as mistake:
        return NOTHING, None, mistake
