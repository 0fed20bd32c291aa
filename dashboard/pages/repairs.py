"""Repairs: force an instance into a state, suspend it and resume it, or delete it.

All need ``operate``, a reason, and the version seen.
"""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.access import require
from dashboard.pages import attempts, plans
from dashboard.pages.forms import DeleteForm, ForceForm, RepairForm, ResumeForm, SuspendForm
from dashboard.pages.instances import instance_page
from machines.auditing import audited
from machines.connections import get_engine
from machines.engine import Instance, errors


@require("operate")
def force(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    if request.method != "POST":
        return redirect("instance", machine, id)
    engine, url = get_engine(), reverse("force", args=[machine, id])
    before = engine.get(machine, id)
    form = ForceForm(plans.plan(machine, before.definition).outline, request.POST)
    what = "force"
    if not form.is_valid():
        return instance_page(request, machine, id, attempt=attempts.mistake(what, url), force=form)
    given = form.cleaned_data
    what = f"force into {', '.join(given['state'])}"
    try:
        with audited(
            request, "force", machine=machine, instance=id, target=", ".join(given["state"]), reason=given["reason"]
        ) as deed:
            deed.note(data=given["data"])
            after = engine.force(
                machine, id, given["state"], data=given["data"], expect=given["expect"],
                actor=request.user.get_username(), reason=given["reason"],
            )  # fmt: skip
            deed.moved(before.state, after)
    except errors.Conflict as error:
        tried = attempts.conflict(engine, what, url, error, request.POST)
        return instance_page(request, machine, id, attempt=tried, force=form)
    except errors.BadInput as error:
        form.add_error("data" if isinstance(error, errors.BadPayload) else None, error.message)
        return instance_page(request, machine, id, attempt=attempts.mistake(what, url, error), force=form)
    messages.success(request, f"Forced: {before.state} → {after.state}, version {after.version}")
    return redirect("instance", machine, id)


@require("operate")
def suspend(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    return _held(request, machine, id, "suspend", SuspendForm)


@require("operate")
def resume(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    return _held(request, machine, id, "resume", ResumeForm)


def _held(request: HttpRequest, machine: str, id: str, what: str, kind: type[RepairForm]) -> HttpResponse:
    """Suspends or resumes, as ``what`` says."""
    if request.method != "POST":
        return redirect("instance", machine, id)
    engine, url = get_engine(), reverse(what, args=[machine, id])
    form = kind(request.POST)
    if not form.is_valid():
        return instance_page(request, machine, id, attempt=attempts.mistake(what, url), **{what: form})
    given = form.cleaned_data
    policy = {"overdue": given["overdue"]} if "overdue" in given else {}
    try:
        with audited(request, what, machine=machine, instance=id, reason=given["reason"]) as deed:
            after = getattr(engine, what)(
                machine, id, expect=given["expect"], actor=request.user.get_username(), reason=given["reason"], **policy
            )
            deed.note(after=after.state, version=after.version, **policy)
    except errors.Conflict as error:
        tried = attempts.conflict(engine, what, url, error, request.POST)
        return instance_page(request, machine, id, attempt=tried, **{what: form})
    except errors.BadInput as error:
        return instance_page(request, machine, id, attempt=attempts.mistake(what, url, error), **{what: form})
    messages.success(request, _told(what, after))
    return redirect("instance", machine, id)


def _told(what: str, after: Instance) -> str:
    if what == "suspend":
        return f"{after.id} is suspended: nothing moves it until it is resumed"
    return f"{after.id} goes on, in {after.state}, version {after.version}"


@require("operate")
def delete(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    if request.method != "POST":
        return redirect("instance", machine, id)
    engine, url = get_engine(), reverse("delete", args=[machine, id])
    form = DeleteForm(request.POST)
    if not form.is_valid():
        return instance_page(request, machine, id, attempt=attempts.mistake("delete", url), delete=form)
    given = form.cleaned_data
    try:
        with audited(request, "delete", machine=machine, instance=id, reason=given["reason"]) as deed:
            was = engine.delete(
                machine, id, expect=given["expect"], actor=request.user.get_username(), reason=given["reason"]
            )
            deed.note(before=was.state, version=was.version)
    except errors.Conflict as error:
        tried = attempts.conflict(engine, "delete", url, error, request.POST)
        return instance_page(request, machine, id, attempt=tried, delete=form)
    messages.success(request, f"{was.id} deleted; it was in {was.state}")
    return redirect("machine", machine)
