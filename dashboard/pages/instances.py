"""One instance: where it stands, what can be done with it, its data, and everything that happened to it."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse

from dashboard.access import allows, require
from dashboard.pages import painting, plans
from dashboard.pages.attempts import Attempt
from dashboard.pages.deadlines import children, deadlines
from dashboard.pages.errors import bad_request
from dashboard.pages.forms import DeleteForm, ForceForm, RepairForm, ResumeForm, SuspendForm, fresh_key
from dashboard.pages.levers import Lever, levers
from dashboard.pages.plans import Plan
from dashboard.pages.rendering import page
from machines.connections import get_engine
from machines.engine import Engine, Instance, Job, errors

STEPS = 50  # of the history on one page


@require("view")
def show(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    return instance_page(request, machine, id)


def instance_page(
    request: HttpRequest,
    machine: str,
    id: str,
    *,
    attempt: Attempt | None = None,
    **repairs: RepairForm,
) -> HttpResponse:
    """The page as it is now; ``attempt`` says on top of it what was tried, and its forms stay filled.

    ``repairs``: a form that was not accepted, by its name.
    """
    engine = get_engine()
    instance = engine.get(machine, id)
    plan = plans.plan(machine, instance.definition, folded=request.GET.get("view") == "top")
    before = _before(request)
    if before == -1:
        return bad_request(request)
    pulls = levers(engine, plan, instance, attempt.tried if attempt else None)
    steps = engine.history(machine, id, limit=STEPS + 1, before=before)
    context = {
        "section": "machines",
        "instance": instance,
        "plan": plan,
        "places": plan.places(instance.configuration),
        "deadlines": deadlines(plan, instance),
        "children": children(instance),
        "attempt": attempt,
        "open_levers": [lever for lever in pulls if lever.verdict != "idle" or lever.asked],
        "idle_levers": [lever for lever in pulls if lever.verdict == "idle" and not lever.asked],
        "fields": plan.fields(instance.data),
        "stamps": plan.stamps,
        "steps": steps[:STEPS],
        "older": steps[STEPS - 1].version if len(steps) > STEPS else None,
        "before": before,
        "jobs": list(_jobs(engine, instance)),
        "drawing": painting.of_instance(plan, instance, _possible(pulls)),
        "key": fresh_key(),
    }
    if allows(request.user, "operate"):
        context |= _repairs(plan) | repairs
    return page(request, "pages/instance.html", context, status=attempt.status if attempt else 200)


def _repairs(plan: Plan) -> dict[str, RepairForm]:
    return {
        "force": ForceForm(plan.outline),
        "suspend": SuspendForm(),
        "resume": ResumeForm(),
        "delete": DeleteForm(),
    }


def _possible(pulls: Iterable[Lever]) -> dict[str, str]:
    return {route.id: route.kind for lever in pulls for route in lever.routes}


def _jobs(engine: Engine, instance: Instance) -> Iterable[Job]:
    for id in instance.jobs:
        try:
            yield engine.job(instance.machine, id)
        except errors.LookupFailed:  # finished while we looked
            continue


def _before(request: HttpRequest) -> int | None:
    """``?before=<version>`` for older steps; -1 for something that is no version."""
    asked = request.GET.get("before", "")
    if not asked:
        return None
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) <= 15 else -1
