"""Presents each event of an instance as a button with its form, and whether it would be accepted now.

Before anyone fires, each event is explained with an empty payload (``Engine.explain``, nothing is written). What
depends on the payload is reported as such; what no payload can change is reported as final. The result is that of the
person who looks: a transition that is reserved for other groups is blocked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dashboard.shared.version_view import VersionView
from machines.catalog.mirrors import row_methods
from machines.engine import Because, Candidate, Explanation, Instance, errors, expressions
from machines.instances.forms import TypedForm
from machines.people.errors import GuessedTooOften
from machines.people.transition_groups import Groups, is_allowed

MAX_EXPLAINED = 60  # events explained on one page

Explanations = Mapping[str, Explanation | errors.SignalboxError]


@dataclass(frozen=True, slots=True)
class Route:
    """Holds one candidate transition as an operator reads it.

    ``kind``: holds, fails, depends, error, later (only if none above applies), outdone (a transition of another
    region leaves the same states), or denied (reserved for groups that the person is not in). ``source``: the source
    state, if there are several to tell apart. ``sure``: it would be taken with any payload.
    """

    id: str
    kind: str
    target: str | None
    guard: str | None
    description: str
    why: list[str] = field(default_factory=list)
    source: str = ""
    sure: bool = False


@dataclass(frozen=True, slots=True)
class EventAction:
    """Holds an event with its form.

    ``verdict``: open, depends (on the payload), refused (with any payload), held (suspended), idle (not accepted in
    this state). ``refusal``: the refusal in words; ``asked``: it was just submitted; ``number``: its place on the page.
    """

    event: str
    number: int
    description: str
    form: TypedForm
    asked: bool = False
    verdict: str = "depends"
    routes: list[Route] = field(default_factory=list)
    refusal: str = ""


def list_event_actions(
    explained: Explanations,
    view: VersionView,
    instance: Instance,
    submitted: tuple[str, TypedForm] | None = None,
    *,
    groups: Groups = None,
) -> list[EventAction]:
    """List events of the current state first, then the others. ``explained``: what ``list_events`` would do;
    ``submitted``: an event whose form stays filled; ``groups``: those of the person, None if they may take any
    transition."""
    names = list_events(view, instance.configuration)
    actions = [_make_action(view, instance, name, number, submitted) for number, name in enumerate(names)]
    return [_explain_action(explained.get(action.event), view, instance, action, groups) for action in actions]


def judge_methods(actions: Iterable[EventAction], view: VersionView, id: str, user: Any) -> list[EventAction]:
    """Judge events that call methods of a row: by its state, its conditions and the permission of each method. Of a
    process without the model they stay as declared."""
    found = list(actions)
    refusals = row_methods().find_refusals(view.machine, id, [one.event for one in found], user)
    return [_judge_method(one, refusals.get(one.event)) for one in found]


def _judge_method(action: EventAction, refusal: str | None) -> EventAction:
    routes = [replace(route, guard=None, kind="holds", why=[]) for route in action.routes]
    if refusal is None:
        return replace(action, routes=routes)
    if not refusal:
        return replace(action, verdict="open", routes=routes, refusal="")
    verdict = "idle" if action.verdict == "idle" else "refused"
    return replace(action, verdict=verdict, routes=[], refusal=f"{refusal[0].upper()}{refusal[1:]}.")


def list_events(view: VersionView, configuration: Iterable[str] = ()) -> list[str]:
    """List the events that a page explains, those of these states first; "" stands for a name pattern."""
    return view.event_names(configuration)[:MAX_EXPLAINED]


def _make_action(
    view: VersionView, instance: Instance, name: str, number: int, submitted: tuple[str, TypedForm] | None
) -> EventAction:
    description = view.event_description(name) if name else "This state accepts events by a name pattern."
    if submitted and submitted[0] == name:
        return EventAction(name, number, description, submitted[1], asked=True)
    return EventAction(
        name, number, description, view.payload_form(name, instance.configuration, id_prefix=f"e{number}")
    )


def _explain_action(
    explanation: Explanation | errors.SignalboxError | None,
    view: VersionView,
    instance: Instance,
    action: EventAction,
    groups: Groups,
) -> EventAction:
    if not action.event:
        return action
    if instance.suspended or isinstance(explanation, errors.Suspended):  # the latter: since we looked
        return _judge_suspended(view, instance, action)
    if explanation is None:
        return action
    # A required field, so that the empty payload does not reach the guards; or they read what is hidden, too often.
    if isinstance(explanation, errors.BadPayload | GuessedTooOften):
        return _judge_unfilled(view, instance, action, groups)
    if isinstance(explanation, errors.SignalboxError):
        raise explanation
    routes = list(list_routes(view, explanation, groups=groups))
    return replace(
        action, verdict=_judge_availability(explanation, routes), routes=routes, refusal=_explain_refusal(explanation)
    )


def _judge_unfilled(view: VersionView, instance: Instance, action: EventAction, groups: Groups) -> EventAction:
    """Judge an event whose payload the engine did not accept, by the events that the active states accept."""
    listened = view.accepted_events(instance.configuration)
    if not instance.done and (action.event in listened or "" in listened):
        heard = list(view.transitions_on(action.event, instance.configuration))
        if heard and not any(is_allowed(groups, transition.allow) for transition in heard):
            needed = dict.fromkeys(group for transition in heard for group in transition.allow)
            return replace(action, verdict="refused", refusal=f"Blocked: {describe_groups(needed)}.")
        return action
    return replace(action, verdict="idle", refusal="" if instance.done else f"Not accepted in {instance.state}.")


def _judge_suspended(view: VersionView, instance: Instance, action: EventAction) -> EventAction:
    """Judge an event of a suspended instance, by the events that the active states accept."""
    here = action.event in view.accepted_events(instance.configuration)
    return replace(action, verdict="held" if here else "idle", refusal="The instance is suspended. Resume it first.")


def list_routes(
    view: VersionView, explanation: Explanation, *, payload_known: bool = False, groups: Groups = None
) -> Iterator[Route]:
    """Yield the candidates in document order. With ``payload_known`` no result depends on the payload any more.
    ``groups``: those of the person, None if they may take any transition."""
    for candidate in explanation.candidates:
        kind = _name_kind(candidate, payload_known)
        why = [str(because) for because in candidate.because] if kind in ("fails", "error") or payload_known else []
        if kind == "holds" and candidate.guard and not payload_known:
            why = [str(because) for because in candidate.because if not _reads_event(because)]
        sure = kind == "holds"
        if kind in ("holds", "depends", "later") and not is_allowed(groups, candidate.allow):
            kind, why = "denied", [*why, describe_groups(candidate.allow)]
        transition = view.transition(candidate.id)
        source = transition.source if transition and view.is_nested and transition.source != view.outline.root else ""
        described = transition.description if transition else ""
        yield Route(candidate.id, kind, candidate.target, candidate.guard, described, why, source, sure)


def _name_kind(candidate: Candidate, payload_known: bool) -> str:
    if candidate.verdict in ("not reached", "pre-empted"):
        return "later" if candidate.verdict == "not reached" else "outdone"
    if not payload_known and _depends(candidate):
        return "depends"
    return {"taken": "holds", "guard": "fails"}.get(candidate.verdict, "error")


def _depends(candidate: Candidate) -> bool:
    """Return whether another payload could change the result: the guard read something of the event."""
    if not candidate.guard:
        return False
    if candidate.because:
        return any(_reads_event(because) for because in candidate.because)
    return _mentions_event(candidate.guard)


def _reads_event(because: Because) -> bool:
    return any(name.split(".")[0].split("[")[0] == "event" for name in because.values) or _mentions_event(because.text)


def _mentions_event(text: str) -> bool:
    try:
        return "event" in expressions.references(expressions.parse(text))
    except expressions.ExpressionError:
        return "event" in text


def _judge_availability(explanation: Explanation, routes: list[Route]) -> str:
    if explanation.why in ("no transition", "final", "unknown event"):
        return "idle"
    kinds = {route.kind for route in routes}
    denied = next((place for place, route in enumerate(routes) if route.kind == "denied" and route.sure), None)
    if denied is not None:  # the engine refuses the event, unless a transition before this one is taken
        return "depends" if any(route.kind == "depends" for route in routes[:denied]) else "refused"
    if "holds" in kinds:
        return "open"
    return "depends" if kinds & {"depends", "later", "outdone"} else "refused"


def describe_groups(groups: Iterable[str]) -> str:
    """Return ``needs the group board or treasury``."""
    return f"needs the group {' or '.join(groups)}"


def _explain_refusal(explanation: Explanation) -> str:
    return "" if explanation.taken else str(explanation)
