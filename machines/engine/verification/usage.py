"""How a machine uses its data and payloads: which fields decide what it does, which values tell them apart, and whether
a few values stand for all; and the terms of its expressions: what a guard reads, and the constants it compares with."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from machines.engine.definitions.model import MISSING, Action, Machine, State, Transition, flatten_actions
from machines.engine.definitions.outline import is_match
from machines.engine.expressions import list_links, list_parts, walk

Node = list[Any]
Term = tuple[str, ...]
"""("data", field, key, ...) or ("event", key, ...)."""

LITERALS = {"null": None, "true": True, "false": False}
UNSTEADY = frozenset({"now", "instance", "trigger"})
RANDOM = frozenset({"random", "random_token"})
TEXT_CALLS = frozenset({"lower", "upper", "strip", "startswith", "endswith", "split", "len"})


def is_node(part: Any) -> bool:
    return isinstance(part, list) and bool(part) and isinstance(part[0], str)


def read_term(node: Any) -> Term | None:
    """Return the term that a node is; None for anything else."""
    if not is_node(node):
        return None
    match node:
        case ["data", str(name)]:
            return ("data", name)
        case ["event"]:
            return ("event",)
        case ["get", inner, ["str", str(key)]]:
            found = read_term(inner)
            return None if found is None else (*found, key)
        case ["because", _, inner]:
            return read_term(inner)
    return None


def read_literal(node: Any) -> tuple[Any, ...] | None:
    """Return the values of a literal: one, or those of a list of literals; None for anything else."""
    if not is_node(node):
        return None
    if node[0] in ("num", "str"):
        return (node[1],)
    if node[0] in LITERALS and len(node) == 1:
        return (LITERALS[node[0]],)
    if node[0] == "neg" and is_node(node[1]) and node[1][0] == "num":
        return (-node[1][1],)
    if node[0] == "list":
        parts = [read_literal(part) for part in node[1:]]
        return None if None in parts else tuple(value for part in parts if part for value in part)
    return None


def read_operand(operator: str, node: Any) -> tuple[Any, ...] | None:
    """Return the constants that an operator compares with; None where it is no plain comparison: of lists, or of a part
    of a text."""
    is_list = is_node(node) and node[0] == "list"
    return read_literal(node) if is_list == (operator in ("in", "not in")) else None


def list_fields(node: Any) -> set[str]:
    """List the data fields that an expression reads."""
    return {found[1] for found in walk(node) if found[0] == "data"}


def is_unsteady(node: Any) -> bool:
    """Tell whether an expression reads what neither data nor payload decides: clock, chance, the instance."""
    return any(found[0] in UNSTEADY or (found[0] == "call" and found[1] in RANDOM) for found in walk(node))


def list_conditions(node: Any) -> Iterator[Node]:
    """Yield the parts of a condition that are true or false by themselves: what stands between and, or and not."""
    if not is_node(node):
        return
    if node[0] in ("and", "or", "not", "because"):
        for part in list_parts(node):
            yield from list_conditions(part)
    else:
        yield node


Place = tuple[str, ...]
"""A term with its event in place of "event": ("data", field) or ("event:" + event, key, ...)."""
FRAGILE = frozenset({"/", "//", "%", "**"})


@dataclass(frozen=True, slots=True)
class Reading:
    """An expression of the machine. ``decides``: what the machine does depends on it."""

    tree: Node
    events: tuple[str, ...]
    decides: bool


class Usage:
    """The uses of data and payloads in one machine. ``extra``: trees of properties, which decide, too. ``given``:
    fields that are given at the creation although they have a value of their own."""

    def __init__(self, machine: Machine, extra: Iterable[Node] = (), given: Collection[str] = ()) -> None:
        self.machine = machine
        self.readings = list(_list_readings(machine))
        self.readings += [Reading(tree, (), True) for tree in extra]
        self.writes = list(_list_writes(machine))
        self.written = {name for name, _, _ in self.writes}
        invokes = [invoke for state in machine.states.values() for invoke in state.invokes]
        self.written |= {invoke.idlocation for invoke in invokes if invoke.idlocation}
        self.inputs = [
            field.name
            for field in machine.fields.values()
            if field.name in given or (field.initial is MISSING and field.name not in self.written)
        ]
        self.relevant = self._find_relevant()
        self.constants: dict[Place, list[Any]] = defaultdict(list)
        self._links: dict[Place, set[Place]] = defaultdict(set)
        self.numeric: set[Place] = set()
        self.textual: set[Place] = set()
        self.truths: set[Place] = set()
        self.doubts: list[str] = []
        self.blurred: set[str] = set()  # fields that take any number of values
        self._learn()

    def list_free_fields(self) -> list[str]:
        """List the fields that no action writes and that decide: the creation may give them other values than the
        declared ones."""
        return [
            field.name
            for field in self.machine.fields.values()
            if field.initial is not MISSING and field.name in self.relevant and field.name not in self.written
        ]

    # Relevance

    def _find_relevant(self) -> set[str]:
        found = {name for one in self.readings if one.decides for name in list_fields(one.tree)}
        for one in self.readings:
            if any(node[0] == "bin" and node[1] in FRAGILE for node in walk(one.tree)):
                found |= list_fields(one.tree)
        while True:
            more = {
                inner
                for name, tree, _ in self.writes
                if name in found and tree is not None
                for inner in list_fields(tree)
            }
            if more <= found:
                return found
            found |= more

    # Values

    def _learn(self) -> None:
        for one in self.readings:
            self._learn_reading(one)
        for name, tree, events in self.writes:
            if tree is not None:
                self._learn_write(name, tree, events)

    def _learn_reading(self, one: Reading) -> None:
        if one.decides and is_unsteady(one.tree):
            self.doubts.append("an expression reads the clock, chance or facts of the instance")
        compared: list[int] = []
        for node in walk(one.tree):
            if node[0] == "cmp":
                for operator, left, right in list_links(node):
                    compared += self._learn_comparison(operator, left, right, one.events)
            elif node[0] in ("bin", "neg") or (
                node[0] == "call" and node[1] in ("min", "max", "abs", "round", "floor")
            ):
                self._learn_kind(node, one.events, self.numeric)
            elif node[0] == "call" and node[1] in TEXT_CALLS:
                self._learn_kind(node, one.events, self.textual)
        for node in list_conditions(one.tree) if one.decides else ():
            if (term := read_term(node)) is not None:
                self.truths.update(_places(term, one.events))
                compared.append(id(node))
        if one.decides:
            self._doubt_others(one, compared)

    def _learn_comparison(self, operator: str, left: Any, right: Any, events: tuple[str, ...]) -> list[int]:
        terms = [
            (node, read_term(node), read_operand(operator, other)) for node, other in ((left, right), (right, left))
        ]
        known: list[int] = []
        for node, term, literal in terms:
            if term is not None and literal is not None:
                for place in _places(term, events):
                    self.constants[place] += [value for value in literal if value not in self.constants[place]]
                known.append(id(node))
        first, second = terms[0][1], terms[1][1]
        if first is not None and second is not None:
            for a in _places(first, events):
                for b in _places(second, events):
                    self._link(a, b)
            if operator in ("==", "!=") and {first[0], second[0]} == {"event", "data"}:
                known += [id(left), id(right)]
        return known

    def _learn_kind(self, node: Node, events: tuple[str, ...], kind: set[Place]) -> None:
        for part in node[1:]:
            if (term := read_term(part)) is not None:
                kind.update(_places(term, events))

    def _doubt_others(self, one: Reading, compared: list[int]) -> None:
        """Doubt the values of payloads that are used otherwise than in a comparison with a constant."""
        inside = _list_term_nodes(one.tree)
        if any(name.startswith("error.") for name in one.events) and any(term[0] == "event" for _, term in inside):
            self.doubts.append("a guard reads the error of a job or a child")
        for node, term in inside:
            if term[0] == "event" and id(node) not in compared:
                self.doubts.append(f"event.{'.'.join(term[1:])} is used in a computation")
            elif term[0] == "event" and len(term) > 2:
                self.doubts.append(f"event.{'.'.join(term[1:-1])} may be no object")
            elif term[0] == "data" and term[1] in self.inputs and id(node) not in compared:
                self.doubts.append(f"{term[1]}, which is given at the creation, is used in a computation")

    def _learn_write(self, name: str, tree: Node, events: tuple[str, ...]) -> None:
        term = read_term(tree)
        for place in _places(term, events) if term is not None else ():
            self._link(("data", name), place)
        if is_unsteady(tree) or (term is None and any(node[0] == "event" for node in walk(tree))):
            self.blurred.add(name)
        if name not in self.relevant:
            return
        if is_unsteady(tree):
            self.doubts.append(f"{name} is set from the clock, chance or facts of the instance")
        if term is not None:
            if term[0] == "event" and not self._is_only_compared(name):
                self.doubts.append(f"{name} takes any value of a payload, and is used in a computation")
            return
        if any(node[0] == "event" for node in walk(tree)):
            self.doubts.append(f"{name} is computed from a payload")

    def _is_only_compared(self, name: str) -> bool:
        for one in self.readings:
            if one.decides and name in list_fields(one.tree):
                for node, term in _list_term_nodes(one.tree):
                    if term[:2] == ("data", name) and not _is_compared(one.tree, node):
                        return False
        return not any(
            tree is not None and name in list_fields(tree) and read_term(tree) is None and other in self.relevant
            for other, tree, _ in self.writes
        )

    def _link(self, a: Place, b: Place) -> None:
        self._links[a].add(b)
        self._links[b].add(a)

    def list_constants(self, place: Place) -> list[Any]:
        """List the constants that a term is compared with, itself or by way of others that it is copied to."""
        seen, waiting, found = {place}, [place], list[Any]()
        while waiting:
            one = waiting.pop()
            for value in self.constants.get(one, ()):
                if not any(value is other or (value == other and type(value) is type(other)) for other in found):
                    found.append(value)
            if one[0] == "data" and len(one) == 2:
                field = self.machine.fields.get(one[1])
                if field is not None and field.initial is not MISSING and field.initial not in found and one != place:
                    found.append(field.initial)
            for other in self._links.get(one, ()):
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return found

    def list_copies(self, place: Place) -> list[str]:
        """List the data fields that a term is copied to or compared with."""
        return [other[1] for other in self._links.get(place, ()) if other[0] == "data" and len(other) == 2]

    def list_payload_places(self, event: str) -> list[Place]:
        """List the payload fields of an event that any expression reads."""
        found: dict[Place, None] = {}
        for tree, events in [(one.tree, one.events) for one in self.readings] + [
            (tree, events) for _, tree, events in self.writes if tree is not None
        ]:
            for _, term in _list_term_nodes(tree):
                if term[0] == "event" and len(term) > 1 and (not events or any(is_match(one, event) for one in events)):
                    found[(f"event:{event}", *term[1:])] = None
        return list(found)


def _places(term: Term, events: tuple[str, ...]) -> list[Place]:
    if term[0] == "data":
        return [term]
    return [(f"event:{event}", *term[1:]) for event in events or ("*",)]


def _list_term_nodes(tree: Any) -> list[tuple[Node, Term]]:
    """List the outermost nodes that are terms."""
    term = read_term(tree)
    if term is not None and tree[0] != "because":
        return [(tree, term)]
    if not isinstance(tree, list) or not tree:
        return []
    return [found for part in (list_parts(tree) if is_node(tree) else []) for found in _list_term_nodes(part)]


def _is_compared(tree: Any, wanted: Node) -> bool:
    for node in walk(tree):
        if node[0] == "cmp":
            for _, left, right in list_links(node):
                for one, other in ((left, right), (right, left)):
                    if one is wanted and (read_literal(other) is not None or (read_term(other) or ("",))[0] == "event"):
                        return True
    return any(node is wanted for node in list_conditions(tree))


def _list_readings(machine: Machine) -> Iterator[Reading]:
    for state in machine.states.values():
        yield from _read_actions(state.own_actions, ())
        for invoke in state.invokes:
            if invoke.computed:
                yield Reading(invoke.computed.tree, (), True)
            if invoke.input:
                yield Reading(invoke.input.tree, (), False)
        for transition in state.all_transitions:
            if transition.guard:
                yield Reading(transition.guard.expression.tree, transition.events, True)
            if transition.delay:
                yield Reading(transition.delay.tree, (), True)
            yield from _read_actions(transition.actions, transition.events)
    if machine.root is None:
        yield from _read_actions(machine.start.actions, ())


def _read_actions(actions: Iterable[Action], events: tuple[str, ...]) -> Iterator[Reading]:
    for action in flatten_actions(actions):
        for case in action.cases:
            if case.guard:
                yield Reading(case.guard.expression.tree, events, True)
        decides = action.verb in ("foreach", "raise", "send")
        if action.value is not None:
            yield Reading(action.value.tree, events, decides)
        if action.computed is not None:
            yield Reading(action.computed.tree, events, True)
        for value in action.sending.values if action.sending else ():
            if value is not None:
                yield Reading(value.tree, events, True)


def _list_all_actions(machine: Machine) -> Iterator[tuple[Action, tuple[str, ...]]]:
    for state in machine.states.values():
        for action in flatten_actions(state.own_actions):
            yield action, ()
        for transition in state.all_transitions:
            for action in flatten_actions(transition.actions):
                yield action, transition.events
    for action in machine.begun:
        yield action, ()


def _list_writes(machine: Machine) -> Iterator[tuple[str, Node | None, tuple[str, ...]]]:
    """Yield (field, value or None, events) for each action that writes a field."""
    for action, events in _list_all_actions(machine):
        for name in action.fields:
            yield name, action.value.tree if action.verb != "unset" and action.value else None, events


def list_transitions(machine: Machine) -> Iterator[tuple[State, Transition]]:
    """Yield each transition with its state, in document order."""
    for state in machine.states.values():
        for transition in state.all_transitions:
            yield state, transition
