"""Translates the JavaScript of a config: between double braces, and as the implementation of a name. Never runs it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from machines.engine import expressions
from machines.engine.definitions.findings import get_severity, quote
from machines.engine.definitions.place import Place
from machines.formats.javascript.code import ANY, ATOM, BOOLEAN, CHOICE, NUMBER, STRING, Code, literal
from machines.formats.javascript.operators import as_condition
from machines.formats.javascript.parsing import (
    FUNCTIONS,
    NOT_PLAIN,
    UNDEFINED,
    Node,
    SyntaxProblem,
    bare,
    is_function,
    key_of,
    list_parts,
    parse_expression,
    part,
    plain,
)
from machines.formats.javascript.scope import Fields, Function, find_value, function_of, pattern_of, settle, take_apart
from machines.formats.javascript.scope import Scope as JavaScriptScope
from machines.formats.javascript.translator import Translator
from machines.formats.text import Report
from machines.formats.xstate.context import Reading, Scope, field_name, unbrace

_WHOLE = {"\0both": "its argument", "\0input": "the input", "\0context": "the context", "\0params": "the parameters"}
MAX_DEPTH = 8  # names that refer to names
MAX_LOOKUPS = 5000  # in one document: names that refer to many names would otherwise multiply
CONTEXT, EVENT, PARAMS = Code("\0context"), Code("event", kinds=ANY), Code("\0params")
BOTH, INPUT = Code("\0both"), Code("\0input")
MAX_FUNCTIONS = 200  # of one script
MAX_CALLS = 1000  # of functions inlined in one expression, elements of written lists included
_OTHERS = "only context, event and params mean something here"
_OF_ACTORS = ("spawn", "self", "system", "enqueue", "check")


def translate(text: str, scope: Scope, place: Place, *, condition: bool = False) -> str | Refusal:
    """Translate a script's expression, or what its function returns, to an expression of ours."""
    found = _begin(text, scope, place)
    if isinstance(found, Refusal):
        return found
    translator, node = found
    if node.type == "statement_block":
        value = find_value(translator, list_parts(node))
        value = as_condition(value) if condition else value
    else:
        value = translator.condition(node) if condition else translator.value(node)
    return _finish(value, translator)


def fields_of(text: str, scope: Scope, place: Place) -> dict[str, str] | Refusal:
    """Return the object that a function returns, as an expression for each key."""
    found = _begin_object(text, scope, place)
    if isinstance(found, Refusal):
        return found
    translator, pairs = found
    fields: dict[str, str] = {}
    for key, node in pairs.items():
        value = _finish(translator.value(node), translator)
        if isinstance(value, Refusal):
            return value
        fields[key] = value
    return fields


def initial_fields(text: str, scope: Scope, place: Place) -> list[tuple[str, Any, str | None]] | Refusal:
    """Read ``context: ({input}) => ({...})``.

    Return each name, its first value, and the expression that sets it where one is needed.
    """
    found = _begin_object(text, scope, place)
    if isinstance(found, Refusal):
        return found
    translator, pairs = found
    reading = scope.reading
    inputs = [key for key, node in pairs.items() if _is_input(translator, node, key)]
    reading.fields |= {key: field_name(key, (*place.path, key), reading) for key in pairs}
    reading.given |= {key: reading.fields[key] for key in inputs}
    fields: list[tuple[str, Any, str | None]] = []
    for key, node in pairs.items():
        value = plain(translator.script, node)
        if value is UNDEFINED or key in inputs:
            fields.append((key, _default(translator, node) if value is NOT_PLAIN else None, None))
        elif value is not NOT_PLAIN:
            fields.append((key, value, None))
        else:
            expression = _finish(translator.value(node), translator)
            if isinstance(expression, Refusal):
                return expression
            fields.append((key, None, expression))
    return fields


