"""Translates a Python syntax tree to a JSON tree, by an allow-list of constructs.

Nothing is evaluated, except that the sign of a number is folded, so that ``-1`` is a literal.
"""

import ast
import math
from collections.abc import Callable
from typing import Any

from machines.engine import limits

from .functions import FUNCTIONS
from .source import ExpressionError, Node, ProblemKind, Source, Use

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
INSTANCE_FACTS = ("id", "machine", "revision", "state", "parent")
TRIGGER_FACTS = ("name", "type", "sendid", "origin", "origintype", "invokeid")
CONSTRUCTS: dict[type[ast.AST], str] = {
    ast.Lambda: "a lambda",
    ast.ListComp: "a list comprehension",
    ast.SetComp: "a set comprehension",
    ast.DictComp: "a dict comprehension",
    ast.GeneratorExp: "a generator expression",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.JoinedStr: "an f-string",
    ast.FormattedValue: "an f-string",
    ast.NamedExpr: "an assignment (:=)",
    ast.Starred: "a starred expression",
    ast.Set: "a set",
    ast.Slice: "a slice",
    ast.BitAnd: "the operator &",
    ast.BitOr: "the operator |",
    ast.BitXor: "the operator ^",
    ast.LShift: "the operator <<",
    ast.RShift: "the operator >>",
    ast.MatMult: "the operator @",
    ast.Invert: "the operator ~",
}
HINTS: dict[type[ast.AST], str] = {
    ast.JoinedStr: "join texts with +, as in 'n = ' + str(n)",
    ast.Set: "write a list: [a, b]",
    ast.BitAnd: 'write "and"',
    ast.BitOr: 'write "or"',
    ast.Invert: 'write "not"',
}
JSON_WORDS = {"true": "True", "false": "False", "null": "None", "undefined": "None", "none": "None"}
FAILED: Node = ["null"]  # stands where a problem was noted, so that the rest is still read


