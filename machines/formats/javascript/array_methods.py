"""Translates array methods that take a function. Expressions cannot loop, but actions can.

A function that only tests ``x === value`` becomes ``value in list``. For a list that is written out, the function is
applied to each element in turn. An assignment may get a ``foreach`` before it, whose actions write only helper fields,
which the assignment removes. A method in a choice, which is not always evaluated, is refused: its loop would always
run.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from . import calls, code, scope
from .code import ABSENT, ANY, ARRAY, BOOLEAN, NONE, NUMBER, Code
from .operators import as_condition
from .parsing import FUNCTIONS, Node, arguments_of, bare, is_function, list_parts, part
from .scope import Action, Function, function_of

if TYPE_CHECKING:
    from .translator import Translator

METHODS = ("some", "every", "find", "findIndex", "map", "filter", "reduce", "forEach", "flatMap", "sort")
LOOPED = ("map", "filter", "some", "every", "find", "findIndex", "reduce")
ONLY_SOMETIMES = ("&&", "||", "??")  # their right side is not always evaluated
MAX_LOOPS = 8  # of one assignment
MAX_ELEMENTS = 30  # of a list that is written out
MAX_FILL = 100
_HINT = "expressions cannot loop: let a handler compute it, or use foreach"


def call(translator: Translator, node: Node) -> Code:
    """Translate a call. Calls that are not an array method with a function are passed on."""
    callee = bare(part(node, "function"))
    if callee.type != "member_expression":
        return calls.call(translator, node)
    name = translator.of(part(callee, "property"))
    arguments = arguments_of(node)
    if name == "fill" and len(arguments) == 1:
        found = _fill(translator, bare(part(callee, "object")), arguments[0])
        return found if found is not None else calls.call(translator, node)
    if name not in METHODS or not arguments:
        return calls.call(translator, node)
    function = _function(translator, bare(arguments[0]))
    if function is None or not function.parameters:
        return _refuse(translator, node, name)
    owner, found = bare(part(callee, "object")), None
    if function.body.type != "statement_block":
        found = _translate_without_loop(translator, name, function, owner)
    if found is None and translator.scope.loops is not None:
        further = translator.values(arguments[1:])
        found = _loop(translator, node, name, function, translator.value(owner), further)
    return found if found is not None else _refuse(translator, node, name)


def _translate_without_loop(translator: Translator, name: str, function: Function, owner: Node) -> Code | None:
    elements = _elements(translator, owner) if len(function.parameters) == 1 else None
    if elements is not None and name in ("some", "every", "find", "map"):
        return _unroll(translator, name, function, elements)
    return _translate_comparisons(translator, name, function, owner)


def _refuse(translator: Translator, node: Node, name: str) -> Code:
    return translator.refuse(node, f"the method {name}() with such a function", _HINT)


def _function(translator: Translator, node: Node) -> Function | None:
    if node.type == "identifier":
        return translator.scope.functions.get(translator.of(node))
    return function_of(translator.script, node) if is_function(node) else None


def _elements(translator: Translator, owner: Node) -> list[Code] | None:
    """Return the elements of a list that is written out, here or as a constant; None if it is not, or is too long."""
    if owner.type == "identifier" and translator.of(owner) not in translator.locals:
        found = translator.scope.constants.get(translator.of(owner))
        if isinstance(found, list) and len(found) <= MAX_ELEMENTS:
            return [code.literal(one) for one in found]
    if owner.type != "array" or len(list_parts(owner)) > MAX_ELEMENTS:
        return None
    if any(one.type == "spread_element" for one in list_parts(owner)):
        return None
    return translator.values(list_parts(owner))


def _unroll(translator: Translator, name: str, function: Function, elements: list[Code]) -> Code | None:
    """Unroll a method call over the elements. Return None where the function changes something."""
    parameter = function.parameters[0]
    inner = [translator.inner(function.script, {**translator.locals, parameter: one}) for one in elements]
    for one in inner:
        one.nested = translator.nested
    if name == "map":
        found = code.array(*(one.value(function.body) for one in inner))
    else:
        found = _choose(name, [one.condition(function.body) for one in inner], elements)
    return None if any(one.effects for one in inner) else found


def _choose(name: str, asked: list[Code], elements: list[Code]) -> Code:
    """Return the value of a method, given the function's result for each element."""
    if name == "some":
        return reduce(code.either, asked) if asked else code.literal(False)
    if name == "every":
        return reduce(code.both, asked) if asked else code.literal(True)
    found = ABSENT
    for condition, element in zip(reversed(asked), reversed(elements), strict=True):
        found = code.choose(condition, element, found)
    return found


def _translate_comparisons(translator: Translator, name: str, function: Function, owner: Node) -> Code | None:
    """Translate methods that compare each element with given values.

    These are ``some(x => x === a || x === b)``, ``every(x => x !== a)``, and ``find`` and ``findIndex`` of one value.
    """
    wanted = {"some": ("===", "||"), "every": ("!==", "&&"), "find": ("===", ""), "findIndex": ("===", "")}.get(name)
    values = None if wanted is None else _find_compared(translator, function, function.body, *wanted)
    if values is None:
        return None
    whole = translator.value(owner)
    if name == "findIndex":
        return code.call("index_of", whole, values[0], kinds=NUMBER)
    asked = [Code(f"contains({whole.text}, {value.text})", kinds=BOOLEAN) for value in values]
    if name == "find":
        return Code(code.choose(asked[0], values[0], ABSENT).text, code.CHOICE, ANY | NONE)
    return reduce(code.either, asked) if name == "some" else reduce(code.both, [code.opposite(one) for one in asked])


