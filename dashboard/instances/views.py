"""One instance: its current state, its events, its data, its history and its family; and firing an event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import SafeString

from dashboard.jobs.presenters import Action, make_job_action
from dashboard.shared import version_view
from dashboard.shared.addresses import REVISION_DIGITS, parse_number
from dashboard.shared.errors.pages import bad_request
from dashboard.shared.form_views import answer_form, key_of_content, make_key
from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.rendering import render_page
from dashboard.shared.version_view import (
    Address,
    Overlay,
    VersionView,
    draw_instance,
    find_state_parts,
    link_folds,
)
from machines.approvals import queries as approval_queries
from machines.catalog import rules
from machines.catalog.errors import ApprovalNeeded
from machines.engine import Inspection, Instance, Job, SignalboxError, Step, errors
from machines.instances import actions as instances
from machines.instances import queries
from machines.mapreduce import actions as runs
from machines.mapreduce.store import RUN
from machines.people.actor import Actor
from machines.people.mirrors import row_methods
from machines.people.permissions import allows

from . import presenters
from .forms import KeyedForm, ResumeForm
from .history import MAX_STEPS, Replay
from .presenters import (
    ActionResult,
    EventAction,
    Explanations,
    judge_methods,
    list_deadlines,
    list_event_actions,
    list_events,
    list_repairs,
)

STEPS = 50  # of the history on one page

_events: dict[str, list[str]] = {}
"""Machine -> the events of the version that was shown last. A guess for the next page, and no more than that."""


@require("view")
def show(request: HttpRequest, machine: str, id: str) -> HttpResponse:
    return instance_page(request, machine, id)


def instance_page(request: HttpRequest, machine: str, id: str, *, attempt: ActionResult | None = None) -> HttpResponse:
    """Render the page as of now, or as of ``?at=<revision>``. ``attempt``: the result of an action; its form stays
    filled.
    """
    engine = redacted_engine(request)
    seen = engine.inspect(machine, id, events=_events.get(machine, ()), steps=MAX_STEPS)
    fold, who = version_view.read_folds(request.GET), str(request.user.pk)
    view = version_view.load_version(machine, seen.instance.version, fold=fold, who=who)
    before = _read_before(request)
    if before == -1:
        return bad_request(request)
    attempt = attempt.redact(engine.redactor(machine).of(id)) if attempt else None
    actions = _list_actions(request, engine, view, seen, attempt)
    replay = _load_replay(request, view, seen.instance, seen.steps)
    context = {"attempt": attempt, "drawing": _draw(replay, actions), "key": make_key()}
    context |= _describe_instance(request, engine, view, seen)
    context |= _describe_past(engine, replay, seen.steps, before)
    context |= _describe_actions(request, view, seen, actions)
    return render_page(request, "signalbox/instances/instance.html", context, status=attempt.status if attempt else 200)


def _list_actions(
    request: HttpRequest, engine: RedactedEngine, view: VersionView, seen: Inspection, attempt: ActionResult | None
) -> list[EventAction]:
    """List the events as buttons. Instances of the product and archived ones take none."""
    if seen.instance.archived or view.is_system:
        return []
    submitted, groups = attempt.submitted if attempt else None, rules.groups_among(Actor.of(request), view.outline)
    explained = _explain_events(engine, view, seen)
    actions = list_event_actions(explained, view, seen.instance, submitted, steps=seen.steps, groups=groups)
    return judge_methods(actions, view, seen.instance.id, request.user) if view.is_mirror else actions


def _describe_instance(
    request: HttpRequest, engine: RedactedEngine, view: VersionView, seen: Inspection
) -> dict[str, Any]:
    """Return the context of what the instance is now, and what it waits for."""
    instance, may_operate = seen.instance, allows(request.user, "operate", view.machine)
    return {
        "instance": instance,
        "view": view,
        "places": view.places(instance.configuration),
        "deadlines": list_deadlines(view, instance),
        "family": None if instance.archived else load_family(engine, instance),
        "fields": view.fields(instance.data),
        "stamps": view.stamps,
        "jobs": [(job, _make_retry(job) if may_operate and job.place == "dead" else None) for job in seen.jobs],
        "stuck": any(wait.place == "dead" for wait in seen.waits),
        "row_address": (
            row_methods().find_row_address(view.machine, instance.id, request.user) if view.is_mirror else ""
        ),
    }


def _make_retry(job: Job) -> Action:
    """Make the retry of a dead job, which leads back to this page."""
    return replace(make_job_action(job, "redrive", back=(("from", "instance"),)), label="Retry job")


def _describe_past(engine: RedactedEngine, replay: Replay, trail: list[Step], before: int | None) -> dict[str, Any]:
    """Return the context of the history, and of the revision that is shown."""
    steps = _list_steps(engine, replay, trail, before)
    older = steps[STEPS - 1].revision if len(steps) > STEPS else None
    return {"steps": steps[:STEPS], "older": older, "before": before, "replay": replay, "words": replay.words}


def _describe_actions(
    request: HttpRequest, view: VersionView, seen: Inspection, actions: list[EventAction]
) -> dict[str, Any]:
    """Return the context of what may be done to the instance, by this person or after an approval."""
    machine, instance = view.machine, seen.instance
    may_operate = allows(request.user, "operate", machine)
    context = {
        "open_actions": [action for action in actions if action.verdict != "idle" or action.asked],
        "idle_actions": [action for action in actions if action.verdict == "idle" and not action.asked],
        "seconds": {action.event for action in actions if rules.needs_approval([view.outline], f"fire:{action.event}")},
        "requests": approval_queries.find_open().filter(machine=machine, instance=instance.id),
        "run_actions": runs.list_actions(instance) if machine == RUN and may_operate else [],
    }
    if may_operate and not (instance.archived or view.is_system or view.is_mirror):
        context |= {"repairs": list_repairs(instance, seen.waits), "resume": ResumeForm("resume", view, instance)}
    return context


def _explain_events(engine: RedactedEngine, view: VersionView, seen: Inspection) -> Explanations:
    """Explain the events of the page. Which those are is known only with the instance, so the ones of the last page of
    this machine are asked about in the same round trip; what those leave out takes another one."""
    instance, explanations = seen.instance, seen.explanations
    _events[instance.machine] = [name for name in list_events(view) if name]
    left_out = [name for name in list_events(view, instance.configuration) if name and name not in explanations]
    if left_out and not instance.suspended:
        explanations = explanations | engine.explain_all(instance.machine, instance.id, left_out)
    return explanations


def _load_replay(request: HttpRequest, view: VersionView, instance: Instance, steps: list[Step]) -> Replay:
    """Load what the page shows of the past. A revision of another version is drawn on the diagram of that version."""
    replay = Replay.from_request(request, view, instance, steps)
    if replay.version == view.version:
        return replay
    fold, who = version_view.read_folds(request.GET), str(request.user.pk)
    return replace(replay, view=version_view.load_version(view.machine, replay.version, fold=fold, who=who))


def _list_steps(engine: RedactedEngine, replay: Replay, trail: list[Step], before: int | None) -> list[Step]:
    """List one step more than a page of the history shows, from ``before`` on, or around the revision shown."""
    if before is not None:
        return engine.history(replay.instance.machine, replay.instance.id, limit=STEPS + 1, before=before)
    place = next((place for place, step in enumerate(trail) if replay.at and step.revision == replay.at.revision), 0)
    start = 0 if place < STEPS else place - STEPS // 2
    return trail[start : start + STEPS + 1]


def _draw(replay: Replay, actions: Iterable[EventAction]) -> SafeString:
    if replay.at:
        return draw_step(replay.view, replay.at, replay.other, address=replay.drawing_url)
    return draw_instance(
        replay.view,
        replay.instance,
        {route.id: route.kind for action in actions for route in action.routes},
        actions={route.id: f"event-{action.number}" for action in actions for route in action.routes},
        address=replay.drawing_url,
    )


def _read_before(request: HttpRequest) -> int | None:
    """Read ``?before=<revision>`` for older steps; return -1 if it is not a number."""
    asked = request.GET.get("before", "")
    if not asked:
        return None
    before = parse_number(asked, REVISION_DIGITS)
    return -1 if before is None else before


@answer_form("instance", "fire", "fire", instance="id")
def fire(request: HttpRequest, machine: str, id: str) -> str | HttpResponse:
    """Fire an event, or with ``check`` preview it. What was not done is shown on the page, with the form filled."""
    actor, view = Actor.of(request), _load_form_version(request, machine, id)
    event = request.POST.get("event", "").strip()
    payload, step = view.payload_form(event, None, id_prefix="asked", data=request.POST), KeyedForm(request.POST)
    asked = ActionResult(
        "", f"fire {event}", reverse("signalbox:fire", args=[machine, id]), event=event, form=payload,
        reason=request.POST.get("reason", ""),
    )  # fmt: skip
    if not all([payload.is_valid(), step.is_valid()]):
        return instance_page(request, machine, id, attempt=presenters.explain_mistake(asked))
    given = step.cleaned_data
    try:
        if "check" in request.POST:
            explanation = instances.preview_event(actor, machine, id, event, payload.values())
            result = presenters.show_preview(asked, view, queries.get(actor, machine, id), explanation)
        else:
            after = instances.fire(
                actor, machine, id, event, payload.values(), expect=given["expect"], reason=given["reason"],
                key=key_of_content(given["key"], request.POST), shows=False,
            )  # fmt: skip
            return describe_step(event, after)
    except ApprovalNeeded:
        raise
    except errors.SignalboxError as error:
        result = presenters.explain_failure(asked, actor, view, id, error, request.POST, payload)
    return instance_page(request, machine, id, attempt=result)


def _load_form_version(request: HttpRequest, machine: str, id: str) -> VersionView:
    """Load the version that the form was made for. For a form that names none, read the instance and load its."""
    if named := parse_number(request.POST.get("version", "")):
        with suppress(errors.LookupFailed):
            return version_view.load_versions({machine: named})[machine]
    return version_view.load_version(machine, queries.get(Actor.of(request), machine, id).version)


def describe_step(event: str, after: Instance) -> str:
    """Describe the result of a step in one line."""
    before = after.outcome.before if after.outcome else []
    moved = f"stays in {after.state}" if before == after.configuration else f"{', '.join(before)} → {after.state}"
    if after.outcome and after.outcome.replayed:
        return f"{event} was already applied: now in {after.state}, revision {after.revision}"
    return f"{event}: {moved}, revision {after.revision}{presenters.describe_durability(after)}"


def draw_step(
    view: VersionView, step: Step, other: Step | None = None, *, address: Address | None = None
) -> SafeString:
    """Highlight the result of a step and the transitions it took. The result of ``other`` gets a dashed frame."""
    overlay, lit = Overlay(), find_state_parts(view, step.configuration)
    overlay.highlight(view, step.configuration, step.transitions)
    if address:
        link_folds(view, overlay, address)
    for part in find_state_parts(view, other.configuration) if other else ():
        if part not in lit:
            overlay.mark(part, "compared")
    return overlay.draw_on(view.svg)


MAX_ANCESTORS = 8
MAX_DEPTH = 4  # generations below the instance
MAX_KIN = 60  # descendants read for one page

Key = tuple[str, str]


@dataclass(slots=True)
class Kin:
    """Holds an instance of the tree. ``states`` is empty and ``gone`` is set where it cannot be read any more.

    ``invoke``: what its parent calls it; ``more``: children that are not shown; ``here``: the instance of the page.
    """

    machine: str
    id: str
    invoke: str = ""
    states: list[str] = field(default_factory=list)
    done: bool = False
    suspended: bool = False
    gone: bool = False
    here: bool = False
    more: int = 0
    children: list[Kin] = field(default_factory=list)

    def fill(self, instance: Instance) -> None:
        """Take over where the instance stands."""
        self.states = list(instance.configuration)
        self.done, self.suspended = instance.done, bool(instance.suspended)


@dataclass(frozen=True, slots=True)
class Family:
    """Holds the tree from the highest ancestor shown. ``cut_above``: there are further ancestors; ``cut_below``:
    there are further descendants."""

    root: Kin
    cut_above: bool
    cut_below: bool
    size: int


def load_family(engine: RedactedEngine, instance: Instance) -> Family | None:
    """Read the tree around an instance, as far as the person sees its machines; None for one without kin.

    It costs a round trip for each ancestor, and one for each machine of a generation below.
    """
    if not instance.parent and not instance.children:
        return None
    here = Kin(instance.machine, instance.id, here=True)
    here.fill(instance)
    size, cut_below = _add_descendants(engine, here, instance)
    root, above, cut_above = here, instance, False
    seen = {(instance.machine, instance.id)}
    for _ in range(MAX_ANCESTORS):
        key = _find_parent(above)
        if key is None or key in seen:
            break
        seen.add(key)
        parent = Kin(*key, children=[root])
        read = _read(engine, [key]).get(key)
        size, root = size + 1, parent
        if read is None:
            parent.gone = True
            break
        parent.fill(read)
        above = read
        root.children[0].invoke = _find_invoke(read, root.children[0])
        parent.more = max(0, len(above.children) - 1)
    else:
        cut_above = _find_parent(above) is not None
    return Family(root, cut_above, cut_below, size)


def _add_descendants(engine: RedactedEngine, here: Kin, instance: Instance) -> tuple[int, bool]:
    """Add the generations below, one after the other; return how many instances, and whether some are left out."""
    size, cut = 1, False
    seen = {(here.machine, here.id)}
    generation = [(here, instance)]
    for depth in range(MAX_DEPTH + 1):
        born: dict[Key, Kin] = {}
        for parent, read in generation:
            for invoke, key in _list_children(read):
                if key in seen:
                    continue
                if depth == MAX_DEPTH or size >= MAX_KIN:
                    parent.more, cut = parent.more + 1, True
                    continue
                seen.add(key)
                born[key] = Kin(*key, invoke=invoke)
                parent.children.append(born[key])
                size += 1
        found = _read(engine, list(born))
        generation = []
        for key, kin in born.items():
            if (read_child := found.get(key)) is None:
                kin.gone = True
            else:
                kin.fill(read_child)
                generation.append((kin, read_child))
    return size, cut


def _read(engine: RedactedEngine, keys: list[Key]) -> dict[Key, Instance]:
    """Read instances, those of a machine in one round trip; those that are gone are left out."""
    found: dict[Key, Instance] = {}
    for machine in dict.fromkeys(machine for machine, _ in keys):
        ids = [id for name, id in keys if name == machine]
        try:
            answers = engine.get_many(machine, ids)
        except SignalboxError:
            continue
        found |= {(machine, one.id): one for one in answers if isinstance(one, Instance)}
    return found


def _find_parent(instance: Instance) -> Key | None:
    return (instance.parent["machine"], instance.parent["id"]) if instance.parent else None


def _list_children(instance: Instance) -> Iterator[tuple[str, Key]]:
    for invoke, child in instance.children.items():
        yield invoke, (child["machine"], child["id"])


def _find_invoke(parent: Instance, child: Kin) -> str:
    return next((invoke for invoke, key in _list_children(parent) if key == (child.machine, child.id)), "")
