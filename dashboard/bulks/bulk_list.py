"""The page of all bulk actions: status, progress, rate and time left, and the actions of operators."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse

from dashboard.shared.form_keys import make_key
from dashboard.shared.list_pages import ListLinks
from dashboard.shared.permissions import require
from dashboard.shared.rendering import render_page
from machines.bulks import actions as services
from machines.bulks.actions import BulkPage, Listed
from machines.catalog.queries import count_missing
from machines.engine import BadInput
from machines.instances.queries import redactor_of
from machines.people.actor import Actor

from .presenters import list_available_actions

SIZE = 50  # bulk actions on a page
STATES = ("collecting", "previewing", "previewed", "running", "paused", "failed", "done", "stopped")
BUTTONS = {"pause": "Pause", "resume": "Resume", "retry": "Retry", "stop": "Stop"}  # action -> label of its button
MAX_FOLLOWED = 20  # bulk actions whose changes the page follows


@dataclass(frozen=True, slots=True)
class BulkRow:
    """Holds a bulk action as the list shows it. ``refused``: of the run, or of the preview before it; ``buttons``:
    action and label; ``followed``: the page follows its changes."""

    of: Listed
    refused: int
    error: str
    buttons: list[tuple[str, str]]
    followed: bool


@require("view")
def show(request: HttpRequest) -> HttpResponse:
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
        "section": "bulk",
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


def _make_row(actor: Actor, listed: Listed, followed: bool) -> BulkRow:
    data = listed.bulk.data
    counts = data["outcomes"] if data["stage"] == "running" else data["verdicts"]
    names = list_available_actions(listed.bulk) if listed.may else []
    buttons = [(name, BUTTONS[name]) for name in names if name in BUTTONS]
    error = redactor_of(actor, listed.order.machine).message(data.get("error") or "")
    return BulkRow(listed, counts.get("refused", 0), error, buttons, followed)
