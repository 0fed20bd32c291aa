"""Transitions that no data and no payload enables, and states that only they would lead to: what is known of a
machine without trying it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from machines.engine.definitions.checks.graph import find_reachable
from machines.engine.definitions.fields import get_type, is_of_type
from machines.engine.definitions.model import MISSING, Machine, Transition
from machines.engine.expressions import list_links

from .usage import Node, Term, Usage, is_node, is_unsteady, read_operand, read_term


class DeadGuards:
    """``transitions``: ids of those that are never enabled where their state is active; ``reachable``: names of the
    states to which the others may lead."""

    def __init__(self, machine: Machine, usage: Usage) -> None:
        self._machine, self._usage = machine, usage
        self._constants: dict[Term, Any] = {
            ("data", field.name): field.initial
            for field in machine.fields.values()
            if field.initial is not MISSING and field.name not in {*usage.written, *usage.inputs}
        }
        self.transitions = {
            transition.id
            for state in machine.states.values()
            for group in (state.transitions, state.always)
            for at, transition in enumerate(group)
            if self._is_dead(group[:at], transition)
        }
        self.reachable = find_reachable(machine, lambda transition: transition.id in self.transitions)

    def _is_dead(self, before: Sequence[Transition], transition: Transition) -> bool:
        earlier = [one for one in before if set(transition.events) <= set(one.events)]
        if any(one.guard is None for one in earlier):
            return True
        conditions = [(one.guard.expression.tree, False) for one in earlier if one.guard]
        if transition.guard:
            conditions.append((transition.guard.expression.tree, True))
        event = transition.events[0] if len(transition.events) == 1 else ""
        return not can_hold(conditions, lambda term: self._list_types(term, event), self._constants)

    def _list_types(self, term: Term, event: str) -> Sequence[str]:
        if term[0] == "data":
            field = self._machine.fields.get(term[1]) if len(term) == 2 else None
            if field is None:
                return ("any",)
            is_set = field.initial is not MISSING or field.name in self._usage.inputs
            return field.types if is_set else (*field.types, "null")
        declared = self._machine.events.get(event)
        if declared is None or declared.fields is None or len(term) != 2 or term[1] not in declared.fields:
            return ("any",)
        field = declared.fields[term[1]]
        return field.types if field.required else (*field.types, "null")


MOST = 256  # conjunctions of one condition
Atom = tuple[Term, str, tuple[Any, ...]]
Types = Callable[[Term], Sequence[str]]
NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in", "not in": "in"}
TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


class _TooMany(Exception):
    pass


@dataclass(slots=True)
class _Range:
    """What one term may be: ``least`` and ``most``, whether these are excluded, and values that it is or is not."""

    least: float = -math.inf
    most: float = math.inf
    open_least: bool = False
    open_most: bool = False
    only: list[Any] | None = None
    never: list[Any] = field(default_factory=list)
    is_number: bool = False


def can_hold(conditions: Iterable[tuple[Node, bool]], types: Types, constants: Mapping[Term, Any]) -> bool:
    """Tell whether the conditions can all be true (or false, where the second is False). True where it is not known.
    ``constants``: terms that always have one value."""
    try:
        forms: list[list[Atom]] = [[]]
        for node, wanted in conditions:
            forms = [[*a, *b] for a in forms for b in _expand(node, wanted)]
            if len(forms) > MOST:
                return True
    except _TooMany:
        return True
    return any(_fits(form, types, constants) for form in forms)


def _expand(node: Any, wanted: bool) -> list[list[Atom]]:
    """Return the condition as alternatives of atoms; an atom that is not understood is left out."""
    if not is_node(node):
        return [[]]
    match node[0]:
        case "because":
            return _expand(node[2], wanted)
        case "not":
            return _expand(node[1], not wanted)
        case "and" | "or":
            parts = [_expand(part, wanted) for part in node[1:]]
            if (node[0] == "and") == wanted:
                return _join(parts)
            found = [form for part in parts for form in part]
            if len(found) > MOST:
                raise _TooMany
            return found
        case "true" | "false":
            return [[]] if (node[0] == "true") == wanted else []
        case "cmp" if not is_unsteady(node):
            return _expand_comparison(node, wanted)
    return [[]]


def _join(parts: Sequence[list[list[Atom]]]) -> list[list[Atom]]:
    forms: list[list[Atom]] = [[]]
    for part in parts:
        forms = [[*a, *b] for a in forms for b in part]
        if len(forms) > MOST:
            raise _TooMany
    return forms


def _expand_comparison(node: Node, wanted: bool) -> list[list[Atom]]:
    atoms: list[Atom | bool | None] = [_read(operator, left, right) for operator, left, right in list_links(node)]
    if wanted:
        if any(atom is False for atom in atoms):
            return []
        return [[atom for atom in atoms if isinstance(atom, tuple)]]
    found: list[list[Atom]] = []
    for atom in atoms:
        if atom is None or atom is False:
            found.append([])
        elif isinstance(atom, tuple) and atom[1] in ("==", "!=", "in", "not in"):
            found.append([(atom[0], NEGATED[atom[1]], atom[2])])
        elif isinstance(atom, tuple):
            found.append([(atom[0], f"not {atom[1]}", atom[2])])
    return found


def _read(operator: str, left: Any, right: Any) -> Atom | bool | None:
    """Return a comparison of a term with constants; True or False where both sides are constants, None otherwise."""
    a, b = read_operand(operator, left), read_operand(operator, right)
    if operator in ("in", "not in"):
        a = None
    if a is not None and b is not None:
        return None if len(a) != 1 or len(b) != 1 else _compare(operator, a[0], b[0])
    if b is not None and (term := read_term(left)) is not None:
        return (term, operator, b)
    if a is not None and operator in TURNED and (term := read_term(right)) is not None:
        return (term, TURNED[operator], a)
    return None


def _compare(operator: str, a: Any, b: Any) -> bool | None:
    if operator in ("==", "!="):
        return (a == b and isinstance(a, bool) == isinstance(b, bool)) == (operator == "==")
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in (a, b)):
        return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}.get(operator))
    return None


def _fits(form: Sequence[Atom], types: Types, constants: Mapping[Term, Any]) -> bool:
    ranges: dict[Term, _Range] = {}
    for term, _, _ in form:
        if term in constants and term not in ranges:
            ranges[term] = _Range(only=[constants[term]])
    for term, operator, values in form:
        found = ranges.setdefault(term, _Range(is_number=set(types(term)) <= {"integer", "number"}))
        if (not operator.startswith("not ") or operator == "not in") and not _narrow(found, operator, values):
            return False
    for term, operator, values in form:
        # What is no number makes a comparison fail, which is not the same as its opposite.
        if operator.startswith("not ") and operator != "not in" and ranges[term].is_number:
            _narrow(ranges[term], NEGATED[operator.removeprefix("not ")], values)
    return all(_is_possible(found, types(term)) for term, found in ranges.items())


def _narrow(found: _Range, operator: str, values: tuple[Any, ...]) -> bool:
    if operator in ("==", "in"):
        only = [value for value in values if found.only is None or _has(found.only, value)]
        found.only = only
        return bool(only)
    if operator in ("!=", "not in"):
        found.never += values
        return True
    value = values[0] if values else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    found.is_number = True
    if operator in (">", ">=") and (value, operator == ">") > (found.least, found.open_least):
        found.least, found.open_least = value, operator == ">"
    if operator in ("<", "<=") and (-value, operator == "<") > (-found.most, found.open_most):
        found.most, found.open_most = value, operator == "<"
    return True


def _has(values: Iterable[Any], value: Any) -> bool:
    return any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in values)


def _is_possible(found: _Range, types: Sequence[str]) -> bool:
    if found.only is not None:
        return any(
            not _has(found.never, value) and _is_inside(found, value) and is_of_type(get_type(value), types)
            for value in found.only
        )
    if found.is_number:
        if "any" not in types and "integer" not in types and "number" not in types:
            return False
        if "any" not in types and "number" not in types:  # whole numbers only
            least = math.floor(found.least) + 1 if found.open_least and found.least > -math.inf else found.least
            most = math.ceil(found.most) - 1 if found.open_most and found.most < math.inf else found.most
            least, most = (
                (math.ceil(least) if least > -math.inf else least),
                (math.floor(most) if most < math.inf else most),
            )
            if most - least < 64 and all(_has(found.never, value) for value in range(int(least), int(most) + 1)):
                return False
            return least <= most
        return found.least < found.most or (found.least == found.most and not (found.open_least or found.open_most))
    return tuple(types) != ("boolean",) or not (_has(found.never, True) and _has(found.never, False))


def _is_inside(found: _Range, value: Any) -> bool:
    if not found.is_number:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    above = value > found.least or (value == found.least and not found.open_least)
    return above and (value < found.most or (value == found.most and not found.open_most))
