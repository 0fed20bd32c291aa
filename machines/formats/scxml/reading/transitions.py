"""Reads <transition>: descriptors, targets, guards, and the order in which transitions are tried."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from machines.engine import limits
from machines.formats.javascript.scope import Action
from machines.formats.scxml.elements import OURS, Element

from . import content, timers
from .chart import Chart, more

Transition = dict[str, Any]
MAX_ORDERED = 20_000  # transitions of one state, each counted once for every descriptor


@dataclass(frozen=True, slots=True)
class Read:
    """``events`` are descriptors without a closing ``.*``: as in SCXML, a name matches all that begin with it."""

    events: tuple[str, ...]
    body: Transition | str


def read_transitions(chart: Chart, state: Element) -> tuple[dict[str, Any], list[Any], list[tuple[Element, Any]]]:
    """Return the transitions for ``on``, those for ``always``, and those that wait for timers of the state."""
    inner = {chart.survey.names[one] for one in states_below(chart, state)}
    found = [(element, _read(chart, state, element, inner)) for element in state.all("transition")]
    timed = [(element, transition.body) for element, transition in found if timers.is_part(element)]
    others = [transition for element, transition in found if not timers.is_part(element)]
    waiting = [transition for transition in others if transition.events]
    return by_event(chart, state, waiting), [one.body for one in others if not one.events], timed


def _read(chart: Chart, state: Element, element: Element, inner: set[str]) -> Read:
    """Read a transition. ``inner``: the names of the states inside the transition's own state."""
    body: Transition = {}
    targets = _targets(chart, element)
    if targets:
        body["target"] = targets[0] if len(targets) == 1 else targets
        if _reenters(chart, state, element, inner):
            body["reenter"] = True
    guard, effects = chart.guard_and_effects(element)
    if effects:
        chart.warn(element, "what this changes is changed only when the transition is taken", "cond")
    if guard is not None:
        body["guard"] = guard
    actions = [*effects, *content.read(chart, element.children)]
    if actions:
        body["actions"] = unlist(actions)
    body |= more(chart, element, "description", "allow", "meta")
    short = list(body) == ["target"] and isinstance(body["target"], str)
    return Read(_descriptors(chart, element), body["target"] if short else body)


def unlist(actions: list[Action]) -> Any:
    """Return one action as it is, and several as a list."""
    return actions[0] if len(actions) == 1 else actions


def _descriptors(chart: Chart, element: Element) -> tuple[str, ...]:
    found: list[str] = []
    for written in (element.get("event") or "").split():
        name = "*" if written in ("*", ".*") else written.removesuffix("*").removesuffix(".") or written
        if name != "*" and (why := limits.check_event_name(name)) is not None:
            chart.refuse(element, f"the event {written[:60]!r} {why}", "event")
        elif name not in found:
            found.append(_name_end(chart, name))
    return tuple(found)


def _name_end(chart: Chart, event: str) -> str:
    """Return the name of the event for the end of a state.

    SCXML uses the state's id; here it is the state's name, with characters that an event cannot have replaced.
    """
    id = event.removeprefix("done.state.")
    name = chart.survey.by_id.get(id, id)
    if id == event or name == id:
        return event
    return "done.state." + re.sub(r"[\s*\x00-\x1f\x7f-\x9f]+", "_", name)[: limits.MAX_INVOKE_ID]


def _targets(chart: Chart, element: Element) -> list[str]:
    found = read_targets(chart, element, "target", element.get("target") or "")
    return [found] if isinstance(found, str) else found


def read_targets(chart: Chart, element: Element, attribute: str, ids: str) -> Any:
    """Return one target, or several as a list."""
    found = []
    for id in ids.split():
        if id in chart.survey.by_id:
            found.append(_write(chart, chart.survey.by_id[id]))
        else:
            chart.report.add("SB144", partial(element.where, attribute), f'there is no state "{id[:80]}"')
    return found[0] if len(found) == 1 else found


def _write(chart: Chart, name: str) -> str:
    """Write a target. If it is the machine itself, it needs a #."""
    return f"#{name}" if name == chart.survey.names.get(chart.survey.body) else write_target(name)


def write_target(name: str) -> str:
    """Write a state's name as a target, with # if it would be read as a path."""
    return f"#{name}" if "." in name or name.startswith("#") else name


def _reenters(chart: Chart, state: Element, element: Element, inner: set[str]) -> bool:
    """Return whether a transition leaves its own state although all its targets are in that state.

    False for any other transition.
    """
    targets = {chart.survey.by_id.get(id) for id in (element.get("target") or "").split()}
    # A history state anywhere may stand for the state itself, or for one inside.
    if state is chart.root or not targets <= inner | {chart.survey.names.get(state)} | chart.survey.histories:
        return False
    said = element.get("reenter", OURS)
    if said in ("true", "false"):
        return said == "true"
    # type="internal" counts for a compound state and targets properly inside it (3.5 of the recommendation)
    return element.get("type") != "internal" or state.name == "parallel" or not targets <= inner


def states_below(chart: Chart, state: Element) -> list[Element]:
    found = []
    for child in state.children:
        if child in chart.survey.names:
            found += [child, *states_below(chart, child)]
    return found


# -- order --------------------------------------------------------------------------------------------


def by_event(chart: Chart, state: Element, transitions: list[Read]) -> dict[str, Any]:
    """Return ``on``: the transitions of each descriptor.

    The first transition that matches and whose guard holds is taken, in document order. Two descriptors can match one
    event. If listing each transition only under its own descriptor would change the order, the narrower descriptor also
    gets the transitions of the wider ones.
    """
    places: dict[str, list[int]] = {}
    for place, transition in enumerate(transitions):
        for event in transition.events:
            places.setdefault(event, []).append(place)
    order = {event: index for index, event in enumerate(places)}
    if not all(_in_order(places, event, order) for event in places):
        places = _merge(places)
        if sum(map(len, places.values())) > MAX_ORDERED:
            message = f"more than {MAX_ORDERED} transitions to keep in order, for descriptors that match one event"
            chart.refuse(state, message, code="SB111")
            return {}
    return {event: _one_or_many([transitions[place].body for place in found]) for event, found in places.items()}


def _covering(places: dict[str, list[int]], event: str) -> list[str]:
    """Return the descriptors that match an event of that name: itself, its prefixes, and *."""
    words = event.split(".")
    wider = {"*", *(".".join(words[:end]) for end in range(1, len(words) + 1))}
    return [name for name in wider if name in places]


def _in_order(places: dict[str, list[int]], event: str, order: dict[str, int]) -> bool:
    """Return whether an event's transitions are tried in document order when the descriptors are tried in theirs."""
    asked = [place for name in sorted(_covering(places, event), key=order.__getitem__) for place in places[name]]
    return list(dict.fromkeys(asked)) == sorted(set(asked))


def _merge(places: dict[str, list[int]]) -> dict[str, list[int]]:
    narrow_first = sorted(places, key=lambda event: (event == "*", -event.count(".")))
    return {
        event: sorted({place for name in _covering(places, event) for place in places[name]}) for event in narrow_first
    }


def _one_or_many(bodies: list[Any]) -> Any:
    return bodies[0] if len(bodies) == 1 else bodies
