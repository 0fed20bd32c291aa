"""What the histories of a machine's instances say: the page, and the steps as a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_safe

from dashboard.shared.csv_export import Export, name_file, stream_csv
from dashboard.shared.permissions import require, require_audited
from dashboard.shared.rendering import render_page
from machines.insight.store import COLUMNS, Store, get_store

from .forms import NAMES
from .presenters import InsightPage

PIECE = 256 * 1024  # bytes


@require("view")
def show(request: HttpRequest, machine: str) -> HttpResponse:
    page = InsightPage(request, machine)
    context = {"page": page, "now_ms": page.live.now}
    return render_page(request, "signalbox/insight/insight.html", context, status=page.status)


@require_audited(NAMES, "export")
@require_safe
def export_parquet(request: HttpRequest, machine: str) -> StreamingHttpResponse:
    """Send all steps of the machine, with who took them, as one Parquet file."""
    export = Export(request, ("instance", "created", *COLUMNS["steps"]), about={"machine": machine})
    pieces = _copy(get_store(), machine, export)
    answer = stream_csv(export, pieces, name_file(f"{machine}-steps.parquet"))
    answer["Content-Type"] = "application/vnd.apache.parquet"
    return answer


def _copy(store: Store, machine: str, export: Export) -> Iterator[bytes]:
    with NamedTemporaryFile(suffix=".parquet") as file:
        export.rows = store.copy(machine, Path(file.name))
        while piece := file.read(PIECE):
            yield piece