def _is_input(translator: Translator, node: Node, key: str) -> bool:
    """Return whether a field is the input of that name, or a constant where there is no such input."""
    node = bare(node)
    if node.type == "binary_expression" and translator.operator(node) in ("??", "||"):
        if plain(translator.script, part(node, "right")) in (NOT_PLAIN, UNDEFINED):
            return False
        node = bare(part(node, "left"))
    if node.type in ("identifier", "shorthand_property_identifier"):
        name = translator.of(node)
        return name == key and name in translator.locals and name in _scope(translator).taken_inputs
    if node.type != "member_expression" or translator.of(part(node, "property")) != key:
        return False
    owner = bare(part(node, "object"))
    if owner.type == "member_expression":
        return translator.of(part(owner, "property")) == "input"
    return owner.type == "identifier" and translator.locals.get(translator.of(owner)) is INPUT


def _default(translator: Translator, node: Node) -> Any:
    node = bare(node)
    return plain(translator.script, part(node, "right")) if node.type == "binary_expression" else None


def _begin_object(text: str, scope: Scope, place: Place) -> tuple[Translator, dict[str, Node]] | Refusal:
    """Return a translator, and the names and values of the object that a function returns.

    A context that is spread into the object is skipped, because its fields exist anyway.
    """
    found = _begin(text, scope, place)
    if isinstance(found, Refusal):
        return found
    translator, node = found
    if node.type == "statement_block":
        last = settle(translator, node)
        if last is None:
            return Refusal("it does more than return a value")
        node = bare(last)
    if node.type == "identifier" and translator.locals.get(translator.of(node)) is INPUT:
        return translator, {}
    if node.type != "object":
        return Refusal("it does not return an object literal")
    pairs: dict[str, Node] = {}
    for one in list_parts(node):
        if one.type == "spread_element" and translator.value(list_parts(one)[0]) in (CONTEXT, INPUT):
            continue
        if one.type == "shorthand_property_identifier":
            pairs[translator.of(one)] = one
            continue
        key = key_of(translator.script, part(one, "key")) if one.type == "pair" else None
        if key is None or key in pairs:
            return Refusal("the object holds more than names and values")
        pairs[key] = part(one, "value")
    return translator, pairs


def _finish(value: Code, translator: Translator) -> str | Refusal:
    names = _scope(translator)
    if names.notes.refusal:
        return names.notes.refusal
    if translator.effects:
        return Refusal("it changes something besides having a value")
    text = names.whole(value.text)
    if "\0" in text:
        name = text[text.index("\0") :].split(",")[0].split(")")[0].split(" ")[0]
        what = _WHOLE.get(name)
        return Refusal(f"it uses {what} as a whole", "name the fields") if what else Refusal("it uses actors")
    return text


def _begin(text: str, scope: Scope, place: Place) -> tuple[Translator, Node] | Refusal:
    """Return a translator, and what it is to translate: an expression, or the body of a function."""
    try:
        script, node = parse_expression(text, typed=True)
    except SyntaxProblem as problem:
        return Refusal(problem.message)
    names = ExpressionScope(scope, place)
    translator = Translator(names, script, names.names)
    if not is_function(node):
        return translator, node
    if not _bind(node, translator, scope.reading.four):
        return Refusal("its parameters are not those of XState")
    return translator, bare(part(node, "body"))


def _scope(translator: Translator) -> ExpressionScope:
    assert isinstance(translator.scope, ExpressionScope)
    return translator.scope


def _bind(function: Node, translator: Translator, four: bool) -> bool:
    """Bind the parameters of a function. Return whether all of them could be bound.

    Version 5 calls with ``({context, event}, params)``, version 4 with ``(context, event)``.
    """
    single = function.child_by_field_name("parameter")
    listed = function.child_by_field_name("parameters")
    patterns = [single] if single is not None else [pattern_of(one) for one in list_parts(listed)] if listed else []
    four = four or (len(patterns) == 2 and patterns[0].type == "identifier" and translator.of(patterns[0])[:1] != "_")
    meanings = (CONTEXT, EVENT) if four else (BOTH, _scope(translator).params)
    for pattern, meaning in zip(patterns, meanings, strict=False):
        if pattern.type == "identifier":
            translator.locals[translator.of(pattern)] = meaning
        elif pattern.type != "object_pattern" or not take_apart(translator, pattern, meaning):
            return False
    return len(patterns) <= 3


