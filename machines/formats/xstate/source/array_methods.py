"""Methods of arrays that are given a function: what they say of ``x === value`` is ``value in list``.

Expressions cannot loop. Over a list that is written out each element is asked in turn; in an assignment there may be a
loop before it (``loops``).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from machines.formats.scxml.ecmascript import calls, code
from machines.formats.scxml.ecmascript.code import ABSENT, Code
from machines.formats.scxml.ecmascript.kinds import ANY, ARRAY, BOOLEAN, NONE, NUMBER
from machines.formats.scxml.ecmascript.parsing import Node, bare, named, part
from machines.formats.scxml.ecmascript.translator import Translator, function_of

from . import loops
from .typescript import untyped

if TYPE_CHECKING:
    from machines.formats.scxml.ecmascript.scope import Function

METHODS = ("some", "every", "find", "findIndex", "map", "filter", "reduce", "forEach", "flatMap", "sort")
MAX_ELEMENTS = 30  # of a list that is written out
MAX_FILL = 100
_HINT = "expressions cannot loop: let a handler compute it, or use foreach"


def call(translator: Any, node: Node) -> Code:
    """Any call; those that are no method of an array with a function go on."""
    callee = untyped(part(node, "function"))
    if callee.type != "member_expression":
        return calls.call(translator, node)
    name = translator.of(part(callee, "property"))
    arguments = named(part(node, "arguments")) if node.child_by_field_name("arguments") is not None else []
    if name == "fill" and len(arguments) == 1:
        found = _filled(translator, bare(part(callee, "object")), arguments[0])
        return found if found is not None else calls.call(translator, node)
    if name not in METHODS or not arguments:
        return calls.call(translator, node)
    function = _function(translator, untyped(arguments[0]))
    if function is None or not function.parameters:
        return _refuse(translator, node, name)
    owner = untyped(part(callee, "object"))
    found = _unlooped(translator, name, function, owner) if function.body.type != "statement_block" else None
    if found is None and translator._where.loops is not None:
        further = translator.values(arguments[1:])
        found = loops.loop(translator, node, name, function, translator.value(owner), further)
    return found if found is not None else _refuse(translator, node, name)


def _unlooped(translator: Translator, name: str, function: Function, owner: Node) -> Code | None:
    elements = _elements(translator, owner) if len(function.parameters) == 1 else None
    if elements is not None and name in ("some", "every", "find", "map"):
        return _unrolled(translator, name, function, elements)
    return _asked(translator, name, function, owner)


def _refuse(translator: Translator, node: Node, name: str) -> Code:
    return translator.refuse(node, f"the method {name}() with such a function", _HINT)


def _function(translator: Translator, node: Node) -> Function | None:
    if node.type == "identifier":
        return translator.scope.functions.get(translator.of(node))
    return function_of(translator.script, node) if node.type in ("arrow_function", "function_expression") else None


def _elements(translator: Translator, owner: Node) -> list[Code] | None:
    """Of a list that is written out, here or as a constant; None where it is not, or is long."""
    if owner.type == "identifier" and translator.of(owner) not in translator.locals:
        constants = translator._where.reading.constants
        found = constants.get(translator.of(owner))
        if isinstance(found, list) and len(found) <= MAX_ELEMENTS:
            return [code.literal(one) for one in found]
    if owner.type != "array" or len(named(owner)) > MAX_ELEMENTS:
        return None
    if any(one.type == "spread_element" for one in named(owner)):
        return None
    return translator.values(named(owner))


def _unrolled(translator: Translator, name: str, function: Function, elements: list[Code]) -> Code:
    inner = [translator.inner(function.script, _given(translator, function, one)) for one in elements]
    for one in inner:
        one.nested = translator.nested
    if name == "map":
        return Code("[" + ", ".join(one.value(function.body).text for one in inner) + "]", kinds=ARRAY)
    asked = [one.condition(function.body) for one in inner]
    if name == "some":
        return reduce(code.either, asked, code.literal(False)) if not asked else reduce(code.either, asked)
    if name == "every":
        return code.literal(True) if not asked else reduce(code.both, asked)
    found = ABSENT
    for condition, element in zip(reversed(asked), reversed(elements), strict=True):
        found = code.choose(condition, element, found)
    return found


def _given(translator: Translator, function: Function, element: Code) -> dict[str, Code]:
    return {**translator.locals, function.parameters[0]: element}


def _asked(translator: Translator, name: str, function: Function, owner: Node) -> Code | None:
    """``some(x => x === a || x === b)``, ``every(x => x !== a)``, ``find`` and ``findIndex`` of one value."""
    wanted = {"some": ("===", "||"), "every": ("!==", "&&"), "find": ("===", ""), "findIndex": ("===", "")}.get(name)
    values = None if wanted is None else _compared(translator, function, function.body, *wanted)
    if values is None:
        return None
    whole = translator.value(owner)
    if name == "findIndex":
        return code.call("index_of", whole, values[0], kinds=NUMBER)
    asked = [Code(f"contains({whole.text}, {value.text})", kinds=BOOLEAN) for value in values]
    if name == "find":
        return Code(code.choose(asked[0], values[0], ABSENT).text, code.CHOICE, ANY | NONE)
    return reduce(code.either, asked) if name == "some" else reduce(code.both, [code.opposite(one) for one in asked])


def _compared(
    translator: Translator, function: Function, body: Node, comparison: str, joined: str
) -> list[Code] | None:
    """The values that the element is compared with, and with nothing else."""
    body = untyped(body)
    if body.type != "binary_expression":
        return None
    operator, left, right = translator.operator(body), untyped(part(body, "left")), untyped(part(body, "right"))
    if joined and operator == joined:
        first = _compared(translator, function, left, comparison, joined)
        second = _compared(translator, function, right, comparison, joined)
        return None if first is None or second is None else first + second
    if operator not in (comparison, comparison[:2]):
        return None
    element = function.parameters[0]
    if translator.of(right) == element:
        left, right = right, left
    if left.type != "identifier" or translator.of(left) != element or _mentions(translator, right, element):
        return None
    return [translator.value(right)]


def _mentions(translator: Translator, node: Node, name: str) -> bool:
    waiting = [node]
    while waiting:
        at = waiting.pop()
        if at.type == "identifier" and translator.of(at) == name:
            return True
        waiting.extend(at.named_children)
    return False


def _filled(translator: Translator, owner: Node, value: Node) -> Code | None:
    """``Array(9).fill(null)``"""
    if owner.type not in ("call_expression", "new_expression"):
        return None
    maker = part(owner, "function" if owner.type == "call_expression" else "constructor")
    arguments = named(part(owner, "arguments"))
    count = translator.of(arguments[0]) if translator.of(maker) == "Array" and len(arguments) == 1 else ""
    if not count.isdigit() or int(count) > MAX_FILL:
        return None
    return Code("[" + ", ".join([translator.value(value).text] * int(count)) + "]", kinds=ARRAY)
