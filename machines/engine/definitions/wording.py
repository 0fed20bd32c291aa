"""Actions as people read them, on diagrams and pages."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Action, Case


def action_text(action: Action) -> str:
    """``failed = failed + 1``, ``unset expires``, ``enqueue mail on outbox``, ``send late after 30s``."""
    value = action.value.text if action.value else ""
    name = action.computed.text if action.computed else action.name
    if action.verb == "set":
        return f"{name} = {value}"
    if action.verb == "append":
        return f"append {value} to {name}"
    if action.verb == "enqueue":
        return f"enqueue {action.src}" + (f" on {name}" if name != action.src else "") + _when(action)
    if action.verb in ("raise", "emit"):
        return f"{action.verb} {name} {value}".rstrip()
    if action.verb == "send":
        return _sent(action, name, value)
    if action.verb == "foreach":
        return f"for {name} in {value}: {_listed(action.cases[0].actions)}"
    if action.verb == "block":
        return _listed(action.cases[0].actions)
    if action.verb == "if":
        return " ".join(_case(case, position) for position, case in enumerate(action.cases))
    return f"{action.verb} {name or value}"


def _sent(action: Action, name: str, value: str) -> str:
    sending = action.sending
    to = f" to {sending.to.text}" if sending and sending.to else ""
    delay = f" after {sending.delay.text}" if sending and sending.delay else ""
    return f"send {name} {value}".rstrip() + to + delay


def _when(action: Action) -> str:
    return f" after {action.work.delay.text}" if action.work and action.work.delay else ""


def _case(case: Case, position: int) -> str:
    if case.guard is None:
        return f"else: {_listed(case.actions)}".rstrip()
    word = "elif" if position else "if"
    return f"{word} {case.guard.expression.text}: {_listed(case.actions)}"


def _listed(actions: Iterable[Action]) -> str:
    return "; ".join(action_text(action) for action in actions)
