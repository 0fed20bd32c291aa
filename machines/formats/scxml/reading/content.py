"""Reads executable content: the actions in <onentry>, <onexit>, <transition>, <if>, <foreach>, <finalize>.

A <send>, a <cancel> and transitions with ``sb:after="true"`` are a timer of their state.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from machines.engine import limits
from machines.formats.javascript import changes, code, parsing
from machines.formats.javascript.code import ANY, ARRAY, NONE, NUMBER, STRING, Code, fails
from machines.formats.javascript.parsing import SyntaxProblem
from machines.formats.javascript.platform import PROCESSORS
from machines.formats.javascript.scope import Action
from machines.formats.scxml.elements import OURS, SCXML, Element
from machines.formats.text import single

from .chart import EMPTY, Chart, object_of, value_of
from .survey import is_variable

_HTTP = re.compile(r"basichttp|http://www\.w3\.org/TR/scxml/#BasicHTTPEventProcessor", re.IGNORECASE)
_DURATION = re.compile(r"\s*(\d*\.?\d+)\s*(ms|s|m|h|d)?\s*")
_UNITS = {None: 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
PLACES = ("identifier", "member_expression", "subscript_expression")
_TIMED = {"onentry": "send", "onexit": "cancel"}  # block -> what belongs to a timer there
_SAID = {"event", "id", "delay", "delayexpr"}


def read_blocks(chart: Chart, elements: Iterable[Element]) -> list[Action]:
    """Read the actions of several blocks. Blocks are kept separate: a failure in one does not stop the next."""
    found = [read(chart, others(element)) for element in elements]
    blocks = [actions for actions in found if actions]
    return blocks[0] if len(blocks) == 1 else [{"block": actions} for actions in blocks]


def read(chart: Chart, elements: Iterable[Element]) -> list[Action]:
    return [action for element in elements for action in _read(chart, element)]


def _read(chart: Chart, element: Element) -> list[Action]:
    if element.space == OURS:
        return _ours(chart, element)
    if element.space not in (SCXML, ""):
        chart.report.add("SB221", element.locate, f"<{element.name}> of another namespace was left out")
        return []
    if is_part(element):
        chart.refuse(
            element, "sb:after stands for timers of states: on <send> in <onentry>, <cancel> in <onexit>", "after"
        )
        return []
    reader = _READERS.get(element.name)
    if reader is None:
        chart.refuse(element, f"<{element.name[:60]}> has no meaning here")
        return []
    return reader(chart, element)


def _ours(chart: Chart, element: Element) -> list[Action]:
    """Read an action that SCXML does not have, as JSON."""
    if element.name == "block":
        return [{"block": read(chart, element.children)}]
    if element.name == "more":
        return []
    action = object_of(element)
    if element.name != "action" or action is None:
        chart.refuse(element, "an action of ours is one JSON object")
        return []
    return [action]


def _raise(chart: Chart, element: Element) -> list[Action]:
    event = element.get("event") or ""
    if (why := limits.check_event_name(event)) is not None:
        chart.refuse(element, f"the event {event[:60]!r} {why}", "event")
        return []
    refuse_reserved(chart, element, event, "event")
    return [{"raise": event}]


def _if(chart: Chart, element: Element) -> list[Action]:
    cases: list[Action] = []
    for head, children in _branches(element):
        guard = None if head.name == "else" else chart.guard(head)
        if head.name != "else" and head.get("cond") is None:
            chart.refuse(head, f'<{head.name}> needs a "cond"')
        cases.append(({} if guard is None else {"guard": guard}) | {"do": read(chart, children)})
    return [{"if": cases}]


def _branches(element: Element) -> Iterator[tuple[Element, list[Element]]]:
    head: Element = element
    children: list[Element] = []
    for child in element.children:
        if child.is_scxml("elseif") or child.is_scxml("else"):
            yield head, children
            head, children = child, []
        else:
            children.append(child)
    yield head, children


def _foreach(chart: Chart, element: Element) -> list[Action]:
    for attribute in ("array", "item"):
        if element.get(attribute) is None:
            chart.refuse(element, f'<foreach> needs "{attribute}"')
            return []
    over = chart.code(element, "array")
    wrong = _refuse_loop(element, over)
    if wrong is not None:
        chart.warn(element, f"this fails whenever it runs: {wrong}")
        return [changes.failing(wrong)]
    loop: Action = {"in": over.text}
    for attribute, kinds in (("item", ANY), ("index", NUMBER)):
        name = element.get(attribute)
        if name is not None:
            chart.fields.receive(name, kinds)
            loop[attribute] = chart.field(element, attribute)
    return [{"foreach": loop | {"do": read(chart, element.children)}}]


def _refuse_loop(element: Element, over: Code) -> str | None:
    if over.kinds and not over.kinds & ARRAY:
        return f"{' '.join((element.get('array') or '').split())[:60]} is no array"
    for attribute in ("item", "index"):
        name = element.get(attribute)
        if name is not None and (not is_variable(name) or name.startswith("_event")):
            return f"{name[:60]} is no variable"
    return None


def _log(chart: Chart, element: Element) -> list[Action]:
    label = element.get("label")
    if element.get("expr") is None:
        return [{"log": repr(label or "")}]
    value, effects = chart.code_and_effects(element, "expr")
    return [{"log": value.text if label is None else {"label": repr(label), "value": value.text}}, *effects]


def _assign(chart: Chart, element: Element) -> list[Action]:
    if element.get("location") is None:
        chart.refuse(element, '<assign> needs a "location"')
        return []
    if element.get("expr") is not None:
        value, effects = chart.code_and_effects(element, "expr")
        return [chart.location(element, "location", value), *effects]
    return [assign(chart, element, "location", chart.inline(element))]


def assign(chart: Chart, element: Element, attribute: str, found: object) -> Action:
    """Return the assignment of an element's content."""
    value = found if isinstance(found, Code) else code.ABSENT if found is EMPTY else code.literal(found)
    action = chart.location(element, attribute, value)
    if "set" in action and isinstance(found, dict | list):
        ((field, text),) = action["set"].items()
        return {"set": {field: value_of(found)}} if text == value.text else action
    return action


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
        event = None if isinstance(asked, SyntaxProblem) else parsing.plain(*asked)
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


