"""Translates operators. If the kinds of both sides are known, ours mean the same; otherwise a function is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import code, platform
from .code import ABSENT, ANY, NONE, NUMBER, STRING, TABLES, Code, Kinds, only, same_primitive
from .parsing import Node, bare, part

if TYPE_CHECKING:
    from .translator import Translator

_ORDER = {"<": "less", "<=": "at_most", ">": "more", ">=": "at_least"}
_BITS = ("&", "|", "^", "<<", ">>", ">>>")


def binary(translator: Translator, node: Node) -> Code:
    operator = translator.operator(node)
    left, right = part(node, "left"), part(node, "right")
    if operator in ("&&", "||", "??"):
        return _logic(translator, operator, left, right)
    if operator in _BITS:
        return translator.refuse(node, f"the operator {operator}")
    if operator == "in":
        return _has(translator, left, right)
    if operator == "instanceof":
        return _instance(translator, node, left, right)
    if operator in ("==", "!=", "===", "!=="):
        return _equality(translator, node, operator, left, right)
    return apply(operator, translator.value(left), translator.value(right))


def apply(operator: str, left: Code, right: Code) -> Code:
    """Translate arithmetic and order operators."""
    if operator in _ORDER:
        known = any(left.kinds <= kinds and right.kinds <= kinds for kinds in (NUMBER, STRING))
        return code.compare(left, operator, right) if known else code.truth(_ORDER[operator], left, right)
    if operator == "+":
        return add(left, right)
    if operator == "%":
        return code.call("remainder", as_number(left), as_number(right), kinds=NUMBER)
    return code.calculate(as_number(left), operator, as_number(right))


def add(left: Code, right: Code) -> Code:
    if only(left.kinds, NUMBER) and only(right.kinds, NUMBER):
        return code.calculate(left, "+", right)
    if left.kinds <= STRING or right.kinds <= STRING:
        return code.calculate(as_text(left), "+", as_text(right), STRING)
    texts = (left.kinds | right.kinds) & (STRING | TABLES)
    return code.call("plus", left, right, kinds=NUMBER | STRING if texts else NUMBER)


def as_text(value: Code) -> Code:
    return value if value.kinds <= STRING else code.call("to_text", value, kinds=STRING)


def as_number(value: Code) -> Code:
    return value if only(value.kinds, NUMBER) else code.call("number", value, kinds=NUMBER)


def as_condition(value: Code) -> Code:
    """Return a value as a condition. Lists and objects are true in ECMAScript, even empty ones."""
    return code.truth("truthy", value) if value.kinds & TABLES else value


def unary(translator: Translator, node: Node) -> Code:
    operator, argument = translator.operator(node), part(node, "argument")
    if operator == "typeof":
        return typeof(translator, bare(argument))
    if operator == "!":
        return code.opposite(translator.condition(argument))
    if operator == "void":
        return ABSENT
    if operator == "~":
        return translator.refuse(node, "the operator ~")
    value = as_number(translator.value(argument))
    return code.negative(value) if operator == "-" else value


def typeof(translator: Translator, node: Node) -> Code:
    """Translate ``typeof``. It does not fail for a name that is not declared."""
    if node.type == "null":
        return code.text("object")
    if node.type == "identifier":
        name = translator.of(node)
        if name in translator.scope.functions:
            return code.text("function")
        if name not in translator.locals and name not in platform.SYSTEM and not translator.scope.variable(name):
            return code.text("undefined")
        if name in platform.ALWAYS_BOUND:
            return code.text(platform.ALWAYS_BOUND[name])
    return code.call("typeof", translator.value(node), kinds=STRING)


def _typeof_undefined(translator: Translator, typeof_side: Node, text_side: Node) -> Code | None:
    """Translate ``typeof x === 'undefined'``, which tests whether x is absent."""
    typeof_side, text_side = bare(typeof_side), bare(text_side)
    if typeof_side.type != "unary_expression" or translator.operator(typeof_side) != "typeof":
        return None
    if text_side.type != "string" or translator.of(text_side)[1:-1] != "undefined":
        return None
    found = typeof(translator, bare(part(typeof_side, "argument")))
    if not found.text.startswith("typeof("):
        return Code("True" if found.text == "'undefined'" else "False", kinds=code.literal(True).kinds)
    return code.compare(translator.value(part(typeof_side, "argument")), "==", ABSENT)


def _equality(translator: Translator, node: Node, operator: str, left: Node, right: Node) -> Code:
    asked = _typeof_undefined(translator, left, right) or _typeof_undefined(translator, right, left)
    if asked is not None:
        if asked.text in ("True", "False"):
            return code.literal((asked.text == "True") == operator.startswith("="))
        is_same = operator.startswith("=")
        return asked if is_same else Code(f"{asked.text.removesuffix(' == None')} != None", asked.level, asked.kinds)
    if operator in ("===", "!==") and "null" in (bare(left).type, bare(right).type):
        translator.warn(node, "null and undefined are one value here")
    return equal(operator, translator.value(left), translator.value(right))


def equal(operator: str, left: Code, right: Code) -> Code:
    """Translate ``== != === !==``. Objects are compared by content, not by identity."""
    if _is_literal(right):
        left = _data(left)
    if _is_literal(left):
        right = _data(right)
    strict = len(operator) == 3 or left.is_none or right.is_none or same_primitive(left.kinds, right.kinds)
    if strict:
        return code.compare(left, operator[:2], right)
    asked = code.truth("loosely_equal", left, right)
    return asked if operator == "==" else code.opposite(asked)


def _is_literal(value: Code) -> bool:
    return value.text[:1] in "'\"" or value.text.isdigit()


def _data(value: Code) -> Code:
    """Return the event's data for a comparison with a text or a number.

    An event without data has an empty object here, which makes no difference in such a comparison.
    """
    return Code("event", kinds=value.kinds) if value.text == platform.DATA.text else value


def _logic(translator: Translator, operator: str, left: Node, right: Node) -> Code:
    """Translate ``a && b`` and ``a || b``, which return an operand, as ours do.

    Unlike ours, ECMAScript treats all lists and objects as true.
    """
    values = translator.values([*operands(translator, operator, left), right])
    whole = values[-1]  # (a || b) || c is a || (b || c), in which no operand occurs more than twice
    for value in reversed(values[:-1]):
        whole = pair(operator, value, whole)
    return whole


def operands(translator: Translator, operator: str, node: Node) -> list[Node]:
    """Return all operands of a chain of one operator."""
    found: list[Node] = []
    node = bare(node)
    while node.type == "binary_expression" and translator.operator(node) == operator:
        found.append(part(node, "right"))
        node = bare(part(node, "left"))
    return [node, *reversed(found)]


def pair(operator: str, left: Code, right: Code) -> Code:
    if operator == "??":
        return code.choose(code.compare(left, "==", ABSENT), right, left)
    if left.kinds & TABLES:
        test = code.truth("truthy", left)
        return code.choose(test, right, left) if operator == "&&" else code.choose(test, left, right)
    return code.both(left, right) if operator == "&&" else code.either(left, right)


def _has(translator: Translator, key: Node, owner: Node) -> Code:
    owner = bare(owner)
    if translator.of(owner) == "_event" and bare(key).type == "string":
        if translator.of(bare(key))[1:-1] in platform.EVENT_FIELDS:
            return code.compare(Code("trigger"), "!=", ABSENT)
        return code.literal(False)
    return code.truth("has", translator.value(owner), translator.value(key))


def _instance(translator: Translator, node: Node, left: Node, right: Node) -> Code:
    name = translator.of(bare(right))
    if name == "Array":
        return code.truth("is_list", translator.value(left))
    if name == "Object":
        return code.compare(code.call("typeof", translator.value(left), kinds=STRING), "==", code.text("object"))
    if name.endswith("Error"):  # the error of failed work is a text here
        value = translator.value(left)
        return code.literal(True) if value.text == "event.error" else code.truth("has", value, code.text("message"))
    return translator.refuse(node, f"instanceof {name[:40]}")


def element_kinds(owner: Kinds) -> Kinds:
    """Return the kinds that an element of a value of these kinds may have."""
    return STRING | NONE if owner and owner <= STRING else ANY