def describe(value: Any) -> str:
    """Say what a piece of a script is: ``a function``, or the call or name that it holds."""
    text = value.strip().removeprefix("{{").removesuffix("}}").strip()
    try:
        node = parse_expression(text, typed=True)[1]
    except SyntaxProblem:
        return "code"
    kinds = {
        **dict.fromkeys(FUNCTIONS, "a function"),
        "call_expression": "a call",
        "identifier": "a name of the script",
    }
    return kinds.get(node.type, "code")


def is_code(value: Any) -> bool:
    """Return whether a value of a config is a function or another piece of a script."""
    return isinstance(value, str) and value.startswith("{{")


def of(kind: str, name: str, scope: Scope) -> Place | None:
    """Return the implementation of a name; None if there is none, or if names refer to each other without end."""
    found = scope.reading.implementations
    kinds = found.get(kind) if found and isinstance(found.value, dict) else None
    scope.reading.lookups += 1
    too_much = scope.depth > MAX_DEPTH or scope.reading.lookups > MAX_LOOKUPS
    if kinds is None or not isinstance(kinds.value, dict) or too_much:
        return None
    return kinds.get(name)


def deeper(scope: Scope, params: Any = None) -> Scope:
    return replace(scope, depth=scope.depth + 1, params=params)


def guard(name: str, scope: Scope, place: Place, read_guard: Callable[[Place, Scope], str | bool]) -> str | None:
    """Return the expression of a named guard. Code that cannot be translated is reported."""
    found = of("guards", name, scope)
    if found is None:
        return None
    code = unbrace(found.value) if isinstance(found.value, str) else None
    if code is None:
        return str(read_guard(found, deeper(scope, scope.params)))
    translated = translate(code, scope, found, condition=True)
    if isinstance(translated, str):
        return translated
    message = f"the guard {quote(name)} cannot be translated: {translated.why}"
    place.report.add("SB140", place.path, message, translated.hint or "write it as an expression")
    return name


@dataclass(frozen=True, slots=True)
class Refusal:
    why: str
    hint: str = ""


