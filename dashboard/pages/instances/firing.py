"""Firing an event, creating an instance: a POST, one call of a service, a redirect that says what came of it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.pages.shared.approval_requests import redirect_to_request
from dashboard.pages.shared.form_keys import key_of_content
from dashboard.pages.shared.permission_gate import lever
from dashboard.shared import version_view
from dashboard.shared.version_view import Plan
from machines.engine import Instance, NotAllowed, errors
from machines.forms import TypedForm
from machines.models import Approval
from machines.services import Actor, ApprovalNeeded, approvals, instances
from machines.services.reading import redactor_of

from . import attempts
from .attempts import Attempt
from .forms import KeyedForm
from .views import instance_page


@lever("fire", "fire", instance="id")
def fire(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    if request.method != "POST":  # a reload of the address after a refusal
        return redirect("instance", machine, id)
    before = instances.get(Actor.of(request), machine, id)
    plan = version_view.plan(machine, before.definition)
    event = request.POST.get("event", "").strip()
    payload = plan.payload_form(event, None, id_prefix="asked", data=request.POST)
    found = _fired(request, before, plan, event, payload)
    if isinstance(found, Approval):
        return redirect_to_request(request, found)
    if isinstance(found, Attempt):
        return instance_page(request, machine, id, attempt=found)
    messages.success(request, told(event, before, found))
    return redirect("instance", machine, id)


def _fired(
    request: HttpRequest, before: Instance, plan: Plan, event: str, payload: TypedForm
) -> Instance | Approval | Attempt:
    """The instance after the step, what was filed in its place, or why nothing was done."""
    actor, machine, id = Actor.of(request), before.machine, before.id
    what, url = f"fire {event}", reverse("fire", args=[machine, id])
    step = KeyedForm(request.POST)
    kept = {"event": event, "form": payload, "reason": request.POST.get("reason", "")}
    if not all([payload.is_valid(), step.is_valid()]):
        return attempts.mistake(what, url, **kept)
    given = step.cleaned_data
    try:
        if "check" in request.POST:
            explanation = instances.preview_event(actor, machine, id, event, payload.values())
            return attempts.preview(plan, url, before, explanation, **kept)
        return instances.fire(
            actor, machine, id, event, payload.values(),
            expect=given["expect"], key=key_of_content(given["key"], request.POST), reason=given["reason"],
        )  # fmt: skip
    except ApprovalNeeded as needed:
        return approvals.ask(actor, needed)
    except errors.SignalboxError as error:
        return _why_not(request, error, plan, what, url, kept)


def _why_not(
    request: HttpRequest, error: errors.SignalboxError, plan: Plan, what: str, url: str, kept: dict[str, Any]
) -> Attempt:
    seen = redactor_of(Actor.of(request), plan.machine)
    if isinstance(error, errors.Refused):
        return attempts.refused(plan, url, error, seen, **kept)
    if isinstance(error, NotAllowed):
        return attempts.denied(what, url, error, **kept)
    if isinstance(error, errors.Suspended):
        return attempts.held(what, url, error, **kept)
    if isinstance(error, errors.Conflict):
        return attempts.conflict(Actor.of(request), what, url, error, request.POST, **kept)
    if isinstance(error, errors.BadInput):
        kept["form"].blame(getattr(error, "field", None), seen.error(error))
        return attempts.mistake(what, url, error, seen, **kept)
    raise error


def told(event: str, before: Instance, after: Instance) -> str:
    """What came of it, in one line."""
    stays = before.configuration == after.configuration
    moved = f"stays in {after.state}" if stays else f"{before.state} → {after.state}"
    if after.outcome and after.outcome.replayed:
        return f"{event} was already applied: now in {after.state}, revision {after.version}"
    return f"{event}: {moved}, revision {after.version}"
