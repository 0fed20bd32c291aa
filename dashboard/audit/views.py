"""The audit log, newest first, narrowed by the terms in the address."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from operator import attrgetter
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from dashboard.shared.addresses import find_address, list_saved_views, page_of
from dashboard.shared.csv_export import Columns, Export, list_lines, stream_csv
from dashboard.shared.list_pages import ListLinks
from dashboard.shared.permissions import require, require_audited
from dashboard.shared.rendering import render_page
from machines.models import AuditEntry
from machines.people.permissions import scope_of

from .filter import AuditFilter, make_cursor, older_than
from .sentences import describe_attempt, describe_retry

CHUNK = 1000  # entries read at a time
FACTS = (
    "actor", "actor_id", "action", "machine", "instance", "queue", "target", "reason", "outcome", "source", "request",
)  # fmt: skip
COLUMNS: Columns = {
    "at": lambda entry: entry.at.astimezone(UTC).isoformat(timespec="milliseconds"),
    **{name: attrgetter(name) for name in FACTS},
    "detail": attrgetter("facts"),
}
FACT_PAGES = {"bulk": "bulk", "again": "bulk", "approval": "approval", "job": "job", "stored_plan": "plan"}
"""Further fact of an entry -> the page of what it names."""
JOINTS = {
    "fire": "to",
    "explain": "to",
    "force": "on",
    "edit": "of",
    "reveal": "of",
    "export": "of",
    "failure.redrive": "on",
}
SUBJECTS = (
    "create", "reset", "retry", "skip", "cancel", "delete", "suspend", "resume", "publish", "machine", "queue", "run",
)  # fmt: skip
"""Actions, and what begins with one and a dot, whose links alone say what was changed."""
SUMMARY_FACTS = ("before", "after", "revision", "error", "code", "replayed", "changed")


@dataclass(frozen=True, slots=True)
class Row:
    """Holds an entry as the page shows it.

    ``verb``: what was done, in words; ``target``: to what, as an event, with its address or ""; ``links``: what that
    belongs to, after ``joint``; ``result``: the result; ``rest``: further facts: name, value, and the address of what
    the value names, or "".
    """

    entry: AuditEntry
    verb: str
    target: tuple[str, str] | None
    joint: str
    links: list[tuple[str, str]]
    result: str
    rest: list[tuple[str, Any, str]]


def make_row(entry: AuditEntry, user: Any) -> Row:
    """Present an entry to a person who may see its machine."""
    detail = entry.facts
    further = ((name, fact) for name, fact in detail.items() if name not in SUMMARY_FACTS)
    rest = [(name, fact, _find_page(entry, name, fact)) for name, fact in further if fact not in (None, "", {}, [])]
    links, linked = _list_subjects(entry), _link_target(entry, user)
    target = linked or ((entry.target, "") if entry.target else None)
    if entry.action == "failure.redrive" and not target:  # of any group
        verb = describe_retry(entry.outcome, detail.get("groups", 0))
    else:
        verb = describe_attempt(entry.action, entry.outcome, noun=not linked or " " not in linked[0])
    is_subject = not target and entry.action.partition(".")[0] in SUBJECTS  # the links say what the verb is about
    joint = JOINTS.get(entry.action, "" if is_subject else "of") if links else ""
    return Row(entry, verb, target, joint, links, _summarize(detail), rest)


def _summarize(detail: dict[str, Any]) -> str:
    """Return one line: the error, or the step that was taken."""
    if error := detail.get("error"):
        return f"{error} ({detail['code']})" if detail.get("code") else str(error)
    if isinstance(changed := detail.get("changed"), dict):
        return ", ".join(_describe_change(name, change) for name, change in changed.items())
    before, after, revision = detail.get("before"), detail.get("after"), detail.get("revision")
    if isinstance(before, list) or isinstance(after, list):
        before, after = _format_value(before), _format_value(after)
    moved = f"{before} → {after}" if before and after and before != after else f"in {after}" if after else ""
    parts = [moved or (f"was in {before}" if before else ""), f"revision {revision}" if revision else ""]
    return ", ".join(part for part in [*parts, "already applied" if detail.get("replayed") else ""] if part)


def _describe_change(name: str, change: Any) -> str:
    """Return ``is_staff: no → yes``, or the name alone if the values were not recorded."""
    if not isinstance(change, dict) or not {"before", "after"} <= change.keys():
        return name
    return f"{name}: {_format_value(change['before'])} → {_format_value(change['after'])}"


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) and value else str(value or "—")


def _list_subjects(entry: AuditEntry) -> list[tuple[str, str]]:
    """List the subjects of an entry, each with the address of its page, or "" if it has none. A page may be gone."""
    found = []
    if entry.machine:
        found.append((entry.machine, page_of("machine", entry.machine)))
    if entry.queue:
        found.append((entry.queue, page_of("queue", entry.machine, entry.queue)))
    if entry.instance:
        names = ("instance", entry.machine, entry.instance) if entry.machine else ("sm-key", entry.instance)
        found.append((entry.instance, page_of(*names)))
    return found


def _link_target(entry: AuditEntry, user: Any) -> tuple[str, str] | None:
    """Return the target of an entry with its address, or None for a target that is no id, such as an event."""
    kind, _, done = entry.action.partition(".")
    if kind == "approval" and isinstance(number := entry.facts.get("approval"), int):
        return f"request {number}", page_of("approval", str(number))
    if not entry.target:
        return None
    if kind == "worker":
        return entry.target, find_address(user, "worker", entry.target)
    if (subject := re.fullmatch(r"(draft|plan) ([0-9]{1,9})", entry.target)) and entry.machine:
        return entry.target, page_of(subject[1], entry.machine, subject[2])
    if kind in ("job", "bulk") and entry.machine:
        return f"{kind} {entry.target}", find_address(user, kind, entry.machine, entry.target)
    if kind == "webhook" and done != "make" and entry.target.isdecimal():
        return f"webhook {entry.target}", find_address(user, "webhook", entry.target)
    return None


def _find_page(entry: AuditEntry, name: str, fact: Any) -> str:
    """Return the address of what a further fact names, or ""."""
    if not isinstance(fact, str | int) or isinstance(fact, bool) or not entry.machine:
        return ""
    page = FACT_PAGES.get(name)
    if page is None:
        return ""
    return page_of(page, str(fact)) if page in ("bulk", "approval") else page_of(page, entry.machine, str(fact))


def read_pages(entries: QuerySet[AuditEntry]) -> Iterator[list[AuditEntry]]:
    """Yield the entries for a file, some at a time."""
    cursor = ""
    while True:
        found = list((older_than(entries, cursor) if cursor else entries)[:CHUNK])
        yield found
        if len(found) < CHUNK:
            return
        cursor = make_cursor(found[-1])


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
