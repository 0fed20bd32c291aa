"""Firing an event, creating an instance: a POST, one call of the engine, a redirect that says what came of it."""

from __future__ import annotations

import hashlib
import uuid

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.access import require
from dashboard.pages import attempts, plans
from dashboard.pages.attempts import Attempt
from dashboard.pages.creation import Creation
from dashboard.pages.forms import KeyedForm
from dashboard.pages.instances import instance_page
from dashboard.pages.machines import machine_page
from dashboard.pages.plans import Plan
from machines import allowing
from machines.auditing import audited
from machines.connections import get_engine
from machines.engine import Instance, errors
from machines.forms import TypedForm


@require("fire")
def fire(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    if request.method != "POST":  # a reload of the address after a refusal
        return redirect("instance", machine, id)
    before = get_engine().get(machine, id)
    plan = plans.plan(machine, before.definition)
    event = request.POST.get("event", "").strip()
    payload = plan.payload_form(event, None, id_prefix="asked", data=request.POST)
    found = _fired(request, before, plan, event, payload)
    if isinstance(found, Attempt):
        return instance_page(request, machine, id, attempt=found)
    messages.success(request, told(event, before, found))
    return redirect("instance", machine, id)


def _fired(request: HttpRequest, before: Instance, plan: Plan, event: str, payload: TypedForm) -> Instance | Attempt:
    """The instance after the step, or why there is none."""
    engine, machine, id = get_engine(), before.machine, before.id
    what, url = f"fire {event}", reverse("fire", args=[machine, id])
    step = KeyedForm(request.POST)
    kept = {"event": event, "form": payload, "reason": request.POST.get("reason", "")}
    if not all([payload.is_valid(), step.is_valid()]):
        return attempts.mistake(what, url, **kept)
    given = step.cleaned_data
    try:
        if "check" in request.POST:
            allowing.ask(engine, request.user, plan.outline, machine, id, event, payload.values())
            explanation = engine.explain(machine, id, event, payload.values())
            return attempts.preview(plan, url, before, explanation, **kept)
        about = {"machine": machine, "instance": id, "target": event, "reason": given["reason"]}
        with audited(request, "fire", **about) as deed:
            allowing.ask(engine, request.user, plan.outline, machine, id, event, payload.values())
            after = engine.fire(
                machine, id, event, payload.values(), expect=given["expect"],
                key=once(given["key"], request.POST), actor=request.user.get_username(), reason=given["reason"],
            )  # fmt: skip
            deed.moved(before.state, after)
        return after
    except errors.Refused as error:
        return attempts.refused(plan, url, error, **kept)
    except allowing.NotAllowed as error:
        return attempts.denied(what, url, error, **kept)
    except errors.Suspended as error:
        return attempts.held(what, url, error, **kept)
    except errors.Conflict as error:
        return attempts.conflict(engine, what, url, error, request.POST, **kept)
    except errors.BadInput as error:
        payload.blame(getattr(error, "field", None), error.message)
        return attempts.mistake(what, url, error, **kept)


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
        return f"{event} had counted already: now in {after.state}, version {after.version}"
    return f"{event}: {moved}, version {after.version}"


@require("fire")
def create(request: HttpRequest, machine: str) -> HttpResponse:
    if request.method != "POST":
        return redirect("machine", machine)
    engine = get_engine()
    creation = Creation(plans.plan(machine, engine.live(machine).version), request.POST)
    if not creation.is_valid():
        return machine_page(request, machine, creation=creation, status=400)
    given = creation.arguments()
    # Without an id the key makes one, so that pressing the button twice makes one instance.
    given["id"] = given["id"] or uuid.uuid5(uuid.NAMESPACE_URL, given["key"] or str(uuid.uuid4())).hex
    try:
        with audited(request, "create", machine=machine, instance=given["id"], reason=given["reason"]) as deed:
            made = engine.create(machine, actor=request.user.get_username(), **given)
            deed.moved("", made)
    except errors.InstanceExists as error:
        creation.blame(error)
        return machine_page(request, machine, creation=creation, status=409)
    except (errors.BadInput, errors.Refused) as error:
        creation.blame(error)
        status = 422 if isinstance(error, errors.Refused) else 400
        return machine_page(request, machine, creation=creation, status=status)
    messages.success(request, f"{made.id} created, in {made.state}")
    return redirect("instance", machine, made.id)
