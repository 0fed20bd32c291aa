"""Who works: one row for each worker that gave a sign of life lately."""

from __future__ import annotations

import time

from django.http import HttpRequest, HttpResponse

from dashboard.access import require
from dashboard.pages.rendering import page
from machines.connections import get_engine
from machines.engine import WorkerRow

SILENT_AFTER = 20_000  # ms without a heartbeat; workers beat every few seconds


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    rows = sorted(get_engine().workers(), key=lambda row: (row.host, row.pid))
    context = {
        "section": "workers",
        "rows": [(row, is_alive(row)) for row in rows],
        "in_hand": sum(row.in_hand for row in rows),
        "silent_after": SILENT_AFTER,
    }
    return page(request, "pages/workers.html", context)


def is_alive(row: WorkerRow, now: float | None = None) -> bool:
    """Whether its last heartbeat (ms) is recent; a silent worker may be stuck, cut off or gone."""
    return (now if now is not None else time.time() * 1000) - row.seen < SILENT_AFTER
