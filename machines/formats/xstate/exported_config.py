"""Reads the object inside ``createMachine({...})`` in a script as data. No part of the script is run.

Functions and anything else that is not data become text between double braces, as Stately writes them.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from machines.engine import limits
from machines.engine.definitions.findings import Finding, make_finding
from machines.formats.javascript import scripts
from machines.formats.javascript.parsing import (
    NOT_PLAIN,
    UNDEFINED,
    Node,
    Script,
    SyntaxProblem,
    arguments_of,
    bare,
    key_of,
    list_parts,
    parse_program,
    part,
    plain,
    scalar,
)
from machines.formats.text import place
from machines.formats.xstate.context import unbrace

SETUP = "setup"  # the key of the config for the implementations of `setup({...})`
_MAKERS = ("createMachine", "Machine")
_IMPLEMENTED = ("guards", "actions", "delays")
MAX_DECLARED = 500  # functions, and constants, of a script that expressions can use
MAX_VALUES = 200_000  # a script of the largest size has fewer, unless its constants multiply
_COMBINED = ("and", "or", "not")


def read(text: str) -> tuple[Any, list[Finding]]:
    """Return the first config in the script, with the implementations around it."""
    try:
        script, _ = parse_program(text, typed=True)
    except SyntaxProblem as problem:
        hint = "a config is JSON, or a script with createMachine({...})"
        return None, [make_finding("SB131", place(text, problem.offset), "not JavaScript", hint)]
    reader = _Reader(script)
    made = next((call for call in _calls(script.root) if reader.callee(call) in _MAKERS), None)
    arguments = arguments_of(made) if made is not None else []
    if made is None or not arguments:
        return None, [make_finding("SB131", "", "no createMachine({...}) is in the text")]
    config = reader.value(arguments[0])
    if isinstance(config, dict):
        found = {**reader.beside(), **reader.read_implementations(made, arguments[1:])}
        config |= {SETUP: found} if found else {}
    return config, reader.findings


def _calls(node: Node) -> Iterator[Node]:
    """Yield calls in document order, outer calls first."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if found.type == "call_expression":
            yield found
        waiting.extend(reversed(found.named_children))


