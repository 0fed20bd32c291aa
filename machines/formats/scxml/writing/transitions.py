"""Writes the transitions of a definition, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterator

from machines.engine.definitions.checks.references import Payloads
from machines.engine.definitions.model import State, Transition

from .actions import delay, write_actions
from .context import Writing, more
from .javascript import Translator
from .markup import Tag


def write_transitions(writing: Writing, state: State) -> list[Tag]:
    payloads = Payloads(writing.machine)
    found = []
    for transition in state.all_transitions:
        writing.payload = payloads.of(transition)
        found.append(_transition(writing, state, transition))
    writing.payload = None
    return found


def _transition(writing: Writing, state: State, transition: Transition) -> Tag:
    attributes: dict[str, str | None] = {}
    if transition.events:
        attributes["event"] = " ".join(_event(writing, event) for event in transition.events)
    if transition.guard:
        translator = Translator(writing, transition.guard.path)
        attributes["cond"] = translator.condition(transition.guard.expression.tree).text
    attributes |= _target(writing, state, transition)
    if transition.cause == "after":
        attributes["sb:after"] = "true"
    found = writing.at(transition.path)
    said = found if isinstance(found, dict) else {}
    described = {key: said[key] for key in ("description", "allow", "meta") if key in said}
    if described:
        writing.ours(transition.path, "descriptions and groups")
    return Tag("transition", attributes, [*more(described), *write_actions(writing, transition.actions)])


def _event(writing: Writing, event: str) -> str:
    base = event.removesuffix(".*")
    return event if base not in writing.events else writing.events[base] + event[len(base) :]


def _target(writing: Writing, state: State, transition: Transition) -> dict[str, str | None]:
    """Write the target of a transition.

    SCXML leaves a state whose transition leads to itself or inside it, unless its type is internal.
    """
    targets, machine = transition.targets, writing.machine
    if not targets:
        return {}
    if targets == (state.name,) and state.kind == "atomic" and not transition.reenter:
        return {}  # the state is not left: the transition only has actions
    found: dict[str, str | None] = {"target": " ".join(writing.ids[name] for name in targets)}
    histories = [name for name in targets if machine.states[name].kind == "history"]
    if transition.reenter or not all(name in histories or machine.contains(state.name, name) for name in targets):
        return found
    if not histories and state.kind == "compound" and state.name not in targets:
        return found | {"type": "internal"}
    message = "SCXML always leaves a state that a transition leads to"
    writing.once("SB224", transition.path, f"{message}; sb:reenter says otherwise, which only Signalbox reads")
    return found | {"sb:reenter": "false"}


def timers(writing: Writing, state: State) -> Iterator[tuple[Tag, Tag]]:
    """Yield the send that starts each timer of a state, and the cancel that ends it."""
    for transition in state.transitions:
        if transition.delay is not None:
            message = "SCXML has no timers of states: in the text, an event that anyone may send stands for each"
            writing.once("SB224", transition.path, message)
            name = writing.events[transition.events[0]]
            attributes: dict[str, str | None] = {"event": name, "id": name}
            attributes |= delay(writing, transition.delay, transition.path) | {"sb:after": "true"}
            yield Tag("send", attributes), Tag("cancel", {"sendid": name, "sb:after": "true"})
