"""Reads ``after``: a <send>, a <cancel> and transitions with ``sb:after="true"`` are a timer of their state."""

from __future__ import annotations

from typing import Any

from machines.formats.scxml.elements import OURS, Element

from . import sends
from .chart import Chart

_PLACES = {"onentry": "send", "onexit": "cancel"}
_SAID = {"event", "id", "delay", "delayexpr"}


def is_part(element: Element) -> bool:
    return element.get("after", OURS) == "true"


def others(block: Element) -> list[Element]:
    """Return the parts of an <onentry> or <onexit> that do not belong to a timer."""
    return [child for child in block.children if not (is_part(child) and child.is_scxml(_PLACES.get(block.name, "")))]


def read_after(chart: Chart, state: Element, timed: list[tuple[Element, Any]]) -> dict[str, Any]:
    """Return ``after`` of a state.

    ``timed``: its transitions that wait for timers, each with its definition.
    """
    waiting: dict[str, list[tuple[Element, Any]]] = {}
    for element, body in timed:
        waiting.setdefault(element.get("event") or "", []).append((element, body))
    after: dict[str, Any] = {}
    armed = set()
    for send in _parts(state, "onentry"):
        event = send.get("event") or ""
        armed.add(event)
        bodies = [body for _, body in waiting.pop(event, [])]
        if not bodies:
            chart.refuse(send, f'no <transition sb:after="true"> of this state waits for {event[:60]!r}', "event")
        key = _key(chart, send, after)
        after[key] = bodies[0] if len(bodies) == 1 else bodies
    for unarmed in waiting.values():
        chart.refuse(unarmed[0][0], 'no <send sb:after="true"> in <onentry> of this state sends this event', "event")
    for cancel in _parts(state, "onexit"):
        if cancel.get("sendid") not in armed:
            chart.refuse(cancel, 'no <send sb:after="true"> in <onentry> of this state has this id', "sendid")
    return after


def _parts(state: Element, place: str) -> list[Element]:
    return [child for block in state.all(place) for child in block.all(_PLACES[place]) if is_part(child)]


def _key(chart: Chart, send: Element, taken: dict[str, Any]) -> str:
    """Return the delay as a key.

    Brackets tell equal delays apart: they turn the delay into an expression of the same value.
    """
    sends.both(chart, send, "delay")
    more = [name for space, name in send.attributes if not space and name not in _SAID]
    if more or send.children:
        said = f'"{more[0][:60]}"' if more else f"<{send.children[0].name[:60]}>"
        chart.refuse(send, f"a timer has an event, an id and a delay: {said} has no meaning here")
    key = _delay(chart, send)
    while key in taken:
        key = f"({key})"
    return key


def _delay(chart: Chart, send: Element) -> str:
    if send.get("delayexpr") is not None:
        return chart.code(send, "delayexpr").text
    try:
        return str(sends.milliseconds(send.get("delay") or ""))
    except sends.Wrong as why:
        chart.refuse(send, str(why), "delay")
        return "0"
