"""The history of an instance as CSV or JSON, redacted as on its page. An archived instance has the same.

Each step has its event twice: by its name (``after.t14``), and in the words of the page (``after 45 s``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.text import get_valid_filename
from django.views.decorators.http import require_safe

from dashboard.shared.csv_export import list_lines, stream_csv
from dashboard.shared.diagrams.version_view import load_versions
from dashboard.shared.permissions import require
from dashboard.shared.times.times import format_iso
from machines.engine import LookupFailed, Step, limits
from machines.engine.definitions import Outline
from machines.instances import actions as instances
from machines.people.actor import Actor

from .history_words import HistoryWords
from .replay import trace_versions

NAMES = (
    "revision", "at", "event", "from", "to", "transitions", "actor", "reason", "payload", "changes", "words", "version",
)  # fmt: skip
COLUMNS = {name: itemgetter(name) for name in NAMES}


@require("view")
@require_safe
def export(request: HttpRequest, machine: str, id: str) -> StreamingHttpResponse:
    """Send all stored steps as CSV, the newest first."""
    rows = map(_make_cells, _read_rows(request, machine, id))
    return stream_csv(request, list_lines(COLUMNS, ([row] for row in rows)), f"{_name_file(machine, id)}.csv")


@require("view")
@require_safe
def export_json(request: HttpRequest, machine: str, id: str) -> StreamingHttpResponse:
    """Send all stored steps as JSON, the newest first."""
    rows = _read_rows(request, machine, id)
    answer = stream_csv(request, _list_json(machine, id, rows), f"{_name_file(machine, id)}.json")
    answer["Content-Type"] = "application/json"
    return answer


def _read_rows(request: HttpRequest, machine: str, id: str) -> Iterator[dict[str, Any]]:
    """Read the steps at once, so that what cannot be read is a page that says so and not half a file."""
    actor = Actor.of(request)
    instance = instances.get(actor, machine, id)
    steps = instances.history(actor, machine, id, limit=limits.MAX_HISTORY)
    versions = trace_versions(instance, steps)
    words = HistoryWords(machine, instance.version, _load_outline(machine, instance.version), versions)
    return (_make_row(step, words, versions) for step in steps)


def _load_outline(machine: str, version: int) -> Outline | None:
    """Load an outline; None for a version that is gone."""
    try:
        return load_versions({machine: version})[machine].outline
    except LookupFailed:
        return None


def _make_row(step: Step, words: HistoryWords, versions: dict[int, int]) -> dict[str, Any]:
    return {
        "revision": step.revision,
        "at": format_iso(step.at),
        "event": step.event,
        "from": step.source,
        "to": step.configuration,
        "transitions": step.transitions,
        "actor": step.actor,
        "reason": step.reason,
        "payload": step.payload,
        "changes": step.changes,
        "words": words.describe(step),
        "version": step.version or versions.get(step.revision),
    }


def _make_cells(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with texts in place of lists and objects."""
    return row | {
        "from": ", ".join(row["from"] or ()),
        "to": ", ".join(row["to"]),
        "transitions": " ".join(row["transitions"]),
        "payload": _compact(row["payload"]),
        "changes": _compact(row["changes"]),
    }


def _list_json(machine: str, id: str, rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    yield f'{{"machine": {json.dumps(machine)}, "instance": {json.dumps(id)}, "steps": ['
    between = "\n"
    for row in rows:
        yield between + json.dumps(row, ensure_ascii=False)
        between = ",\n"
    yield "\n]}\n"


def _name_file(machine: str, id: str) -> str:
    name = "".join(letter if letter.isascii() else "_" for letter in f"{machine}-{id}-history")
    return str(get_valid_filename(name))


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""
