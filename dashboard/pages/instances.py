"""One instance: where it stands, what can be done with it, its data, and everything that happened to it."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from dashboard.access import allows, require
from dashboard.pages import painting, plans
from dashboard.pages.attempts import Attempt
from dashboard.pages.deadlines import children, deadlines
from dashboard.pages.errors import bad_request
from dashboard.pages.forms import ResumeForm, fresh_key
from dashboard.pages.levers import Lever, levers
from dashboard.pages.moments import KEPT, Replay
from dashboard.pages.rendering import page
from dashboard.pages.repair_kinds import choices
from machines.connections import get_engine
from machines.engine import Engine, Instance, Job, Step, errors

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
) -> HttpResponse:
    """The page as it is now, or as ``?at=<version>`` says; ``attempt`` tells on top of it what was tried, and its forms
    stay filled."""
    engine = get_engine()
    instance = engine.get(machine, id)
    plan = plans.plan(machine, instance.definition, folded=request.GET.get("view") == "top")
    before = _before(request)
    if before == -1:
        return bad_request(request)
    pulls = levers(engine, plan, instance, attempt.tried if attempt else None)
    trail = engine.history(machine, id, limit=KEPT)
    replay = Replay.asked(request, plan, instance, trail)
    steps = _listed(engine, replay, trail, before)
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
        "replay": replay,
        "jobs": list(_jobs(engine, instance)),
        "drawing": _drawing(replay, pulls),
        "key": fresh_key(),
    }
    if allows(request.user, "operate"):
        context |= {"repairs": choices(instance, engine.waits(machine, id)), "resume": ResumeForm()}
    return page(request, "pages/instance.html", context, status=attempt.status if attempt else 200)


def _listed(engine: Engine, replay: Replay, trail: list[Step], before: int | None) -> list[Step]:
    """One step more than a page of the history shows: from ``before`` on, else around the moment shown."""
    if before is not None:
        return engine.history(replay.instance.machine, replay.instance.id, limit=STEPS + 1, before=before)
    place = next((place for place, step in enumerate(trail) if replay.at and step.version == replay.at.version), 0)
    start = 0 if place < STEPS else place - STEPS // 2
    return trail[start : start + STEPS + 1]


def _drawing(replay: Replay, pulls: Iterable[Lever]) -> SafeString:
    if replay.at:
        return painting.of_moment(replay.plan, replay.at, replay.other)
    return painting.of_instance(replay.plan, replay.instance, _possible(pulls))


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
