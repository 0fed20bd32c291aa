"""What is written on states and edges: a few short lines to read at a glance, and the full text for the tooltip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from machines.engine.definitions.reading.invokes import make_default_id

from .text import columns, drawable, shorten, wrap

if TYPE_CHECKING:
    from machines.engine.definitions import InvokeOutline, StateOutline, TransitionOutline

NAME_COLUMNS, NAME_LINES = 24, 3
DETAIL_COLUMNS, DETAIL_LINES = 34, 6
EVENT_COLUMNS = 26
GUARD_COLUMNS, GUARD_LINES = 30, 3
ACTION_COLUMNS, ACTION_LINES = 30, 6

CAUSES = {"done": "done", "state done": "done", "error": "error", "after": "after", "always": "always"}
KINDS = {"parallel": "all that stand in it are active together", "final": "the end"}


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a label. ``kind`` is the class it is drawn with; ``mark`` the signs in front of it, if any, with a
    space between; ``more``: there is more than is written."""

    kind: str
    text: str
    mark: str = ""
    more: bool = False

    @property
    def columns(self) -> int:
        return columns(self.text)


def state_name(state: StateOutline) -> list[str]:
    return wrap(state.name, NAME_COLUMNS, NAME_LINES)


def state_details(state: StateOutline) -> list[Line]:
    """List entry and exit actions and the work it asks for, a line each; machines it runs carry the sign of a child."""
    lines = [Line("detail", f"entry / {action}") for action in state.entry]
    lines += [Line("detail", f"exit / {action}") for action in state.exit]
    lines += [_invoke(invoke) for invoke in state.invokes]
    return _limit_lines(lines, DETAIL_COLUMNS, DETAIL_LINES)


def _invoke(invoke: InvokeOutline) -> Line:
    return Line("detail", f"do / {invoke.machine}", "child") if invoke.machine else Line("detail", f"do / {invoke.src}")


def state_title(state: StateOutline) -> str:
    parts = [state.name, state.description, f"tags: {', '.join(state.tags)}" if state.tags else ""]
    parts += [KINDS.get(state.type, "")]
    parts += [f"entry / {action}" for action in state.entry]
    parts += [f"exit / {action}" for action in state.exit]
    parts += [_work(invoke) for invoke in state.invokes]
    return _title(parts)


def history_title(state: StateOutline) -> str:
    inner = "at every depth" if state.history == "deep" else "at its own level"
    return _title([state.name, state.description, f"goes back to where {state.parent} was last, {inner}"])


def transition_lines(transition: TransitionOutline, state: StateOutline) -> list[Line]:
    """Write a transition: ``event``, ``[guard]`` and ``/ action`` in the order and spelling of UML; a timer carries the
    sign of a clock."""
    mark = "clock" if transition.cause == "after" else ""
    lines = [Line("event", shorten(event_text(transition, state), EVENT_COLUMNS), mark)]
    lines += [Line("guard", text) for text in wrap(guard_text(transition, state), GUARD_COLUMNS, GUARD_LINES, " ")]
    actions = [Line("action", f"/ {action}") for action in transition.actions]
    return lines + _limit_lines(actions, ACTION_COLUMNS, ACTION_LINES, each=2)


def short_lines(transition: TransitionOutline, state: StateOutline) -> list[Line]:
    """Return the event alone, with a clock for a timer, a sign for a guard, and one for actions that are not
    written."""
    guard = guard_text(transition, state)
    signs = ["clock"] if transition.cause == "after" else []
    signs += ["else" if guard == ELSE else "condition"] if guard else []
    text = shorten(event_text(transition, state), EVENT_COLUMNS)
    return [Line("event", text, " ".join(signs), more=bool(transition.actions))]


ELSE = "[else]"


def transition_title(transition: TransitionOutline, state: StateOutline) -> str:
    targets = " and ".join(transition.targets)
    target = f"{state.name} → {targets}" if targets else f"{state.name}, not left"
    actions = [f"/ {action}" for action in transition.actions]
    return _title(
        [
            f"{transition.id}: {event_text(transition, state)}",
            target,
            transition.description,
            guard_text(transition, state),
            *actions,
        ]
    )


def guard_text(transition: TransitionOutline, state: StateOutline) -> str:
    """Write the guard, ``[else]`` where the same events are guarded by transitions before this one."""
    if transition.guard_text:
        return f"[{transition.guard_text}]"
    earlier = takewhile(lambda other: other.id != transition.id, state.transitions)
    guarded = any(other.guard_text and other.events == transition.events for other in earlier)
    return ELSE if guarded else ""


def event_text(transition: TransitionOutline, state: StateOutline) -> str:
    """Return the events as people call them: work that ends is ``done`` or ``error``, with its id where that says
    more."""
    if transition.cause == "after":
        return f"after {timer_text(transition, state)}"
    return ", ".join(_event(event, transition.source) for event in transition.events) or "always"


def timer_text(transition: TransitionOutline, state: StateOutline) -> str:
    """Return the delay of a timer; of several transitions that wait for the same one, the first has its text."""
    if transition.delay or transition.cause != "after":
        return transition.delay
    return next((other.delay for other in state.transitions if other.delay and other.events == transition.events), "")


def transition_kind(transition: TransitionOutline) -> str:
    """Return the further classes of an edge."""
    kinds = [] if transition.targets else ["internal"]
    if cause := CAUSES.get(transition.cause):
        kinds.append(cause)
    return " ".join(kinds)


def _event(event: str, source: str) -> str:
    for prefix, word in (("done.invoke.", "done"), ("done.state.", "done"), ("error.invoke.", "error")):
        if event.startswith(prefix):
            id = event.removeprefix(prefix)
            return word if id in (source, make_default_id(source, 0)) else f"{word} {id}"
    return event


def _work(invoke: InvokeOutline) -> str:
    if not invoke.machine:
        return f"do / {invoke.src}, by the queue {invoke.queue}"
    return f"do / {invoke.machine}, a child" + (" that is sent every event" if invoke.autoforward else "")


def _limit_lines(lines: list[Line], width: int, most: int, each: int = 1) -> list[Line]:
    """Return up to ``each`` lines for a text and ``most`` for all, and the number of those left out on the last one."""
    found: list[Line] = []
    for place, line in enumerate(lines):
        wrapped = wrap(line.text, width, each, indent="  ")
        left = len(lines) - place
        if len(found) + len(wrapped) + (1 if left > 1 else 0) > most:
            return [*found, Line(line.kind, f"+ {left} more")]
        found += [replace(line, text=text, mark="" if part else line.mark) for part, text in enumerate(wrapped)]
    return found


def _title(parts: list[str]) -> str:
    return "\n".join(drawable(part) for part in parts if part)
