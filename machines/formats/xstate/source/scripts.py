"""JavaScript where a config has it: between double braces, and as the implementation of a name. Never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from machines.engine.definitions.findings import CODES
from machines.engine.definitions.place import Place
from machines.formats.scxml.ecmascript import code as pieces
from machines.formats.scxml.ecmascript.code import Code
from machines.formats.scxml.ecmascript.expressions import ExpressionTranslator
from machines.formats.scxml.ecmascript.fields import Fields
from machines.formats.scxml.ecmascript.kinds import ANY, STRING
from machines.formats.scxml.ecmascript.literals import key_of
from machines.formats.scxml.ecmascript.parsing import Node, Script, SyntaxProblem, bare, named, part
from machines.formats.scxml.ecmascript.scope import Scope as Names
from machines.formats.xstate.context import Scope

from .typescript import TYPED, parse

FUNCTIONS = ("arrow_function", "function_expression")
CONTEXT, EVENT, PARAMS, BOTH = Code("\0context"), Code("event", kinds=ANY), Code("\0params"), Code("\0both")
_OTHERS = "only context, event and params mean something here"


@dataclass(frozen=True, slots=True)
class Untranslated:
    why: str
    hint: str = ""


class _Notes:
    """What the translator has to say: the first refusal counts, warnings are passed on."""

    def __init__(self, place: Place) -> None:
        self.refusal: Untranslated | None = None
        self._place = place

    def add(self, code: str, where: str, message: str, hint: str = "") -> None:
        if CODES[code].severity == "error":
            self.refusal = self.refusal or Untranslated(message.removesuffix(" cannot be translated"), hint)
        else:
            self._place.report.add(code, self._place.path, message, hint)


class _XState(ExpressionTranslator):
    """Knows ``context.field``, ``event.field`` and ``params.name``, and looks through the types of TypeScript."""

    def __init__(self, scope: Scope, script: Script, notes: _Notes, place: Place) -> None:
        reading = scope.reading
        states = {name: name for name in reading.states.names}
        names = Names(notes, Fields(), {}, states, reading.machine)  # type: ignore[arg-type]
        super().__init__(names, script, {"context": CONTEXT, "event": EVENT, "params": PARAMS})
        self._place = place
        self._where = scope

    def value(self, node: Node) -> Code:
        while node.type in TYPED:
            node = named(node)[0]
        return super().value(node)

    def undeclared(self, node: Node, name: str) -> Code:
        """Some tools write a data field without ``context.`` before it."""
        if name in self._where.reading.fields:
            return self.property(node, CONTEXT, name)
        return self.refuse(node, f"the name {name}", _OTHERS)

    def fails(self, node: Node, message: str) -> Code:
        return self.refuse(node, message)

    def property(self, node: Node, owner: Code, name: str) -> Code:
        if owner is CONTEXT:
            field = self._where.reading.field(name, self._place)
            return Code(field, kinds=self._where.reading.kinds.get(field, ANY))
        if owner is BOTH:
            known = {"context": CONTEXT, "event": EVENT, "params": PARAMS}
            return known[name] if name in known else self.refuse(node, f"the name {name}", _OTHERS)
        if owner is PARAMS:
            return self._param(node, name)
        if owner is EVENT or owner.text == "event.error":
            return self._of_event(node, owner, name)
        return super().property(node, owner, name)

    def _param(self, node: Node, name: str) -> Code:
        params = self._where.params
        if not isinstance(params, dict) or name not in params:
            return self.refuse(node, f"the parameter {name}", "it is not given a value here")
        return pieces.literal(params[name])

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


def translate(text: str, scope: Scope, place: Place, *, condition: bool = False) -> str | Untranslated:
    """A script's expression, or what its function returns, as an expression of ours."""
    found = _begin(text, scope, place)
    if isinstance(found, Untranslated):
        return found
    translator, node, notes = found
    value = translator.condition(node) if condition else translator.value(node)
    return _finished(value, translator, notes)


