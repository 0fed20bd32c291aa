"""Translates what SCXML provides to every document: the system variables, and ``In()``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import TYPE_CHECKING

from . import code, parsing
from .code import ABSENT, ANY, BOOLEAN, NONE, NUMBER, OBJECT, STRING, Code
from .parsing import Node, part

if TYPE_CHECKING:
    from .translator import Translator

PROCESSOR = "http://www.w3.org/TR/scxml/#SCXMLEventProcessor"
PROCESSORS = ("scxml", PROCESSOR)
_HTTP = "basichttp"
FACTS = ("name", "type", "sendid", "origin", "origintype", "invokeid")
EVENT_FIELDS = (*FACTS, "data")
OURS = "Signalbox"  # the object with the functions that only our expressions have
_OURS = {"event": ANY, "instance": OBJECT, "now": NUMBER}
ALWAYS_BOUND = {"_sessionid": "string", "_name": "string", "_ioprocessors": "object", "_x": "object"}
MAX_STATES_ASKED = 30  # In(x) with a calculated x tests one state after the other

SESSION = Code("instance.machine + '/' + instance.id", code.SUM, STRING)
ADDRESS = Code("'#_scxml_' + instance.machine + '/' + instance.id", code.SUM, STRING)
DATA = Code("filled(event)", kinds=ANY)
_EVENT = Code("trigger and put(trigger, 'data', event)", code.AND, OBJECT | NONE)  # not bound before the first event
_PROCESSOR = code.table([("location", ADDRESS)])

SYSTEM: dict[str, Callable[[Translator], Code]] = {
    "_event": lambda translator: _EVENT,
    "_sessionid": lambda translator: SESSION,
    "_name": lambda translator: code.text(translator.scope.name),
    "_ioprocessors": lambda translator: code.table((name, _PROCESSOR) for name in PROCESSORS),
    "_x": lambda translator: code.table(()),
}

_CONSTANTS = {
    "PI": 3.141592653589793,
    "E": 2.718281828459045,
    "LN2": 0.6931471805599453,
    "LN10": 2.302585092994046,
    "LOG2E": 1.4426950408889634,
    "LOG10E": 0.4342944819032518,
    "SQRT2": 1.4142135623730951,
    "SQRT1_2": 0.7071067811865476,
}


def is_system(translator: Translator, node: Node, name: str) -> bool:
    return node.type == "identifier" and translator.of(node) == name and name not in translator.locals


def member(translator: Translator, owner: Node, name: str) -> Code | None:
    """Translate ``_event.name`` and similar members; return None if this is not such a member."""
    if is_system(translator, owner, "_event"):
        return _of_event(translator, owner, name)
    if is_system(translator, owner, "_ioprocessors"):
        if _HTTP in name.lower():
            where = partial(translator.script.locate, owner)
            translator.scope.report.add("SB142", where, "there is no processor for HTTP here")
        return _PROCESSOR if name in PROCESSORS else ABSENT
    key = key_of(translator, owner)
    if key in PROCESSORS and is_system(translator, part(owner, "object"), "_ioprocessors"):
        return ADDRESS if name == "location" else ABSENT
    if is_system(translator, owner, "Math") and name in _CONSTANTS:
        return code.number(_CONSTANTS[name])
    if is_system(translator, owner, OURS) and name in _OURS:
        return Code(name, kinds=_OURS[name])
    if key == "data" and name != "length" and is_system(translator, part(owner, "object"), "_event"):
        return code.member(Code("event", kinds=ANY), name)
    return None


def _of_event(translator: Translator, node: Node, name: str) -> Code:
    if name == "data":
        return DATA
    if name in FACTS:
        return Code(f"trigger.{name}", kinds=STRING | (frozenset() if name in ("name", "type") else NONE))
    translator.warn(node, f"_event.{name} is always undefined here")
    return ABSENT


def key_of(translator: Translator, node: Node) -> str | None:
    """Return the name that an access uses, if it is written out."""
    if node.type == "member_expression":
        return translator.of(part(node, "property"))
    if node.type == "subscript_expression":
        key = parsing.plain(translator.script, part(node, "index"))
        return key if isinstance(key, str) else None
    return None


def in_state(translator: Translator, node: Node, arguments: list[Node]) -> Code:
    """Translate ``In('name')``. An unknown state is never active, and neither is a history state."""
    if len(arguments) != 1:
        return translator.fails(node, "In() takes the id of one state")
    name = parsing.plain(translator.script, arguments[0])
    states = translator.scope.states
    if isinstance(name, str):
        if name in states:
            return Code(f"In({states[name]!r})", kinds=BOOLEAN)
        translator.warn(node, f'there is no state "{name[:60]}" that could be active')
        return code.literal(False)
    if len(states) > MAX_STATES_ASKED:
        return translator.refuse(node, "In() of a calculated name among so many states")
    asked = translator.value(arguments[0])
    each = [
        code.both(code.compare(asked, "==", code.text(state)), Code(f"In({states[state]!r})", kinds=BOOLEAN))
        for state in sorted(states)
    ]
    return reduce(code.either, each) if each else code.literal(False)
