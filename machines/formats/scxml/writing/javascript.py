"""Writes our expressions as ECMAScript: with its own syntax if that means the same, else as ``Signalbox.name(...)``."""

import json
from collections.abc import Callable

from machines.engine.definitions.checks.references import PayloadTypes
from machines.engine.definitions.checks.types import Inference, Types
from machines.engine.definitions.findings import Path
from machines.engine.expressions import Node
from machines.formats.javascript.calls import SAME_FUNCTIONS, SAME_METHODS, SAME_OF_NUMBERS
from machines.formats.javascript.code import ATOM, Code

from .markup import Writing

CHOICE, OR, AND, EQUALITY, RELATION, SUM, PRODUCT, SIGN = range(8)
_TABLES = frozenset(["array", "object"])
_TEXT, _LIST, _NUMBERS = frozenset(["string"]), frozenset(["array"]), frozenset(["integer", "number"])
_NULL = frozenset(["null"])


class Translator:
    """Translates expressions. ``path`` is the place of the expression, for findings."""

    def __init__(self, writing: Writing, path: Path) -> None:
        self.writing = writing
        self.path = path
        data: PayloadTypes = {field.name: field.types for field in writing.machine.fields.values()}
        self._inference = Inference(data, writing.payload, lambda code, message: None)

    def types(self, node: Node) -> Types:
        return self._inference.types(node)

    def only(self, node: Node, allowed: frozenset[str]) -> bool:
        """Return whether every present value is of these types."""
        found = self.types(node)
        return found is not None and found - _NULL <= allowed

    def value(self, node: Node) -> Code:
        return _FORMS[node[0]](self, node)

    def text(self, node: Node) -> str:
        return self.value(node).text

    def condition(self, node: Node) -> Code:
        """Return code that is true in ECMAScript exactly where the condition is true for us."""
        if node[0] == "because":
            return self.condition(node[2])
        if node[0] in ("and", "or"):
            level, sign = (AND, "&&") if node[0] == "and" else (OR, "||")
            return Code(f" {sign} ".join(self.condition(part).at(level) for part in node[1:]), level)
        if node[0] == "not":
            return Code(f"!{self.condition(node[1]).at(SIGN)}", SIGN)
        found = self.types(node)
        if found is None or found & _TABLES:
            return self.ours("bool", node)
        return self.value(node)

    def ours(self, name: str, *arguments: Node) -> Code:
        """Write a call of a function that only Signalbox has."""
        self.writing.add_once(
            "SB222", self.path, f"ECMAScript has no {name}() of ours: Signalbox.{name}() is read by Signalbox only"
        )
        return Code(f"Signalbox.{name}({', '.join(self.text(argument) for argument in arguments)})")


