"""Says an event of a history in the words of the diagram: ``after 45 s`` for ``after.t14``, ``error of pack``.

The engine's own events have names that no person chose. The label of the transition on the diagram says what they are,
and so does a history.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from machines.engine.definitions import InvokeOutline, Outline, StateOutline
from machines.engine.definitions.reading.transitions import make_default_id

from .layout.labels import event_text

STEPS = {
    "(create)": "created",
    "(edit)": "data edited",
    "(force)": "state forced",
    "(reset)": "reset",
    "(retry)": "job retried",
    "(skip)": "job skipped",
    "(cancel)": "job cancelled",
    "(suspend)": "suspended",
    "(resume)": "resumed",
    "(migrate)": "moved to another version",
}
"""Steps that are no event, by the name that the history has for them."""
ERRORS = {"error.execution": "error of an action", "error.communication": "error of a message"}
TIMER, ERROR = "after.", "error.invoke."


class EventWords:
    """Says the events of one version in words. Events that people and programs send keep their name."""

    def __init__(self, outline: Outline | None = None) -> None:
        """Name events. ``outline``: of the version that an instance had at the step; None where it is not known."""
        self._words = {} if outline is None else dict(_list_words(outline))

    def describe(self, event: str, payload: Mapping[str, Any] | None = None) -> str:
        """Return the words for an event. ``payload``: of the step; a move names the version before it there."""
        if event == "(migrate)" and payload and isinstance(payload.get("from"), int):
            return f"moved from version {payload['from']}"
        return self._words.get(event) or STEPS.get(event) or _describe_unknown(event)


def _list_words(outline: Outline) -> Iterator[tuple[str, str]]:
    """Yield the engine's own events that the version listens for, each with its words."""
    timers = [(event, *found) for event, *found in _list_timers(outline)]
    delays = [text for _, text, _ in timers]
    for event, text, state in timers:
        yield event, f"{text} in {state}" if delays.count(text) > 1 else text
    for state in outline.states:
        for invoke in state.invokes:
            yield f"{ERROR}{invoke.id}", f"error of {_name(invoke, state)}"
        for transition in state.transitions:
            if transition.cause in ("done", "state done") and len(transition.events) == 1:
                yield transition.events[0], event_text(transition, state)


def _list_timers(outline: Outline) -> Iterator[tuple[str, str, str]]:
    """Yield each timer's event, its words and its state, once."""
    seen: set[str] = set()
    for state in outline.states:
        for transition in state.transitions:
            if transition.cause == "after" and not seen.issuperset(transition.events):
                seen.update(transition.events)
                for event in transition.events:
                    yield event, event_text(transition, state), state.name


def _name(invoke: InvokeOutline, state: StateOutline) -> str:
    """Return the id of an invoke, or what it runs if the id is only the name of its state."""
    if invoke.id in (state.name, make_default_id(state.name, 0)):
        return invoke.machine or invoke.src
    return invoke.id


def _describe_unknown(event: str) -> str:
    """Return words for an event of the engine that the version does not listen for, or of a version that is gone."""
    if event in ERRORS:
        return ERRORS[event]
    for prefix, words in (("done.invoke.", "done {}"), ("done.state.", "done {}"), (ERROR, "error of {}")):
        if event.startswith(prefix):
            return words.format(event.removeprefix(prefix))
    return "timer" if event.startswith(TIMER) else event
