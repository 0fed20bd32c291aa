"""Translates assignments, ``x++`` and ``list.push(y)``: a change of a variable becomes a ``set`` of its data field.

Values are never changed in place: ``x.y = 1`` sets x to a copy of x with another y.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import checking, code, operators, platform
from .code import ATOM, Code
from .kinds import ARRAY, NUMBER, TABLES
from .parsing import Node, bare, part
from .scope import Action

if TYPE_CHECKING:
    from .translator import Translator

_LOGICAL = {"&&=": "&&", "||=": "||", "??=": "??"}
MAX_KEYS = 20  # of a place inside a value
_ARITHMETIC = ("+=", "-=", "*=", "/=", "%=", "**=")


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
    if node.type == "identifier":
        name = translator.of(node)
        if name in platform.SYSTEM and name not in translator.locals:
            raise NoSpot(f"{name} is read-only")
        if name in translator.locals or name in translator.scope.functions:
            raise NoSpot(f"{name} cannot be assigned to here")
        if translator.scope.variable(name) is None:
            raise NoSpot(f"{name} is not declared")
        return name
    raise NoSpot(f"{' '.join(translator.of(node).split())[:60]} is no place to assign to")


def assign(translator: Translator, where: Spot, value: Code) -> Action:
    """Return the action that assigns a value to a place."""
    field = translator.scope.variable(where.name)
    assert field is not None
    translator.scope.fields.receive(where.name, value.kinds if not where.keys else TABLES & (field.kinds or TABLES))
    return {"set": {field.text: _with(field, where.keys, value).text}}


def _with(owner: Code, keys: tuple[Code, ...], value: Code) -> Code:
    """Return the owner's value with the part at ``keys`` replaced."""
    if not keys:
        return value
    inner = _with(_inside(owner, keys[0]), keys[1:], value) if keys[1:] else value
    return code.call("put", owner, keys[0], inner)


def _inside(owner: Code, key: Code) -> Code:
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
        value = _inside(value, key)
    return value


def _change(translator: Translator, node: Node, target: Node, value: Code) -> None:
    """Add an assignment to the effects of the current expression."""
    try:
        where = spot(translator, target)
    except NoSpot as why:
        translator.warn(node, f"this fails whenever it runs: {why}")
        translator.effects.append(failing(str(why)))
        return
    action = assign(translator, where, checking.finish(translator, node, value))
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
    except NoSpot:
        where = Spot("")
    if not where.keys:
        return translator.refuse(node, "delete of anything but a property")
    *above, last = where.keys
    owner = Spot(where.name, tuple(above))
    without = code.call("without", read(translator, owner), last)
    translator.effects.append(assign(translator, owner, without))
    return code.literal(True)


# -- methods that change the list they belong to ------------------------------------------------------


def _push(owner: Code, *values: Code) -> tuple[Code, Code]:
    return code.call("concat", owner, code.array(*values), kinds=ARRAY), _longer(owner, values)


def _unshift(owner: Code, *values: Code) -> tuple[Code, Code]:
    return code.call("concat", code.array(*values), owner, kinds=ARRAY), _longer(owner, values)


def _longer(owner: Code, values: tuple[Code, ...]) -> Code:
    return code.calculate(code.call("len", owner, kinds=NUMBER), "+", code.number(len(values)))


def _pop(owner: Code) -> tuple[Code, Code]:
    last = code.call("slice", owner, code.number(-1), kinds=ARRAY)
    return code.call("slice", owner, code.number(0), code.number(-1), kinds=ARRAY), _first(last)


def _shift(owner: Code) -> tuple[Code, Code]:
    return code.call("slice", owner, code.number(1), kinds=ARRAY), _first(owner)


def _first(owner: Code) -> Code:
    return code.call("item", owner, code.number(0))


def _reverse(owner: Code) -> tuple[Code, Code]:
    turned = code.call("reversed", owner, kinds=ARRAY)
    return turned, turned


def _splice(owner: Code, start: Code, count: Code, *values: Code) -> tuple[Code, Code]:
    stop = code.calculate(operators.as_number(start), "+", operators.as_number(count))
    before = code.call("slice", owner, code.number(0), start, kinds=ARRAY)
    after = code.call("slice", owner, stop, kinds=ARRAY)
    parts = [before, code.array(*values), after] if values else [before, after]
    return code.call("concat", *parts, kinds=ARRAY), code.call("slice", owner, start, stop, kinds=ARRAY)


# name: fewest arguments, most, and a function that builds (the new list, the call's value)
METHODS: dict[str, tuple[int, int, Callable[..., tuple[Code, Code]]]] = {
    "push": (1, 100, _push),
    "unshift": (1, 100, _unshift),
    "pop": (0, 0, _pop),
    "shift": (0, 0, _shift),
    "reverse": (0, 0, _reverse),
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
        return assign(translator, spot(translator, node), checking.finish(translator, node, value))
    except NoSpot as why:
        translator.warn(node, f"this fails whenever it runs: {why}")
        return failing(str(why))
