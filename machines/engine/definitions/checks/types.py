"""Checks types: infers the types of expressions from literals and declarations, and reports values whose type cannot
fit; and finds what expressions compare fields with, the types of those that declare none.

A type set of None means "could be anything". Only what is wrong for every possible value is reported; an absent field
reads as null, so null never counts against an expression that might be something else.
"""

from collections.abc import Callable, Iterator

from machines.engine.definitions.fields import describe_types as declared_words
from machines.engine.definitions.findings import Path, Report
from machines.engine.definitions.model import Action, Machine, flatten_actions
from machines.engine.definitions.outline import Compared
from machines.engine.expressions import FUNCTIONS, Node, list_links, list_parts

from .references import Payloads, PayloadTypes, find_spots

Types = frozenset[str] | None
AddProblem = Callable[[str, str], None]  # code, message

NUMBERS = frozenset(["integer", "number"])
TEXT = frozenset(["string"])
LIST = frozenset(["array"])
TRUTH = frozenset(["boolean"])
NULL = frozenset(["null"])
_LITERALS = {"null": NULL, "true": TRUTH, "false": TRUTH, "str": TEXT, "now": frozenset(["integer"]), "in": TRUTH}
_LITERALS |= {"list": LIST, "obj": frozenset(["object"]), "not": TRUTH}
_ORDERED = (NUMBERS, TEXT, LIST)


class Inference:
    """Infers types within one expression. ``payload`` is None where the event's fields are not known."""

    def __init__(self, data: PayloadTypes, payload: PayloadTypes | None, complain: AddProblem) -> None:
        self._data = data
        self._payload = payload
        self._complain = complain

    def types(self, node: Node) -> Types:
        """Return the types a node may evaluate to; report what cannot be evaluated at all."""
        parts = [self.types(part) for part in list_parts(node)]
        operator = node[0]
        if operator in _LITERALS:
            return _LITERALS[operator]
        if operator == "num":
            return frozenset(["integer" if isinstance(node[1], int) else "number"])
        if operator == "because":
            return parts[0]
        rule = _RULES.get(operator)
        return rule(self, node, parts) if rule else None

    def _field(self, node: Node, parts: list[Types]) -> Types:
        return infer_declared(self._data.get(node[1]))

    def _access(self, node: Node, parts: list[Types]) -> Types:
        _, owner, key = node
        if owner == ["event"] and key[0] == "str" and self._payload is not None:
            return infer_declared(self._payload.get(key[1]))
        return None

    def _either(self, node: Node, parts: list[Types]) -> Types:
        return merge_types(parts)

    def _choice(self, node: Node, parts: list[Types]) -> Types:
        return merge_types(parts[1:])

    def _negative(self, node: Node, parts: list[Types]) -> Types:
        if is_impossible(parts[0], NUMBERS):
            self._complain("SB112", f"{describe_types(parts[0])} has no sign: a number is needed")
        return NUMBERS

    def _arithmetic(self, node: Node, parts: list[Types]) -> Types:
        operator, (left, right) = node[1], parts
        allowed = _ORDERED if operator == "+" else (NUMBERS,)
        kinds = [kind for kind in allowed if not is_impossible(left, kind) and not is_impossible(right, kind)]
        if not kinds:
            self._complain(
                "SB112", f'"{operator}" does not work with {describe_types(left)} and {describe_types(right)}'
            )
        return merge_types(list(kinds)) if kinds else None

    def _comparison(self, node: Node, parts: list[Types]) -> Types:
        left = parts[0]
        for (operator, _), right in zip(node[2:], parts[1:], strict=True):
            self._compare(operator, left, right)
            left = right
        return TRUTH

    def _compare(self, operator: str, left: Types, right: Types) -> None:
        words = f"{describe_types(left)} and {describe_types(right)}"
        if operator in ("<", "<=", ">", ">="):
            if not any(not is_impossible(left, kind) and not is_impossible(right, kind) for kind in _ORDERED):
                self._complain("SB112", f'"{operator}" does not order {words}')
        elif operator in ("==", "!=") and _never_equal(left, right):
            self._complain("SB213", f"{words} are never equal")
        elif operator in ("in", "not in") and is_impossible(right, TEXT | LIST | {"object"}):
            self._complain("SB112", f'nothing can be "in" {describe_types(right)}')

    def _call(self, node: Node, parts: list[Types]) -> Types:
        name = node[1]
        for position, (argument, wanted) in enumerate(zip(parts, ARGUMENTS.get(name, ()), strict=False), start=1):
            if is_impossible(argument, wanted):
                which = f"argument {position} of {name}()" if len(parts) > 1 else f"{name}()"
                self._complain("SB112", f"{which} takes {describe_types(wanted)}, not {describe_types(argument)}")
        gives = FUNCTIONS[name].gives
        return None if gives == "any" else NUMBERS if gives == "number" else frozenset([gives])