def is_part(element: Element) -> bool:
    return element.get("after", OURS) == "true"


def others(block: Element) -> list[Element]:
    """Return the parts of an <onentry> or <onexit> that do not belong to a timer."""
    return [child for child in block.children if not (is_part(child) and child.is_scxml(_TIMED.get(block.name, "")))]


def read_after(chart: Chart, state: Element, timed: list[tuple[Element, Any]]) -> dict[str, Any]:
    """Return ``after`` of a state.

    ``timed``: its transitions that wait for timers, each with its definition.
    """
    waiting: dict[str, list[tuple[Element, Any]]] = {}
    for element, body in timed:
        waiting.setdefault(element.get("event") or "", []).append((element, body))
    after: dict[str, Any] = {}
    armed = set()
    for send in _list_content(state, "onentry"):
        event = send.get("event") or ""
        armed.add(event)
        bodies = [body for _, body in waiting.pop(event, [])]
        if not bodies:
            chart.refuse(send, f'no <transition sb:after="true"> of this state waits for {event[:60]!r}', "event")
        after[_key(chart, send, after)] = single(bodies)
    for unarmed in waiting.values():
        chart.refuse(unarmed[0][0], 'no <send sb:after="true"> in <onentry> of this state sends this event', "event")
    for cancel in _list_content(state, "onexit"):
        if cancel.get("sendid") not in armed:
            chart.refuse(cancel, 'no <send sb:after="true"> in <onentry> of this state has this id', "sendid")
    return after


def _list_content(state: Element, place: str) -> list[Element]:
    return [child for block in state.all(place) for child in block.all(_TIMED[place]) if is_part(child)]


def _key(chart: Chart, send: Element, taken: dict[str, Any]) -> str:
    """Return the delay as a key.

    Brackets tell equal delays apart: they turn the delay into an expression of the same value.
    """
    both(chart, send, "delay")
    more = [name for space, name in send.attributes if not space and name not in _SAID]
    if more or send.children:
        said = f'"{more[0][:60]}"' if more else f"<{send.children[0].name[:60]}>"
        chart.refuse(send, f"a timer has an event, an id and a delay: {said} has no meaning here")
    key = "0"
    try:
        calculated = send.get("delayexpr") is not None
        key = chart.code(send, "delayexpr").text if calculated else str(milliseconds(send.get("delay") or ""))
    except Wrong as why:
        chart.refuse(send, str(why), "delay")
    while key in taken:
        key = f"({key})"
    return key


_READERS: dict[str, Callable[[Chart, Element], list[Action]]] = {
    "raise": _raise,
    "if": _if,
    "foreach": _foreach,
    "log": _log,
    "assign": _assign,
    "script": Chart.program,
    "send": read_send,
    "cancel": read_cancel,
}
