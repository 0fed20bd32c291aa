"""Reads executable content: the actions in <onentry>, <onexit>, <transition>, <if>, <foreach>, <finalize>."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from machines.engine import limits
from machines.formats.javascript import changes, code
from machines.formats.javascript.code import Code
from machines.formats.javascript.kinds import ANY, ARRAY, NUMBER, STRING, TABLES
from machines.formats.javascript.scope import Action
from machines.formats.scxml.elements import OURS, SCXML, Element

from . import sends, timers
from .chart import EMPTY, Chart, value_of
from .survey import is_variable

MAX_DOUBLED = 3  # nested loops that are written twice, for lists and for objects


def read_blocks(chart: Chart, elements: Iterable[Element]) -> list[Action]:
    """Read the actions of several blocks. Blocks are kept separate: a failure in one does not stop the next."""
    found = [read(chart, timers.others(element)) for element in elements]
    blocks = [actions for actions in found if actions]
    return blocks[0] if len(blocks) == 1 else [{"block": actions} for actions in blocks]


def read(chart: Chart, elements: Iterable[Element]) -> list[Action]:
    return [action for element in elements for action in _read(chart, element)]


def _read(chart: Chart, element: Element) -> list[Action]:
    if element.space == OURS:
        return _ours(chart, element)
    if element.space not in (SCXML, ""):
        chart.report.add("SB221", element.where, f"<{element.name}> of another namespace was left out")
        return []
    if timers.is_part(element):
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
    try:
        action = json.loads(element.text)
    except ValueError:
        action = None
    if element.name != "action" or not isinstance(action, dict):
        chart.refuse(element, "an action of ours is one JSON object")
        return []
    return [action]


def _raise(chart: Chart, element: Element) -> list[Action]:
    event = element.get("event") or ""
    if (why := limits.check_event_name(event)) is not None:
        chart.refuse(element, f"the event {event[:60]!r} {why}", "event")
        return []
    sends.refuse_reserved(chart, element, event, "event")
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
    wrong = _wrong_loop(element, over)
    if wrong is not None:
        chart.warn(element, f"this fails whenever it runs: {wrong}")
        return [changes.failing(wrong)]
    loop: Action = {"in": over.text}
    for attribute, kinds in (("item", ANY), ("index", NUMBER)):
        name = element.get(attribute)
        if name is not None:
            chart.fields.receive(name, kinds)
            loop[attribute] = chart.field(element, attribute)
    if "object" in over.kinds and over.kinds != ANY and chart.doubled < MAX_DOUBLED:
        chart.doubled += 1
        found = _over_object(chart, element, over, loop)
        chart.doubled -= 1
        return [found]
    return [{"foreach": loop | {"do": read(chart, element.children)}}]


def _over_object(chart: Chart, element: Element, over: Code, loop: Action) -> Action:
    """Add a loop over the fields of an object, in the order of their names. The index is then the name."""
    chart.warn(element, "SCXML walks over arrays only; here, over the fields of an object as well", "array")
    name = element.get("index") or f"{element.get('item')}_name"
    chart.fields.declare(name)
    chart.fields.receive(name, NUMBER | STRING)
    key = chart.fields.names[name]
    value = code.call("item", over, Code(key))
    each = {"in": f"keys({over.text})", "item": key}
    fields = {"foreach": each | {"do": [{"set": {loop["item"]: value.text}}, *read(chart, element.children)]}}
    if not over.kinds & ARRAY:
        return fields
    items = {"foreach": loop | {"do": read(chart, element.children)}}
    return {"if": [{"guard": f"is_list({over.text})", "do": [items]}, {"do": [fields]}]}


def _wrong_loop(element: Element, over: Code) -> str | None:
    if over.kinds and not over.kinds & TABLES:
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


def _script(chart: Chart, element: Element) -> list[Action]:
    return chart.program(element)


_READERS: dict[str, Callable[[Chart, Element], list[Action]]] = {
    "raise": _raise,
    "if": _if,
    "foreach": _foreach,
    "log": _log,
    "assign": _assign,
    "script": _script,
    "send": sends.read_send,
    "cancel": sends.read_cancel,
}