class _Reader:
    def __init__(self, script: Script) -> None:
        self.findings: list[Finding] = []
        self._script = script
        self._statements = _statements(script.root)
        given = [pair for statement in self._statements for pair in scripts.values(statement)]
        self._constants = {script.of(name): value for name, value in given if name.type == "identifier"}
        self._open: set[str] = set()  # constants being looked up
        self._depth = 0
        self._values = 0

    def callee(self, call: Node) -> str:
        """Return the last name of the called function: ``createMachine`` for ``setup({...}).createMachine``."""
        function = part(call, "function")
        return self._script.of(part(function, "property") if function.type == "member_expression" else function)

    def read_implementations(self, made: Node, further: list[Node]) -> dict[str, Any]:
        """Return the implementations in ``setup({...})``, the call's second argument, and any ``provide({...})``."""
        calls = [call for call in _calls(self._script.root) if self.callee(call) in ("setup", "provide", "withConfig")]
        nodes = [argument for call in calls for argument in arguments_of(call)[:1]] + further[:1]
        found: dict[str, Any] = {}
        for node in nodes:
            value = self.value(node)
            for kind in _IMPLEMENTED if isinstance(value, dict) else ():
                if isinstance(value.get(kind), dict):
                    found[kind] = {**found.get(kind, {}), **value[kind]}
        return found

    def beside(self) -> dict[str, Any]:
        """Return the functions of the script, as text, and the constants that are plain values."""
        declared = islice(scripts.functions(self._script, self._statements), MAX_DECLARED)
        functions = {name: self._code(bare(node)) for name, _, node in declared}
        values = {name: plain(self._script, node) for name, node in islice(self._constants.items(), MAX_DECLARED)}
        constants = {name: value for name, value in values.items() if value is not NOT_PLAIN and value is not UNDEFINED}
        return {key: value for key, value in (("functions", functions), ("constants", constants)) if value}

    def value(self, node: Node) -> Any:
        node = bare(node)
        self._values += 1
        if self._values > MAX_VALUES:
            message = f"constants repeat what they hold to more than {MAX_VALUES} values"
            return self._complain_once("SB111", node, message)
        if self._depth > limits.MAX_DEFINITION_DEPTH:
            return self._complain_once("SB111", node, f"nested more than {limits.MAX_DEFINITION_DEPTH} levels deep")
        self._depth += 1
        try:
            return self._value(node)
        finally:
            self._depth -= 1

    def _value(self, node: Node) -> Any:
        if node.type == "object":
            return self._object(node)
        if node.type == "array":
            return [self.value(item) for item in list_parts(node)]
        if node.type == "template_string" and not any(one.type == "template_substitution" for one in list_parts(node)):
            return self._script.of(node)[1:-1]
        if node.type == "call_expression":
            return self._call(node)
        if node.type in ("identifier", "shorthand_property_identifier"):
            return self._constant(node)
        if node.type == "unary_expression":
            value = self.value(part(node, "argument"))
            is_number = isinstance(value, int | float) and self._script.of(part(node, "operator")) == "-"
            return -value if is_number else self._code(node)
        value = scalar(self._script, node)
        return None if value is UNDEFINED else self._code(node) if value is NOT_PLAIN else value

    def _object(self, node: Node) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for one in list_parts(node):
            if one.type == "spread_element":
                spread = self.value(list_parts(one)[0])
                result |= spread if isinstance(spread, dict) else {}
                if not isinstance(spread, dict):
                    self._complain("SB141", one, "what is spread here is not in the text", "write it out")
            elif one.type == "shorthand_property_identifier":
                result[self._script.of(one)] = self.value(one)
            elif one.type == "method_definition":
                start = part(one, "parameters").start_byte - one.start_byte
                written = self._script.of(one).encode()[start:].decode()
                result[self._key(part(one, "name"))] = f"{{{{function {written}}}}}"
            elif one.type == "pair":
                key, value = self._key(part(one, "key")), part(one, "value")
                named_actor = key == "src" and value.type == "identifier"
                result[key] = self._code(value) if named_actor else self.value(value)
        return result

    def _key(self, node: Node) -> str:
        key = key_of(self._script, node)
        if key is not None:
            return key
        value = self.value(list_parts(node)[0]) if node.type == "computed_property_name" else None
        if isinstance(value, str | int | float) and not isinstance(value, bool) and unbrace(str(value)) is None:
            return str(value)
        self._complain("SB141", node, "a key that is calculated", "write it out")
        return self._script.of(node)

    def _constant(self, node: Node) -> Any:
        """Return the value of a ``const`` of the script; code if there is no such constant or it refers to itself."""
        name = self._script.of(node)
        found = self._constants.get(name)
        if found is None or name in self._open:
            return self._code(node)
        self._open.add(name)
        try:
            return self.value(found)
        finally:
            self._open.discard(name)

    def _call(self, node: Node) -> Any:
        name = self.callee(node)
        arguments = [self.value(argument) for argument in arguments_of(node)]
        if name in _COMBINED:
            parts = arguments[0] if arguments and isinstance(arguments[0], list) else arguments
            return {"type": name, "guards": parts}
        if name == "stateIn" and arguments:
            return {"type": name, "stateValue": arguments[0]}
        return _ACTIONS[name](*arguments[:3]) if name in _ACTIONS else self._code(node)

    def _code(self, node: Node) -> str:
        return f"{{{{{self._script.of(node)}}}}}"

    def _complain_once(self, code: str, node: Node, message: str) -> None:
        if not any(found.code == code for found in self.findings):
            self._complain(code, node, message)

    def _complain(self, code: str, node: Node, message: str, hint: str = "") -> None:
        self.findings.append(make_finding(code, self._script.locate(node), message, hint))


def _statements(root: Node) -> list[Node]:
    """Return the statements at the top of the script, exported or not."""
    return [
        inner
        for statement in list_parts(root)
        for inner in ([statement, *list_parts(statement)] if statement.type == "export_statement" else [statement])
    ]


def _action(name: str, *parameters: str) -> Callable[..., dict[str, Any]]:
    """Return a function that builds ``{"type": "xstate.name", "params": {...}}``.

    Its last argument may be an object of options.
    """

    def make(*arguments: Any) -> dict[str, Any]:
        params = dict(zip(parameters, arguments, strict=False))
        options = arguments[len(parameters)] if len(arguments) > len(parameters) else {}
        return {"type": f"xstate.{name}", "params": {**(options if isinstance(options, dict) else {}), **params}}

    return make


def _assign(fields: Any = None, *_: Any) -> dict[str, Any]:
    params = fields if isinstance(fields, dict) else {"assignment": fields}
    return {"type": "xstate.assign", "params": params}


_ACTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "assign": _assign,
    "raise": _action("raise", "event"),
    "send": _action("send", "event"),
    "sendTo": _action("sendTo", "to", "event"),
    "sendParent": _action("sendParent", "event"),
    "forwardTo": _action("forwardTo", "to"),
    "respond": _action("respond", "event"),
    "escalate": _action("escalate", "event"),
    "cancel": _action("cancel", "sendId"),
    "log": _action("log", "message", "label"),
    "emit": _action("emit", "event"),
    "choose": _action("choose", "conds"),
    "pure": _action("pure"),
    "enqueueActions": _action("enqueueActions"),
    "spawnChild": _action("spawnChild", "src"),
    "stopChild": _action("stopChild", "id"),
    "stop": _action("stop", "id"),
}
