"""Repairs: what no transition provides. Choose one, see what it would do, say why, do it.

All need ``operate``, a reason, and the version seen. A GET shows the form, and what would happen where that needs no
more to be said; a POST with ``preview`` shows it for what was filled in; any other POST does it. Who tries without the
right is turned away, and that is recorded as a refusal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.access import MEANINGS, allows, require
from dashboard.pages import attempts, plans
from dashboard.pages.attempts import Attempt
from dashboard.pages.errors import FORBIDDEN, MISTAKE
from dashboard.pages.firing import once
from dashboard.pages.forms import RepairForm, fresh_key
from dashboard.pages.plans import Plan
from dashboard.pages.rendering import page
from dashboard.pages.repair_forms import form_for
from dashboard.pages.repair_kinds import KINDS, Kind, choices, told
from machines.auditing import REFUSED, audited, record, source_of
from machines.connections import get_engine
from machines.engine import Engine, Instance, Preview, Wait, errors

OTHER = "What you sent is not what you looked at. Below is what it would do: look, then do it."
NOTED = ("data", "changes", "keep_data", "result", "overdue")  # of what was asked for, in the audit
NO_KEY = ("suspend", "resume", "delete")  # done twice, they find nothing left to do


@dataclass(slots=True)
class Repair:
    """One repair on its way: what is repaired as it is now, the form, and what came of it so far."""

    kind: Kind
    instance: Instance
    plan: Plan
    waits: list[Wait]
    form: RepairForm
    attempt: Attempt | None = None
    preview: Preview | None = None

    @property
    def url(self) -> str:
        return reverse(self.kind.name, args=[self.instance.machine, self.instance.id])

    @property
    def what(self) -> str:
        """The repair in words, for a notice."""
        states = (
            self.form.cleaned_data.get("state") if self.form.is_bound and hasattr(self.form, "cleaned_data") else None
        )
        return f"force into {', '.join(states)}" if states else self.kind.name

    @property
    def seen(self) -> str:
        """Names what was looked at, so that nothing else is done."""
        asked = json.dumps(self.form.asked(), sort_keys=True, default=str)
        return hashlib.sha256(f"{self.kind.name} {asked}".encode()).hexdigest()[:24]


def _view(name: str) -> Callable[..., HttpResponse]:
    guarded = require("operate")(lambda request, machine, id: _repair(request, machine, id, KINDS[name]))

    @wraps(guarded)
    def view(request: HttpRequest, machine: str, id: str) -> HttpResponse:
        if request.method == "POST" and request.user.is_authenticated and not allows(request.user, "operate"):
            detail = {"error": f"you may not {MEANINGS['operate']}", "code": FORBIDDEN}
            about = {"machine": machine, "instance": id, "reason": request.POST.get("reason", "")}
            record(request.user, name, **about, outcome=REFUSED, detail=detail, source=source_of(request))
        return guarded(request, machine, id)

    return view


def _repair(request: HttpRequest, machine: str, id: str, kind: Kind) -> HttpResponse:
    engine = get_engine()
    repair = _begun(engine, engine.get(machine, id), kind, request)
    if request.method != "POST":
        if repair.form.is_bound and repair.form.is_valid():
            _look(engine, repair)
        return _page(request, repair, status=200)
    if "preview" in request.POST:
        repair.form.only_look()
    if not repair.form.is_valid():
        repair.attempt = attempts.mistake(repair.what, repair.url)
        return _page(request, repair)
    other = request.POST.get("seen", repair.seen) != repair.seen
    if "preview" in request.POST or other:
        _look(engine, repair)
        if other and "preview" not in request.POST and repair.attempt is None:
            repair.attempt = Attempt("mistake", repair.what, repair.url, OTHER, MISTAKE)
        return _page(request, repair)
    after = _done(request, engine, repair)
    if after is None:
        return _page(request, repair)
    messages.success(request, told(kind.name, repair.instance, after))
    return redirect("machine", machine) if kind.name == "delete" else redirect("instance", machine, id)


def _begun(engine: Engine, instance: Instance, kind: Kind, request: HttpRequest) -> Repair:
    plan = plans.plan(instance.machine, instance.definition)
    waits = engine.waits(instance.machine, instance.id)
    data: Any = request.POST if request.method == "POST" else None
    if data is None and kind.ready:
        data = _unasked(kind, waits, instance, request)
    form = form_for(kind.name, plan, instance, waits, data)
    if request.method != "POST":
        form.only_look()
    return Repair(kind, instance, plan, waits, form)


def _unasked(kind: Kind, waits: list[Wait], instance: Instance, request: HttpRequest) -> dict[str, str] | None:
    """What the form of a repair says before anyone filled it in; None where somebody has to choose first."""
    filled = {"expect": str(instance.version), "overdue": "fire"}
    if not kind.of_job:
        return filled
    possible = [wait.invoke for wait in waits if kind.name in wait.repairs]
    named = request.GET.get("invoke", possible[0] if len(possible) == 1 else "")
    return filled | {"invoke": named} if named in possible else None


def _look(engine: Engine, repair: Repair) -> None:
    """Fill in what it would do, or why it would be refused."""
    instance = repair.instance
    try:
        asked = repair.form.asked()
        repair.preview = engine.preview(instance.machine, instance.id, repair.kind.name, **asked)
    except (errors.Refused, errors.Suspended, errors.BadInput) as error:
        _explain(repair, error)


def _done(request: HttpRequest, engine: Engine, repair: Repair) -> Instance | None:
    """Do it, and record it; None where it was refused, which the repair then says."""
    kind, before, given = repair.kind, repair.instance, repair.form.cleaned_data
    asked = repair.form.asked()
    who = {"actor": request.user.get_username(), "reason": given["reason"], "expect": given["expect"]}
    if kind.name not in NO_KEY:
        who["key"] = once(given["key"], request.POST)
    target = ", ".join(asked["state"]) if "state" in asked else asked.get("invoke", "")
    about = {"machine": before.machine, "instance": before.id, "target": target, "reason": given["reason"]}
    try:
        with audited(request, kind.name, **about) as deed:
            deed.note(
                **{name: value for name, value in asked.items() if name in ("data", "changes", "result", "overdue")}
            )
            after = getattr(engine, kind.name)(before.machine, before.id, **asked, **who)
            if kind.name == "delete":
                deed.note(before=after.state, version=after.version)
            elif kind.name in ("suspend", "resume"):
                deed.note(after=after.state, version=after.version)
            else:
                deed.moved(before.state, after)
        return after
    except errors.Conflict as error:
        repair.attempt = attempts.conflict(engine, repair.what, repair.url, error, request.POST)
        repair.instance = engine.get(before.machine, before.id)
    except (errors.Refused, errors.Suspended, errors.BadInput) as error:
        _explain(repair, error)
    return None


def _explain(repair: Repair, error: errors.SignalboxError) -> None:
    if isinstance(error, errors.Refused):
        repair.attempt = replace(attempts.refused(repair.plan, repair.url, error), what=repair.what)
    elif isinstance(error, errors.Suspended):
        repair.attempt = attempts.held(repair.what, repair.url, error)
    else:
        repair.form.blame(getattr(error, "field", None), error.message)
        repair.attempt = attempts.mistake(repair.what, repair.url, error)


def _page(request: HttpRequest, repair: Repair, *, status: int | None = None) -> HttpResponse:
    instance = repair.instance
    context = {
        "section": "machines",
        "instance": instance,
        "kind": repair.kind,
        "form": repair.form,
        "attempt": repair.attempt,
        "preview": repair.preview,
        "seen": repair.seen if repair.preview else "",
        "changes": _changes(repair.preview, instance) if repair.preview else [],
        "others": [one for one in choices(instance, repair.waits) if one.kind != repair.kind],
        "url": repair.url,
        "key": fresh_key(),
    }
    if status is None:
        status = repair.attempt.status if repair.attempt else 200
    return page(request, "pages/repair.html", context, status=status)


def _changes(preview: Preview, instance: Instance) -> list[tuple[str, dict[str, Any]]]:
    """For each data field that would change, what it holds and what it would hold."""
    old = instance.data
    return [(name, {"was_set": name in old, "old": old.get(name), "new": new}) for name, new in preview.changes.items()]


force = _view("force")
edit = _view("edit")
reset = _view("reset")
suspend = _view("suspend")
resume = _view("resume")
retry = _view("retry")
skip = _view("skip")
cancel = _view("cancel")
delete = _view("delete")