def literal(value: object) -> str:
    """Write a JSON value. Texts have single quotes, which are readable in attributes."""
    if isinstance(value, str):
        inner = json.dumps(value, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
        return "'" + inner.replace("\x7f", "\\x7f").replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff") + "'"
    if isinstance(value, list):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def _get(translator: Translator, node: Node) -> Code:
    _, owner, key = node
    if owner == ["event"] and key[0] == "str":
        return Code(f"_event.data{_member(key[1])}")
    if owner == ["trigger"] and key[0] == "str":
        return Code(f"_event{_member(key[1])}")
    if owner == ["instance"]:
        return Code(f"Signalbox.instance{_member(key[1])}" if key[0] == "str" else "Signalbox.instance")
    if key[0] == "str":
        return Code(f"{translator.value(owner).at(ATOM)}{_member(key[1])}")
    if key[0] == "num" and key[1] >= 0:
        return Code(f"{translator.value(owner).at(ATOM)}[{literal(key[1])}]")
    return translator.ours("get", owner, key)


def _member(name: str) -> str:
    return f".{name}" if name.isidentifier() and name.isascii() and name != "length" else f"[{literal(name)}]"


def _object(translator: Translator, node: Node) -> Code:
    return Code("{" + ", ".join(f"{literal(key)}: {translator.text(value)}" for key, value in node[1:]) + "}")


_WHOLE_EVENT = ["and", ["trigger"], ["call", "put", ["trigger"], ["str", "data"], ["event"]]]


def _logic(translator: Translator, node: Node) -> Code:
    """Write ``and`` and ``or``, which return an operand. Only for us are empty lists and objects false."""
    if node == _WHOLE_EVENT:
        return Code("_event")
    *before, last = node[1:]
    whole = translator.value(last)
    for part in reversed(before):
        kinds, left = translator.types(part), translator.value(part)
        if kinds is None or kinds & _TABLES:
            test = translator.condition(part).at(OR)
            yes, no = (whole, left) if node[0] == "and" else (left, whole)
            whole = Code(f"{test} ? {yes.at(OR)} : {no.at(CHOICE)}", CHOICE)
        else:
            level, sign = (AND, "&&") if node[0] == "and" else (OR, "||")
            whole = Code(f"{left.at(level)} {sign} {whole.at(level)}", level)
    return whole


def _comparison(translator: Translator, node: Node) -> Code:
    first, links = node[1], node[2:]
    found, left = [], first
    for operator, right in links:
        found.append(_link(translator, left, operator, right))
        left = right
    return found[0] if len(found) == 1 else Code(" && ".join(link.at(AND) for link in found), AND)


def _link(translator: Translator, left: Node, operator: str, right: Node) -> Code:
    if operator in ("in", "not in"):
        return _membership(translator, left, operator, right)
    if operator in ("==", "!="):
        loose = ["null"] in (left, right)  # null and undefined are the same to us
        sign = operator if loose else f"{operator}="
        return Code(f"{translator.value(left).at(RELATION)} {sign} {translator.value(right).at(RELATION)}", EQUALITY)
    return Code(f"{translator.value(left).at(SUM)} {operator} {translator.value(right).at(SUM)}", RELATION)


def _membership(translator: Translator, item: Node, operator: str, owner: Node) -> Code:
    if translator.only(owner, frozenset(["object"])):
        inside = Code(f"{translator.value(item).at(SUM)} in {translator.value(owner).at(SUM)}", RELATION)
    else:
        inside = Code(f"{translator.value(owner).at(ATOM)}.includes({translator.text(item)})")
    return inside if operator == "in" else Code(f"!{inside.at(SIGN)}", SIGN)


def _arithmetic(translator: Translator, node: Node) -> Code:
    _, operator, left, right = node
    a, b = translator.value(left), translator.value(right)
    if operator == "+":
        return _sum(translator, left, right)
    if operator == "//":
        return Code(f"Math.floor({a.at(PRODUCT)} / {b.at(SIGN)})")
    if operator == "**":
        return Code(f"Math.pow({a.text}, {b.text})")
    if operator == "%":  # our remainder has the sign of the divisor
        return Code(f"({a.at(PRODUCT)} % {b.at(SIGN)} + {b.at(PRODUCT)}) % {b.at(SIGN)}", PRODUCT)
    level = SUM if operator == "-" else PRODUCT
    return Code(f"{a.at(level)} {operator} {b.at(level + 1)}", level)


def _sum(translator: Translator, left: Node, right: Node) -> Code:
    a, b = translator.value(left), translator.value(right)
    scalar = _NUMBERS | _TEXT
    if translator.only(left, scalar) or translator.only(right, scalar):  # then no list is added to it
        return Code(f"{a.at(SUM)} + {b.at(PRODUCT)}", SUM)
    if translator.only(left, _LIST) or translator.only(right, _LIST):
        return Code(f"{a.at(ATOM)}.concat({b.text})")
    return translator.ours("add", left, right)


def _choice(translator: Translator, node: Node) -> Code:
    _, test, yes, no = node
    parts = translator.condition(test).at(OR), translator.value(yes).at(CHOICE), translator.value(no).at(CHOICE)
    return Code("{} ? {} : {}".format(*parts), CHOICE)


def _call(translator: Translator, node: Node) -> Code:
    _, name, *arguments = node
    write = _FUNCTIONS.get(name)
    found = write(translator, *arguments) if write else None
    return found if found is not None else translator.ours(name, *arguments)


Write = Callable[..., Code | None]


def _global(name: str) -> Write:
    """Return a writer that calls a function of ECMAScript with the same result."""

    def write(translator: Translator, *arguments: Node) -> Code | None:
        return Code(f"{name}({', '.join(translator.text(argument) for argument in arguments)})")

    return write


def _method(name: str) -> Write:
    def write(translator: Translator, owner: Node, *arguments: Node) -> Code:
        written = ", ".join(translator.text(argument) for argument in arguments)
        return Code(f"{translator.value(owner).at(ATOM)}.{name}({written})")

    return write


def _infix(sign: str, level: int) -> Write:
    def write(translator: Translator, left: Node, right: Node) -> Code:
        return Code(f"{translator.value(left).at(level + 1)} {sign} {translator.value(right).at(level + 1)}", level)

    return write


def _length(translator: Translator, owner: Node) -> Code | None:
    if not translator.only(owner, _TEXT | _LIST):
        return None
    return Code(f"{translator.value(owner).at(ATOM)}.length")


def _extreme(name: str) -> Write:
    """Return a writer for several numbers. A list, or texts, need our own function."""

    def write(translator: Translator, *arguments: Node) -> Code | None:
        if len(arguments) < 2 or not all(translator.only(argument, _NUMBERS) for argument in arguments):
            return None
        return _global(name)(translator, *arguments)

    return write


def _as_text(translator: Translator, value: Node) -> Code | None:
    """Write the conversion to text. An absent value has a different text in ECMAScript."""
    found = translator.types(value)
    return Code(f"String({translator.text(value)})") if found is not None and found <= _TEXT | _NUMBERS else None


def _truth(translator: Translator, value: Node) -> Code | None:
    found = translator.types(value)
    if found is None or found & _TABLES:
        return None
    return Code(f"Boolean({translator.text(value)})")


def _item(translator: Translator, owner: Node, key: Node) -> Code | None:
    if key[0] == "str":  # this is read back as an access that may fail
        return None
    return Code(f"{translator.value(owner).at(ATOM)}[{translator.text(key)}]")


def _split(translator: Translator, text: Node, separator: Node) -> Code | None:
    if separator[0] != "str" or not separator[1]:
        return None
    return _method("split")(translator, text, separator)


_FUNCTIONS: dict[str, Write] = {
    **{ours: _global(name) for name, (ours, *_) in SAME_FUNCTIONS.items()},
    **{ours: _global(name) for name, ours in SAME_OF_NUMBERS.items()},
    **{ours: _method(name) for name, (ours, *_) in SAME_METHODS.items()},
    "len": _length,
    "length": lambda translator, owner: Code(f"{translator.value(owner).at(ATOM)}.length"),
    "min": _extreme("Math.min"),
    "max": _extreme("Math.max"),
    "floor": _global("Math.floor"),
    "number": _global("Number"),
    "str": _as_text,
    "bool": _truth,
    "truthy": _global("Boolean"),
    "to_text": _global("String"),
    "typeof": lambda translator, value: Code(f"typeof {translator.value(value).at(SIGN)}", SIGN),
    "plus": _infix("+", SUM),
    "remainder": _infix("%", PRODUCT),
    "loosely_equal": _infix("==", EQUALITY),
    "less": _infix("<", RELATION),
    "more": _infix(">", RELATION),
    "at_most": _infix("<=", RELATION),
    "at_least": _infix(">=", RELATION),
    "startswith": _method("startsWith"),
    "endswith": _method("endsWith"),
    "split": _split,
    "characters": lambda translator, text: Code(f"{translator.value(text).at(ATOM)}.split('')"),
    "replace": _method("replaceAll"),
    "replace_first": _method("replace"),
    "char_code": _method("codePointAt"),
    "slice": _method("slice"),
    "concat": _method("concat"),
    "item": _item,
    "filled": lambda translator, value: Code("_event.data") if value == ["event"] else None,
    "put": lambda translator, *arguments: Code("_event") if ["call", "put", *arguments] == _WHOLE_EVENT[2] else None,
}
_FORMS: dict[str, Callable[[Translator, Node], Code]] = {
    "null": lambda translator, node: Code("null"),
    "true": lambda translator, node: Code("true"),
    "false": lambda translator, node: Code("false"),
    "num": lambda translator, node: Code(literal(node[1]), SIGN if node[1] < 0 else ATOM),
    "str": lambda translator, node: Code(literal(node[1])),
    "event": lambda translator, node: Code("Signalbox.event"),
    "now": lambda translator, node: Code("Math.floor(Date.now() / 1000)"),
    "instance": lambda translator, node: Code("Signalbox.instance"),
    "trigger": lambda translator, node: Code("_event"),
    "because": lambda translator, node: translator.value(node[2]),
    "data": lambda translator, node: Code(translator.writing.variables[node[1]]),
    "get": _get,
    "list": lambda translator, node: Code("[" + ", ".join(translator.text(part) for part in node[1:]) + "]"),
    "obj": _object,
    "and": _logic,
    "or": _logic,
    "not": lambda translator, node: translator.condition(node),
    "neg": lambda translator, node: Code(f"-{translator.value(node[1]).at(ATOM)}", SIGN),
    "cmp": _comparison,
    "bin": _arithmetic,
    "if": _choice,
    "in": lambda translator, node: Code(f"In({literal(translator.writing.ids.get(node[1], node[1]))})"),
    "call": _call,
}
