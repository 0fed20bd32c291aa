"""Requests that wait for a second person: the list, one request with its preview, and the decision."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.instances.presenters import REPAIR_KINDS, list_changes, list_routes
from dashboard.shared import version_view
from dashboard.shared.addresses import page_of
from dashboard.shared.errors.redis_outage import Panels
from dashboard.shared.list_pages import ListLinks, cut_page, read_place
from dashboard.shared.permissions import View, require, require_audited
from dashboard.shared.redacted_engine import RedactedEngine
from dashboard.shared.rendering import render_page
from machines.approvals import actions as approvals
from machines.approvals import queries as approval_queries
from machines.approvals.errors import NotApprover, NotOpen, OwnRequest
from machines.conf.encryption.ciphers import SecretUnreadable
from machines.engine import Explanation, Preview, errors
from machines.instances.queries import read_fields
from machines.models import Approval
from machines.people.actor import Actor
from machines.people.redaction import redactor_of

from .forms import TABS, DecisionForm, RequestTerms

WORDS = {
    "publish": "Publish a draft",
    "rollout.start": "Start a roll-out",
    "rollout.set": "Change the share of a roll-out",
    "rollout.finish": "Finish a roll-out",
    "version.pin": "Pin a version",
    "version.unpin": "Unpin the pinned version",
    "version.withdraw": "Withdraw a version",
    "version.allow": "Allow a withdrawn version",
    "version.policy": "Change what needs a second person",
    "migrate": "Move instances to another version",
}
"""Actions on versions, as people call them. Those on an instance have the titles of repairs."""


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a request as the list shows it. ``words``: what it asks for; ``mine``: the viewer filed it; ``url``: the
    page of its subject."""

    approval: Approval
    words: str
    mine: bool
    may_decide: bool
    url: str


def make_row(actor: Actor, approval: Approval) -> Row:
    return Row(
        approval, _describe_action(approval), approval.asker_id == actor.id,
        approval_queries.may_decide(actor, approval), _find_page(approval),
    )  # fmt: skip


def _describe_action(approval: Approval) -> str:
    if approval.name == "fire":
        return f"Send the event {approval.action.partition(':')[2]}"
    kind = REPAIR_KINDS.get(approval.name)
    return kind.title if kind else WORDS.get(approval.name, approval.action)


def _find_page(approval: Approval) -> str:
    if approval.bulk:
        return page_of("bulk", approval.bulk)
    if approval.draft is not None:
        return page_of("draft", approval.machine, str(approval.draft))
    if approval.is_of_versions:
        return page_of("versions", approval.machine)
    return page_of("instance", approval.machine, approval.instance)


def preview_request(actor: Actor, approval: Approval) -> dict[str, Any]:
    """Return what the request would do now, for the template.

    ``preview`` with ``changes``, or ``explanation`` with ``routes``; ``why`` it would be refused; ``moved``: the
    current revision, if it is not the one the request was filed for; ``other``: whether it would take another
    transition now. With them the instance as it is: ``fields`` of its data, and ``drawing``.
    """
    if not approval.is_open:
        return {}
    found: dict[str, Any] = {}
    try:
        now = RedactedEngine(actor).get(approval.machine, approval.instance) if approval.instance else None
        view = version_view.load_version(now.machine, now.version) if now else None
        found = {"instance": now, "view": view}
        seen = approvals.preview(actor, approval)
        if seen is not None:
            found["moved"] = seen.revision if seen.revision != approval.expect else 0
        if isinstance(seen, Explanation) and view:
            routes = list(list_routes(view, seen, payload_known=True))
            found |= {"explanation": seen, "routes": routes, "other": _is_other(approval, seen)}
        elif isinstance(seen, Preview):
            held = read_fields(actor, seen.machine, seen.id, seen.changes)
            found |= {"preview": seen, "changes": list_changes(seen, held)}
    except errors.EngineUnavailable:
        raise
    except errors.SignalboxError as error:
        found["why"] = redactor_of(actor, approval.machine).error(error)
    if now := found.get("instance"):
        possible = {route.id: route.kind for route in found.get("routes", ())}
        drawing = version_view.draw_instance(found["view"], now, possible)
        found |= {"fields": found["view"].fields(now.data), "stamps": found["view"].stamps, "drawing": drawing}
    return found


