"""What ``then`` asserts, compared with what happened. Each function returns what differs, as texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from machines.engine import Instance, Refused
from machines.engine.definitions import Outline, TransitionOutline
from machines.testing.report import format_value, list_active

from .document import Message, Then
from .sandbox import Happened, Sandbox, Sent


def find_problems(sandbox: Sandbox, then: Then | None, happened: Happened, outline: Outline) -> list[str]:
    """Compare the instance and the last step with all that a step expects."""
    refused = then.refused if then is not None else None
    if happened.error is not None and refused is None:
        return [f"it was refused: {happened.error.code} {happened.error}"]
    if then is None:
        return []
    instance = sandbox.read()
    return [
        *_compare_refusal(then, happened),
        *_compare_states(instance, then, outline),
        *_compare_data(instance, then.data),
        *_compare_done(instance, then.done),
        *_compare_names(
            "jobs that wait", then.jobs, [job.src for job in sandbox.list_waiting(sandbox.machine, sandbox.id)]
        ),
        *_compare_messages(then.messages, happened.sent),
        *_compare_transitions(then.transitions, happened.transitions, outline),
    ]


def _compare_refusal(then: Then, happened: Happened) -> list[str]:
    if then.refused is None:
        return []
    if happened.error is None:
        return ["it should be refused, and was taken"]
    text = str(happened.error)
    code = happened.error.code
    if then.refused.code and then.refused.code != code:
        return [f"it should be refused as {then.refused.code}, and was as {code}: {text}"]
    if then.refused.why and then.refused.why not in text:
        return [f"it was refused, but not because of {then.refused.why!r}: {text}"]
    return []


def _compare_states(instance: Instance, then: Then, outline: Outline) -> list[str]:
    active = list_active(instance.configuration, outline)
    missing = [state for state in then.states if state not in active]
    return [f"it is in {instance.state}, not in {' and '.join(missing)}"] if missing else []


def _compare_data(instance: Instance, expected: dict[str, Any] | None) -> list[str]:
    wrong = []
    for name, value in (expected or {}).items():
        if instance.data.get(name) != value:
            found = format_value(instance.data[name]) if name in instance.data else "nothing"
            wrong.append(f"{name} is {found}, not {format_value(value)}")
    return wrong


def _compare_done(instance: Instance, expected: bool | None) -> list[str]:
    if expected is None or instance.done == expected:
        return []
    return [f"it is in {instance.state}, which is {'not ' if expected else ''}its end"]


def _compare_names(what: str, expected: Iterable[str] | None, found: list[str]) -> list[str]:
    if expected is None or Counter(expected) == Counter(found):
        return []
    return [f"{what}: {', '.join(found) or 'none'}; expected {', '.join(expected) or 'none'}"]


def _compare_messages(expected: tuple[Message, ...] | None, sent: list[Sent]) -> list[str]:
    """Pair each expected message with one that was sent; no order is asserted."""
    if expected is None:
        return []
    left = list(sent)
    missing = []
    for message in expected:
        match = next((one for one in left if _is_match(message, one)), None)
        if match is None:
            missing.append(f"{message.event} to {message.to}" if message.to else message.event)
        else:
            left.remove(match)
    lines = [f"no message {one} was sent" for one in missing]
    return lines + [f"a message {one} was sent, with {format_value(one.payload)}" for one in left]


def _is_match(message: Message, sent: Sent) -> bool:
    fields = sent.payload if isinstance(sent.payload, dict) else {}
    wanted = (message.payload or {}).items()
    return (message.event, message.to) == (sent.event, sent.to) and all(
        name in fields and fields[name] == value for name, value in wanted
    )


def _compare_transitions(expected: tuple[str, ...] | None, taken: list[str], outline: Outline) -> list[str]:
    if expected is None:
        return []
    known = {one.id: one for state in outline.states for one in state.transitions}
    if len(expected) == len(taken) and all(
        text in (id, describe_transition(known[id]) if id in known else id)
        for text, id in zip(expected, taken, strict=True)
    ):
        return []
    shown = [describe_transition(known[id]) if id in known else id for id in taken]
    return [f"transitions taken: {', '.join(shown) or 'none'}; expected {', '.join(expected) or 'none'}"]


def describe_transition(transition: TransitionOutline) -> str:
    """Name a transition as scenarios do: ``Waiting -> Active``; one that stays ends where it began."""
    targets = transition.targets or ((transition.target,) if transition.target else (transition.source,))
    return f"{transition.source} -> {', '.join(targets)}"


def explain(happened: Happened) -> list[str]:
    """List why each candidate of a refused event was not taken; empty for another error."""
    if not isinstance(happened.error, Refused):
        return []
    return [f"  {candidate}" for candidate in happened.error.candidates]
