"""Firing an event, creating an instance: a POST, one call of a service, a redirect that says what came of it."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.pages.machines.views import machine_page
from dashboard.pages.shared.permission_gate import lever
from dashboard.shared import version_view
from dashboard.shared.errors.statuses import status_of
from dashboard.shared.version_view import Plan
from machines.connections import get_engine
from machines.engine import Instance, NotAllowed, errors
from machines.engine.ids import codec
from machines.forms import TypedForm
from machines.models import Approval
from machines.services import Actor, ApprovalNeeded, approvals, instances
from machines.services.reading import redactor_of

from . import attempts
from .attempts import Attempt
from .creation import Creation
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
        return filed(request, found)
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
            explanation = instances.foreseen(actor, machine, id, event, payload.values())
            return attempts.preview(plan, url, before, explanation, **kept)
        return instances.fire(
            actor, machine, id, event, payload.values(),
            expect=given["expect"], key=once(given["key"], request.POST), reason=given["reason"],
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


def filed(request: HttpRequest, approval: Approval) -> HttpResponse:
    """It waits for a second person: there, and the page says so."""
    messages.info(
        request,
        f"Approval requested: {approval.action} on {approval.subject}. It runs once another person approves it.",
    )
    return redirect("approval", approval.pk)


def once(key: str, sent: QueryDict) -> str | None:
    """The key of this form with this content. The same form sent twice counts once; sent with something else in it
    (after the browser's Back button), it is another call, and the version it was made for decides."""
    if not key:
        return None
    content = sorted((name, text) for name, texts in sent.lists() for text in texts if name != "csrfmiddlewaretoken")
    return f"{key}:{hashlib.sha256(repr(content).encode()).hexdigest()[:16]}"


def told(event: str, before: Instance, after: Instance) -> str:
    """What came of it, in one line."""
    stays = before.configuration == after.configuration
    moved = f"stays in {after.state}" if stays else f"{before.state} → {after.state}"
    if after.outcome and after.outcome.replayed:
        return f"{event} was already applied: now in {after.state}, revision {after.version}"
    return f"{event}: {moved}, revision {after.version}"


@lever("fire", "create")
def create(request: HttpRequest, machine: str) -> HttpResponse:
    if request.method != "POST":
        return redirect("machine", machine)
    creation = Creation(version_view.plan(machine, get_engine().live(machine).version), request.POST)
    if not creation.is_valid():
        return machine_page(request, machine, creation=creation, status=400)
    given = creation.arguments()
    if not given["id"] and codec.is_id(given["key"]):
        given["id"] = given["key"]  # pressing the button twice makes one instance; any other key does so in the engine
    try:
        made = instances.create(Actor.of(request), machine, **given)
    except (errors.InstanceExists, errors.BadInput, errors.Refused) as error:
        creation.blame(error)
        return machine_page(request, machine, creation=creation, status=status_of(type(error)))
    messages.success(request, f"{made.id} created, in {made.state}")
    return redirect("instance", machine, made.id)
