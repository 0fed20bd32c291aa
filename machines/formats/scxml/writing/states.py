"""Writes states with everything inside them."""

from __future__ import annotations

from typing import Any

from machines.engine.definitions.model import Invoke, Start, State, Value
from machines.engine.definitions.report import Path
from machines.formats.scxml.elements import MACHINE, OURS

from .actions import script, write_actions, write_block, write_data
from .context import Writing, compact, more
from .markup import Tag
from .transitions import timers, write_transitions

_FOR_PEOPLE = ("description", "tags", "sla", "meta")


def write_state(writing: Writing, state: State) -> Tag:
    if state.kind == "history":
        return _history(writing, state)
    tag = Tag({"parallel": "parallel", "final": "final"}.get(state.kind, "state"), _names(writing, state))
    if state.root:
        tag.attributes["sb:root"] = "true"
        message = "SCXML has no machine that does things itself: in the text, a state around all others does"
        writing.once("SB224", state.path, message)
    else:
        tag.children += more(_for_people(writing, state.path))
    if state.start and state.kind == "compound":
        tag.children += write_initial(writing, tag, state.start)
    tag.children += _behaviour(writing, state)
    tag.children += [write_state(writing, writing.machine.states[name]) for name in state.children]
    if state.output is not None and state.final:
        tag.children.append(Tag("donedata", children=write_data(writing, state.output, state.path)))
    return tag


def _names(writing: Writing, state: State) -> dict[str, str | None]:
    id = writing.ids[state.name]
    if id == state.name:
        return {"id": id}
    if not state.root:
        writing.report.add("SB223", state.path, f"no id of SCXML: the state is called {id} in the text")
    return {"id": id, "sb:name": None if state.root else state.name}


def _for_people(writing: Writing, path: Path) -> dict[str, Any]:
    body = writing.at(path)
    found = {key: body[key] for key in _FOR_PEOPLE if key in body} if isinstance(body, dict) else {}
    if found:
        writing.ours(path, "descriptions, tags and service levels")
    return found


def write_initial(writing: Writing, tag: Tag, start: Start) -> list[Tag]:
    targets = " ".join(writing.ids[name] for name in start.targets)
    if not start.actions:
        tag.attributes["initial"] = targets
        return []
    return [Tag("initial", children=[Tag("transition", {"target": targets}, write_actions(writing, start.actions))])]


def _behaviour(writing: Writing, state: State) -> list[Tag]:
    found = write_block(writing, "onentry", state.entry)
    clocks = list(timers(writing, state))
    found += [Tag("onentry", children=[start]) for start, _ in clocks]
    found += write_block(writing, "onexit", state.exit)
    found += [Tag("onexit", children=[stop for _, stop in clocks])] if clocks else []
    found += [_invoke(writing, invoke) for invoke in state.invokes]
    return found + write_transitions(writing, state)


def _history(writing: Writing, state: State) -> Tag:
    tag = Tag("history", _names(writing, state) | {"type": "deep" if state.deep else "shallow"})
    tag.children += more(_for_people(writing, state.path))
    if state.start:
        targets = " ".join(writing.ids[name] for name in state.start.targets)
        tag.children.append(Tag("transition", {"target": targets}, write_actions(writing, state.start.actions)))
    return tag


def _invoke(writing: Writing, invoke: Invoke) -> Tag:
    if not invoke.is_machine or invoke.computed:
        return _own_invoke(writing, invoke)
    attributes: dict[str, str | None] = {"type": "scxml", "id": invoke.id}
    if invoke.idlocation:
        writing.ours(invoke.path, "id with a place for it")
        attributes["sb:idlocation"] = writing.variables.get(invoke.idlocation, invoke.idlocation)
    if invoke.autoforward:
        attributes["autoforward"] = "true"
    inside = _parameters(writing, invoke.input, invoke.path)
    if invoke.machine in writing.embedded:
        writing.used.add(invoke.machine)
        inside.append(Tag("content", children=[writing.embedded[invoke.machine]]))
    else:
        attributes["src"] = MACHINE + invoke.machine
        message = "the machine is published on its own: only Signalbox knows what src names"
        writing.once("SB222", invoke.path, message)
    if invoke.finalize:
        inside.insert(0, Tag("finalize", children=write_actions(writing, invoke.finalize)))
    return Tag("invoke", attributes, inside)


def _parameters(writing: Writing, value: Value | None, path: Path) -> list[Tag]:
    if value is None:
        return []
    return [Tag("param", {"name": key, "expr": script(writing, Value(item, ""), path)}) for key, item in value.tree[1:]]


def _own_invoke(writing: Writing, invoke: Invoke) -> Tag:
    """Write work for a handler, or an invoke of a machine whose name is calculated."""
    writing.ours(invoke.path, "work for handlers" if not invoke.is_machine else "calculated machine")
    body = {key: value for key, value in writing.at(invoke.path).items() if key not in ("onDone", "onError", "id")}
    return Tag("invoke", {"type": OURS, "id": invoke.id}, text=compact(body))
