"""Methods of arrays whose function has to be asked of each element: in an assignment they become ``foreach``.

Expressions cannot loop, actions can. The actions stand before the assignment, write only fields of their own, and take
them away after it. A method that is asked only sometimes, in a choice, stays untranslated: its loop would always run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from machines.formats.scxml.ecmascript import code, inlining
from machines.formats.scxml.ecmascript.code import Code
from machines.formats.scxml.ecmascript.kinds import ANY, ARRAY, BOOLEAN, NUMBER
from machines.formats.scxml.ecmascript.parsing import Node, part
from machines.formats.scxml.ecmascript.translator import as_condition

if TYPE_CHECKING:
    from machines.formats.scxml.ecmascript.scope import Function

Action = dict[str, Any]
METHODS = ("map", "filter", "some", "every", "find", "findIndex", "reduce")
ONLY_SOMETIMES = ("&&", "||", "??")  # the right side of these
FUNCTIONS = ("arrow_function", "function_expression")
MOST = 8  # loops of one assignment


def loop(translator: Any, node: Node, name: str, function: Function, owner: Code, further: list[Code]) -> Code | None:
    """Add the loop of a call to the assignment around it, and return its result; None where there can be no loop."""
    loops = translator._where.loops
    if loops is None or len(loops) >= MOST or name not in METHODS or not _is_always_asked(translator, node):
        return None
    if len(further) != (name == "reduce") or len(function.parameters) > 3 + (name == "reduce"):
        return None
    result, item, index = (_helper(translator, f"loop{len(loops) + 1}_{kind}") for kind in ("result", "item", "index"))
    given = [Code(result, kinds=ANY)] if name == "reduce" else []
    values = [*given, Code(item, kinds=ANY), Code(index, kinds=NUMBER), owner]
    locals = {**translator.locals, **dict(zip(function.parameters, values, strict=False))}
    inner = translator.inner(function.script, locals)
    inner._where = replace(translator._where, loops=None)
    inner.nested = translator.nested + 1
    body = inlining.returned(inner, function.body) if function.body.type == "statement_block" else None
    asked = name not in ("map", "reduce")
    if body is None:
        body = inner.condition(function.body) if asked else inner.value(function.body)
    value = as_condition(body) if asked else body
    if inner.effects:
        return None
    first, act, found = _write(name, result, item, index, value, further)
    each = {"foreach": {"in": owner.text, "item": item, "index": index, "do": [act]}}
    loops.append([{"set": {result: first}}, each])
    return found


def finish(loops: list[list[Action]], assignment: Action) -> list[Action]:
    """Return the actions of an assignment with its loops before it."""
    if not loops:
        return [assignment]
    helpers = [f"loop{number}_{kind}" for number in range(1, len(loops) + 1) for kind in ("result", "item", "index")]
    return [*(action for one in loops for action in one), assignment, {"unset": helpers}]


def _write(name: str, result: str, item: str, index: str, value: Code, further: list[Code]) -> tuple[Any, Action, Code]:
    """Return what the result is before the loop, the action for each element, and the value of the call."""
    listed, last = Code(result, kinds=ARRAY), Code(f"{result}[0]", kinds=ANY)
    if name == "map":
        return [], {"append": {result: value.text}}, listed
    if name == "filter":
        return [], _if(value, {"append": {result: item}}), listed
    if name == "reduce":
        return further[0].text, {"set": {result: value.text}}, Code(result, kinds=ANY)
    if name == "some":
        return False, _if(_unless(result, value), {"set": {result: True}}), Code(result, kinds=BOOLEAN)
    if name == "every":
        held = code.both(Code(result, kinds=BOOLEAN), code.opposite(value))
        return True, _if(held, {"set": {result: False}}), Code(result, kinds=BOOLEAN)
    kept = Code(f"len({result})", kinds=NUMBER)
    nothing = code.compare(kept, "==", code.number(0))
    taken = {"append": {result: item if name == "find" else index}}
    if name == "find":
        return [], _if(code.both(nothing, value), taken), last
    return [], _if(code.both(nothing, value), taken), code.choose(nothing, code.number(-1), last)


def _unless(result: str, value: Code) -> Code:
    return code.both(code.opposite(Code(result, kinds=BOOLEAN)), value)


def _if(condition: Code, action: Action) -> Action:
    return {"if": [{"guard": condition.text, "do": [action]}]}


def _helper(translator: Any, name: str) -> str:
    """Declare a data field that a loop uses."""
    reading = translator._where.reading
    if name not in reading.undeclared:
        reading.undeclared.append(name)
    return name


def _is_always_asked(translator: Any, node: Node) -> bool:
    """Tell whether a call is evaluated whenever its assignment is: it stands in no function of its own, and not where a
    choice may leave it out."""
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
