"""The audit: who pulled which lever, and what came of it. Newest first, narrowed by the terms in the address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from dashboard.pages.shared.addresses import page_of
from dashboard.pages.shared.saved_views import saved_views
from dashboard.shared.access import require, scope_of
from dashboard.shared.audit_filter import Terms, cursor_of, older_than
from dashboard.shared.rendering import page
from dashboard.shared.times import in_ms
from machines.models import AuditEntry

from .csv_export import download

SIZE = 50  # entries on a page
TOLD = ("before", "after", "version", "error", "code", "replayed", "changed")


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as the page shows it. ``target``: unless it is among the links; ``told``: what came of it;
    ``rest``: further facts."""

    entry: AuditEntry
    ms: int
    links: list[tuple[str, str]]
    target: str
    told: str
    rest: dict[str, Any]


@require("audit")
def show(request: HttpRequest) -> HttpResponse:
    terms = Terms(request.GET, scope_of(request.user, "audit"))
    if not terms.is_valid():
        return page(request, "pages/audit.html", {"section": "audit", "terms": terms, "rows": []}, status=400)
    cursor = request.GET.get("before", "")
    try:
        found = list((older_than(terms.entries(), cursor) if cursor else terms.entries())[: SIZE + 1])
    except ValueError as error:
        raise Http404("Unknown page of the audit.") from error
    entries, further = found[:SIZE], len(found) > SIZE
    context = {
        "section": "audit",
        "terms": terms,
        "rows": [_row(entry) for entry in entries],
        "narrowed": bool(terms.given),
        "first": _address(terms) if cursor else "",
        "older": _address(terms, before=cursor_of(entries[-1])) if further else "",
        "export": _address(terms, name="audit-export"),
        "saved": saved_views(request, reverse("audit"), _address(terms).partition("?")[2]),
    }
    return page(request, "pages/audit.html", context)


@require("audit")
def export(request: HttpRequest) -> HttpResponseBase:
    terms = Terms(request.GET, scope_of(request.user, "audit"))
    if not terms.is_valid():
        return page(request, "pages/audit.html", {"section": "audit", "terms": terms, "rows": []}, status=400)
    return download(request, terms.entries(), f"audit-{timezone.now():%Y%m%d-%H%M%S}.csv")


def _address(terms: Terms, name: str = "audit", **further: str) -> str:
    query = urlencode(terms.given | further)
    return f"{reverse(name)}?{query}" if query else reverse(name)


def _row(entry: AuditEntry) -> Row:
    detail = entry.facts
    rest = {name: fact for name, fact in detail.items() if name not in TOLD and fact not in (None, "", {}, [])}
    target = "" if entry.action.startswith(("job.", "worker.")) else entry.target
    return Row(entry, in_ms(entry.at), list(_links(entry)), target, _told(detail), rest)


def _told(detail: dict[str, Any]) -> str:
    """One line: the error, or where a step led."""
    if error := detail.get("error"):
        return f"{error} ({detail['code']})" if detail.get("code") else str(error)
    if isinstance(changed := detail.get("changed"), dict):
        return ", ".join(_changed(name, change) for name, change in changed.items())
    before, after, version = detail.get("before"), detail.get("after"), detail.get("version")
    moved = f"{before} → {after}" if before and after and before != after else f"in {after}" if after else ""
    parts = [moved or (f"was in {before}" if before else ""), f"revision {version}" if version else ""]
    return ", ".join(part for part in [*parts, "already applied" if detail.get("replayed") else ""] if part)


def _changed(name: str, change: Any) -> str:
    """``is_staff: no → yes``, or the name alone where nothing more was written."""
    if not isinstance(change, dict) or not {"before", "after"} <= change.keys():
        return name
    return f"{name}: {_word(change['before'])} → {_word(change['after'])}"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) and value else str(value or "—")


def _links(entry: AuditEntry) -> list[tuple[str, str]]:
    """What it was done to, each with its page, or with "" where it has none; a page may since be gone."""
    found = []
    if entry.machine:
        found.append((entry.machine, page_of("machine", entry.machine)))
    if entry.queue:
        found.append((entry.queue, page_of("queue", entry.machine, entry.queue)))
    if entry.instance:
        names = ("instance", entry.machine, entry.instance) if entry.machine else ("sm-key", entry.instance)
        found.append((entry.instance, page_of(*names)))
    if entry.action.startswith("job.") and entry.target:
        found.append((f"job {entry.target}", page_of("job", entry.machine, entry.target)))
    elif entry.action.startswith("approval.") and isinstance(number := _fact(entry, "approval"), int):
        found.append((f"request {number}", page_of("approval", str(number))))
    elif entry.action.startswith("worker."):
        found.append((entry.target, ""))
    return found


def _fact(entry: AuditEntry, name: str) -> Any:
    return entry.facts.get(name)
