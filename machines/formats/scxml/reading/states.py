"""Reads <state>, <parallel>, <final> and <history>."""

from __future__ import annotations

from typing import Any

from machines.formats.javascript.scope import Action
from machines.formats.scxml.elements import OURS, SCXML, Element

from . import content, data, sends, timers, transitions
from .chart import EMPTY, Chart, more, value_of
from .invokes import read_invokes
from .survey import STATES

_BEHAVIOUR = ("onentry", "onexit", "transition", "invoke", "datamodel")
_ALLOWED = {
    "scxml": ("state", "parallel", "final", "initial", "script", *_BEHAVIOUR),
    "state": ("state", "parallel", "final", "history", "initial", *_BEHAVIOUR),
    "parallel": ("state", "parallel", "history", *_BEHAVIOUR),
    "final": ("onentry", "onexit", "donedata"),
    "history": ("transition",),
}


def read_states(chart: Chart, parent: Element) -> dict[str, Any]:
    check_children(chart, parent)
    return {chart.survey.names[child]: _read(chart, child) for child in parent.all(*STATES)}


def check_children(chart: Chart, parent: Element) -> None:
    for child in parent.children:
        if child.space == OURS or (child.space in (SCXML, "") and child.name in _ALLOWED[parent.name]):
            continue
        if child.space in (SCXML, ""):
            chart.refuse(child, f"<{child.name[:60]}> has no meaning inside <{parent.name}>")
        else:
            chart.report.add("SB221", child.where, f"<{child.name[:60]}> of another namespace was left out")


def _read(chart: Chart, element: Element) -> dict[str, Any]:
    if element.name == "history":
        return _history(chart, element)
    body: dict[str, Any] = {}
    if element.name in ("parallel", "final"):
        body["type"] = element.name
    initial = read_initial(chart, element, [])
    if initial is not None:
        body["initial"] = initial
    body |= behaviour(chart, element) | more(chart, element, "description", "tags", "sla", "meta")
    inside = read_states(chart, element)
    return body | {"states": inside} if inside else body


def behaviour(chart: Chart, element: Element) -> dict[str, Any]:
    """Return what a state does, and on which events. The document as a whole may do more than SCXML allows."""
    entry = _entry(chart, element)
    exit = content.read_blocks(chart, element.all("onexit"))
    on, always, timed = transitions.read_transitions(chart, element)
    parts = {
        "entry": transitions.unlist(entry) if entry else None,
        "exit": transitions.unlist(exit) if exit else None,
        "invoke": _one(read_invokes(chart, element)),
        "on": on,
        "after": timers.read_after(chart, element, timed),
        "always": _one(always),
        "output": _output(chart, element),
    }
    return {key: part for key, part in parts.items() if part not in (None, [], {}, EMPTY)}


def _one(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 and found[0] else found


def _entry(chart: Chart, element: Element) -> list[Action]:
    late = data.late_values(chart, element)
    own = content.read_blocks(chart, element.all("onentry"))
    return [*late, {"block": own}] if late and own and "block" not in own[0] else [*late, *own]


def read_initial(chart: Chart, element: Element, before: list[Action]) -> Any:
    """Return the initial state of a compound state or of the document.

    ``before``: actions that run on the way, before all others.
    """
    inner = list(element.all("state", "parallel", "final"))
    if element.name not in ("scxml", "state") or not inner or inner[0] not in chart.survey.names:
        return None
    actions = list(before)
    pseudo = element.first("initial")
    named: Any = transitions.write_target(chart.survey.names[inner[0]])
    if pseudo is not None:
        transition = pseudo.first("transition")
        if transition is None or not transition.get("target"):
            chart.refuse(pseudo, "<initial> needs a <transition> with a target")
        else:
            named = transitions.read_targets(chart, transition, "target", transition.get("target") or "")
            own = content.read(chart, transition.children)
            actions += [{"block": own}] if own and before else own
        if element.get("initial") is not None:
            chart.refuse(pseudo, '<initial> and the attribute "initial" exclude each other')
    elif element.get("initial"):
        named = transitions.read_targets(chart, element, "initial", element.get("initial") or "")
    if actions:
        return {"target": named, "actions": transitions.unlist(actions)}
    return named if isinstance(named, str) else {"target": named}


def _history(chart: Chart, element: Element) -> dict[str, Any]:
    check_children(chart, element)
    body: dict[str, Any] = {"type": "history"}
    if element.get("type") == "deep":
        body["history"] = "deep"
    transition = element.first("transition")
    if transition is None or not transition.get("target"):
        return body
    body |= more(chart, element, "description", "tags", "meta")
    target = transitions.read_targets(chart, transition, "target", transition.get("target") or "")
    actions = content.read(chart, transition.children)
    body["target"] = {"target": target, "actions": transitions.unlist(actions)} if actions else target
    return body


def _output(chart: Chart, element: Element) -> Any:
    donedata = element.first("donedata") if element.name == "final" else None
    if donedata is None:
        return None
    inner = donedata.first("content")
    if inner is not None:
        return value_of(sends.content_of(chart, inner))
    return value_of(dict(sends.parameters(chart, donedata)))
