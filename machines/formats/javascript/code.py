"""Pieces of our expression language, put together with brackets only where they are needed.

Each knows the kinds of value that it may have, as far as the text shows: so ``x + 1`` can stay ``x + 1``.
"""

import keyword
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Kinds = frozenset[str]

NONE = frozenset(["none"])  # undefined and null: machines have only one of them
BOOLEAN = frozenset(["boolean"])
NUMBER = frozenset(["number"])
STRING = frozenset(["string"])
ARRAY = frozenset(["array"])
OBJECT = frozenset(["object"])
TABLES = ARRAY | OBJECT
ANY = NONE | BOOLEAN | NUMBER | STRING | TABLES
NOTHING: Kinds = frozenset()  # of an expression that never has a value
CHOICE, OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, POWER, ATOM = range(10)


def kinds_of(value: Any) -> Kinds:
    """Return the kinds of a JSON value."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int | float):
        return NUMBER
    return STRING if isinstance(value, str) else ARRAY if isinstance(value, list) else OBJECT


def only(kinds: Kinds, allowed: Kinds) -> bool:
    """Return whether every present value is of the allowed kinds. An absent value fails in both languages."""
    return kinds - NONE <= allowed


def same_primitive(a: Kinds, b: Kinds) -> bool:
    """Return whether == and === mean the same here: both sides have one kind, or both are objects."""
    kinds = (a | b) - NONE
    return len(kinds) <= 1 or kinds <= TABLES


@dataclass(frozen=True, slots=True)
class Code:
    """``level`` says how tightly it binds, ``kinds`` what kinds of value it may have."""

    text: str
    level: int = ATOM
    kinds: Kinds = ANY

    def at(self, level: int) -> str:
        """Return the text, in brackets where an operator binds more tightly."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def is_none(self) -> bool:
        return self.text == "None"


ABSENT = Code("None", ATOM, NONE)


def literal(value: Any) -> Code:
    """Write a JSON value as code."""
    if isinstance(value, list):
        return array(*(literal(item) for item in value))
    if isinstance(value, dict):
        return table((key, literal(item)) for key, item in value.items())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value)
    return Code(repr(value), ATOM, kinds_of(value))


def array(*items: Code) -> Code:
    return Code("[" + ", ".join(item.text for item in items) + "]", ATOM, ARRAY)


def table(items: Iterable[tuple[str, Code]]) -> Code:
    return Code("{" + ", ".join(f"{key!r}: {item.text}" for key, item in items) + "}", ATOM, OBJECT)


def number(value: int | float) -> Code:
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    text = repr(int(value) if whole else value)
    return Code(text, SIGN if text.startswith("-") else ATOM, NUMBER)


def text(value: str) -> Code:
    return Code(repr(value), ATOM, STRING)


def fails(message: str) -> Code:
    """Return an expression that always fails with a message."""
    return Code(f"fail({message!r})", ATOM, frozenset())


def call(name: str, *arguments: Code, kinds: Kinds = ANY) -> Code:
    return Code(f"{name}({', '.join(argument.text for argument in arguments)})", ATOM, kinds)


def truth(name: str, *arguments: Code) -> Code:
    """Return a call whose result is true or false."""
    return call(name, *arguments, kinds=BOOLEAN)


def compare(left: Code, operator: str, right: Code) -> Code:
    return Code(f"{left.at(SUM)} {operator} {right.at(SUM)}", COMPARISON, BOOLEAN)


def calculate(left: Code, operator: str, right: Code, kinds: Kinds = NUMBER) -> Code:
    if operator == "**":
        return Code(f"{left.at(ATOM)} ** {right.at(SIGN)}", POWER, kinds)
    level = SUM if operator in "+-" else PRODUCT
    return Code(f"{left.at(level)} {operator} {right.at(level + 1)}", level, kinds)


def both(left: Code, right: Code) -> Code:
    return Code(f"{left.at(AND)} and {right.at(AND)}", AND, left.kinds | right.kinds)


def either(left: Code, right: Code) -> Code:
    return Code(f"{left.at(OR)} or {right.at(OR)}", OR, left.kinds | right.kinds)


def opposite(code: Code) -> Code:
    if code.text.startswith("not ") and code.level == NOT:
        return Code(code.text.removeprefix("not "), COMPARISON, BOOLEAN)
    return Code(f"not {code.at(NOT)}", NOT, BOOLEAN)


def choose(condition: Code, yes: Code, no: Code) -> Code:
    text = f"{yes.at(OR)} if {condition.at(OR)} else {no.at(CHOICE)}"
    return Code(text, CHOICE, yes.kinds | no.kinds)


def negative(code: Code) -> Code:
    return Code(f"-{code.at(SIGN)}", SIGN, NUMBER)


def member(owner: Code, name: str) -> Code:
    """Write ``owner.name``, or the name in brackets if it is not a valid name in Python."""
    if name.isascii() and name.isidentifier() and not keyword.iskeyword(name):
        if owner.text[:1].isdigit():  # 1.x would be read as a number
            return Code(f"({owner.text}).{name}")
        return Code(f"{owner.at(ATOM)}.{name}")
    return Code(f"{owner.at(ATOM)}[{name!r}]")