def fields_of(text: str, scope: Scope, place: Place) -> dict[str, str] | Untranslated:
    """The object a function returns, as an expression for each of its keys."""
    found = _begin(text, scope, place)
    if isinstance(found, Untranslated):
        return found
    translator, node, notes = found
    node = bare(node)
    if node.type != "object":
        return Untranslated("it does not return an object literal")
    fields: dict[str, str] = {}
    for pair in named(node):
        key = key_of(translator.script, part(pair, "key")) if pair.type == "pair" else None
        if key is None or key in fields:
            return Untranslated("the object holds more than names and values")
        value = _finished(translator.value(part(pair, "value")), translator, notes)
        if isinstance(value, Untranslated):
            return value
        fields[key] = value
    return fields


def _finished(value: Code, translator: ExpressionTranslator, notes: _Notes) -> str | Untranslated:
    if notes.refusal:
        return notes.refusal
    if translator.effects:
        return Untranslated("it changes something besides having a value")
    if "\0" in value.text:
        return Untranslated("it uses the context or the parameters as a whole", "name the fields")
    return value.text


def _begin(text: str, scope: Scope, place: Place) -> tuple[_XState, Node, _Notes] | Untranslated:
    """A translator, and the expression it is to read: the whole text, or what its function returns."""
    try:
        script, node = parse(text)
    except SyntaxProblem as problem:
        return Untranslated(problem.message)
    notes = _Notes(place)
    translator = _XState(scope, script, notes, place)
    if node.type not in FUNCTIONS:
        return translator, node, notes
    if not _bind(node, translator, scope.reading.four):
        return Untranslated("its parameters are not those of XState")
    body = _returned(part(node, "body"), translator)
    return Untranslated("it does more than return a value") if body is None else (translator, body, notes)


def _bind(function: Node, translator: _XState, four: bool) -> bool:
    """Version 5 calls with ``({context, event}, params)``, version 4 with ``(context, event)``."""
    single = function.child_by_field_name("parameter")
    listed = function.child_by_field_name("parameters")
    patterns = [single] if single is not None else [_pattern(one) for one in named(listed)] if listed else []
    four = four or (len(patterns) == 2 and patterns[0].type == "identifier" and translator.of(patterns[0])[:1] != "_")
    for pattern, meaning in zip(patterns, (CONTEXT, EVENT) if four else (BOTH, PARAMS), strict=False):
        if pattern.type == "identifier":
            translator.locals[translator.of(pattern)] = meaning
        elif pattern.type != "object_pattern" or not _take_apart(pattern, meaning, translator):
            return False
    return len(patterns) <= 3


def _take_apart(pattern: Node, owner: Code, translator: _XState) -> bool:
    for one in named(pattern):
        if one.type == "shorthand_property_identifier_pattern":
            key = name = translator.of(one)
        elif one.type == "pair_pattern" and part(one, "value").type == "identifier":
            key, name = translator.of(part(one, "key")), translator.of(part(one, "value"))
        else:
            return False
        if owner is not BOTH or key in ("context", "event"):
            translator.locals[name] = translator.property(one, owner, key)
    return True


def _pattern(parameter: Node) -> Node:
    """Without the type TypeScript gives it."""
    return part(parameter, "pattern") if parameter.type in ("required_parameter", "optional_parameter") else parameter


def _returned(body: Node, translator: _XState) -> Node | None:
    """What a function returns whose body is one value, or a return after a few constants."""
    if body.type != "statement_block":
        return body
    *before, last = named(body) or [body]
    for statement in before:
        for declarator in named(statement) if statement.type == "lexical_declaration" else [statement]:
            if declarator.type != "variable_declarator" or part(declarator, "name").type != "identifier":
                return None
            translator.locals[translator.of(part(declarator, "name"))] = translator.value(part(declarator, "value"))
    return named(last)[0] if last.type == "return_statement" and named(last) else None


def is_code(value: Any) -> bool:
    """Whether a value of a config is a function or another piece of a script."""
    return isinstance(value, str) and value.startswith("{{")
