"""What waits for a second person: the list, one request with what it would do now, and deciding it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.pages.instances.events import Route, routes_of
from dashboard.pages.instances.repair_kinds import KINDS, changes
from dashboard.pages.shared.addresses import page_of
from dashboard.pages.shared.permission_gate import lever
from dashboard.shared import version_view
from dashboard.shared.access import View, require
from dashboard.shared.rendering import page
from dashboard.shared.times import in_ms
from machines.connections import get_engine
from machines.engine import Explanation, errors
from machines.engine.limits import MAX_NAME
from machines.forms import REASON_LIMIT
from machines.models import Approval
from machines.services import Actor, NotOpen, OwnRequest, approvals
from machines.services.reading import redactor_of

SIZE = 50  # requests on a page
STATES = [("open", "waiting"), ("decided", "decided"), ("", "all")]
TOLD = {"done": "Approved and executed", "declined": "Declined", "withdrawn": "Withdrawn"}


class Terms(forms.Form):
    """What narrows the list. ``before``: the number of a request, for the page after."""

    state = forms.ChoiceField(required=False, choices=[*STATES, *Approval.State.choices])
    machine = forms.CharField(required=False, label="machine", max_length=MAX_NAME)
    before = forms.IntegerField(required=False, min_value=1)


class DecisionForm(forms.Form):
    note = forms.CharField(required=False, max_length=REASON_LIMIT)


@dataclass(frozen=True, slots=True)
class Row:
    """A request as a list shows it. ``mine``: whoever looks asked for it; ``url``: of what it is about."""

    approval: Approval
    asked: int
    expires: int
    mine: bool
    may_decide: bool
    url: str


@require("view")
def show_all(request: HttpRequest) -> HttpResponse:
    actor, terms = Actor.of(request), Terms(request.GET if request.GET else {"state": "open"})
    if not terms.is_valid():
        raise Http404("Unknown filter.")
    given = terms.cleaned_data
    found = approvals.listed(actor, state=given["state"], machine=given["machine"]).order_by("-pk")
    if given["before"]:
        found = found.filter(pk__lt=given["before"])
    rows = list(found[: SIZE + 1])
    kept = {name: given[name] for name in ("state", "machine") if given[name] or name == "state"}
    context = {
        "section": "approvals",
        "rows": [_row(actor, one) for one in rows[:SIZE]],
        "tabs": [(label, _address(kept | {"state": state}), state == given["state"]) for state, label in STATES],
        "state": given["state"],
        "machine": given["machine"],
        "first": _address(kept) if given["before"] else "",
        "older": _address(kept | {"before": rows[SIZE - 1].pk}) if len(rows) > SIZE else "",
    }
    return page(request, "pages/approvals.html", context)


@require("view")
def show(request: HttpRequest, id: int) -> HttpResponse:
    return approval_page(request, _found(Actor.of(request), id))


def approval_page(request: HttpRequest, approval: Approval, *, mistake: str = "", status: int = 200) -> HttpResponse:
    """``mistake``: what is wrong with the form that was sent."""
    actor = Actor.of(request)
    context = {
        "section": "approvals",
        "row": _row(actor, approval),
        "approval": approval,
        "asked": approvals.asked_for(actor, approval),
        "may_withdraw": approvals.may_withdraw(actor, approval),
        "empty": {},
        "mistake": mistake,
        "kind": KINDS.get(approval.name),
        "note": request.POST.get("note", ""),
    }
    return page(request, "pages/approval.html", context | _foreseen(actor, approval), status=status)


def _view(name: str) -> View:
    @lever("view", f"approval.{name}", target="id")
    def view(request: HttpRequest, id: int) -> HttpResponse:
        actor = Actor.of(request)
        approval = _found(actor, id, f"approval.{name}" if request.method == "POST" else "")
        if request.method != "POST":
            if name != "withdraw":
                actor.demand(approval.right, approval.machine)
            return redirect("approval", id)
        form = DecisionForm(request.POST)
        if not form.is_valid():
            return approval_page(request, approval, mistake=form.errors["note"][0], status=400)
        try:
            after = getattr(approvals, name)(actor, id, note=form.cleaned_data["note"])
        except errors.BadInput as error:
            return approval_page(request, approval, mistake=error.message, status=400)
        except (NotOpen, OwnRequest) as error:
            messages.error(request, f"Not done: {error.message} ({error.code})")
        else:
            _tell(request, after)
        return redirect("approval", id)

    return view


def _tell(request: HttpRequest, after: Approval) -> None:
    if after.state == Approval.State.FAILED:
        messages.error(request, f"Approved, but the action failed: {after.outcome}")
    else:
        messages.success(request, TOLD[after.state])


def _found(actor: Actor, id: int, action: str = "") -> Approval:
    try:
        return approvals.get(actor, id, action=action)
    except Approval.DoesNotExist as error:
        raise Http404(str(error)) from error


def _row(actor: Actor, approval: Approval) -> Row:
    about = ("bulk", approval.bulk) if approval.bulk else ("instance", approval.machine, approval.instance)
    url = page_of(*about)
    return Row(
        approval, in_ms(approval.asked_at), in_ms(approval.expires_at),
        approval.asker_id == actor.id, approvals.may_decide(actor, approval), url,
    )  # fmt: skip


def _foreseen(actor: Actor, approval: Approval) -> dict[str, Any]:
    """What it would do now, for the page: ``preview`` with ``changes``, or ``explanation`` with ``routes``; ``why`` it
    would be refused; ``moved``: the version it is at now, where that is not the one it was asked for; ``other``:
    whether it would take something else now."""
    try:
        seen = approvals.preview(actor, approval)
        if seen is None:
            return {}
        found: dict[str, Any] = {"moved": seen.version if seen.version != approval.expect else 0}
        if isinstance(seen, Explanation):
            return found | {"explanation": seen, "routes": _routes(seen), "other": _is_other(approval, seen)}
        data = get_engine().get(seen.machine, seen.id).data
        told = {name: value for name, value in data.items() if name in seen.changes}
        held = redactor_of(actor, seen.machine).of(seen.id).data(told)
        return found | {"preview": seen, "changes": changes(seen, held)}
    except errors.EngineUnavailable:
        raise
    except errors.SignalboxError as error:
        return {"why": redactor_of(actor, approval.machine).error(error)}


def _is_other(approval: Approval, seen: Explanation) -> bool:
    asked = approval.asked.get("transitions")  # not in requests of an older release
    taken = {one.id for one in seen.candidates if one.verdict == "taken"}
    return asked is not None and seen.taken and taken != set(asked)


def _routes(seen: Explanation) -> list[Route]:
    definition = get_engine().get(seen.machine, seen.id).definition
    return list(routes_of(version_view.plan(seen.machine, definition), seen, payload_known=True))


def _address(terms: dict[str, Any]) -> str:
    return f"{reverse('approvals')}?{urlencode(terms)}"


approve = _view("approve")
decline = _view("decline")
withdraw = _view("withdraw")