def _is_other(approval: Approval, seen: Explanation) -> bool:
    asked = approval.asked.get("transitions")  # not in requests of an older release
    taken = {one.id for one in seen.candidates if one.verdict == "taken"}
    return asked is not None and seen.taken and taken != set(asked)


SIZE = 50  # requests on a page
SUCCESS = {"done": "Approved and executed", "declined": "Declined", "withdrawn": "Withdrawn"}


@require("view")
def show_all(request: HttpRequest) -> HttpResponse:
    actor, terms, before = Actor.of(request), RequestTerms.of_page(request), read_place(request)
    rows, further = cut_page(terms.find(actor), before, SIZE)
    links = ListLinks("approvals", **terms.model_dump())
    context = {
        "rows": [make_row(actor, one) for one in rows],
        "tabs": links.tabs("state", TABS),
        "state": terms.state,
        "machine": terms.machine,
    } | links.pages("before", before, further)
    return render_page(request, "signalbox/approvals/approvals.html", context)


@require("view")
def show(request: HttpRequest, id: int) -> HttpResponse:
    return approval_page(request, _get_request(Actor.of(request), id))


def approval_page(request: HttpRequest, approval: Approval, *, mistake: str = "", status: int = 200) -> HttpResponse:
    """Render the page of a request. ``mistake``: what is wrong with the form that was sent."""
    actor, panels = Actor.of(request), Panels()
    context = {
        "row": make_row(actor, approval),
        "approval": approval,
        "asked": approval_queries.show_asked(actor, approval),
        "votes": approval_queries.list_votes(approval),
        "empty_groups": approval_queries.list_empty_groups(approval),
        "may_withdraw": approval_queries.may_withdraw(actor, approval),
        "empty": {},
        "mistake": mistake,
        "kind": REPAIR_KINDS.get(approval.name),
        "note": request.POST.get("note", ""),
        "away": panels.away,
    } | panels.read("preview", lambda: preview_request(actor, approval), {})
    return render_page(request, "signalbox/approvals/approval.html", context, status=status)


def _make_view(name: str) -> View:
    @require_audited("view", f"approval.{name}", target="id")
    def view(request: HttpRequest, id: int) -> HttpResponse:
        actor = Actor.of(request)
        approval = _get_request(actor, id, f"approval.{name}" if request.method == "POST" else "")
        if request.method != "POST":
            if name != "withdraw":
                actor.demand(approval.right, approval.machine)
            return redirect("signalbox:approval", id)
        form = DecisionForm(request.POST)
        if not form.is_valid():
            return approval_page(request, approval, mistake=form.errors["note"][0], status=400)
        try:
            after = getattr(approvals, name)(actor, id, note=form.cleaned_data["note"])
        except errors.BadInput as error:
            return approval_page(request, approval, mistake=error.message, status=400)
        except (NotApprover, NotOpen, OwnRequest, SecretUnreadable) as error:
            messages.error(request, f"Not done: {error.message} ({error.code})")
        else:
            _add_message(request, after)
        return redirect("signalbox:approval", id)

    return view


def _add_message(request: HttpRequest, after: Approval) -> None:
    if after.state == Approval.State.FAILED:
        messages.error(request, f"Approved, but the action failed: {after.outcome}")
    elif after.is_open:
        messages.success(request, f"Approved; it runs once {after.quorum} people have")
    elif after.state == Approval.State.RUNNING:
        messages.success(request, "Approved; it is running")
    else:
        messages.success(request, SUCCESS[after.state])


def _get_request(actor: Actor, id: int, action: str = "") -> Approval:
    try:
        return approval_queries.get(actor, id, action=action)
    except Approval.DoesNotExist as error:
        raise Http404(str(error)) from error


ACTION_VIEWS = {name: _make_view(name) for name in ("approve", "decline", "withdraw")}
