"""Migration plans: the form that makes one, the stored plan with its dry run, and the move that it starts."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from dashboard.shared import version_view
from dashboard.shared.addresses import parse_number
from dashboard.shared.counts import VersionCounts, count_versions
from dashboard.shared.csv_export import Export, list_lines, stream_csv
from dashboard.shared.form_views import Mistake, answer_form
from dashboard.shared.permissions import find_of_machine, require, require_audited
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.rendering import render_page
from machines.catalog.errors import NotMigrated, PlanInUse
from machines.catalog.versions import comparison
from machines.engine import BadInput, Live, MigrationPlan, PlanError, VersionRefused
from machines.instances import plans as services
from machines.instances.bulks.order import MAX_RATE, MAX_REASON
from machines.models import StoredPlan
from machines.people.actor import Actor
from machines.people.permissions import allows

from . import presenters
from .plan_form import Choices, PlanForm, list_fields, list_places, list_removed, list_states, read_choices


@require("view")
def new(request: HttpRequest, machine: str) -> HttpResponse:
    """Show the form: a GET for the automatic mapping, ``?of=<plan>`` for a stored plan; a POST checks or stores."""
    engine = redacted_engine(request)
    live = engine.live(machine)
    versions = count_versions(engine, machine, live)
    if len(versions.rows) < 2:
        raise Http404(f"Machine {machine} has one version: there is nothing to plan.")
    if request.method != "POST":
        return _start_form(request, live, versions)
    to = parse_number(request.POST.get("to", "")) or live.version
    form, choices = (
        PlanForm(request.POST, versions=[row.version for row in versions.rows], to=to),
        read_choices(request.POST),
    )
    if not form.is_valid():
        return _render_form_page(request, live, versions, form, choices, to)
    to = form.cleaned_data["to"]
    made = _make_plan(Actor.of(request), machine, to, form, choices)
    if request.POST.get("do") != "store" or made.plan is None or made.mistake:
        return _render_form_page(request, live, versions, form, choices, to, made)
    stored = services.store(Actor.of(request), made.plan, note=form.cleaned_data["note"])
    if live.total <= services.AT_ONCE:
        return dry_run(request, machine=machine, id=stored.pk)
    return redirect("signalbox:plan", machine, stored.pk)


def _start_form(request: HttpRequest, live: Live, versions: VersionCounts) -> HttpResponse:
    """Show the form with the automatic mapping, or filled as a stored plan was."""
    numbers, choices = [row.version for row in versions.rows], Choices()
    to = parse_number(request.GET.get("to", "")) or max(numbers)
    if to not in numbers:
        raise Http404(f"Machine {live.machine} has no version {to}.")
    sources = [number for text in request.GET.getlist("from") if (number := parse_number(text)) in numbers]
    initial: dict[str, Any] = {
        "sources": sources or [row.version for row in versions.rows if row.version != to and row.instances]
    }
    initial["sources"] = initial["sources"] or [number for number in numbers if number != to][:1]
    if of := parse_number(request.GET.get("of", "")):
        plan = comparison.hide_document(Actor.of(request), _find_plan(request, live.machine, of).plan)
        to, choices = plan["to"], presenters.read_plan_choices(plan)
        sources = [source["version"] for source in plan["sources"]]
        initial = {"sources": sources, "unmapped": plan["unmapped"], **plan["options"]}
    form = PlanForm({**PlanForm.defaults(), **initial, "to": to}, versions=numbers, to=to)
    if not form.is_valid():
        return _render_form_page(request, live, versions, form, choices, to)
    made = _make_plan(Actor.of(request), live.machine, to, form, choices)
    return _render_form_page(request, live, versions, form, choices, to, made)


class PlanAttempt(NamedTuple):
    """A plan as far as it can be made, its findings, and what keeps it from being stored."""

    plan: MigrationPlan | None = None
    findings: Sequence[Any] = ()
    mistake: str = ""


NO_PLAN = PlanAttempt()


def _make_plan(actor: Actor, machine: str, to: int, form: PlanForm, choices: Choices) -> PlanAttempt:
    sources = [number for number in form.cleaned_data["sources"] if number != to]
    try:
        plan = services.make(
            actor, machine, to, from_versions=sources, states=choices.states, data=choices.data, **form.options()
        )
    except PlanError as error:
        mistake = "The plan has errors: see the findings." if error.findings else str(error)
        return PlanAttempt(error.plan, error.findings, mistake)
    return PlanAttempt(plan, plan.findings)


def _render_form_page(
    request: HttpRequest,
    live: Live,
    versions: VersionCounts,
    form: PlanForm,
    choices: Choices,
    to: int,
    made: PlanAttempt = NO_PLAN,
) -> HttpResponse:
    machine, plan = live.machine, made.plan
    is_wrong = request.method == "POST" and (made.mistake or form.errors)
    target = version_view.load_versions({machine: to})[machine]
    olds = version_view.load_versions_of(machine, [source.version for source in plan.sources] if plan else [])
    open_rows, mapped_rows = list_states(plan, choices, live.counts)
    context = {
        "machine": machine, "live": live, "versions": versions, "target": target, "form": form,
        "plan": plan, "findings": made.findings, "mistake": made.mistake, "open_rows": open_rows,
        "mapped_rows": mapped_rows,
        "field_rows": list_fields(target, olds.values(), choices),
        "removed_fields": list_removed(target, olds.values()),
        "places": list_places(target),
        "regions": any(state.type == "parallel" for state in target.outline.states),
        "policies": [form[name] for name in ("unmapped", "timers", "removed", "suspended")],
        "may_store": allows(request.user, "operate", machine), "at_once": services.AT_ONCE,
    }  # fmt: skip
    return render_page(request, "signalbox/versions/plans/plan_new.html", context, status=400 if is_wrong else 200)


def _find_plan(request: HttpRequest, machine: str, id: int) -> StoredPlan:
    """Return a stored plan of this machine. Raises Http404."""
    return find_of_machine(lambda: services.get(Actor.of(request), id), machine, "plan")


@require("view")
def show(request: HttpRequest, machine: str, id: int) -> HttpResponse:
    return plan_page(request, machine, id)


def plan_page(request: HttpRequest, machine: str, id: int, *, mistake: str = "", status: int = 200) -> HttpResponse:
    """Render a stored plan. ``mistake``: why what was asked for was not done."""
    stored, actor = _find_plan(request, machine, id), Actor.of(request)
    engine = redacted_engine(request)
    live = engine.live(machine)
    context = presenters.present_plan(actor, stored, live) | {
        "machine": machine, "live": live, "versions": count_versions(engine, machine, live),
        "may_act": allows(request.user, "operate", machine), "may_publish": allows(request.user, "publish", machine),
        "too_large": live.total > services.AT_ONCE, "at_once": services.AT_ONCE, "mistake": mistake,
        "reason": request.POST.get("reason", ""), "now_ms": live.now,
    }  # fmt: skip
    return render_page(request, "signalbox/versions/plans/plan.html", context, status=status)


@answer_form("plan", "operate", "plan.try", shown=(BadInput,), render=plan_page, target="id")
def dry_run(request: HttpRequest, machine: str, id: int) -> HttpResponse:
    """Try the plan on the whole fleet. A fleet too large for one request is tried by the preview of the move."""
    services.try_out(Actor.of(request), _find_plan(request, machine, id).pk)
    return redirect("signalbox:plan", machine, id)


_answer_move = answer_form(
    "plan", "operate", "bulk.start", shown=(BadInput, PlanInUse, NotMigrated, VersionRefused), render=plan_page,
    target="id",
)  # fmt: skip


@_answer_move
def move(request: HttpRequest, machine: str, id: int) -> HttpResponse:
    """Start the bulk action that moves the instances."""
    return _start_bulk(request, machine, id, "bulk", services.move)


@_answer_move
def back(request: HttpRequest, machine: str, id: int) -> HttpResponse:
    """Start the bulk action that moves the instances back."""
    begin = partial(services.move_back, make_current=bool(request.POST.get("make_current")))
    return _start_bulk(request, machine, id, "back", begin)


def _start_bulk(request: HttpRequest, machine: str, id: int, name: str, begin: Any) -> HttpResponse:
    stored = _find_plan(request, machine, id)
    reason, rate = request.POST.get("reason", "").strip(), request.POST.get("rate", "").strip() or "0"
    if not reason or len(reason) > MAX_REASON:
        raise Mistake(f"Enter a reason of at most {MAX_REASON} characters.")
    if not (rate.isascii() and rate.isdigit() and int(rate[:9]) <= MAX_RATE):
        raise Mistake(f"Enter a rate from 0 to {MAX_RATE:,}.")
    row = begin(Actor.of(request), stored.pk, reason=reason, rate=int(rate))
    messages.success(request, "The instances are being collected and previewed. Nothing moves before you run it.")
    return redirect("signalbox:bulk", getattr(row, name))


@require_audited("view", "export")
def export_refused(request: HttpRequest, machine: str, id: int) -> HttpResponseBase:
    """Answer the instances that the last dry run refused, as CSV."""
    stored = _find_plan(request, machine, id)
    found = presenters.read_dry_run(Actor.of(request), stored)
    rows = found.refused if found else ()
    export = Export(request, presenters.COLUMNS, len(rows), {"machine": machine})
    return stream_csv(export, list_lines(presenters.COLUMNS, [rows]), f"plan-{stored.plan_id}-refused.csv")
