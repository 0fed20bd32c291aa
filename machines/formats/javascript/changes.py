"""Translates assignments, ``x++`` and ``list.push(y)``: a change of a variable becomes a ``set`` of its data field.

Values are never changed in place: ``x.y = 1`` sets x to a copy of x with another y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from machines.engine import expressions
from machines.engine.definitions.checks.types import Inference

from . import code, operators, platform
from .code import ARRAY, ATOM, NUMBER, TABLES, Code
from .parsing import Node, bare, part
from .scope import Action

if TYPE_CHECKING:
    from .translator import Translator

_LOGICAL = {"&&=": "&&", "||=": "||", "??=": "??"}
MAX_KEYS = 20  # of a place inside a value
_ARITHMETIC = ("+=", "-=", "*=", "/=", "%=", "**=")
_ZERO, _LAST = code.number(0), code.number(-1)


@dataclass(frozen=True, slots=True)
class Spot:
    """A place that can be assigned to: a variable, or the value at these keys inside it."""

    name: str
    keys: tuple[Code, ...] = ()


class NoSpot(Exception):
    """Nothing can be assigned there. The message is a reason for ``fail``."""


def failing(message: str | Code) -> Action:
    """Return an action that does nothing but fail."""
    text = message.text if isinstance(message, Code) else code.fails(message).text
    return {"log": text}


def spot(translator: Translator, node: Node) -> Spot:
    """Return the place that an assignment writes to. Raises NoSpot."""
    keys: list[Code] = []
    node = bare(node)
    while node.type in ("member_expression", "subscript_expression") and len(keys) <= MAX_KEYS:
        keys.append(
            code.text(translator.of(part(node, "property")))
            if node.type == "member_expression"
            else translator.value(part(node, "index"))
        )
        node = bare(part(node, "object"))
    return Spot(_variable(translator, node), tuple(reversed(keys)))


def _variable(translator: Translator, node: Node) -> str:
    name = translator.of(node)
    if node.type != "identifier":
        raise NoSpot(f"{' '.join(name.split())[:60]} is no place to assign to")
    if name in platform.SYSTEM and name not in translator.locals:
        raise NoSpot(f"{name} is read-only")
    if name in translator.locals or name in translator.scope.functions:
        raise NoSpot(f"{name} cannot be assigned to here")
    if translator.scope.variable(name) is None:
        raise NoSpot(f"{name} is not declared")
    return name


def assign(translator: Translator, where: Spot, value: Code) -> Action:
    """Return the action that assigns a value to a place."""
    field = translator.scope.variable(where.name)
    assert field is not None
    translator.scope.fields.receive(where.name, value.kinds if not where.keys else TABLES & (field.kinds or TABLES))
    return {"set": {field.text: _replace_part(field, where.keys, value).text}}


def _replace_part(owner: Code, keys: tuple[Code, ...], value: Code) -> Code:
    """Return the owner's value with the part at ``keys`` replaced."""
    if not keys:
        return value
    inner = _replace_part(_read_part(owner, keys[0]), keys[1:], value) if keys[1:] else value
    return code.call("put", owner, keys[0], inner)


def _read_part(owner: Code, key: Code) -> Code:
    name = _text_of(key)
    return code.member(owner, name) if name is not None else code.call("item", owner, key)


def _text_of(key: Code) -> str | None:
    if key.text[:1] in "'\"" and key.level == ATOM and key.text.count(key.text[0]) == 2 and "\\" not in key.text:
        return key.text[1:-1]
    return None


def read(translator: Translator, where: Spot) -> Code:
    value = translator.scope.variable(where.name)
    assert value is not None
    for key in where.keys:
        value = _read_part(value, key)
    return value


def _change(translator: Translator, node: Node, target: Node, value: Code) -> None:
    """Add an assignment to the effects of the current expression."""
    try:
        where = spot(translator, target)
    except NoSpot as why:
        translator.warn(node, f"this fails whenever it runs: {why}")
        translator.effects.append(failing(str(why)))
        return
    action = assign(translator, where, finish(translator, node, value))
    (field,) = action["set"]
    if any(field in effect.get("set", ()) for effect in translator.effects):
        translator.refuse(node, f"changing {where.name} twice in one expression")
    translator.effects.append(action)


def assignment(translator: Translator, node: Node) -> Code:
    """Translate ``x = y`` and ``x += y``. The result is the assigned value."""
    target, right = part(node, "left"), part(node, "right")
    if node.type == "assignment_expression":
        value = translator.value(right)
    else:
        value = _augment(translator, node, target, right)
    if target.type in ("array_pattern", "object_pattern"):
        return translator.refuse(node, "taking apart in an assignment")
    _change(translator, node, target, value)
    return value