class Notes(Report):
    """The translator's findings: only the first refusal counts. ``calls``: how many functions were inlined."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.refusal: Refusal | None = None
        self.calls = 0
        self._place = place

    def count_call(self) -> None:
        self.calls += 1
        if self.calls > MAX_CALLS:
            self.refusal = self.refusal or Refusal(f"more than {MAX_CALLS} calls of functions")

    def add(self, code: str, where: str | Callable[[], str], message: str, hint: str = "") -> None:
        if get_severity(code) == "error":
            self.refusal = self.refusal or Refusal(message.removesuffix(" cannot be translated"), hint)
        else:
            self._place.report.add(code, self._place.path, message, hint)


class ExpressionScope(JavaScriptScope):
    """Translates ``context.field``, ``event.field`` and ``params.name``. It stops after the first refusal."""

    def __init__(self, where: Scope, place: Place) -> None:
        reading = where.reading
        self.notes = Notes(place)
        states = {name: name for name in reading.states.names}
        super().__init__(
            self.notes,
            Fields(),
            _functions_of(reading),
            states,
            reading.machine,
            idle=frozenset(["assertEvent", "console"]),
            constants=reading.constants,
            loops=where.loops,
            may_fail=False,
        )
        self.params = _parameter(where.params) if isinstance(where.params, str) else PARAMS
        self.taken_inputs: set[str] = set()
        self._where = where
        self._place = place

    @property
    def names(self) -> dict[str, Code]:
        """Return the names that each expression can use."""
        return {"context": CONTEXT, "event": EVENT, "params": self.params}

    @property
    def is_stopped(self) -> bool:
        return self.notes.refusal is not None

    def inside(self, *, loops: bool = True) -> ExpressionScope:
        self.notes.count_call()
        if loops:
            return self
        inner = copy(self)
        inner.loops = None
        return inner

    def declare_helper(self, name: str) -> None:
        undeclared = self._where.reading.undeclared
        if name not in undeclared:
            undeclared.append(name)

    def translate_undeclared(self, translator: Translator, node: Node, name: str) -> Code:
        """Translate a name that is not declared.

        It is a constant of the script, or a data field: some tools omit ``context.`` before it.
        """
        reading = self._where.reading
        if name in reading.constants:
            return literal(reading.constants[name])
        if name in reading.fields:
            return translator.property(node, CONTEXT, name)
        return translator.refuse(node, f"the name {name}", _OTHERS)

    def property(self, translator: Translator, node: Node, owner: Code, name: str) -> Code | None:
        reading = self._where.reading
        if owner is CONTEXT:
            field = reading.field(name, self._place)
            return Code(field, kinds=reading.kinds.get(field, ANY))
        if owner is BOTH:
            return self._of_both(translator, node, name)
        if owner is INPUT:
            self.taken_inputs.add(name)
            return Code(reading.input_field(name, self._place), kinds=ANY)
        if owner is PARAMS:
            params = self._where.params
            if not isinstance(params, dict) or name not in params:
                return translator.refuse(node, f"the parameter {name}", "it is not given a value here")
            return _parameter(params[name])
        if owner is EVENT:
            return self._of_event(name)
        return owner if owner.text == "event.error" and name == "message" else None

    def _of_both(self, translator: Translator, node: Node, name: str) -> Code:
        known = self.names | {"input": INPUT}
        if name in known:
            return known[name]
        if name in _OF_ACTORS:
            return Code(f"\0{name}")  # refused where it is used
        return translator.refuse(node, f"the name {name}", _OTHERS)

    def _of_event(self, name: str) -> Code | None:
        """Translate a member of the event: its name, the output of finished work, or an error have other names here."""
        four = self._where.reading.four
        if name == "type":
            return Code("trigger.name", kinds=STRING)
        if name == ("data" if four else "output") and self._where.output:
            return Code(self._where.output, kinds=ANY)
        return Code("event.error", kinds=STRING) if name == "data" and four and self._where.failing else None

    def whole(self, text: str) -> str:
        """Replace whole contexts and parameters in an expression by an object of all their fields."""
        reading = self._where.reading
        if CONTEXT.text in text:
            fields = ", ".join(f"{name!r}: {field}" for name, field in reading.fields.items())
            text = text.replace(CONTEXT.text, f"{{{fields}}}")
        if PARAMS.text in text and isinstance(self._where.params, dict):
            params = ", ".join(f"{name!r}: {value}" for name, value in self._where.params.items())
            text = text.replace(PARAMS.text, f"{{{params}}}")
        return text


def _parameter(text: str) -> Code:
    """Return an expression that was given as a parameter. The kind is known only for a literal."""
    tree = expressions.read(text).tree
    kinds = {"num": NUMBER, "str": STRING, "bool": BOOLEAN}.get(str(tree[0]), ANY)
    return Code(text, ATOM if kinds is not ANY and text[:1] != "-" else CHOICE, kinds)


def _functions_of(reading: Reading) -> dict[str, Function]:
    """Return the functions beside the machine whose parameters are plain names.

    They are parsed when the first expression is read.
    """
    if reading.functions is None:
        place = reading.implementations.get("functions") if reading.implementations else None
        texts = list((place.value if place else {}).items())[:MAX_FUNCTIONS]
        found = {name: _read_function(unbrace(text) or "") for name, text in texts}
        reading.functions = {name: function for name, function in found.items() if function is not None}
    return reading.functions


def _read_function(text: str) -> Function | None:
    try:
        script, node = parse_expression(text, typed=True)
    except SyntaxProblem:
        return None
    return function_of(script, node) if is_function(node) and not text.startswith("async") else None
