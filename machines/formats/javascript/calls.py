"""Translates calls of the document's functions, and of those of ECMAScript that have a counterpart here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from machines.engine.expressions import FUNCTIONS

from . import changes, code, platform, scope
from .code import ANY, ARRAY, BOOLEAN, NONE, NUMBER, OBJECT, STRING, Code
from .operators import as_condition, as_number, as_text, element_kinds
from .parsing import Node, arguments_of, bare, is_function, part

if TYPE_CHECKING:
    from .translator import Translator

Build = Callable[..., Code]

ZERO = code.number(0)
ONE = code.number(1)
_MANY = 100
_KINDS = {"integer": "number"}  # this is the only kind with another name in JSON Schema
_OF_XML = ("getElementsByTagName", "getElementById", "getAttribute", "querySelector", "hasAttribute", "item")
# ECMAScript's equivalents of our functions, for both directions: our name, fewest and most values, result kinds.
SAME_FUNCTIONS: dict[str, tuple[str, int, int, frozenset[str]]] = {
    "parseInt": ("parse_int", 1, 2, NUMBER | NONE),
    "parseFloat": ("parse_float", 1, 1, NUMBER | NONE),
    "isNaN": ("is_nan", 1, 1, BOOLEAN),
    "Array.isArray": ("is_list", 1, 1, BOOLEAN),
    "JSON.stringify": ("json", 1, 1, STRING),
    "JSON.parse": ("parse_json", 1, 1, ANY),
    "Math.random": ("random", 0, 0, NUMBER),
}
SAME_METHODS: dict[str, tuple[str, int, int, frozenset[str]]] = {
    "charAt": ("char_at", 2, 2, STRING),
    "hasOwnProperty": ("has", 2, 2, BOOLEAN),
    "includes": ("contains", 2, 2, BOOLEAN),
    "indexOf": ("index_of", 2, 3, NUMBER),
    "join": ("joined", 1, 2, STRING),
    "lastIndexOf": ("last_index_of", 2, 2, NUMBER),
    "repeat": ("repeated", 2, 2, STRING),
    "substring": ("substring", 2, 3, STRING),
    "toFixed": ("fixed", 1, 2, STRING),
    "toLowerCase": ("lower", 1, 1, STRING),
    "toUpperCase": ("upper", 1, 1, STRING),
    "trim": ("strip", 1, 1, STRING),
}
SAME_OF_NUMBERS = {
    "Math.abs": "abs",
    "Math.ceil": "ceil",
    "Math.exp": "exp",
    "Math.log": "log",
    "Math.sign": "sign",
    "Math.sqrt": "sqrt",
    "Math.trunc": "int",
}


def call(translator: Translator, node: Node) -> Code:
    callee, arguments = bare(part(node, "function")), arguments_of(node)
    if part(node, "arguments").type != "arguments":
        return translator.refuse(node, "a tagged template")
    if any(argument.type == "spread_element" for argument in arguments):
        return translator.refuse(node, "a spread argument")
    if callee.type == "identifier":
        return _function(translator, node, translator.of(callee), arguments)
    if callee.type in ("member_expression", "subscript_expression"):
        return _method(translator, node, callee, arguments)
    if not is_function(callee):
        return translator.refuse(node, "this call")
    function = scope.function_of(translator.script, callee)
    if function is None:
        return translator.refuse(node, "a function with anything but names as its parameters")
    return scope.call(translator, node, function, arguments)


def _function(translator: Translator, node: Node, name: str, arguments: list[Node]) -> Code:
    if name in translator.scope.functions:
        return scope.call(translator, node, translator.scope.functions[name], arguments)
    if name == "In":
        return platform.in_state(translator, node, arguments)
    if name in _FUNCTIONS:
        return _build(translator, node, f"{name}()", _FUNCTIONS[name], translator.values(arguments))
    if translator.scope.variable(name) is not None:
        return translator.refuse(node, f"a call of the variable {name[:40]}")
    if name in ("eval", "Function", "setTimeout", "setInterval", "require", "fetch"):
        return translator.refuse(node, f"{name}()")
    return translator.fails(node, f"{name} is not declared")


def _build(translator: Translator, node: Node, what: str, build: tuple[int, int, Build], values: list[Code]) -> Code:
    """Build a call. ``build`` holds the least and the most arguments that it accepts."""
    least, most, make = build
    if not least <= len(values) <= most:
        return translator.refuse(node, f"{what} with {len(values)} arguments")
    return make(*values)


def _method(translator: Translator, node: Node, callee: Node, arguments: list[Node]) -> Code:
    owner, name = bare(part(callee, "object")), platform.key_of(translator, callee)
    if name is None:
        return translator.refuse(node, "a call of a calculated name")
    if owner.type == "identifier" and translator.of(owner) not in translator.locals:
        static = f"{translator.of(owner)}.{name}"
        if translator.of(owner) == platform.OURS:
            return _ours(translator, node, name, translator.values(arguments))
        if static in _FUNCTIONS:
            return _build(translator, node, f"{static}()", _FUNCTIONS[static], translator.values(arguments))
        if translator.of(owner) in ("Math", "JSON", "Object", "Array", "Number", "String", "Date", "console"):
            return translator.refuse(node, f"{static}()")
    if _is_clock(translator, owner, name):
        return Code("now * 1000", code.PRODUCT, NUMBER)
    if name in changes.METHODS:
        return changes.method(translator, node, owner, name, translator.values(arguments))
    if name in _METHODS:
        values = translator.values(arguments)
        return _build(translator, node, f"the method {name}()", _METHODS[name], [translator.value(owner), *values])
    if name in _OF_XML:
        where = partial(translator.script.locate, node)
        translator.scope.report.add("SB143", where, f"{name}() belongs to XML: there is none here")
        return code.ABSENT
    return translator.refuse(node, f"the method {name[:40]}()")


def _ours(translator: Translator, node: Node, name: str, values: list[Code]) -> Code:
    """Translate ``Signalbox.len(x)``: one of our own functions, or an operator that ECMAScript does not have."""
    if name == "get" and len(values) == 2:
        return Code(f"{values[0].at(code.ATOM)}[{values[1].text}]")
    if name == "add" and len(values) == 2:
        return code.calculate(values[0], "+", values[1], ANY)
    if name not in FUNCTIONS or not FUNCTIONS[name].takes(len(values)):
        return translator.refuse(node, f"Signalbox.{name[:40]}() with {len(values)} arguments")
    gives = FUNCTIONS[name].gives
    return code.call(name, *values, kinds=ANY if gives == "any" else frozenset([_KINDS.get(gives, gives)]))


def _is_clock(translator: Translator, owner: Node, name: str) -> bool:
    """Return whether a call is ``new Date().getTime()``."""
    return (
        name in ("getTime", "valueOf")
        and owner.type == "new_expression"
        and translator.of(part(owner, "constructor")) == "Date"
        and not arguments_of(owner)
    )


def new(translator: Translator, node: Node) -> Code:
    name, arguments = translator.of(part(node, "constructor")), arguments_of(node)
    if name == "Object" and not arguments:
        return Code("{}", kinds=OBJECT)
    if name == "Array" and len(arguments) != 1:
        return code.array(*translator.values(arguments))
    if name == "Array":
        return translator.refuse(node, "new Array(length)")
    if name == "Error" and len(arguments) <= 1:
        message = translator.value(arguments[0]) if arguments else code.text("")
        return Code(f"{{'name': 'Error', 'message': {as_text(message).text}}}", kinds=OBJECT)
    return translator.refuse(node, f"new {name[:40]}")


# -- translations ------------------------------------------------------------------------------------


def _number(name: str) -> Build:
    return lambda value: code.call(name, as_number(value), kinds=NUMBER)


def _extreme(name: str) -> Build:
    def build(*values: Code) -> Code:
        if len(values) == 1:
            return as_number(values[0])
        return code.call(name, *(as_number(value) for value in values), kinds=NUMBER)

    return build


def _floor(value: Code) -> Code:
    """Translate ``Math.floor``. ``Math.floor(Date.now() / 1000)`` is ``now``, in whole seconds."""
    if value.text == "now * 1000 / 1000":
        return Code("now", kinds=NUMBER)
    return code.call("floor", as_number(value), kinds=NUMBER)


def _round(value: Code) -> Code:
    """Round a value. Halves are rounded up, whatever the sign."""
    return code.call("floor", code.calculate(as_number(value), "+", code.number(0.5)), kinds=NUMBER)


def _power(base: Code, exponent: Code) -> Code:
    return code.calculate(as_number(base), "**", as_number(exponent))


def _logarithm(base: float) -> Build:
    return lambda value: code.calculate(
        code.call("log", as_number(value), kinds=NUMBER), "/", code.call("log", code.number(base), kinds=NUMBER)
    )


def _boolean(value: Code) -> Code:
    return code.truth("bool", value) if as_condition(value) is value else code.truth("truthy", value)


def _gives(name: str, kinds: frozenset[str] = ANY) -> Build:
    return lambda *values: code.call(name, *values, kinds=kinds)


def _of_text(name: str, kinds: frozenset[str] = STRING) -> Build:
    """Build a call of one of our functions that requires text. ECMAScript converts the arguments, so we do too."""
    return lambda owner, *values: code.call(name, owner, *(as_text(value) for value in values), kinds=kinds)


def _of_list(name: str, owner: Code, *values: Code) -> Code:
    kinds = owner.kinds if owner.kinds and owner.kinds <= ARRAY | STRING else ARRAY | STRING
    return code.call(name, owner, *values, kinds=kinds)


def _substring(owner: Code, start: Code, length: Code | None = None) -> Code:
    """Translate ``substr``, which counts characters where the other functions take a second position."""
    rest = code.call("slice", owner, start, kinds=STRING)
    return rest if length is None else code.call("substring", rest, ZERO, length, kinds=STRING)


def _split(owner: Code, separator: Code | None = None) -> Code:
    if separator is None:
        return code.array(owner)
    if separator.text == "''":
        return code.call("characters", owner, kinds=ARRAY)
    return code.call("split", owner, separator, kinds=ARRAY)


def _at(owner: Code, index: Code) -> Code:
    return code.call("item", code.call("slice", owner, index), ZERO, kinds=element_kinds(owner.kinds))


def _is_finite(value: Code) -> Code:
    return code.opposite(code.truth("is_nan", value))


def _whole(value: Code) -> Code:
    return code.both(
        code.compare(code.call("typeof", value, kinds=STRING), "==", code.text("number")),
        code.compare(code.call("remainder", value, ONE, kinds=NUMBER), "==", ZERO),
    )


def _alike(same: dict[str, tuple[str, int, int, frozenset[str]]]) -> dict[str, tuple[int, int, Build]]:
    return {name: (least, most, _gives(ours, kinds)) for name, (ours, least, most, kinds) in same.items()}


_FUNCTIONS: dict[str, tuple[int, int, Build]] = {
    **_alike(SAME_FUNCTIONS),
    **{name: (1, 1, _number(ours)) for name, ours in SAME_OF_NUMBERS.items()},
    "isFinite": (1, 1, _is_finite),
    "Number": (1, 1, as_number),
    "String": (1, 1, as_text),
    "Boolean": (1, 1, _boolean),
    "Array": (0, _MANY, code.array),
    "Array.of": (0, _MANY, code.array),
    "Object.keys": (1, 1, _gives("keys", ARRAY)),
    "Object.values": (1, 1, _gives("values", ARRAY)),
    "Number.parseInt": (1, 2, _gives("parse_int", NUMBER | NONE)),
    "Number.parseFloat": (1, 1, _gives("parse_float", NUMBER | NONE)),
    "Number.isNaN": (1, 1, _gives("is_nan", BOOLEAN)),
    "Number.isFinite": (1, 1, _is_finite),
    "Number.isInteger": (1, 1, _whole),
    "Date.now": (0, 0, lambda: Code("now * 1000", code.PRODUCT, NUMBER)),
    "Math.floor": (1, 1, _floor),
    "Math.round": (1, 1, _round),
    "Math.cbrt": (1, 1, lambda value: _power(value, Code("1 / 3", code.PRODUCT, NUMBER))),
    "Math.log2": (1, 1, _logarithm(2)),
    "Math.log10": (1, 1, _logarithm(10)),
    "Math.pow": (2, 2, _power),
    "Math.min": (1, _MANY, _extreme("min")),
    "Math.max": (1, _MANY, _extreme("max")),
}
_METHODS: dict[str, tuple[int, int, Build]] = {
    **_alike(SAME_METHODS),
    "concat": (1, _MANY, partial(_of_list, "concat")),
    "slice": (1, 3, lambda owner, *positions: _of_list("slice", owner, *positions or [ZERO])),
    "substr": (2, 3, _substring),
    **dict.fromkeys(
        ("charCodeAt", "codePointAt"),
        (1, 2, lambda owner, at=ZERO: code.call("char_code", owner, at, kinds=NUMBER | NONE)),
    ),
    "at": (2, 2, _at),
    "startsWith": (2, 2, _of_text("startswith", BOOLEAN)),
    "endsWith": (2, 2, _of_text("endswith", BOOLEAN)),
    "split": (1, 2, _split),
    "replace": (3, 3, _of_text("replace_first")),
    "replaceAll": (3, 3, _of_text("replace")),
    "toString": (1, 1, as_text),
    "valueOf": (1, 1, lambda owner: owner),
}