def _augment(translator: Translator, node: Node, target: Node, right: Node) -> Code:
    operator = translator.operator(node)
    old, new = translator.value(target), translator.value(right)
    if operator in _ARITHMETIC:
        return operators.apply(operator[:-1], old, new)
    if operator in _LOGICAL:
        return operators.pair(_LOGICAL[operator], old, new)
    return translator.refuse(node, f"the operator {operator}")


def update(translator: Translator, node: Node) -> Code:
    """Translate ``x++``, which returns the old number, and ``++x``, which returns the new one."""
    target = part(node, "argument")
    old = operators.as_number(translator.value(target))
    new = code.calculate(old, translator.operator(node)[0], code.number(1))
    _change(translator, node, target, new)
    return new if node.children[0].type in ("++", "--") else old


def delete(translator: Translator, node: Node, target: Node) -> Code:
    try:
        where = spot(translator, target)
        *above, last = where.keys
    except (NoSpot, ValueError):
        return translator.refuse(node, "delete of anything but a property")
    owner = Spot(where.name, tuple(above))
    without = code.call("without", read(translator, owner), last)
    translator.effects.append(assign(translator, owner, without))
    return code.literal(True)


# -- methods that change the list they belong to ------------------------------------------------------


def _join(*lists: Code) -> Code:
    return code.call("concat", *lists, kinds=ARRAY)


def _slice(owner: Code, *positions: Code) -> Code:
    return code.call("slice", owner, *positions, kinds=ARRAY)


def _count_longer(owner: Code, values: tuple[Code, ...]) -> Code:
    return code.calculate(code.call("len", owner, kinds=NUMBER), "+", code.number(len(values)))


def _first(owner: Code) -> Code:
    return code.call("item", owner, _ZERO)


def _splice(owner: Code, start: Code, count: Code, *values: Code) -> tuple[Code, Code]:
    stop = code.calculate(operators.as_number(start), "+", operators.as_number(count))
    before, after = _slice(owner, _ZERO, start), _slice(owner, stop)
    parts = [before, code.array(*values), after] if values else [before, after]
    return _join(*parts), _slice(owner, start, stop)


# name: fewest arguments, most, and a function that builds (the new list, the call's value)
METHODS: dict[str, tuple[int, int, Callable[..., tuple[Code, Code]]]] = {
    "push": (1, 100, lambda owner, *values: (_join(owner, code.array(*values)), _count_longer(owner, values))),
    "unshift": (1, 100, lambda owner, *values: (_join(code.array(*values), owner), _count_longer(owner, values))),
    "pop": (0, 0, lambda owner: (_slice(owner, _ZERO, _LAST), _first(_slice(owner, _LAST)))),
    "shift": (0, 0, lambda owner: (_slice(owner, code.number(1)), _first(owner))),
    "reverse": (0, 0, lambda owner: (code.call("reversed", owner, kinds=ARRAY),) * 2),
    "splice": (2, 100, _splice),
}


def method(translator: Translator, node: Node, owner: Node, name: str, values: list[Code]) -> Code:
    least, most, build = METHODS[name]
    if not least <= len(values) <= most:
        return translator.refuse(node, f"the method {name}() with {len(values)} arguments")
    before = translator.value(owner)
    after, worth = build(before, *values)
    if owner.type in ("identifier", "member_expression", "subscript_expression"):
        if name == "push" and len(values) == 1 and before.kinds == ARRAY and owner.type == "identifier":
            translator.scope.fields.receive(translator.of(owner), ARRAY)
            translator.effects.append({"append": {before.text: values[0].text}})
        else:
            _change(translator, node, owner, after)
    return worth


def assign_text(translator: Translator, node: Node, value: Code) -> Action:
    """Translate ``<assign location="...">``. Where nothing can be assigned, the action fails when it runs."""
    try:
        return assign(translator, spot(translator, node), finish(translator, node, value))
    except NoSpot as why:
        translator.warn(node, f"this fails whenever it runs: {why}")
        return failing(str(why))


def wrong(found: Code) -> str:
    """Return why the code can never have a value; an empty text if it might have one."""
    read = expressions.read(found.text)
    if read.problems:
        return ""
    said: list[str] = []
    Inference({}, None, lambda code, message: said.append(message) if code == "SB112" else None).types(read.tree)
    return said[0] if said else ""


def finish(translator: Translator, node: Node, found: Code) -> Code:
    """Return the code, or code that fails and gives the reason. Code too large for one expression is reported."""
    for problem in expressions.read(found.text).problems[:1]:
        where = partial(translator.script.locate, node)
        translator.scope.report.add("SB145", where, f"too much for one expression: {problem.message}", "take steps")
    why = wrong(found)
    return translator.fails(node, why) if why else found
