"""Lists the instances of a machine by a filter, oldest or newest first, one keyset page at a time: which columns it
has, how a row is written, and the list as CSV or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from operator import itemgetter
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import Http404, HttpRequest, QueryDict, StreamingHttpResponse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from dashboard.shared import times, version_view
from dashboard.shared.addresses import find_instance_address, find_page_address
from dashboard.shared.counts import StateCounts, count_states
from dashboard.shared.csv_export import Export, list_json, list_lines, name_file, stream_csv, stream_json
from dashboard.shared.diagram_modes import DEFAULT, mode_of
from dashboard.shared.permissions import require_audited
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.search import instance_filter as seeking
from dashboard.shared.search.instance_filter import InstanceFilter
from dashboard.shared.times import format_iso
from machines.catalog import builtin_machines
from machines.engine import BadInput, Instance, Page, Tally
from machines.engine.definitions import Outline
from machines.engine.definitions.reading.machine_settings import FACTS
from machines.instances import query_line
from machines.people.actor import Actor
from machines.people.mirrors import is_mirror
from machines.people.redaction import redactor_of

SIZE = 50  # instances on a page
MAX_COUNTED = 5_000  # instances looked at for the figures of one page
NOTHING = Page([], None)
WHOLE = {"cursor": None, "view": None, "fold": None, "mode": None, "cols": None}  # the list, and not a page of it
USUAL_MODE = ("mode", DEFAULT.name)  # left out of addresses


@dataclass(frozen=True, slots=True)
class FilterTerm:
    """Holds one term of a filter: its name, its text, and the address of the list without it."""

    name: str
    text: str
    without: str


@dataclass(frozen=True, slots=True)
class Column:
    """``kind``: how ``CELLS`` draws it. ``wide``: left out on a phone. ``name`` stands in the address."""

    name: str
    label: str
    kind: str
    wide: bool = True
    numeric: bool = True


AGE = Column("age", "created", "age")
REVISION = Column("revision", "revision", "revision")
TIME = Column("time", "time in state", "time", wide=False)
USUAL = (TIME, REVISION, AGE)


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
    def from_request(cls, request: HttpRequest, counts: StateCounts, *, strict: bool = True) -> InstanceList:
        """Read ``?state=&older=15m&version=&tag=&actor=&error=&id=&by=serial&is=ATV-*&order=newest&cursor=&view=top``.

        An unknown state is a 404. ``strict``: raise BadInput for an invalid term; otherwise it is in
        ``filter.mistakes``.
        """
        given = request.GET
        hidden = redactor_of(Actor.of(request), counts.name).fields
        parsed = seeking.parse_filter(given, counts.view.outline, hidden)
        block = counts.block(parsed.state) if parsed.state else None
        if parsed.state and block is None:
            raise Http404(f"Machine {counts.name} has no state {parsed.state[:100]}.")
        if strict and parsed.mistakes:
            raise next(iter(parsed.mistakes.values()))
        return cls(
            counts.name,
            parsed.state,
            block.count if block else counts.total,
            given.get("order") == "newest",
            given.get("cursor") or None,
            given.get("back") or None,
            counts.view.terms,
            parsed,
            mode_of(given.get("mode", "")).name,
            choose_columns(given, counts.view.outline),
            tuple(list_columns(counts.view.outline)),
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
        """Count the instances in each state, and in all states together, by the filter without its state; those in its
        state alone, as a partial count, where no index serves the filter without it."""
        terms = {name: term for name, term in self.terms.items() if name != "state"}
        try:
            return engine.tally(self.machine, **terms, most=MAX_COUNTED)
        except BadInput:
            if not self.state:
                raise
            return replace(engine.tally(self.machine, **self.terms, most=MAX_COUNTED), complete=False)

    @property
    def terms(self) -> dict[str, Any]:
        """Return the terms for ``Engine.find``."""
        return dict(self.filter.terms)

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
        return self._make_address("bulk-new", order=None, **WHOLE)

    @property
    def rows_url(self) -> str:
        """Return the address of the rows as they are now."""
        return self._make_address("rows", view=None, fold=None, mode=None)

    @property
    def csv_url(self) -> str:
        """Return the address of the list as CSV; the order counts, the page does not."""
        return self._make_address("instances-csv", **WHOLE)

    @property
    def json_url(self) -> str:
        """Return the address of the list as JSON."""
        return self._make_address("instances-json", **WHOLE)

    def _make_address(self, name: str, **changes: object) -> str:
        query = urlsplit(self.url(**changes)).query
        address = find_page_address(f"signalbox:{name}", self.machine)
        return f"{address}?{query}" if query else address

    def url(self, **changes: object) -> str:
        """Return the address of this list with changed terms. Defaults are left out."""
        texts = self.filter.texts
        terms: dict[str, Any] = {**self.view, "mode": self.mode, **texts, "cols": write_columns(self.columns)}
        terms |= {"order": "newest" if self.newest else None, "cursor": self.cursor, "back": self.back} | changes
        if "cursor" in changes:
            terms["back"] = changes.get("back")
        query = urlencode({name: term for name, term in terms.items() if term and (name, term) != USUAL_MODE})
        address = find_page_address("signalbox:machine", self.machine)
        return f"{address}?{query}" if query else address

    @property
    def query(self) -> str:
        """Return the terms that a saved view keeps: all but the cursor."""
        return urlsplit(self.first_url).query

    @property
    def first_url(self) -> str:
        return self.url(cursor=None)

    @property
    def other_order_url(self) -> str:
        return self.url(cursor=None, order=None if self.newest else "newest")

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


MAX_CHOSEN = 12
MAX_SHOWN = 80  # characters of a value
DATA = "data."
FIXED = (
    TIME,
    Column("entered", "entered at", "entered"),
    REVISION,
    Column("version", "version", "version"),
    AGE,
    Column("created", "created at", "created"),
    Column("actor", "last actor", "actor", numeric=False),
    Column("suspended", "suspended", "suspended", numeric=False),
)


def list_columns(outline: Outline) -> list[Column]:
    """List the columns of a machine: the facts of an instance, and its indexed data fields."""
    fields = [name for name in outline.index if name not in FACTS]
    return [*FIXED, *(Column(DATA + name, name, "data", numeric=False) for name in fields)]


def choose_columns(given: QueryDict, outline: Outline) -> tuple[Column, ...]:
    """Return the columns of ``?cols=time,version`` or ``?col=time&col=version``, in the order of ``list_columns``; the
    usual ones for none. A name that the machine does not have is passed over: its definition may have changed."""
    names = {*given.get("cols", "").split(","), *given.getlist("col")[:MAX_CHOSEN]}
    chosen = [column for column in list_columns(outline) if column.name in names]
    return tuple(chosen[:MAX_CHOSEN]) or USUAL


def write_columns(columns: Sequence[Column]) -> str | None:
    """Return the term of an address; None for the usual columns."""
    return None if tuple(columns) == USUAL else ",".join(column.name for column in columns)


def read_text(instance: Instance, column: Column) -> str:
    """Return what a row says in a column of data."""
    value = instance.data.get(column.name.removeprefix(DATA))
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


PICK = """<td class="pick"><label><input type="checkbox" name="pick" value="{id}"
    aria-label="Select {id}"></label></td>"""
ROW = """<tr data-row="{id}" data-states="{state}" data-revision="{revision}">
  {pick}
  <th scope="row"><a class="key" href="{url}">{id}</a></th>
  <td data-cell="states">{states}{held}{trouble}</td>
  {cells}
