"""Bulk actions: the form that starts one on everything a list shows, its page, and the actions of operators."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.instances.instance_list import InstanceList
from dashboard.shared import version_view
from dashboard.shared.addresses import parse_number
from dashboard.shared.counts import count_states
from dashboard.shared.csv_export import Columns, Export, list_lines, stream_csv
from dashboard.shared.form_views import Mistake, answer_form, key_of_content, make_key
from dashboard.shared.list_pages import ListLinks
from dashboard.shared.permissions import View, require, require_audited
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import render_page
from dashboard.shared.version_view import VersionView
from machines.approvals import queries as approval_queries
from machines.catalog.queries import count_missing
from machines.engine import BadInput, Instance, errors
from machines.instances.bulks import MIGRATE, Bulk, NotNow, Order, Row
from machines.instances.bulks import actions as services
from machines.instances.bulks.actions import BulkPage, ListedBulk
from machines.instances.bulks.bulk import LIVE
from machines.instances.bulks.execution import OUTCOMES
from machines.instances.bulks.order import MAX_REASON
from machines.instances.bulks.selection import RESULTS
from machines.people.actor import Actor
from machines.people.permissions import allows, demand
from machines.people.redaction import redactor_of

from .forms import NewBulk, RateForm, list_actions

ROWS = 100  # instances on a page
MAX_SEARCHED = 5_000  # instances one page looks at for those with one verdict
MAX_CLASSES = 200  # classes of a dry run on the page, the largest ones; most plans have a dozen
AVAILABLE_IN = {  # action -> the states in which it is there
    "run": ("previewed",),
    "pause": ("running",),
    "resume": ("paused",),
    "retry": ("failed",),
    "stop": LIVE,
    "rate": LIVE,
    "remove": ("done", "stopped", "failed"),
    "again": ("done", "stopped", "failed"),
}
COLUMNS: Columns = {
    "instance": lambda row: row.item.id,
    "state": lambda row: row.item.state,
    "revision": lambda row: row.item.revision,
    "verdict": lambda row: row.verdict and row.verdict.word,
    "verdict_why": lambda row: row.verdict and row.verdict.why,
    "outcome": lambda row: row.outcome and row.outcome.word,
    "outcome_why": lambda row: row.outcome and row.outcome.why,
}


@dataclass(frozen=True, slots=True)
class RowPage:
    """Holds a page of instances of a bulk action.

    It covers ``start`` to before ``stop``; ``word`` filters by a verdict or an outcome.
    """

    rows: list[Row]
    start: int
    stop: int
    found: int
    kind: str = ""
    word: str = ""

    @property
    def further(self) -> str:
        """Return the query of the next page, or ""."""
        if self.stop >= self.found:
            return ""
        return urlencode(({self.kind: self.word} if self.word else {}) | {"from": self.stop})


def read_rows(bulk: Bulk, now: Instance, request: HttpRequest, start: int) -> RowPage:
    """Read a page of instances. With ``?verdict=`` or ``?outcome=`` the search is bounded: a page may be short."""
    asked = ((kind, request.GET.get(kind, "")) for kind in ("outcome", "verdict"))
    kind, word = next((one for one in asked if one[1]), ("", ""))
    rows: list[Row] = []
    stop = start
    looks = (MAX_SEARCHED // ROWS if word else 1) if now.data["selection"] else 0
    for _ in range(looks):
        page = bulk.rows(stop, ROWS)
        stop += len(page)
        rows += [row for row in page if not word or ((note := getattr(row, kind)) and note.word == word)]
        if len(page) < ROWS or len(rows) >= ROWS:
            break
    return RowPage(rows, start, stop, now.data["found"], kind, word[:20])


def list_available_actions(bulk: Instance) -> list[str]:
    """List the actions that are available now, for a person who may use them."""
    names = [name for name, states in AVAILABLE_IN.items() if bulk.state in states and not bulk.suspended]
    left = any(bulk.data["outcomes"].get(word) for word in ("refused", "changed", "failed"))
    return [name for name in names if name != "again" or left]


def count_words(held: dict[str, int], words: tuple[str, ...]) -> list[tuple[str, int]]:
    """Pair each word with its number; words that only some actions have follow where they occur."""
    others = [word for word in held if word not in words and held[word]]
    return [(word, held.get(word, 0)) for word in (*words, *others)]


@require_audited("operate", "bulk.start")
def new(request: HttpRequest, machine: str) -> HttpResponse:
    """Show the form. A POST creates the bulk action, whose dry run starts at once."""
    engine = redacted_engine(request)
    live = engine.live(machine)
    view = version_view.load_version(machine, live.version)
    listing = InstanceList.from_request(request, count_states(view, live))
    action, event = _read_choice(request, view)
    asked = NewBulk(view, action, event, request.POST if request.method == "POST" else None)
    if "picked" in request.GET and not request.GET.getlist("pick"):
        messages.error(request, "No instance is selected. Nothing was changed.")
        return redirect(listing.first_url)
    if request.method != "POST":
        if "picked" not in request.GET:  # what cannot be found is said before work
            engine.find(machine, **_filter(request, listing), limit=1)
        return _render_form(request, view, listing, asked)
    if not asked.is_valid():
        return _render_form(request, view, listing, asked, status=400)
    try:
        bulk = _start_bulk(request, listing, asked)
    except errors.BadInput as error:
        asked.blame(error)
        return _render_form(request, view, listing, asked, status=400)
    return redirect("signalbox:bulk", bulk.id)


def _read_choice(request: HttpRequest, view: VersionView) -> tuple[str, str]:
    """Return the action, and the event if it is to fire one; "" until one is chosen."""
    action, event = request.GET.get("do", ""), request.GET.get("event", "")
    if action not in ("", "fire", *list_actions(view)):
        raise Http404("Unknown action.")
    if action != "fire":
        return action, ""
    demand(request.user, "fire", view.machine)
    if event not in view.event_names([]):
        raise Http404(f"Machine {view.machine} has no event {event[:100]}.")
    return action, event


def _start_bulk(request: HttpRequest, listing: InstanceList, asked: NewBulk) -> Bulk:
    actor, found = Actor.of(request), _filter(request, listing)
    order = Order(listing.machine, actor=actor.name, filter=found, **asked.terms())
    return services.start(actor, order, id=id_of(request))


def _filter(request: HttpRequest, listing: InstanceList) -> dict[str, Any]:
    """Return the terms of the list, or the instances that were selected one by one."""
    if "picked" in request.GET:
        return {"ids": list(dict.fromkeys(request.GET.getlist("pick")))}
    return {name: term for name, term in listing.terms.items() if term is not None}


def id_of(request: HttpRequest) -> str | None:
    """Return an id by the key of the form, so that a form sent twice starts one bulk action; None without a key."""
    key = key_of_content(request.POST.get("key", ""), request.POST)
    return (
        hashlib.sha256(f"{request.user.pk}:{request.get_full_path()}:{key}".encode()).hexdigest()[:16] if key else None
    )


def _render_form(
    request: HttpRequest, view: VersionView, listing: InstanceList, asked: NewBulk, *, status: int = 200
) -> HttpResponse:
    context = {
        "view": view,
        "listing": listing,
        "asked": asked,
        "found": _filter(request, listing),
        "picked": "picked" in request.GET,
        "choices": list(_list_choices(request, view, asked)),
        "address": request.get_full_path(),
    }
    return render_page(request, "signalbox/bulk/new_bulk.html", context, status=status)


def _list_choices(request: HttpRequest, view: VersionView, asked: NewBulk) -> Any:
    """Yield the actions: label, address, whether it is chosen."""
    terms = {name: texts for name, texts in request.GET.lists() if name not in ("do", "event")}
    base = reverse("signalbox:bulk-new", args=[view.machine])
    if allows(request.user, "fire", view.machine) and not view.is_system:
        for name in view.event_names([]):
            yield (
                f"{'call' if view.is_mirror else 'fire'} {name}",
                f"{base}?{urlencode(terms | {'do': 'fire', 'event': name}, doseq=True)}",
                asked.event == name,
            )
    for name in list_actions(view):
        yield name, f"{base}?{urlencode(terms | {'do': name}, doseq=True)}", asked.action == name


@require("view")
def show(request: HttpRequest, id: str) -> HttpResponse:
    return bulk_page(request, id)


def bulk_page(
    request: HttpRequest, id: str, *, mistake: str = "", rate_error: str = "", status: int = 200
) -> HttpResponse:
    """Render the page. ``mistake``: the error of the form to repeat it; ``rate_error``: of the form of its rate."""
    actor, start = Actor.of(request), _start(request)
    bulk, now, order = services.read_bulk(actor, id)
    found = read_rows(bulk, now, request, start)
    dry_run = bulk.dry_run() if order.action == MIGRATE else None
    done = now.data["tried"] if now.data["stage"] == "running" else now.data["checked"]
    context = {
        "bulk": now,
        "order": order,
        "listed": replace(found, rows=services.redact_rows(actor, order.machine, found.rows)),
        "error": redactor_of(actor, order.machine).message(now.data.get("error") or ""),
        "actions": list_available_actions(now) if services.may(actor, order) else [],
        "rate": bulk.rate(),
        "second": now.state == "previewed" and services.needs_second(actor, order),
        "waiting": approval_queries.find_open().filter(bulk=id).first(),
        "previews": count_words(now.data["verdicts"], RESULTS),
        "succeeds": "would move" if order.action == MIGRATE else "would succeed",
        "classes": dry_run.classes[:MAX_CLASSES] if dry_run else [],
        "fleet": dry_run.total if dry_run else 0,
        "outcomes": count_words(now.data["outcomes"], OUTCOMES) if now.data["stage"] == "running" else [],
        "reached": done,
        "progress": services.progress(now),
        "mistake": mistake,
        "rate_error": rate_error,
        "key": make_key(),
        "own": request.get_full_path(),
    }
    return render_page(request, "signalbox/bulk/bulk.html", context, status=status)


def _start(request: HttpRequest) -> int:
    if (start := parse_number(request.GET.get("from", "0"))) is None:
        raise Http404("Unknown page of this bulk action.")
    return start


SUCCESS = {
    "run": "Started",
    "pause": "Paused: instances being processed now are still finished",
    "resume": "Resumed",
    "retry": "Retrying from the failure",
    "stop": "Stopped",
}


def _make_view(name: str) -> View:
    action = "resume" if name == "retry" else name

    @answer_form("bulk", "operate", f"bulk.{action}", refused=(NotNow, errors.Suspended), target="id")
    def view(request: HttpRequest, id: str) -> str:
        getattr(services, name)(Actor.of(request), id)
        return SUCCESS[name]

    return view


@answer_form("bulk", "operate", "bulk.remove", refused=(NotNow, errors.Suspended), target="id")
def remove(request: HttpRequest, id: str) -> HttpResponse:
    """Remove the bulk action and show the list that it is leaving."""
    services.remove(Actor.of(request), id)
    messages.success(request, "A worker removes it with its results")
    return redirect("signalbox:bulk-list")


@answer_form("bulk", "operate", "bulk.rate", refused=(NotNow,), target="id")
def rate(request: HttpRequest, id: str) -> str | HttpResponse:
    """Change the rate limit."""
    form = RateForm(request.POST)
    if not form.is_valid():
        return bulk_page(request, id, rate_error=form.errors["rate"][0], status=400)
    services.rate(Actor.of(request), id, form.cleaned_data["rate"] or 0)
    return "Rate limit updated; it applies from the next batch on"


@answer_form("bulk", "operate", "bulk.start", render=bulk_page, target="id")
def again(request: HttpRequest, id: str) -> HttpResponse:
    """Start a new bulk action of the same kind on the instances that failed."""
    reason = request.POST.get("reason", "").strip()
    if not reason or len(reason) > MAX_REASON:
        raise Mistake(f"Enter a reason of at most {MAX_REASON} characters.")
    made = services.again(Actor.of(request), id, reason=reason, new=id_of(request))
    return redirect("signalbox:bulk", made.id)


@require_audited("view", "export")
def results(request: HttpRequest, id: str) -> HttpResponseBase:
    actor = Actor.of(request)
    bulk, _, order = services.read_bulk(actor, id)  # one that is not there is a page that says so, not half a file
    pages = (services.redact_rows(actor, order.machine, rows) for rows in bulk.pages())
    export = Export(request, COLUMNS, about={"machine": order.machine})
    return stream_csv(export, list_lines(COLUMNS, export.count(pages)), f"bulk-{id}.csv")


ACTION_VIEWS = {name: _make_view(name) for name in SUCCESS} | {"remove": remove, "rate": rate, "again": again}


SIZE = 50  # bulk actions on a page
STATES = ("collecting", "previewing", "previewed", "running", "paused", "failed", "done", "stopped")
BUTTONS = {"pause": "Pause", "resume": "Resume", "retry": "Retry", "stop": "Stop"}  # action -> label of its button
MAX_FOLLOWED = 20  # bulk actions whose changes the page follows


@dataclass(frozen=True, slots=True)
class BulkRow:
    """Holds a bulk action as the list shows it. ``refused``: of the run, or of the preview before it; ``buttons``:
    action and label; ``followed``: the page follows its changes."""

    of: ListedBulk
    refused: int
    error: str
    buttons: list[tuple[str, str]]
    followed: bool


@require("view")
def show_list(request: HttpRequest) -> HttpResponse:
    """List the bulk actions that the person may see, the one that changed last first; ``?state=`` filters."""
    state, cursor = request.GET.get("state", ""), request.GET.get("cursor", "")
    if state and state not in STATES:
        raise Http404("Unknown status of a bulk action.")
    actor = Actor.of(request)
    try:
        page = services.find(actor, state=state or None, cursor=cursor or None, limit=SIZE)
    except BadInput as error:
        raise Http404("Unknown page of the bulk actions.") from error
    links = ListLinks("bulk-list", state=state)
    context = {
        "rows": _list_rows(actor, page),
        "state": state,
        "tabs": links.tabs("state", [("", "all"), *((name, name) for name in STATES)]),
        "missing": count_missing(page.missing, of=False),
        "key": make_key(),
        "own": request.get_full_path(),
    } | links.pages("cursor", cursor, page.cursor)
    return render_page(request, "signalbox/bulk/bulk_list.html", context)


def _list_rows(actor: Actor, page: BulkPage) -> list[BulkRow]:
    return [_make_row(actor, listed, place < MAX_FOLLOWED) for place, listed in enumerate(page.bulks)]


def _make_row(actor: Actor, listed: ListedBulk, followed: bool) -> BulkRow:
    data = listed.bulk.data
    counts = data["outcomes"] if data["stage"] == "running" else data["verdicts"]
    names = list_available_actions(listed.bulk) if listed.may else []
    buttons = [(name, BUTTONS[name]) for name in names if name in BUTTONS]
    error = redactor_of(actor, listed.order.machine).message(data.get("error") or "")
    return BulkRow(listed, counts.get("refused", 0), error, buttons, followed)