def _find_compared(
    translator: Translator, function: Function, body: Node, comparison: str, joined: str
) -> list[Code] | None:
    """Return the values that the element is compared with; None if the body does anything else."""
    body = bare(body)
    if body.type != "binary_expression":
        return None
    operator, left, right = translator.operator(body), bare(part(body, "left")), bare(part(body, "right"))
    if joined and operator == joined:
        first = _find_compared(translator, function, left, comparison, joined)
        second = _find_compared(translator, function, right, comparison, joined)
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


def _fill(translator: Translator, owner: Node, value: Node) -> Code | None:
    """Translate ``Array(9).fill(null)``."""
    if owner.type not in ("call_expression", "new_expression"):
        return None
    maker = part(owner, "function" if owner.type == "call_expression" else "constructor")
    arguments = arguments_of(owner)
    count = translator.of(arguments[0]) if translator.of(maker) == "Array" and len(arguments) == 1 else ""
    if not count.isdigit() or int(count) > MAX_FILL:
        return None
    return code.array(*[translator.value(value)] * int(count))


# -- loops before an assignment -----------------------------------------------------------------------


def _loop(
    translator: Translator, node: Node, name: str, function: Function, owner: Code, further: list[Code]
) -> Code | None:
    """Add the loop of a call to the assignment around it, and return its result; None where there can be no loop."""
    loops = translator.scope.loops
    if loops is None or len(loops) >= MAX_LOOPS or name not in LOOPED or not _is_always_asked(translator, node):
        return None
    if len(further) != (name == "reduce") or len(function.parameters) > 3 + (name == "reduce"):
        return None
    helpers = result, item, index = [f"loop{len(loops) + 1}_{kind}" for kind in ("result", "item", "index")]
    for helper in helpers:
        translator.scope.declare_helper(helper)
    given = [Code(result, kinds=ANY)] if name == "reduce" else []
    values = [*given, Code(item, kinds=ANY), Code(index, kinds=NUMBER), owner]
    locals = {**translator.locals, **dict(zip(function.parameters, values, strict=False))}
    inner = translator.inner(function.script, locals, loops=False)
    inner.nested = translator.nested + 1
    asked = name not in ("map", "reduce")
    if function.body.type == "statement_block":
        body = scope.find_value(inner, list_parts(function.body))
    else:
        body = inner.condition(function.body) if asked else inner.value(function.body)
    value = as_condition(body) if asked else body
    if inner.effects:
        return None
    first, act, found = _write(name, result, item, index, value, further)
    each = {"foreach": {"in": owner.text, "item": item, "index": index, "do": [act]}}
    loops.append([{"set": {result: first}}, each])
    return found


def finish_loops(loops: list[list[Action]], assignment: Action) -> list[Action]:
    """Return the actions of an assignment with its loops before it."""
    if not loops:
        return [assignment]
    helpers = [f"loop{number}_{kind}" for number in range(1, len(loops) + 1) for kind in ("result", "item", "index")]
    return [*(action for one in loops for action in one), assignment, {"unset": helpers}]


def _write(name: str, result: str, item: str, index: str, value: Code, further: list[Code]) -> tuple[Any, Action, Code]:
    """Return what the result is before the loop, the action for each element, and the value of the call."""
    listed, held, last = Code(result, kinds=ARRAY), Code(result, kinds=BOOLEAN), Code(f"{result}[0]", kinds=ANY)
    if name == "map":
        return [], {"append": {result: value.text}}, listed
    if name == "filter":
        return [], _if(value, {"append": {result: item}}), listed
    if name == "reduce":
        return further[0].text, {"set": {result: value.text}}, Code(result, kinds=ANY)
    if name == "some":
        return False, _if(code.both(code.opposite(held), value), {"set": {result: True}}), held
    if name == "every":
        return True, _if(code.both(held, code.opposite(value)), {"set": {result: False}}), held
    kept = Code(f"len({result})", kinds=NUMBER)
    nothing = code.compare(kept, "==", code.number(0))
    taken = {"append": {result: item if name == "find" else index}}
    if name == "find":
        return [], _if(code.both(nothing, value), taken), last
    return [], _if(code.both(nothing, value), taken), code.choose(nothing, code.number(-1), last)


def _if(condition: Code, action: Action) -> Action:
    return {"if": [{"guard": condition.text, "do": [action]}]}


def _is_always_asked(translator: Translator, node: Node) -> bool:
    """Tell whether a call is evaluated whenever its assignment is.

    Such a call is neither in a nested function nor in a branch that may be skipped.
    """
    if translator.nested:
        return False
    at, functions = node, 0
    while (above := at.parent) is not None:
        if above.type == "ternary_expression" and part(above, "condition") != at:
            return False
        is_joined = above.type == "binary_expression" and translator.operator(above) in ONLY_SOMETIMES
        if is_joined and part(above, "right") == at:
            return False
        functions += above.type in FUNCTIONS
        if functions > 1 or above.type == "statement_block":
            return False
        at = above
    return True