</tr>
"""
HELD = '<span class="held">suspended</span>'

# How a column is drawn, by its kind. ``now``: ms that ages count from.
Cell = Callable[[Instance, Column, float], str]
CELLS: dict[str, Cell] = {
    "time": lambda one, column, now: (
        f'<td class="num" data-cell="entered">{times.format_ticking(one.entered, now, "ago")}</td>'
    ),
    "revision": lambda one, column, now: f'<td class="num wide" data-cell="revision">{one.revision}</td>',
    "age": lambda one, column, now: f'<td class="num wide faint">{times.format_ticking(one.created, now, "ago")}</td>',
    "entered": lambda one, column, now: (
        f'<td class="num wide" data-cell="since">{times.format_element(one.entered)}</td>'
    ),
    "created": lambda one, column, now: f'<td class="num wide">{times.format_element(one.created)}</td>',
    "version": lambda one, column, now: f'<td class="num wide" data-cell="version">{one.version}</td>',
    "actor": lambda one, column, now: f'<td class="wide" data-cell="actor">{escape(one.actor)}</td>',
    "suspended": lambda one, column, now: (
        f'<td class="wide" data-cell="suspended">{"yes" if one.suspended else "no"}</td>'
    ),
    "data": lambda one, column, now: f'<td class="wide" data-cell="data">{escape(read_text(one, column))}</td>',
}


def write_rows(
    instances: Sequence[Instance],
    columns: Sequence[Column],
    wrong: Mapping[str, Sequence[Any]],
    *,
    now: float,
    picks: bool,
    current_app: str | None = None,
) -> SafeString:
    """Write a row for each instance. ``wrong``: id -> its errors; ``picks``: with a box to select it."""
    drawn = [(column, CELLS[column.kind]) for column in columns]
    return SafeString(
        "".join(_write_row(one, drawn, wrong.get(one.id, ()), now, picks, current_app) for one in instances)
    )


def _write_row(
    one: Instance,
    columns: Sequence[tuple[Column, Cell]],
    errors: Sequence[Any],
    now: float,
    picks: bool,
    current_app: str | None,
) -> str:
    id, final = escape(one.id), " final" if one.done else ""
    return ROW.format(
        id=id,
        state=escape(one.state),
        revision=one.revision,
        pick=PICK.format(id=id) if picks else "",
        url=escape(find_instance_address(one.machine, one.id, current_app)),
        states="".join(f'<span class="state{final}">{escape(leaf)}</span>\n    ' for leaf in one.configuration),
        held=HELD if one.suspended else "",
        trouble=f'\n    <span class="trouble bad">✕ {escape(errors[0].kind or "error")}</span>' if errors else "",
        cells="\n  ".join(draw(one, column, now) for column, draw in columns),
    )


MAX_ROWS = 100_000
READ = 200  # instances in a page of the engine: their data is read along with them
COLUMNS = ("id", "state", "entered", "created", "revision", "version", "actor", "suspended", "finished")
TRUNCATED = f"more than {MAX_ROWS:,} instances match: narrow the filter"


@require_audited("view", "export")
@require_safe
def export_csv(request: HttpRequest, machine: str) -> StreamingHttpResponse:
    """Send the list as CSV: its facts, then a column for each data field of the current version."""
    export, _, fields, pages = _open(request, machine)
    return stream_csv(export, _list_lines(export, pages, fields), name_file(f"{machine}-instances.csv"))


@require_audited("view", "export")
@require_safe
def export_json(request: HttpRequest, machine: str) -> StreamingHttpResponse:
    """Send the list as JSON: ``{"machine", "filter", "instances": [...], "complete"}``."""
    export, listing, _, pages = _open(request, machine)
    head = {"machine": machine, "filter": dict(listing.filter.texts)}
    rows = ([_make_facts(one) | {"data": one.data} for one in page] for page in pages)
    lines = list_json(head, "instances", rows, lambda: {"complete": not export.is_cut})
    return stream_json(export, lines, name_file(f"{machine}-instances.json"))


def _open(request: HttpRequest, machine: str) -> tuple[Export, InstanceList, list[str], Iterator[Page]]:
    """Return the record of the file, the list, the data fields of the machine, and its pages.

    The first page is read at once, so that a filter
    that is not valid is a page that says so."""
    engine = redacted_engine(request)
    live = engine.live(machine)
    view = version_view.load_version(machine, live.version)
    listing = InstanceList.from_request(request, count_states(view, live))
    first, fields = _read(engine, listing, None), [field.name for field in view.outline.data]
    export = Export(request, [*COLUMNS, *fields], about={"machine": machine})
    return export, listing, fields, _read_pages(engine, listing, first, export)


def _read(engine: RedactedEngine, listing: InstanceList, cursor: str | None) -> Page:
    return engine.find(listing.machine, **listing.terms, limit=READ, cursor=cursor, newest=listing.newest)


def _read_pages(engine: RedactedEngine, listing: InstanceList, page: Page, export: Export) -> Iterator[Page]:
    """Yield pages up to MAX_ROWS instances."""
    while True:
        export.rows += len(page.instances)
        yield page
        if page.cursor is None or export.rows >= MAX_ROWS:
            export.is_cut = page.cursor is not None
            return
        page = _read(engine, listing, page.cursor)


def _make_facts(instance: Instance) -> dict[str, Any]:
    return {
        "id": instance.id,
        "state": instance.configuration,
        "entered": format_iso(instance.entered),
        "created": format_iso(instance.created),
        "revision": instance.revision,
        "version": instance.version,
        "actor": instance.actor,
        "suspended": bool(instance.suspended),
        "finished": instance.done,
    }


def _list_lines(export: Export, pages: Iterator[Page], fields: list[str]) -> Iterator[str]:
    columns = {name: itemgetter(name) for name in (*COLUMNS, *(f"data.{name}" for name in fields))}
    yield from list_lines(columns, ([_make_row(instance, fields) for instance in page] for page in pages))
    if export.is_cut:
        yield from list_lines({TRUNCATED: str}, ())


def _make_row(instance: Instance, fields: list[str]) -> dict[str, Any]:
    data = {f"data.{name}": instance.data.get(name) for name in fields}
    return _make_facts(instance) | {"state": ", ".join(instance.configuration)} | data
