"""Requests that wait for a second person: the list, one request with its preview, and the decision."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from dashboard.instances.presenters import REPAIR_KINDS
from dashboard.shared.errors.redis_outage import Panels
from dashboard.shared.list_pages import ListLinks, cut_page, read_place
from dashboard.shared.permissions import View, require, require_audited
from dashboard.shared.rendering import render_page
from machines.approvals import actions as approvals
from machines.approvals import queries as approval_queries
from machines.encryption.ciphers import SecretUnreadable
from machines.engine import errors
from machines.models import Approval
from machines.people.actor import Actor
from machines.people.errors import NotApprover, NotOpen, OwnRequest

from .forms import TABS, DecisionForm, RequestTerms
from .presenters import make_row, preview_request

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
