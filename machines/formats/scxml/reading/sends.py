"""Reads <send> and <cancel>, and the data of events, children and final states."""

from __future__ import annotations

import re
from typing import Any

from machines.engine import limits
from machines.formats.javascript import changes, literals
from machines.formats.javascript.code import Code, fails
from machines.formats.javascript.kinds import NONE, STRING
from machines.formats.javascript.parsing import SyntaxProblem
from machines.formats.javascript.platform import PROCESSORS
from machines.formats.javascript.scope import Action
from machines.formats.scxml.elements import Element

from .chart import EMPTY, Chart, value_of

_HTTP = re.compile(r"basichttp|http://www\.w3\.org/TR/scxml/#BasicHTTPEventProcessor", re.IGNORECASE)
_DURATION = re.compile(r"\s*(\d*\.?\d+)\s*(ms|s|m|h|d)?\s*")
_UNITS = {None: 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


PLACES = ("identifier", "member_expression", "subscript_expression")


def refuse_reserved(chart: Chart, element: Element, event: str, attribute: str) -> None:
    """Report an event that only the engine makes."""
    if limits.is_reserved_event(event):
        message = f"the event {event[:60]!r} is the engine's own and cannot be sent or raised"
        hint = "write a name that does not begin with done., error. or after."
        chart.refuse(element, message, attribute, hint, code="SB107")


class Wrong(Exception):
    """The element fails whenever it runs. The message is the reason."""


def read_send(chart: Chart, element: Element) -> list[Action]:
    try:
        parts = _parts(chart, element)
    except Wrong as why:
        chart.warn(element, f"this fails whenever it runs: {why}")
        return [changes.failing(str(why))]
    if parts is None:
        return []
    return [{"send": parts["event"] if list(parts) == ["event"] and isinstance(parts["event"], str) else parts}]


def _parts(chart: Chart, element: Element) -> Action | None:
    both(chart, element, "event", "target", "type", "delay", "id")
    parts: Action = {"event": _event(chart, element)}
    if not _processor(chart, element, parts):
        return None
    if element.get("targetexpr") is not None:
        parts["to"] = chart.code(element, "targetexpr").text
    elif target := element.get("target"):
        parts["to"] = repr(target)
    data = _data(chart, element)
    if data is not EMPTY:
        parts["data"] = value_of(data)
    if element.get("delayexpr") is not None:
        parts["delay"] = {"expr": chart.code(element, "delayexpr").text}
    elif (delay := element.get("delay")) is not None and (length := milliseconds(delay)):
        parts["delay"] = length
    _id(chart, element, parts)
    return parts


def both(chart: Chart, element: Element, *names: str) -> None:
    """Refuse an element that has an attribute both written out and calculated."""
    for name in names:
        calculated = "idlocation" if name == "id" else f"{name}expr"
        if element.get(name) is not None and element.get(calculated) is not None:
            chart.refuse(element, f'"{name}" and "{calculated}" exclude each other', calculated)


def _event(chart: Chart, element: Element) -> Any:
    event = element.get("event")
    if element.get("eventexpr") is not None:
        asked = chart.parse(element, "eventexpr")
        event = None if isinstance(asked, SyntaxProblem) else literals.plain(*asked)
        if not isinstance(event, str):
            return {"expr": chart.code(element, "eventexpr").text}
    if event is None:
        raise Wrong("an event without a name cannot be sent")
    if (why := limits.check_event_name(event)) is not None:
        raise Wrong(f"the event {event[:60]!r} {why}")
    refuse_reserved(chart, element, event, "event" if element.get("eventexpr") is None else "eventexpr")
    return event


def _processor(chart: Chart, element: Element, parts: Action) -> bool:
    if element.get("typeexpr") is not None:
        parts["type"] = chart.code(element, "typeexpr").text
        return True
    type = element.get("type")
    if type is None or type in PROCESSORS:
        return True
    if _HTTP.fullmatch(type):
        chart.refuse(element, "events are not sent over HTTP", "type", code="SB142")
        return False
    parts["type"] = repr(type)
    return True


def _id(chart: Chart, element: Element, parts: Action) -> None:
    if (id := element.get("id")) is not None:
        if (why := limits.check_send_id(id)) is not None:
            raise Wrong(f"the id {id[:60]!r} {why}")
        parts["id"] = id
    if element.get("idlocation") is not None:
        parts["idlocation"] = id_location(chart, element)


def id_location(chart: Chart, element: Element) -> str:
    """Return the field that receives an id."""
    field = chart.field(element, "idlocation")
    if field is None:
        raise Wrong(f"idlocation: {(element.get('idlocation') or '')[:60]} is no variable")
    chart.fields.receive((element.get("idlocation") or "").strip(), STRING)
    return field


def milliseconds(text: str) -> int:
    match = _DURATION.fullmatch(text)
    length = round(float(match[1]) * _UNITS[match[2]]) if match else -1
    if not 0 <= length <= limits.MAX_DELAY:
        raise Wrong(f"{text[:40]!r} is no delay")
    return length


def read_cancel(chart: Chart, element: Element) -> list[Action]:
    if element.get("sendidexpr") is not None:
        return [{"cancel": {"expr": chart.code(element, "sendidexpr").text}}]
    id = element.get("sendid")
    if id is None:
        chart.refuse(element, '<cancel> needs "sendid" or "sendidexpr"')
        return []
    if limits.check_send_id(id) is not None:
        return []  # nothing was ever sent under such an id
    return [{"cancel": id}]


# -- data ---------------------------------------------------------------------------------------------


def _data(chart: Chart, element: Element) -> Any:
    content = element.first("content")
    named = parameters(chart, element)
    if content is None:
        return named or EMPTY
    if named:
        chart.refuse(content, "<content> and parameters exclude each other")
    return content_of(chart, content)


def content_of(chart: Chart, content: Element) -> Any:
    """Return what a <content> contains: EMPTY, a Code or a JSON value."""
    if content.get("expr") is not None:
        return chart.code(content, "expr")
    return chart.inline(content)


def parameters(chart: Chart, element: Element) -> dict[str, Code]:
    """Return the values of ``namelist`` and <param>, by name. If a name occurs twice, the later value applies."""
    found: dict[str, Code] = {}
    for name in (element.get("namelist") or "").split():
        found[name] = _locate(chart, element, "namelist", name)
    for param in element.all("param"):
        name = param.get("name") or ""
        if not name:
            chart.refuse(param, '<param> needs a "name"')
        elif param.get("expr") is not None:
            found[name] = chart.code(param, "expr")
        elif param.get("location") is not None:
            found[name] = _locate(chart, param, "location", param.get("location") or "")
        else:
            found[name] = Code("None", kinds=NONE)
    return found


def _locate(chart: Chart, element: Element, attribute: str, location: str) -> Code:
    reader = Element(element.source, element.space, element.name, element.start, {("", attribute): location})
    parsed = chart.parse(reader, attribute)
    if isinstance(parsed, SyntaxProblem) or parsed[1].type in PLACES:
        return chart.code(reader, attribute)
    message = f"{location[:60]} is no location"
    chart.warn(element, f"this fails whenever it runs: {message}", attribute)
    return fails(message)