class Translator:
    """Translates one expression. Problems are collected; only an expression that is too large ends the translation."""

    def __init__(self, source: Source, depth: int = 0) -> None:
        self.source = source
        self.uses: list[Use] = []
        self.problems: list[ExpressionError] = []
        self.nodes = 0
        self.depth = depth

    def guard(self, node: ast.expr) -> Node:
        """Translate a guard: like ``translate``, but every leaf below and/or/not keeps its source text, to explain a
        refusal."""
        if isinstance(node, ast.BoolOp):
            word = "and" if isinstance(node.op, ast.And) else "or"
            return [word, *self._inside(node, self.guard, node.values)]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ["not", *self._inside(node, self.guard, [node.operand])]
        return ["because", self.source.segment(node), self.translate(node)]

    def translate(self, node: ast.expr) -> Node:
        handler = _HANDLERS.get(type(node))
        if handler is None:
            return self._refuse(node, node)
        return handler(self, node)

    def _inside(self, node: ast.expr, read: Callable[[ast.expr], Node], parts: list[ast.expr]) -> list[Node]:
        self._enter(node)
        try:
            return [read(part) for part in parts]
        finally:
            self.depth -= 1

    def _parts(self, node: ast.expr, *parts: ast.expr) -> list[Node]:
        return self._inside(node, self.translate, list(parts))

    def _enter(self, node: ast.expr) -> None:
        self.depth += 1
        self.nodes += 1
        if self.depth > limits.MAX_EXPRESSION_DEPTH:
            raise self._error(node, f"nested more than {limits.MAX_EXPRESSION_DEPTH} levels deep")
        if self.nodes > limits.MAX_EXPRESSION_NODES:
            raise self._error(node, f"more than {limits.MAX_EXPRESSION_NODES} parts")

    def _error(self, node: ast.expr, message: str, hint: str = "", kind: ProblemKind = "syntax") -> ExpressionError:
        return ExpressionError(message, self.source.offset(node), hint=hint, kind=kind)

    def _problem(self, node: ast.expr, message: str, hint: str = "", kind: ProblemKind = "syntax") -> Node:
        self.problems.append(self._error(node, message, hint, kind))
        return FAILED

    def _refuse(self, node: ast.expr, construct: ast.AST) -> Node:
        name = CONSTRUCTS.get(type(construct), f"a {type(construct).__name__}")
        return self._problem(node, f"{name} is not allowed in an expression", HINTS.get(type(construct), ""))

    def _use(self, kind: Any, name: str, node: ast.expr) -> None:
        self.uses.append(Use(kind, name, self.source.offset(node)))

    # -- one method for each kind of node --------------------------------------------------------

    def constant(self, node: ast.Constant) -> Node:
        self._parts(node)
        value = node.value
        if value is None or isinstance(value, bool):
            return [{None: "null", True: "true", False: "false"}[value]]
        if isinstance(value, str):
            return self._text(node, value)
        if isinstance(value, int | float):
            return self._number(node, value)
        what = {bytes: "a bytes literal", complex: "a complex number"}.get(type(value), "an ellipsis")  # all there is
        return self._problem(node, f"{what} is not allowed in an expression")

    def _text(self, node: ast.Constant, value: str) -> Node:
        if any("\ud800" <= character <= "\udfff" or character == "\0" for character in value):
            return self._problem(node, "a text must not hold NUL or half of a surrogate pair")
        return ["str", value]

    def _number(self, node: ast.expr, value: int | float) -> Node:
        if isinstance(value, int) and abs(value) > limits.MAX_INTEGER:
            return self._problem(node, "an integer of 2**53 or more cannot be held exactly", hint="write it as a text")
        if not math.isfinite(value):
            return self._problem(node, "the number is too large")
        return ["num", format_number(value)]

    def name(self, node: ast.Name) -> Node:
        self._parts(node)
        if node.id in ("event", "now", "instance", "trigger"):
            return [node.id]
        if node.id in JSON_WORDS:
            return self._problem(node, f'no name "{node.id}"', hint=f"write {JSON_WORDS[node.id]}")
        if node.id == "In":
            return self._problem(node, "In needs a state", hint='write In("state name")')
        self._use("data", node.id, node)
        return ["data", node.id]

    def attribute(self, node: ast.Attribute) -> Node:
        if not node.attr.isascii():  # the parser normalises such names, so they might no longer match
            return self._problem(node, "a name after a dot must be ASCII", hint='write it in brackets: x["name"]')
        (owner,) = self._parts(node, node.value)
        self._note_access(node, owner, node.attr)
        return ["get", owner, ["str", node.attr]]

    def subscript(self, node: ast.Subscript) -> Node:
        if isinstance(node.slice, ast.Slice | ast.Tuple):
            return self._refuse(node, ast.Slice())
        owner, index = self._parts(node, node.value, node.slice)
        if index[0] == "str":
            self._note_access(node, owner, index[1])
        return ["get", owner, index]

    def _note_access(self, node: ast.expr, owner: Node, name: str) -> None:
        if owner == ["event"]:
            self._use("payload", name, node)
        elif owner == ["instance"]:
            self._use("instance", name, node)
        elif owner == ["trigger"]:
            self._use("trigger", name, node)

    def boolean(self, node: ast.BoolOp) -> Node:
        return ["and" if isinstance(node.op, ast.And) else "or", *self._parts(node, *node.values)]

    def unary(self, node: ast.UnaryOp) -> Node:
        if isinstance(node.op, ast.Invert):
            return self._refuse(node, node.op)
        (operand,) = self._parts(node, node.operand)
        if isinstance(node.op, ast.Not):
            return ["not", operand]
        if isinstance(node.op, ast.USub):
            return ["num", -operand[1]] if operand[0] == "num" else ["neg", operand]
        return operand if operand[0] == "num" else ["neg", ["neg", operand]]  # + checks for a number, as Python does

    def arithmetic(self, node: ast.BinOp) -> Node:
        operator = ARITHMETIC.get(type(node.op))
        if operator is None:
            return self._refuse(node, node.op)
        return ["bin", operator, *self._parts(node, node.left, node.right)]

    def comparison(self, node: ast.Compare) -> Node:
        first, *rest = self._parts(node, node.left, *node.comparators)
        pairs = [[self._comparison(node, op, right), right] for op, right in zip(node.ops, rest, strict=True)]
        return ["cmp", first, *pairs]

    def _comparison(self, node: ast.Compare, op: ast.cmpop, right: Node) -> str:
        if type(op) in COMPARISONS:
            return COMPARISONS[type(op)]
        if right != ["null"]:
            self._problem(node, '"is" compares with None only', hint='write "==" or "!="')
        return "==" if isinstance(op, ast.Is) else "!="

    def choice(self, node: ast.IfExp) -> Node:
        return ["if", *self._parts(node, node.test, node.body, node.orelse)]

    def sequence(self, node: ast.List | ast.Tuple) -> Node:
        return ["list", *self._parts(node, *node.elts)]

    def mapping(self, node: ast.Dict) -> Node:
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        if not all(isinstance(key, str) for key in keys):
            return self._problem(node, "the keys of an object must be texts, as in {'name': value}")
        return ["obj", *([key, value] for key, value in zip(keys, self._parts(node, *node.values), strict=True))]

    def call(self, node: ast.Call) -> Node:
        if not isinstance(node.func, ast.Name):
            return self._refuse_callee(node)
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            return self._problem(node, "named and starred arguments are not allowed in a call", kind="call")
        name = node.func.id
        if name == "In":
            return self._in_state(node)
        arguments = self._parts(node, *node.args)
        if name not in FUNCTIONS:
            message = f'no function "{name}"'
            self.problems.append(ExpressionError(message, self.source.offset(node), kind="function", name=name))
            return FAILED
        if not FUNCTIONS[name].takes(len(arguments)):
            wanted = FUNCTIONS[name].arity
            return self._problem(node, f"{name}() takes {wanted}, not {len(arguments)}", kind="call")
        return ["call", name, *arguments]

    def _refuse_callee(self, node: ast.Call) -> Node:
        if isinstance(node.func, ast.Attribute):
            message = f'calling the method "{node.func.attr}" is not allowed in an expression'
            usage = f"write {FUNCTIONS[node.func.attr].usage}" if node.func.attr in FUNCTIONS else ""
            return self._problem(node, message, usage, kind="call")
        return self._problem(node, "only a function's name can be called", kind="call")

    def _in_state(self, node: ast.Call) -> Node:
        self._parts(node)
        state = node.args[0].value if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) else None
        if not isinstance(state, str):
            return self._problem(node, "In takes one state name in quotes", hint='write In("state name")', kind="call")
        self._use("state", state, node)
        return ["in", state]


def format_number(value: int | float) -> int | float:
    """Return 3 for 3.0: they are one number inside Redis, and one form keeps digests equal."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= limits.MAX_INTEGER else value


_HANDLERS: dict[type[ast.expr], Callable[[Translator, Any], Node]] = {
    ast.Constant: Translator.constant,
    ast.Name: Translator.name,
    ast.Attribute: Translator.attribute,
    ast.Subscript: Translator.subscript,
    ast.BoolOp: Translator.boolean,
    ast.UnaryOp: Translator.unary,
    ast.BinOp: Translator.arithmetic,
    ast.Compare: Translator.comparison,
    ast.IfExp: Translator.choice,
    ast.List: Translator.sequence,
    ast.Tuple: Translator.sequence,
    ast.Dict: Translator.mapping,
    ast.Call: Translator.call,
}
