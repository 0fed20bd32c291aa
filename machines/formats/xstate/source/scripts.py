"""Translates the JavaScript of a config: between double braces, and as the implementation of a name. Never runs it."""

from __future__ import annotations

from typing import Any

from machines.engine.definitions.place import Place
from machines.formats.javascript import inlining
from machines.formats.javascript.code import Code
from machines.formats.javascript.literals import NOT_PLAIN, UNDEFINED, key_of, plain
from machines.formats.javascript.operators import as_condition
from machines.formats.javascript.parsing import (
    FUNCTIONS,
    Node,
    SyntaxProblem,
    bare,
    is_function,
    list_parts,
    parse_expression,
    part,
)
from machines.formats.javascript.scope import pattern_of
from machines.formats.javascript.translator import Translator
from machines.formats.xstate.context import Scope
from machines.formats.xstate.names import field_name

from .expression_scope import BOTH, CONTEXT, EVENT, INPUT, ExpressionScope, Untranslated

__all__ = ["Untranslated", "describe", "fields_of", "initial_fields", "is_code", "translate"]

_WHOLE = {"\0both": "its argument", "\0input": "the input", "\0context": "the context", "\0params": "the parameters"}


def translate(text: str, scope: Scope, place: Place, *, condition: bool = False) -> str | Untranslated:
    """Translate a script's expression, or what its function returns, to an expression of ours."""
    found = _begin(text, scope, place)
    if isinstance(found, Untranslated):
        return found
    translator, node = found
    if node.type == "statement_block":
        value = inlining.find_value(translator, node)
        value = as_condition(value) if condition else value
    else:
        value = translator.condition(node) if condition else translator.value(node)
    return _finish(value, translator)


def fields_of(text: str, scope: Scope, place: Place) -> dict[str, str] | Untranslated:
    """Return the object that a function returns, as an expression for each key."""
    found = _begin_object(text, scope, place)
    if isinstance(found, Untranslated):
        return found
    translator, pairs = found
    fields: dict[str, str] = {}
    for key, node in pairs.items():
        value = _finish(translator.value(node), translator)
        if isinstance(value, Untranslated):
            return value
        fields[key] = value
    return fields


def initial_fields(text: str, scope: Scope, place: Place) -> list[tuple[str, Any, str | None]] | Untranslated:
    """Read ``context: ({input}) => ({...})``.

    Return each name, its first value, and the expression that sets it where one is needed.
    """
    found = _begin_object(text, scope, place)
    if isinstance(found, Untranslated):
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
            if isinstance(expression, Untranslated):
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


def _begin_object(text: str, scope: Scope, place: Place) -> tuple[Translator, dict[str, Node]] | Untranslated:
    """Return a translator, and the names and values of the object that a function returns.

    A context that is spread into the object is skipped, because its fields exist anyway.
    """
    found = _begin(text, scope, place)
    if isinstance(found, Untranslated):
        return found
    translator, node = found
    if node.type == "statement_block":
        last = inlining.settle(translator, node)
        if last is None:
            return Untranslated("it does more than return a value")
        node = bare(last)
    if node.type == "identifier" and translator.locals.get(translator.of(node)) is INPUT:
        return translator, {}
    if node.type != "object":
        return Untranslated("it does not return an object literal")
    pairs: dict[str, Node] = {}
    for one in list_parts(node):
        if one.type == "spread_element" and translator.value(list_parts(one)[0]) in (CONTEXT, INPUT):
            continue
        if one.type == "shorthand_property_identifier":
            pairs[translator.of(one)] = one
            continue
        key = key_of(translator.script, part(one, "key")) if one.type == "pair" else None
        if key is None or key in pairs:
            return Untranslated("the object holds more than names and values")
        pairs[key] = part(one, "value")
    return translator, pairs


def _finish(value: Code, translator: Translator) -> str | Untranslated:
    names = _scope(translator)
    if names.notes.refusal:
        return names.notes.refusal
    if translator.effects:
        return Untranslated("it changes something besides having a value")
    text = names.whole(value.text)
    if "\0" in text:
        name = text[text.index("\0") :].split(",")[0].split(")")[0].split(" ")[0]
        what = _WHOLE.get(name)
        return Untranslated(f"it uses {what} as a whole", "name the fields") if what else Untranslated("it uses actors")
    return text


def _begin(text: str, scope: Scope, place: Place) -> tuple[Translator, Node] | Untranslated:
    """Return a translator, and what it is to translate: an expression, or the body of a function."""
    try:
        script, node = parse_expression(text, typed=True)
    except SyntaxProblem as problem:
        return Untranslated(problem.message)
    names = ExpressionScope(scope, place)
    translator = Translator(names, script, names.names)
    if not is_function(node):
        return translator, node
    if not _bind(node, translator, scope.reading.four):
        return Untranslated("its parameters are not those of XState")
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
        elif pattern.type != "object_pattern" or not inlining.take_apart(translator, pattern, meaning):
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
