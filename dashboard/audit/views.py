"""The audit log, newest first, narrowed by the terms in the address."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from dashboard.shared.access import require, scope_of
from dashboard.shared.addresses.saved_views import list_saved_views
from dashboard.shared.csv_export import stream_csv
from dashboard.shared.rendering import render_page

from .filter import AuditFilter, make_cursor, older_than
from .presenters import list_chunks, make_row

SIZE = 50  # entries on a page


@require("audit")
def show(request: HttpRequest) -> HttpResponse:
    terms = AuditFilter(request.GET, scope_of(request.user, "audit"))
    if not terms.is_valid():
        return render_page(
            request, "signalbox/audit/audit.html", {"section": "audit", "terms": terms, "rows": []}, status=400
        )
    cursor = request.GET.get("before", "")
    try:
        found = list((older_than(terms.entries(), cursor) if cursor else terms.entries())[: SIZE + 1])
    except ValueError as error:
        raise Http404("Unknown page of the audit.") from error
    entries, further = found[:SIZE], len(found) > SIZE
    context = {
        "section": "audit",
        "terms": terms,
        "rows": [make_row(entry, request.user) for entry in entries],
        "narrowed": bool(terms.given),
        "first": _make_address(terms) if cursor else "",
        "older": _make_address(terms, before=make_cursor(entries[-1])) if further else "",
        "export": _make_address(terms, name="audit-export"),
        "saved": list_saved_views(request, reverse("signalbox:audit"), _make_address(terms).partition("?")[2]),
    }
    return render_page(request, "signalbox/audit/audit.html", context)


@require("audit")
def export(request: HttpRequest) -> HttpResponseBase:
    terms = AuditFilter(request.GET, scope_of(request.user, "audit"))
    if not terms.is_valid():
        return render_page(
            request, "signalbox/audit/audit.html", {"section": "audit", "terms": terms, "rows": []}, status=400
        )
    return stream_csv(request, list_chunks(terms.entries()), f"audit-{timezone.now():%Y%m%d-%H%M%S}.csv")


def _make_address(terms: AuditFilter, name: str = "audit", **further: str) -> str:
    query = urlencode(terms.given | further)
    address = reverse(f"signalbox:{name}")
    return f"{address}?{query}" if query else address
