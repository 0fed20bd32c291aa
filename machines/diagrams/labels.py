"""What is written on states and edges: a few short lines to read at a glance, and the full text for the tooltip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .text import columns, drawable, shorten, wrap

if TYPE_CHECKING:
    from machines.engine.definitions import InvokeOutline, StateOutline, TransitionOutline

NAME_COLUMNS, NAME_LINES = 24, 3
DETAIL_COLUMNS, DETAIL_LINES = 34, 6
EVENT_COLUMNS = 26
GUARD_COLUMNS, GUARD_LINES = 30, 3
ACTION_COLUMNS, ACTION_LINES = 30, 6
DONE, ERROR = "done.invoke.", "error.invoke."


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a label. ``kind`` is the class it is drawn with."""

    kind: str
    text: str

    @property
    def columns(self) -> int:
        return columns(self.text)


def state_name(state: StateOutline) -> list[str]:
    return wrap(state.name, NAME_COLUMNS, NAME_LINES)


def state_details(state: StateOutline) -> list[Line]:
    """Entry and exit actions and the work it asks for, a line each."""
    texts = [f"entry / {action}" for action in state.entry]
    texts += [f"exit / {action}" for action in state.exit]
    texts += [f"do / {invoke.src}" for invoke in state.invokes]
    return [Line("detail", text) for text in _limited(texts, DETAIL_COLUMNS, DETAIL_LINES)]


def state_title(state: StateOutline) -> str:
    parts = [state.name, state.description, f"tags: {', '.join(state.tags)}" if state.tags else ""]
    parts += [f"entry / {action}" for action in state.entry]
    parts += [f"exit / {action}" for action in state.exit]
    parts += [_work(invoke) for invoke in state.invokes]
    return _title(parts)


def transition_lines(transition: TransitionOutline, state: StateOutline) -> list[Line]:
    """``event``, ``[guard]`` and ``/ action`` in the order and spelling of UML."""
    lines = [Line("event", shorten(event_text(transition), EVENT_COLUMNS))]
    lines += [Line("guard", text) for text in wrap(guard_text(transition, state), GUARD_COLUMNS, GUARD_LINES, " ")]
    actions = [f"/ {action}" for action in transition.actions]
    return lines + [Line("action", text) for text in _limited(actions, ACTION_COLUMNS, ACTION_LINES, each=2)]


def transition_title(transition: TransitionOutline, state: StateOutline) -> str:
    target = f"{state.name} → {transition.target}" if transition.target else f"{state.name}, not left"
    actions = [f"/ {action}" for action in transition.actions]
    return _title(
        [
            f"{transition.id}: {event_text(transition)}",
            target,
            transition.description,
            guard_text(transition, state),
            *actions,
        ]
    )


def guard_text(transition: TransitionOutline, state: StateOutline) -> str:
    """``[else]`` where the same events are guarded by transitions before this one."""
    if transition.guard_text:
        return f"[{transition.guard_text}]"
    earlier = state.transitions[: state.transitions.index(transition)]
    guarded = any(other.guard_text and other.events == transition.events for other in earlier)
    return "[else]" if guarded else ""


def event_text(transition: TransitionOutline) -> str:
    """The events as people call them: work that ends is ``done`` or ``error``, with its id where that says more."""
    return ", ".join(_event(event, transition.source) for event in transition.events) or "always"


def transition_kind(transition: TransitionOutline) -> str:
    """The further classes of an edge."""
    kinds = [] if transition.target else ["internal"]
    if not transition.events:
        kinds.append("always")
    elif all(event.startswith(DONE) for event in transition.events):
        kinds.append("done")
    elif all(event.startswith(ERROR) for event in transition.events):
        kinds.append("error")
    return " ".join(kinds)


def _event(event: str, source: str) -> str:
    for prefix, word in ((DONE, "done"), (ERROR, "error")):
        if event.startswith(prefix):
            id = event.removeprefix(prefix)
            return word if id == source else f"{word} {id}"
    return event


def _work(invoke: InvokeOutline) -> str:
    return f"do / {invoke.src}, by the queue {invoke.queue}"


def _limited(texts: list[str], width: int, lines: int, each: int = 1) -> list[str]:
    """Up to ``each`` lines for a text and ``lines`` for all, and the number of those left out on the last one."""
    found: list[str] = []
    for place, text in enumerate(texts):
        wrapped = wrap(text, width, each, indent="  ")
        left = len(texts) - place
        if len(found) + len(wrapped) + (1 if left > 1 else 0) > lines:
            return [*found, f"+ {left} more"]
        found += wrapped
    return found


def _title(parts: list[str]) -> str:
    return "\n".join(drawable(part) for part in parts if part)
