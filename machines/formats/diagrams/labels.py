"""What is written on states and arrows, in the order and spelling of UML. Not yet escaped for any syntax."""

from __future__ import annotations

from machines.diagrams.layout.text import drawable
from machines.engine.definitions import InvokeOutline, Outline, StateOutline, TransitionOutline

_ENDINGS = {"done": "done.invoke.", "error": "error.invoke."}


def state_lines(state: StateOutline, outline: Outline) -> list[str]:
    """The name; then entry, exit and work; then what happens without leaving the state."""
    lines = [state.name]
    lines += [f"entry / {action}" for action in state.entry]
    lines += [f"exit / {action}" for action in state.exit]
    lines += [f"do / {work_text(invoke)}" for invoke in state.invokes]
    lines += [f"output / {state.output}"] if state.output else []
    for transition in state.transitions:
        if is_internal(transition, outline):
            lines.append(" ".join(arrow_lines(transition)))
    return [clean(line) for line in lines]


def arrow_lines(transition: TransitionOutline) -> list[str]:
    """``event [guard]``, and an action on each further line."""
    guard = f"[{transition.guard_text}]" if transition.guard_text else ""
    first = f"{event_text(transition)} {guard}".strip()
    lines = [first, *(f"/ {action}" for action in transition.actions)]
    return [clean(line) for line in lines if line]


def is_internal(transition: TransitionOutline, outline: Outline) -> bool:
    """Whether it stays in a state without anything inside: UML writes such a transition into the state."""
    if not transition.targets:
        return True
    source = outline.state(transition.source)
    stays = transition.targets == (transition.source,) and not transition.reenter
    return stays and source is not None and source.is_leaf


def event_text(transition: TransitionOutline) -> str:
    """The events as people call them: work that ends is ``done`` or ``error``, a timer is ``after 30 s``."""
    if transition.cause == "after":
        return f"after {transition.delay}".strip()
    if transition.cause == "state done":
        return "done"
    return ", ".join(_event(event, transition) for event in transition.events)


def work_text(invoke: InvokeOutline) -> str:
    return f"machine {invoke.machine}" if invoke.machine else invoke.src


def clean(text: str) -> str:
    """On one line, with nothing in it that no document may hold."""
    return " ".join(drawable(text).split())


def _event(event: str, transition: TransitionOutline) -> str:
    for word, prefix in _ENDINGS.items():
        if event.startswith(prefix):
            id = event.removeprefix(prefix)
            return word if id == transition.source else f"{word} {id}"
    return event