_RULES: dict[str, Callable[[Inference, Node, list[Types]], Types]] = {
    "data": Inference._field,
    "get": Inference._access,
    "and": Inference._either,
    "or": Inference._either,
    "if": Inference._choice,
    "neg": Inference._negative,
    "bin": Inference._arithmetic,
    "cmp": Inference._comparison,
    "call": Inference._call,
}
ARGUMENTS: dict[str, tuple[frozenset[str], ...]] = {
    "len": (TEXT | LIST | {"object"},),
    "abs": (NUMBERS,),
    "round": (NUMBERS, NUMBERS),
    "floor": (NUMBERS,),
    "ceil": (NUMBERS,),
    "lower": (TEXT,),
    "upper": (TEXT,),
    "strip": (TEXT,),
    "startswith": (TEXT, TEXT),
    "endswith": (TEXT, TEXT),
    "contains": (TEXT | LIST | {"object"},),
    "split": (TEXT, TEXT),
    "join": (LIST, TEXT),
    "replace": (TEXT, TEXT, TEXT),
    "keys": (frozenset(["object"]),),
    "values": (frozenset(["object"]),),
    "sum": (LIST,),
    "sorted": (LIST,),
    "random_token": (frozenset(["integer"]) | NUMBERS,),
}


def infer_declared(types: tuple[str, ...] | None) -> Types:
    """Return the types of a declared field, with null: the field may be absent."""
    return None if types is None or "any" in types else frozenset(types) | NULL


def merge_types(parts: list[Types]) -> Types:
    result: frozenset[str] = frozenset()
    for part in parts:
        if part is None:
            return None
        result |= part
    return result


def is_impossible(types: Types, wanted: frozenset[str]) -> bool:
    """Tell whether no value of the types can be one of those wanted. An integer is a number, and a number may be an
    integer."""
    if types is None:
        return False
    widened = types | NUMBERS if types & NUMBERS else types
    return not widened & wanted


def describe_types(types: Types) -> str:
    if types is None:
        return "something"
    named = types - NULL or types
    if named == NUMBERS:
        return "number"
    return " or ".join(sorted(named))


def _never_equal(left: Types, right: Types) -> bool:
    """Tell whether two values are never equal, leaving null aside: both fields could be null."""
    if left is None or right is None or NULL in (left, right):
        return False
    return is_impossible(left - NULL, right - NULL | (NUMBERS if right & NUMBERS else frozenset()))


def review(machine: Machine, report: Report) -> None:
    data = {field.name: field.types for field in machine.fields.values()}
    for spot in find_spots(machine):
        if not spot.expression.problems:
            Inference(data, spot.payload, _complain_at(spot.path, report)).types(spot.expression.tree)
    payloads = Payloads(machine)
    for action in machine.begun:
        _check(action, data, None, report)
    for state in machine.states.values():
        for invoke in state.invokes:
            _check_location(invoke.idlocation, (*invoke.path, "idlocation"), data, report)
        for action in flatten_actions(state.own_actions):
            _check(action, data, None, report)
        for transition in state.all_transitions:
            for action in flatten_actions(transition.actions):
                _check(action, data, payloads.of(transition), report)


