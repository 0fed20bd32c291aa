"""Translates one expression of JavaScript, node by node, to one of the same value that is as plain as possible."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from . import array_methods, calls, changes, code, operators, parsing, platform
from .code import ABSENT, ANY, ARRAY, NOTHING, NUMBER, OBJECT, STRING, Code
from .operators import as_condition
from .parsing import Node, Script, SyntaxProblem, bare, list_parts, part
from .scope import Action, Scope

MAX_DEPTH = 60  # nested operators, calls and accesses, inlined functions included
MAX_CODE = 20_000  # characters: stops functions that are inlined in each other many times


class Translator:
    """Translates the expressions of one script. What cannot be translated is reported and becomes None.

    ``locals`` are the local names of a function that is being inlined. ``effects`` collects the changes that an
    expression makes: ``x++``, ``list.pop()``.
    """

    def __init__(self, scope: Scope, script: Script, locals: dict[str, Code] | None = None, depth: int = 0) -> None:
        self.scope = scope
        self.script = script
        self.locals = locals or {}
        self.effects: list[Action] = []
        self.depth = depth
        self.nested = 0  # the number of functions around that are being inlined
        self.careful = False  # whether each part is checked for code that can never have a value

    def inner(self, script: Script, locals: dict[str, Code], *, loops: bool = True) -> Translator:
        """Return a translator for a function that is called here."""
        return Translator(self.scope.inside(loops=loops), script, locals, self.depth)

    def value(self, node: Node) -> Code:
        """Return the value of the expression."""
        if self.scope.is_stopped:
            return ABSENT
        node = bare(node)
        handler = _HANDLERS.get(node.type)
        if handler is None:
            return self.refuse(node, _NAMES.get(node.type, f"a {node.type.replace('_', ' ')}"))
        found = self._descend(node, handler)
        if self.careful and (why := changes.wrong(found)):
            return self.fails(node, why)
        return found if len(found.text) <= MAX_CODE else self.refuse(node, "so much in one expression")

    def values(self, nodes: list[Node]) -> list[Code]:
        return [self.value(node) for node in nodes]

    def condition(self, node: Node) -> Code:
        """Return an expression that is true for us exactly where ECMAScript treats the value as true."""
        if self.scope.is_stopped:
            return ABSENT
        return self._descend(bare(node), Translator._translate_condition)

    def _descend(self, node: Node, translate: Callable[[Any, Node], Code]) -> Code:
        self.depth += 1
        try:
            return (
                translate(self, node) if self.depth <= MAX_DEPTH else self.refuse(node, f"more than {MAX_DEPTH} levels")
            )
        finally:
            self.depth -= 1

    def _translate_condition(self, node: Node) -> Code:
        if node.type == "binary_expression" and self.operator(node) in ("&&", "||"):
            join = code.both if self.operator(node) == "&&" else code.either
            first, *others = operators.operands(self, self.operator(node), node)
            whole = self.condition(first)
            for other in others:
                whole = join(whole, self.condition(other))
            return whole
        if node.type == "unary_expression" and self.operator(node) == "!":
            return code.opposite(self.condition(part(node, "argument")))
        if node.type == "ternary_expression":
            return code.choose(
                self.condition(part(node, "condition")),
                self.condition(part(node, "consequence")),
                self.condition(part(node, "alternative")),
            )
        return as_condition(self.value(node))

    # -- helpers of the modules that know parts of the language ----------------------------------

    def of(self, node: Node) -> str:
        return self.script.of(node)

    def operator(self, node: Node) -> str:
        return self.of(part(node, "operator"))

    def refuse(self, node: Node, what: str, hint: str = "") -> Code:
        self.scope.report.add("SB145", partial(self.script.locate, node), f"{what} cannot be translated", hint)
        return Code("None", kinds=ANY)

    def warn(self, node: Node, message: str) -> None:
        self.scope.report.add("SB224", partial(self.script.locate, node), message)

    def fails(self, node: Node, message: str) -> Code:
        """Return code that fails whenever it runs, and only then."""
        if not self.scope.may_fail:
            return self.refuse(node, message)
        self.warn(node, f"this fails whenever it runs: {message}")
        return code.fails(message)

    # -- one method for each kind of node --------------------------------------------------------

    def scalar(self, node: Node) -> Code:
        value = parsing.scalar(self.script, node)
        if value is parsing.UNDEFINED:
            return ABSENT
        if value is parsing.NOT_PLAIN:
            return self.refuse(node, f"the literal {self.of(node)[:40]}")
        return code.literal(value)

    def template(self, node: Node) -> Code:
        parts = [Code("''", kinds=STRING)] if not list_parts(node) else []
        for piece in list_parts(node):
            if piece.type == "template_substitution":
                parts.append(operators.as_text(self.value(list_parts(piece)[0])))
            else:
                parts.append(code.text(parsing.unescape(self.of(piece))))
        joined = parts[0]
        for text in parts[1:]:
            joined = code.calculate(joined, "+", text, STRING)
        return joined

    def name(self, node: Node) -> Code:
        name = self.of(node)
        if name in self.locals:
            return self.locals[name]
        if name in platform.SYSTEM:
            return platform.SYSTEM[name](self)
        if name in ("NaN", "Infinity"):
            return self.fails(node, f"{name} is no number that can be kept")
        if name in self.scope.functions:
            return self.refuse(node, "a function as a value", "call it")
        return self.scope.variable(name) or self.scope.translate_undeclared(self, node, name)

    def array(self, node: Node) -> Code:
        items = list_parts(node)
        commas = sum(child.type == "," for child in node.children)
        if commas > len(items) or (commas == len(items) and items and node.children[-2].type != ","):
            return self.refuse(node, "an array with holes")
        if not any(item.type == "spread_element" for item in items):
            return code.array(*self.values(items))
        parts = [
            self.value(list_parts(item)[0]) if item.type == "spread_element" else code.array(self.value(item))
            for item in items
        ]
        return code.call("concat", code.array(), *parts, kinds=ARRAY)

    def object(self, node: Node) -> Code:
        pairs, later, parts = [], [], list_parts(node)
        copied = parts[0] if parts and parts[0].type == "spread_element" else None
        for pair in parts[1:] if copied is not None else parts:
            if pair.type == "shorthand_property_identifier":
                pairs.append((self.of(pair), self.name(pair)))
            elif pair.type != "pair":
                return self.refuse(pair, "a method or a spread in an object")
            elif (key := parsing.key_of(self.script, part(pair, "key"))) is not None:
                pairs.append((key, self.value(part(pair, "value"))))
            else:
                (name,) = list_parts(part(pair, "key"))
                later.append((self.value(name), self.value(part(pair, "value"))))
        whole = code.table(pairs)
        if copied is not None:
            whole = self.value(list_parts(copied)[0])
            later = [*((code.text(key), value) for key, value in pairs), *later]
        for name_code, value in later:
            whole = code.call("put", whole, name_code, value, kinds=OBJECT)
        return whole

    def choice(self, node: Node) -> Code:
        condition = self.condition(part(node, "condition"))
        taken = {"True": "consequence", "False": "alternative"}.get(condition.text)
        if taken:
            return self.value(part(node, taken))
        return code.choose(condition, self.value(part(node, "consequence")), self.value(part(node, "alternative")))

    def sequence(self, node: Node) -> Code:
        """Return the value of the last expression. The others can only have effects."""
        return self.values(list_parts(node))[-1]

    def member(self, node: Node) -> Code:
        owner, name = part(node, "object"), self.of(part(node, "property"))
        found = platform.member(self, bare(owner), name)
        if found is not None:
            return found
        if any(child.type == "optional_chain" for child in node.children):
            value = self.value(owner)
            return code.choose(code.compare(value, "==", ABSENT), ABSENT, self.property(node, value, name))
        return self.property(node, self.value(owner), name)

    def property(self, node: Node, owner: Code, name: str) -> Code:
        found = self.scope.property(self, node, owner, name)
        if found is not None:
            return found
        if name == "length":
            if owner.kinds and owner.kinds <= ARRAY | STRING:
                return code.call("len", owner, kinds=NUMBER)
            return code.call("length", owner)
        if name.isdigit() or (owner.kinds and owner.kinds <= ARRAY | STRING):
            return code.call("item", owner, code.text(name))
        return code.member(owner, name)

    def subscript(self, node: Node) -> Code:
        owner, index = part(node, "object"), part(node, "index")
        key = parsing.plain(self.script, index)
        if isinstance(key, str):
            found = platform.member(self, bare(owner), key)
            return found if found is not None else self.property(node, self.value(owner), key)
        whole, position = self.value(owner), self.value(index)
        counts = isinstance(key, int) and not isinstance(key, bool) and key >= 0
        if counts and whole.kinds and whole.kinds <= ARRAY | STRING:
            return Code(f"{whole.at(code.ATOM)}[{key}]")
        return code.call("item", whole, position)


def _unary(translator: Translator, node: Node) -> Code:
    if translator.operator(node) == "delete":
        return changes.delete(translator, node, bare(part(node, "argument")))
    return operators.unary(translator, node)


_HANDLERS: dict[str, Callable[[Any, Node], Code]] = {
    **dict.fromkeys(("string", "number", "true", "false", "null", "undefined"), Translator.scalar),
    "template_string": Translator.template,
    "identifier": Translator.name,
    "shorthand_property_identifier": Translator.name,
    "array": Translator.array,
    "object": Translator.object,
    "ternary_expression": Translator.choice,
    "sequence_expression": Translator.sequence,
    "member_expression": Translator.member,
    "subscript_expression": Translator.subscript,
    "binary_expression": operators.binary,
    "unary_expression": _unary,
    "call_expression": array_methods.call,
    "new_expression": calls.new,
    "update_expression": changes.update,
    "assignment_expression": changes.assignment,
    "augmented_assignment_expression": changes.assignment,
}
_NAMES = {
    "regex": "a regular expression",
    "arrow_function": "a function as a value",
    "function_expression": "a function as a value",
    "this": "this",
    "class": "a class",
    "await_expression": "await",
    "yield_expression": "yield",
}


def translate(scope: Scope, script: Script, node: Node, *, condition: bool = False) -> tuple[Code, list[Action]]:
    """Translate an expression. Return it with the actions that it causes."""
    for careful in (False, True):
        translator = Translator(scope, script)
        translator.careful = careful
        found = translator.condition(node) if condition else translator.value(node)
        if not changes.wrong(found):
            break
    return changes.finish(translator, node, found), translator.effects


def fail(problem: SyntaxProblem, text: str) -> Code:
    shown = " ".join(text.split())[:60]
    return Code(f"fail({f'{problem.message}: {shown}'!r})", kinds=NOTHING)
