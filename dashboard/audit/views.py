"""The audit log, newest first, narrowed by the terms in the address."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from dashboard.shared.addresses import list_saved_views
from dashboard.shared.csv_export import Export, list_lines, stream_csv
from dashboard.shared.list_pages import ListLinks
from dashboard.shared.permissions import require, require_audited
from dashboard.shared.rendering import render_page
from machines.people.permissions import scope_of

from .filter import AuditFilter, make_cursor, older_than
from .presenters import COLUMNS, make_day, make_row, read_pages

SIZE = 50  # entries on a page


@require("audit")
def show(request: HttpRequest) -> HttpResponse:
    terms = AuditFilter(request.GET, scope_of(request.user, "audit"))
    if not terms.is_valid():
        return _refuse(request, terms)
    cursor = request.GET.get("before", "")
    try:
        found = list((older_than(terms.entries(), cursor) if cursor else terms.entries())[: SIZE + 1])
    except ValueError as error:
        raise Http404("Unknown page of the audit.") from error
    entries, links = found[:SIZE], ListLinks("audit", **terms.given)
    context = {
        "terms": terms,
        "rows": [make_row(entry, request.user) for entry in entries],
        "day": make_day(terms, links),
        "narrowed": bool(terms.given),
        "export": ListLinks("audit-export", **terms.given).url(),
        "saved": list_saved_views(request, reverse("signalbox:audit"), links.url().partition("?")[2]),
    } | links.pages("before", cursor, make_cursor(entries[-1]) if len(found) > SIZE else "")
    return render_page(request, "signalbox/audit/audit.html", context)


@require_audited("audit", "export")
def export_csv(request: HttpRequest) -> HttpResponseBase:
    terms = AuditFilter(request.GET, scope_of(request.user, "audit"))
    if not terms.is_valid():
        return _refuse(request, terms)
    export = Export(request, COLUMNS)
    lines = list_lines(COLUMNS, export.count(read_pages(terms.entries())))
    return stream_csv(export, lines, f"audit-{timezone.now():%Y%m%d-%H%M%S}.csv")


def _refuse(request: HttpRequest, terms: AuditFilter) -> HttpResponse:
    context = {"terms": terms, "rows": []}
    return render_page(request, "signalbox/audit/audit.html", context, status=400)
