"""The history of an instance as CSV, redacted as on its page. An archived instance has the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from django.utils.text import get_valid_filename
from django.views.decorators.http import require_safe

from dashboard.pages.shared.csv_export import escape_cell, make_writer, stream_csv
from dashboard.shared.access import require
from machines.engine import Step, limits
from machines.services import Actor, instances

COLUMNS = ("revision", "at", "event", "from", "to", "transitions", "actor", "reason", "payload", "changes")


@require("view")
@require_safe
def export(request: HttpRequest, machine: str, id: str) -> StreamingHttpResponse:
    """Stream all steps that are kept, the newest first."""
    steps = instances.history(Actor.of(request), machine, id, limit=limits.MAX_HISTORY)
    name = "".join(letter if letter.isascii() else "_" for letter in f"{machine}-{id}-history")
    return stream_csv(request, _list_lines(steps), f"{get_valid_filename(name)}.csv")


def _list_lines(steps: list[Step]) -> Iterator[str]:
    write = make_writer()
    yield write(COLUMNS)
    for step in steps:
        yield write(map(escape_cell, _list_cells(step)))


def _list_cells(step: Step) -> Iterator[str]:
    yield str(step.version)
    yield datetime.fromtimestamp(step.at / 1000, UTC).isoformat(timespec="milliseconds")
    yield step.event
    yield ", ".join(step.source or ())
    yield ", ".join(step.configuration)
    yield " ".join(step.transitions)
    yield step.actor
    yield step.reason
    yield _compact(step.payload)
    yield _compact(step.changes)


def _compact(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""
