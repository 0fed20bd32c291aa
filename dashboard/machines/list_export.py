"""The instances of a list as CSV or JSON, by the filter and in the order of the page, redacted as the list is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.text import get_valid_filename
from django.views.decorators.http import require_safe

from dashboard.shared.csv_export import list_lines, stream_csv
from dashboard.shared.diagrams import version_view
from dashboard.shared.figures.state_counts import count_states
from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.times.times import format_iso
from machines.engine import Instance, Page

from .instance_list import InstanceList

MAX_ROWS = 100_000
READ = 200  # instances in a page of the engine: their data is read along with them
COLUMNS = ("id", "state", "entered", "created", "revision", "version", "actor", "suspended", "finished")
TRUNCATED = f"more than {MAX_ROWS:,} instances match: narrow the filter"


@require("view")
@require_safe
def export_csv(request: HttpRequest, machine: str) -> StreamingHttpResponse:
    """Send the list as CSV: its facts, then a column for each data field of the current version."""
    _, fields, pages = _open(request, machine)
    return stream_csv(request, _list_lines(pages, fields), f"{_name_file(machine)}.csv")


@require("view")
@require_safe
def export_json(request: HttpRequest, machine: str) -> StreamingHttpResponse:
    """Send the list as JSON: ``{"machine", "filter", "instances": [...], "complete"}``."""
    listing, _, pages = _open(request, machine)
    answer = stream_csv(request, _list_json(machine, listing, pages), f"{_name_file(machine)}.json")
    answer["Content-Type"] = "application/json"
    return answer


def _open(request: HttpRequest, machine: str) -> tuple[InstanceList, list[str], Iterator[Page]]:
    """Return the list, the data fields of the machine, and its pages. The first page is read at once, so that a filter
    that is not valid is a page that says so."""
    engine = redacted_engine(request)
    live = engine.live(machine)
    view = version_view.load_version(machine, live.version)
    listing = InstanceList.from_request(request, count_states(view, live))
    first = _read(engine, listing, None)
    return listing, [field.name for field in view.outline.data], _read_pages(engine, listing, first)


def _read(engine: RedactedEngine, listing: InstanceList, cursor: str | None) -> Page:
    return engine.find(listing.machine, **listing.terms, limit=READ, cursor=cursor, newest=listing.newest)


def _read_pages(engine: RedactedEngine, listing: InstanceList, page: Page) -> Iterator[Page]:
    """Yield pages up to MAX_ROWS instances; the last one has a cursor where there would be more."""
    rows = 0
    while True:
        yield page
        rows += len(page.instances)
        if page.cursor is None or rows >= MAX_ROWS:
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


def _list_lines(pages: Iterator[Page], fields: list[str]) -> Iterator[str]:
    columns = {name: itemgetter(name) for name in (*COLUMNS, *(f"data.{name}" for name in fields))}
    yield from list_lines(columns, ())
    cursor = None
    for page in pages:
        cursor = page.cursor
        yield from list_lines(columns, [[_make_row(instance, fields) for instance in page.instances]], head=False)
    if cursor is not None:
        yield from list_lines({TRUNCATED: str}, ())


def _make_row(instance: Instance, fields: list[str]) -> dict[str, Any]:
    data = {f"data.{name}": instance.data.get(name) for name in fields}
    return _make_facts(instance) | {"state": ", ".join(instance.configuration)} | data


def _list_json(machine: str, listing: InstanceList, pages: Iterator[Page]) -> Iterator[str]:
    head = {"machine": machine, "filter": dict(listing.filter.texts)}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "instances": ['
    between, cursor = "\n", None
    for page in pages:
        cursor, lines = page.cursor, []
        for instance in page.instances:
            lines.append(between + json.dumps(_make_facts(instance) | {"data": instance.data}, ensure_ascii=False))
            between = ",\n"
        yield "".join(lines)
    yield f'\n], "complete": {json.dumps(cursor is None)}}}\n'


def _name_file(machine: str) -> str:
    name = "".join(letter if letter.isascii() else "_" for letter in f"{machine}-instances")
    return str(get_valid_filename(name))