def _check_location(name: str, path: Path, data: PayloadTypes, report: Report) -> None:
    """Check the field that stores an id: ids are text."""
    wanted = data.get(name)
    if wanted is not None and "any" not in wanted and is_impossible(TEXT, frozenset(wanted)):
        report.add("SB112", path, f'"{name}" is {declared_words(wanted)}, an id is string')


def _complain_at(path: Path, report: Report) -> AddProblem:
    return lambda code, message: report.add(code, path, message)


def _check(action: Action, data: PayloadTypes, payload: PayloadTypes | None, report: Report) -> None:
    _check_location(action.sending.idlocation if action.sending else "", action.path, data, report)
    wanted = data.get(action.name)
    if action.verb not in ("set", "append") or wanted is None or "any" in wanted or action.value is None:
        return
    if any(expression.problems for _, expression in action.value.parts):
        return
    if action.verb == "append":
        if is_impossible(LIST, frozenset(wanted)):
            report.add(
                "SB112", action.path, f'"{action.name}" is {declared_words(wanted)}: only an array can be appended to'
            )
        return
    found = Inference(data, payload, lambda code, message: None).types(action.value.tree)
    if _misfit(found, wanted):
        hint = f'write {{"unset": "{action.name}"}}' if found == NULL else ""
        report.add(
            "SB112",
            action.path,
            f'"{action.name}" is {declared_words(wanted)}, the value {describe_types(found)}',
            hint,
        )


def _misfit(found: Types, wanted: tuple[str, ...]) -> bool:
    """Tell whether a value cannot fit: a literal fraction does not fit an integer, a calculation may."""
    if found is None:
        return False
    if found == frozenset(["number"]):
        return not {"number"} & set(wanted)
    return is_impossible(found, frozenset(wanted))


DATA = ""
"""The key of data fields, beside descriptors of events."""


def find_comparisons(machine: Machine) -> dict[str, Compared]:
    """Find what fields of payloads are compared with, by the descriptor of their events, and data fields (DATA)."""
    found: dict[str, dict[str, set[str]]] = {}
    declared = {field.name: field.types for field in machine.fields.values()}
    for spot in find_spots(machine):
        if spot.expression.problems:
            continue
        inference = Inference(declared, spot.payload, lambda code, message: None)
        for (kind, name), types in _walk(spot.expression.tree, inference):
            for place in (DATA,) if kind == "data" else spot.events:
                held = found.setdefault(place, {}).setdefault(name, set())
                held.update("number" if one in NUMBERS else one for one in types)
    return {place: {name: tuple(sorted(types)) for name, types in some.items()} for place, some in found.items()}


def _walk(node: Node, inference: Inference) -> Iterator[tuple[tuple[str, str], frozenset[str]]]:
    """Yield each field below a node, as kind and name, with the types that stand beside it."""
    for part, other in _list_pairs(node):
        if (named := _name_field(part)) is None:
            continue
        types: Types = inference.types(other) if isinstance(other, list) else other
        if types and types - NULL:
            yield named, types - NULL
    for part in list_parts(node):
        yield from _walk(part, inference)


def _list_pairs(node: Node) -> Iterator[tuple[Node, Node | Types]]:
    operator, *rest = node
    if operator == "cmp":
        for word, left, right in list_links(node):
            if word not in ("in", "not in"):
                yield from ((left, right), (right, left))
            elif right[0] == "list":
                yield from ((left, element) for element in right[1:])
    elif operator == "neg":
        yield rest[0], NUMBERS
    elif operator == "bin":
        word, left, right = rest
        yield from ((left, right), (right, left)) if word == "+" else ((left, NUMBERS), (right, NUMBERS))
    elif operator == "call":
        yield from zip(rest[1:], ARGUMENTS.get(rest[0], ()), strict=False)


def _name_field(node: Node) -> tuple[str, str] | None:
    if node[0] == "data":
        return "data", node[1]
    if node[0] == "get" and node[1] == ["event"] and node[2][0] == "str":
        return "payload", node[2][1]
    return None
