"""Transitions that no data and no payload enables, and states that only they would lead to: what is known of a
machine without trying it."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

from machines.engine.definitions.checks.graph import find_reachable
from machines.engine.definitions.fields import get_type, is_of_type
from machines.engine.definitions.model import MISSING, Machine, Transition
from machines.engine.expressions import list_links, walk

from .usage import Node, Term, Usage, read_literal, read_operand, read_term
from .walk import BY_TYPE, OTHER, is_number, list_distinct


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


MOST = 10_000  # comparisons that are judged for one transition
TRUE, FALSE, ERROR = "true", "false", "error"
Outcomes = frozenset[str]
ANYTHING: Outcomes = frozenset({TRUE, FALSE, ERROR})
OPPOSITE = {TRUE: FALSE, FALSE: TRUE, ERROR: ERROR}
TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
Types = Callable[[Term], Sequence[str]]
Values = Mapping[Term, Any]


def can_hold(conditions: Sequence[tuple[Node, bool]], types: Types, constants: Values) -> bool:
    """Tell whether the conditions can all be true (or not, where the second is False). True where it is not known.
    ``constants``: terms that always have one value.

    The constants that a term is compared with cut its values into regions: one value of each is tried.
    """
    compared: dict[Term, list[Any]] = {}
    parts = [part for node, _ in conditions for part in walk(node) if part[0] == "cmp"]
    for part in parts:
        for found in (_read(*link) for link in list_links(part)):
            if found is not None:
                compared.setdefault(found[0], []).extend(found[2])
    choices = {
        term: [constants[term]] if term in constants else _list_values(found, types(term))
        for term, found in compared.items()
    }
    if len(parts) * math.prod(map(len, choices.values())) > MOST:
        return True
    tried = (dict(zip(choices, values, strict=True)) for values in product(*choices.values()))
    return any(all(_may_be(node, wanted, values) for node, wanted in conditions) for values in tried)


def _list_values(compared: Sequence[Any], types: Sequence[str]) -> list[Any]:
    """List a value of each region that constants make, and of each type."""
    numbers = sorted({value for value in compared if is_number(value)})
    texts = [value for value in compared if isinstance(value, str)]
    values = [*compared, *BY_TYPE.values(), False, max(texts, key=len, default="") + OTHER]
    values += [near for number in numbers for near in (math.ceil(number) - 1, math.floor(number) + 1)]
    values += [(one + other) / 2 for one, other in pairwise(numbers)]
    return list_distinct(value for value in values if is_of_type(get_type(value), types))


def _may_be(node: Any, wanted: bool, values: Values) -> bool:
    outcomes = _judge(node, values)
    return TRUE in outcomes if wanted else bool(outcomes - {TRUE})


def _judge(node: Any, values: Values) -> Outcomes:
    """Return what a condition may give; anything where it is not understood."""
    match node:
        case ["because", _, inner]:
            return _judge(inner, values)
        case ["not", inner]:
            return frozenset(OPPOSITE[outcome] for outcome in _judge(inner, values))
        case ["and", *parts]:
            return _chain((_judge(part, values) for part in parts), TRUE)
        case ["or", *parts]:
            return _chain((_judge(part, values) for part in parts), FALSE)
        case ["cmp", *_]:
            return _chain((_judge_link(*link, values) for link in list_links(node)), TRUE)
        case ["true" | "false" as outcome]:
            return frozenset({outcome})
        case ["data" | "in", _]:
            return ANYTHING - {ERROR}
    return ANYTHING


def _chain(parts: Iterable[Outcomes], goes_on: str) -> Outcomes:
    """Join the outcomes of parts of which the next is evaluated only after one outcome."""
    found: Outcomes = frozenset()
    for outcomes in parts:
        found |= outcomes - {goes_on}
        if goes_on not in outcomes:
            return found
    return found | {goes_on}


def _read(word: str, left: Any, right: Any) -> tuple[Term, str, tuple[Any, ...]] | None:
    """Return a comparison of a term with constants; None for any other."""
    if (constants := read_operand(word, right)) is not None and (term := read_term(left)) is not None:
        return term, word, constants
    if (
        word in TURNED
        and (constants := read_operand(word, left)) is not None
        and (term := read_term(right)) is not None
    ):
        return term, TURNED[word], constants
    return None


def _judge_link(word: str, left: Any, right: Any, values: Values) -> Outcomes:
    if (found := _read(word, left, right)) is not None:
        term, word, constants = found
        outcomes = _compare(values[term], word, constants)
        return outcomes if len(term) <= 2 else outcomes | {ERROR}  # what it looks into may be no object
    one, others = read_literal(left), read_operand(word, right)
    return ANYTHING if one is None or len(one) != 1 or others is None else _compare(one[0], word, others)


def _compare(value: Any, word: str, constants: Sequence[Any]) -> Outcomes:
    if word in ORDER:
        if not all(map(is_number, constants)):
            return ANYTHING
        if not is_number(value):
            return frozenset({ERROR})
        return frozenset({TRUE if ORDER[word](value, constants[0]) else FALSE})
    is_one = any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in constants)
    return frozenset({TRUE if is_one == (word in ("==", "in")) else FALSE})
