"""Repairs: steps outside the transitions, with a preview and a reason; and the actions on a run of map-reduce.

Repairs need ``operate``, a reason, and the expected revision. A GET shows the form, and a preview if nothing needs to
be filled in; a POST with ``preview`` previews the form; any other POST applies it. A person without the right is
refused, and the refusal is audited.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect

from dashboard.shared import version_view
from dashboard.shared.addresses import find_page_address
from dashboard.shared.errors.statuses import MISTAKE
from dashboard.shared.form_views import answer_form, key_of_content, make_key, redirect_to_request
from dashboard.shared.permissions import View, require_audited
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import render_page
from dashboard.shared.version_view import VersionView
from machines.catalog import rules
from machines.catalog.errors import ApprovalNeeded
from machines.catalog.queries import outline_of
from machines.engine import Instance, Preview, Wait, errors
from machines.instances import actions as instances
from machines.instances import queries
from machines.mapreduce import actions as runs
from machines.mapreduce.store import RUN
from machines.people.actor import Actor

from . import presenters
from .forms import FORMS, RepairForm
from .presenters import REPAIR_KINDS, ActionResult, RepairKind, describe_repair, list_changes, list_repairs

EXPLAINED = (errors.Conflict, errors.Refused, errors.Suspended, errors.BadInput)
INPUT_CHANGED = "The input changed after the preview. Check the new preview below, then submit again."


@dataclass(slots=True)
class Repair:
    """Holds a repair in progress: the instance as this person sees it, the form, the result."""

    kind: RepairKind
    instance: Instance
    view: VersionView
    waits: list[Wait]
    form: RepairForm
    attempt: ActionResult | None = None
    preview: Preview | None = None

    @property
    def url(self) -> str:
        return find_page_address(f"signalbox:{self.kind.name}", self.instance.machine, self.instance.id)

    @property
    def what(self) -> str:
        """Return the repair in words, for a notice."""
        states = (
            self.form.cleaned_data.get("state") if self.form.is_bound and hasattr(self.form, "cleaned_data") else None
        )
        return f"force into {', '.join(states)}" if states else self.kind.name

    @property
    def asked(self) -> ActionResult:
        """Return a result that says what was asked for, and no outcome."""
        return ActionResult("", self.what, self.url)

    @property
    def seen(self) -> str:
        """Return a hash of the previewed input, so that no other input is applied."""
        asked = json.dumps(self.form.arguments(), sort_keys=True, default=str)
        return hashlib.sha256(f"{self.kind.name} {asked}".encode()).hexdigest()[:24]


def _make_view(name: str) -> View:
    @require_audited("operate", name, instance="id")
    def view(request: HttpRequest, machine: str, id: str) -> HttpResponse:
        return _repair(request, machine, id, REPAIR_KINDS[name])

    return view


def _repair(request: HttpRequest, machine: str, id: str, kind: RepairKind) -> HttpResponse:
    actor = Actor.of(request)
    repair = _prepare(queries.get(actor, machine, id), kind, request)
    if request.method != "POST":
        if repair.form.is_bound and repair.form.is_valid():
            _preview(actor, repair, request.POST)
        return _render_page(request, repair, status=200)
    if "preview" in request.POST:
        repair.form.make_optional()
    if not repair.form.is_valid():
        repair.attempt = presenters.explain_mistake(repair.asked)
        return _render_page(request, repair)
    other = request.POST.get("seen", repair.seen) != repair.seen
    if "preview" in request.POST or other:
        _preview(actor, repair, request.POST)
        if other and "preview" not in request.POST and repair.attempt is None:
            repair.attempt = replace(repair.asked, kind="mistake", message=INPUT_CHANGED, code=MISTAKE)
        return _render_page(request, repair)
    try:
        after = _apply(actor, repair, request.POST)
    except ApprovalNeeded as needed:
        return redirect_to_request(request, needed)
    if after is None:
        return _render_page(request, repair)
    messages.success(request, describe_repair(kind.name, repair.instance, after))
    return (
        redirect("signalbox:machine", machine) if kind.name == "delete" else redirect("signalbox:instance", machine, id)
    )


def _prepare(instance: Instance, kind: RepairKind, request: HttpRequest) -> Repair:
    view = version_view.load_version(instance.machine, instance.version)
    waits = redacted_engine(request).waits(instance.machine, instance.id)
    data: Any = request.POST if request.method == "POST" else None
    if data is None and kind.ready:
        data = _fill_defaults(kind, waits, instance, request)
    form = FORMS[kind.name](kind.name, view, instance, waits, data)
    if request.method != "POST":
        form.make_optional()
    return Repair(kind, instance, view, waits, form)


def _fill_defaults(
    kind: RepairKind, waits: list[Wait], instance: Instance, request: HttpRequest
) -> dict[str, str] | None:
    """Return the form of a repair before anyone filled it in; None if something must be chosen first."""
    filled = {"expect": str(instance.revision), "overdue": "fire"}
    if not kind.of_job:
        return filled
    possible = [wait.invoke for wait in waits if kind.name in wait.repairs]
    named = request.GET.get("invoke", possible[0] if len(possible) == 1 else "")
    return filled | {"invoke": named} if named in possible else None


def _preview(actor: Actor, repair: Repair, post: QueryDict) -> None:
    """Add a preview, or the reason of a refusal."""
    instance, asked = repair.instance, repair.form.arguments()
    try:
        repair.preview = instances.preview(actor, repair.kind.name, instance.machine, instance.id, **asked)
    except EXPLAINED as error:
        _explain(actor, repair, error, post)


def _apply(actor: Actor, repair: Repair, post: QueryDict) -> Instance | None:
    """Apply the repair; return None if it was refused, and keep the result."""
    before, given = repair.instance, repair.form.cleaned_data
    try:
        call = instances.Call(
            repair.kind.name, before.machine, before.id, repair.form.arguments(), given["reason"], given["expect"],
            key_of_content(given["key"], post),
        )  # fmt: skip
        return instances.perform(actor, call, shows=False)
    except EXPLAINED as error:
        _explain(actor, repair, error, post)
        if isinstance(error, errors.Conflict):
            repair.instance = queries.get(actor, before.machine, before.id)
    return None


def _explain(actor: Actor, repair: Repair, error: errors.SignalboxError, post: QueryDict) -> None:
    repair.attempt = presenters.explain_failure(
        repair.asked, actor, repair.view, repair.instance.id, error, post, repair.form
    )


def _render_page(request: HttpRequest, repair: Repair, *, status: int | None = None) -> HttpResponse:
    instance = repair.instance
    context = {
        "instance": instance,
        "kind": repair.kind,
        "second": rules.needs_approval([outline_of(instance.machine, instance.version)], repair.kind.name),
        "form": repair.form,
        "attempt": repair.attempt,
        "preview": repair.preview,
        "seen": repair.seen if repair.preview else "",
        "changes": list_changes(repair.preview, instance.data) if repair.preview else [],
        "others": [one for one in list_repairs(instance, repair.waits) if one.kind != repair.kind],
        "url": repair.url,
        "key": make_key(),
    }
    if status is None:
        status = repair.attempt.status if repair.attempt else 200
    return render_page(request, "signalbox/instances/repair.html", context, status=status)


ACTION_VIEWS = {name: _make_view(name) for name in REPAIR_KINDS}
RUN_SUCCESS = {"retry": "Retrying what is not finished", "remove": "A worker removes the run"}


def _make_run_view(name: str) -> View:
    @answer_form("instance", "operate", f"run.{name}", refused=(errors.Refused, errors.Suspended), instance="id")
    def view(request: HttpRequest, machine: str, id: str) -> str:
        if machine != RUN:
            raise Http404("Runs are of map_reduce alone.")
        runs.act(Actor.of(request), id, name)
        return RUN_SUCCESS[name]

    return view


RUN_VIEWS = {name: _make_run_view(name) for name in RUN_SUCCESS}
