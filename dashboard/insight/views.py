"""What the histories of a machine's instances say: the page, and the steps as files."""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_safe

from dashboard.shared.csv_export import Export, name_file, stream_csv
from dashboard.shared.permissions import require, require_audited
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import render_page
from dashboard.shared.version_view import load_version
from machines.insight import exports
from machines.insight.store import COLUMNS, get_store
from machines.people.actor import Actor

from .forms import NAMES, make_filter
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
    store, fields = get_store(), ("instance", "created", *COLUMNS["steps"])
    answer = _send(request, machine, "parquet", fields, lambda file: exports.write_parquet(machine, file, store=store))
    answer["Content-Type"] = "application/vnd.apache.parquet"
    return answer


@require_audited("view", "export")
@require_safe
def export_xes(request: HttpRequest, machine: str) -> StreamingHttpResponse:
    """Send the steps of a search, without who took them, as an event log."""
    store, fields = get_store(), ("instance", "state", "event", "time")
    view = load_version(machine, redacted_engine(request).live(machine).version)
    form = make_filter(Actor.of(request), view, request.GET)
    if not form.is_valid():
        raise Http404("Unknown filter.")
    search = form.read_search()

    def write(file: Path) -> int:
        with file.open("w", encoding="utf-8") as output:
            return exports.write_xes(search, output, store=store)

    answer = _send(request, machine, "xes", fields, write)
    answer["Content-Type"] = "application/xml"
    return answer


def _send(
    request: HttpRequest, machine: str, ending: str, fields: tuple[str, ...], write: Callable[[Path], int]
) -> StreamingHttpResponse:
    """Send what ``write`` writes into a file. It returns what the audit counts: steps, or instances."""
    export = Export(request, fields, about={"machine": machine})

    def read() -> Iterator[bytes]:
        with NamedTemporaryFile(suffix=f".{ending}") as file:
            export.rows = write(Path(file.name))
            while piece := file.read(PIECE):
                yield piece

    return stream_csv(export, read(), name_file(f"{machine}-steps.{ending}"))
