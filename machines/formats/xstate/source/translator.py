"""Expressions of a config: JavaScript with ``context``, ``event``, ``params`` and ``input``, and TypeScript's types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from machines.engine import expressions
from machines.engine.definitions.findings import CODES
from machines.engine.definitions.place import Place
from machines.formats.scxml.ecmascript import code as pieces
from machines.formats.scxml.ecmascript import operators
from machines.formats.scxml.ecmascript.code import ABSENT, ATOM, CHOICE, Code
from machines.formats.scxml.ecmascript.expressions import ExpressionTranslator
from machines.formats.scxml.ecmascript.fields import Fields
from machines.formats.scxml.ecmascript.kinds import ANY, BOOLEAN, NUMBER, STRING
from machines.formats.scxml.ecmascript.parsing import Node, Script, named, part
from machines.formats.scxml.ecmascript.scope import Scope as Names
from machines.formats.xstate.context import Scope

from . import array_methods, functions
from .typescript import TYPED, untyped

CONTEXT, EVENT, PARAMS = Code("\0context"), Code("event", kinds=ANY), Code("\0params")
BOTH, INPUT = Code("\0both"), Code("\0input")
_OTHERS = "only context, event and params mean something here"
_OF_ACTORS = ("spawn", "self", "system", "enqueue", "check")


@dataclass(frozen=True, slots=True)
class Untranslated:
    why: str
    hint: str = ""


MAX_CALLS = 1000  # of functions written out in one expression, the elements of written lists included


class Notes:
    """What the translator has to say: the first refusal counts, warnings are passed on. ``calls``: how many functions
    were written out."""

    def __init__(self, place: Place) -> None:
        self.refusal: Untranslated | None = None
        self.calls = 0
        self._place = place

    def count_call(self) -> None:
        self.calls += 1
        if self.calls > MAX_CALLS:
            self.refusal = self.refusal or Untranslated(f"more than {MAX_CALLS} calls of functions")

    def add(self, code: str, where: str, message: str, hint: str = "") -> None:
        if CODES[code].severity == "error":
            self.refusal = self.refusal or Untranslated(message.removesuffix(" cannot be translated"), hint)
        else:
            self._place.report.add(code, self._place.path, message, hint)


class ScriptTranslator(ExpressionTranslator):
    """Knows ``context.field``, ``event.field`` and ``params.name``, and looks through the types of TypeScript."""

    idle: ClassVar[frozenset[str]] = frozenset(["assertEvent", "console"])

    def __init__(
        self, scope: Scope, script: Script, notes: Notes, place: Place, locals: dict[str, Code] | None = None
    ) -> None:
        reading = scope.reading
        states = {name: name for name in reading.states.names}
        declared = functions.of(reading)
        names = Names(notes, Fields(), declared, states, reading.machine)  # type: ignore[arg-type]
        self.params = _parameter(scope.params) if isinstance(scope.params, str) else PARAMS
        self.notes = notes
        own = {"context": CONTEXT, "event": EVENT, "params": self.params}
        super().__init__(names, script, own if locals is None else locals)
        self.taken_inputs: set[str] = set()
        self._place = place
        self._where = scope

    def value(self, node: Node) -> Code:
        """Nothing is translated any more once something cannot be."""
        return ABSENT if self.notes.refusal else super().value(node)

    def condition(self, node: Node) -> Code:
        return ABSENT if self.notes.refusal else super().condition(node)

    def inner(self, script: Script, locals: dict[str, Code]) -> ScriptTranslator:
        self.notes.count_call()
        found = ScriptTranslator(self._where, script, self.notes, self._place, locals)
        found.depth = self.depth
        return found

    def undeclared(self, node: Node, name: str) -> Code:
        """A constant of the script; some tools write a data field without ``context.`` before it."""
        reading = self._where.reading
        if name in reading.constants:
            return pieces.literal(reading.constants[name])
        if name in reading.fields:
            return self.property(node, CONTEXT, name)
        return self.refuse(node, f"the name {name}", _OTHERS)

    def fails(self, node: Node, message: str) -> Code:
        return self.refuse(node, message)

    def property(self, node: Node, owner: Code, name: str) -> Code:
        if owner is CONTEXT:
            field = self._where.reading.field(name, self._place)
            return Code(field, kinds=self._where.reading.kinds.get(field, ANY))
        if owner is BOTH:
            return self._of_both(node, name)
        if owner is INPUT:
            self.taken_inputs.add(name)
            return Code(self._where.reading.input_field(name, self._place), kinds=ANY)
        if owner is PARAMS:
            return self._param(node, name)
        if owner is EVENT or owner.text == "event.error":
            return self._of_event(node, owner, name)
        return super().property(node, owner, name)

    def _of_both(self, node: Node, name: str) -> Code:
        known = {"context": CONTEXT, "event": EVENT, "params": self.params, "input": INPUT}
        if name in known:
            return known[name]
        if name in _OF_ACTORS:
            return Code(f"\0{name}")  # refused where it is used
        return self.refuse(node, f"the name {name}", _OTHERS)

    def _param(self, node: Node, name: str) -> Code:
        params = self._where.params
        if not isinstance(params, dict) or name not in params:
            return self.refuse(node, f"the parameter {name}", "it is not given a value here")
        return _parameter(params[name])

    def _of_event(self, node: Node, owner: Code, name: str) -> Code:
        """The name of an event, the output of what was done and the message of an error have other names here."""
        if owner is not EVENT:
            return owner if name == "message" else super().property(node, owner, name)
        if name == "type":
            return Code("trigger.name", kinds=STRING)
        ending = "data" if self._where.reading.four else "output"
        if name == ending and self._where.output:
            return Code(self._where.output, kinds=ANY)
        if name == "data" and self._where.reading.four and self._where.failing:
            return Code("event.error", kinds=STRING)
        return super().property(node, owner, name)

    def whole(self, text: str) -> str:
        """An expression in which context and parameters stand for all that is in them."""
        reading = self._where.reading
        if CONTEXT.text in text:
            fields = ", ".join(f"{name!r}: {field}" for name, field in reading.fields.items())
            text = text.replace(CONTEXT.text, f"{{{fields}}}")
        if PARAMS.text in text and isinstance(self._where.params, dict):
            params = ", ".join(f"{name!r}: {value}" for name, value in self._where.params.items())
            text = text.replace(PARAMS.text, f"{{{params}}}")
        return text


def _parameter(text: str) -> Code:
    """An expression that was given; of a literal it is known what kind of value it is."""
    tree = expressions.read(text).tree
    kinds = {"num": NUMBER, "str": STRING, "bool": BOOLEAN}.get(str(tree[0]), ANY)
    return Code(text, ATOM if kinds is not ANY and text[:1] != "-" else CHOICE, kinds)


def _binary(translator: Any, node: Node) -> Code:
    """What work failed with is text here, wherever the script asks whether it is an error."""
    if translator.operator(node) == "instanceof" and translator.of(part(node, "right")).endswith("Error"):
        value = translator.value(part(node, "left"))
        return (
            pieces.literal(True) if value.text == "event.error" else pieces.truth("has", value, pieces.text("message"))
        )
    return operators.binary(translator, node)


def _choice(translator: Any, node: Node) -> Code:
    condition = translator.condition(part(node, "condition"))
    taken = {"True": "consequence", "False": "alternative"}.get(condition.text)
    return translator.value(part(node, taken)) if taken else translator.choice(node)


def _typed(translator: Any, node: Node) -> Code:
    return translator.value(untyped(node))  # type: ignore[no-any-return]


_HANDLERS: Mapping[str, Callable[[Any, Node], Code]] = {
    **dict.fromkeys(TYPED, _typed),
    "type_assertion": lambda translator, node: translator.value(named(node)[-1]),
    "call_expression": array_methods.call,
    "binary_expression": _binary,
    "ternary_expression": _choice,
    "shorthand_property_identifier": ScriptTranslator.name,
}
ScriptTranslator.handlers = {**ExpressionTranslator.handlers, **_HANDLERS}
