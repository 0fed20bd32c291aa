"""Runs the checks that need the whole machine, once all of it was read; here those of transitions, timers and
senders."""

import re
from collections.abc import Iterator

from machines.engine import limits
from machines.engine.definitions import program
from machines.engine.definitions.fields import SEARCHABLE
from machines.engine.definitions.findings import Path, Report, quote
from machines.engine.definitions.model import MISSING, Action, Field, Machine, State, Transition
from machines.engine.definitions.outline import FIRE, is_match
from machines.engine.definitions.program import list_descriptors, list_known_events
from machines.engine.expressions import Node, list_links, list_parts

from . import graph, references, types
from .references import find_spots

_TIMER = re.compile(r"after\.t\d+")
_MADE = ("done.invoke", "done.state", "error.invoke", "error.execution", "error.communication", "error.platform")
"""What the engine's own events begin with, timers aside."""


def review_timers(machine: Machine, report: Report) -> None:
    """Report timers that change nothing when they fire, and states whose only way out is a guarded timer."""
    for state in machine.states.values():
        for timed in _group_timers(state):
            if not any(_does_something(transition, state) for transition in timed):
                message = f"when this timer goes off, {quote(state.name)} is not left and nothing is done"
                report.add("SB215", timed[0].path, message)
        _check_last_way(state, machine, report)


def _group_timers(state: State) -> list[list[Transition]]:
    """Group the transitions of ``after`` by delay."""
    found: dict[tuple[str, ...], list[Transition]] = {}
    for transition in state.transitions:
        if transition.cause == "after":
            found.setdefault(transition.events, []).append(transition)
    return list(found.values())


def _does_something(transition: Transition, state: State) -> bool:
    leaves = any(target != state.name for target in transition.targets) or transition.reenter
    return not transition.never_holds and (leaves or bool(transition.actions))


def _check_last_way(state: State, machine: Machine, report: Report) -> None:
    """Report states whose every way out is a guarded timer: a timer fires once, so an instance may stay for good."""
    if state.kind != "atomic" or not any(t.cause == "after" for t in state.transitions):
        return
    ways = [
        transition
        for around in machine.lineage(state.name)
        for transition in around.all_transitions
        if not transition.never_holds and any(target != state.name for target in transition.targets)
    ]
    if ways and all(t.cause == "after" and not t.always_holds for t in ways):
        message = f"the only ways out of {quote(state.name)} are timers with guards, and each goes off only once"
        report.add("SB215", ways[-1].path, message, "add a transition without a guard")


def review_transitions(machine: Machine, report: Report) -> None:
    for state in machine.states.values():
        _check_guards(state, report)
        _check_shadows(state, report)
        _check_always(state, report)
        _check_gaps(state, machine, report)
        _check_internal_events(state, machine, report)


def _check_guards(state: State, report: Report) -> None:
    for transition in state.all_transitions:
        if transition.never_holds and transition.guard:
            report.add("SB210", transition.guard.path, "the guard is always false")


def _check_shadows(state: State, report: Report) -> None:
    """Report transitions behind an earlier one without a guard that takes every event they match."""
    taken: dict[str, Transition] = {}
    for transition in state.transitions:
        for event in transition.events:
            earlier = next((taken[prefix] for prefix in _list_covering(event) if prefix in taken), None)
            if earlier is not None:
                before = "its timer" if transition.cause == "after" else quote(earlier.events[0])
                message = f"never reached: {earlier.id} before it takes {before} without a guard"
                report.add("SB203", transition.path, message)
            if transition.always_holds:
                taken.setdefault(_base(event), transition)


def _base(descriptor: str) -> str:
    """Return the base of a descriptor: ``door.*`` and ``door`` match the same events (SCXML 3.12.1), ``*`` matches
    all."""
    return descriptor.removesuffix(".*") if descriptor != "*" else ""


def _list_covering(descriptor: str) -> list[str]:
    """List the bases that cover a descriptor: itself, each of its prefixes, and ``*``. No pattern matches a timer."""
    if _TIMER.fullmatch(descriptor):
        return [descriptor]
    words = _base(descriptor).split(".")
    return ["", *(".".join(words[: end + 1]) for end in range(len(words)))]


def _check_always(state: State, report: Report) -> None:
    unguarded = next((t for t in state.always if t.always_holds), None)
    if unguarded is None:
        return
    for transition in state.always[state.always.index(unguarded) + 1 :]:
        report.add("SB203", transition.path, f"never reached: {unguarded.id} before it has no guard")
    if state.transitions and state.kind == "atomic":
        message = f"the state {quote(state.name)} is left at once by {unguarded.id}: no event is ever waited for"
        report.add("SB211", state.transitions[0].path, message)


def _check_gaps(state: State, machine: Machine, report: Report) -> None:
    """Report chains of guards without an else: one guard alone is a condition, several usually mean to cover every
    case."""
    chains: dict[tuple[str, ...], list[Transition]] = {}
    for transition in state.transitions:
        if transition.cause != "after":
            chains.setdefault(transition.events, []).append(transition)
    listening = (t for around in machine.lineage(state.name) for t in around.transitions)
    open_to_all = {_base(event) for t in listening if t.always_holds for event in t.events}
    for events, chain in chains.items():
        covered = any(base in open_to_all for event in events for base in _list_covering(event))
        if len(chain) > 1 and not covered:
            message = f"{len(chain)} guarded transitions for {quote(events[0])} and none without a guard after them"
            report.add("SB204", chain[0].path[:-1], message, "without one, the event is refused when no guard holds")


def _check_internal_events(state: State, machine: Machine, report: Report) -> None:
    """Report events such as ``done.invoke.x`` that no active invoke ``x`` can send."""
    for transition in state.transitions:
        event = transition.events[0] if transition.cause == "on" else ""
        if event.startswith(("done.invoke.", "error.invoke.")):
            _check_invoked(event.partition("invoke.")[2], transition, state, machine, report)
        elif event.startswith("done.state."):
            _check_ended(event, transition, machine, report)
        elif limits.is_reserved_event(event) and not _TIMER.fullmatch(event) and not _is_made(event):
            message = f"the engine never makes {quote(event)}, and no other sender may: this transition is never taken"
            hint = "write a name that does not begin with done., error. or after."
            report.add("SB209", transition.path, message, hint)


def _is_made(descriptor: str) -> bool:
    """Tell whether a descriptor covers an event of the engine, or is covered by the first words of one."""
    base = f"{_base(descriptor)}."
    return any(base.startswith(f"{own}.") or f"{own}.".startswith(base) for own in _MADE)


def _check_invoked(id: str, transition: Transition, state: State, machine: Machine, report: Report) -> None:
    active = [other for other in machine.states.values() if other.invokes and machine.together(state.name, other.name)]
    ids = {invoke.id for other in active for invoke in other.invokes}
    if not _names(id, ids):
        hint = report.suggestions.hint(id, ids)
        report.add("SB209", transition.path, f"the state has no invoke {quote(id)}, so this never happens", hint)


def _check_ended(event: str, transition: Transition, machine: Machine, report: Report) -> None:
    word = event.removeprefix("done.state.")
    words = {state.word for state in machine.states.values() if state.done}
    if not _names(word, words):
        hint = report.suggestions.hint(word, words)
        message = f"no state with states inside is called {quote(word)}, so this never happens"
        report.add("SB209", transition.path, message, hint)


def _names(id: str, known: set[str]) -> bool:
    """Tell whether a descriptor names an event: it also matches what begins with it and a dot."""
    return id.endswith("*") or id in known or any(name.startswith(f"{id}.") for name in known)


def review_accepts(machine: Machine, report: Report) -> None:
    path = (machine.accepts or {}).get("*")
    if path is not None:
        message = "every machine, of any publisher, may send to this one and invoke it"
        report.add("SB216", path, message, "name the machines that do")


def review_approval(machine: Machine, report: Report) -> None:
    known = list_known_events(machine)
    listened = [event for transition, event in list_descriptors(machine) if transition.cause == "on"]
    for name, path in machine.approval.items():
        event = name.removeprefix(FIRE)
        if event == name or any(is_match(descriptor, event) for descriptor in listened):
            continue
        if not any(is_match(event, one) for one in known):
            report.add_unknown("SB125", path, "event", event, known)


COPY_HINT = "copy it whole into an encrypted field, an input or the data of an event; let a handler work with the value"
PASSED = ("enqueue", "raise", "send", "emit", "log")
"""Actions whose value may hold ciphertexts. A ``set`` is checked by itself."""


def review_encrypted(machine: Machine, report: Report) -> None:
    fields = machine.encrypted
    if not fields:
        return
    _check_declarations(machine, fields, report)
    passed = {id(expression) for expression in _list_passed(machine)}
    for spot in find_spots(machine):
        if not spot.expression.problems:
            _check_tree(spot.expression.tree, id(spot.expression) in passed, fields, spot.path, report)
    for action in machine.actions:
        _check_writing(action, fields, report)
    for state in machine.states.values():
        for invoke in state.invokes:
            if invoke.idlocation in fields:
                _report(report, invoke.path, f"an id is written to {quote(invoke.idlocation)}", "use another field")


def _check_declarations(machine: Machine, fields: dict[str, Field], report: Report) -> None:
    declared = [
        *machine.fields.values(),
        *(f for event in machine.events.values() for f in (event.fields or {}).values()),
    ]
    for field in declared:
        known = fields.get(field.name)
        if field.encrypted and field.initial is not MISSING and field.initial is not None:
            _report(report, field.path, "its first value stands readable in the definition", "leave the default out")
        if known and (field.encrypted, field.types) != (known.encrypted, known.types):
            what = f"{quote(field.name)} is declared elsewhere with another type or encryption"
            _report(report, field.path, what, "declare it alike, or rename one of them")
    for name in machine.index:
        if name in fields and fields[name].encrypted != SEARCHABLE:
            _report(report, ("index",), f"{quote(name)} is indexed", 'declare it "encrypted": "searchable"')


def _list_passed(machine: Machine) -> Iterator[object]:
    """List the expressions whose value goes on as it is."""
    values = [machine.output]
    for state in machine.states.values():
        values += [state.output, *(invoke.input for invoke in state.invokes)]
    values += [action.value for action in machine.actions if action.verb in ("set", *PASSED)]
    for value in values:
        yield from (expression for _, expression in value.parts) if value else ()


def _check_tree(node: Node, whole: bool, fields: dict[str, Field], path: Path, report: Report) -> None:
    name = _name_encrypted(node, fields)
    if name:
        if not whole:
            _report(report, path, f"{quote(name)} is read here", COPY_HINT)
        return
    if node[0] == "cmp":
        _check_comparison(node, fields, path, report)
        return
    for part in list_parts(node):
        _check_tree(part, whole and node[0] in ("obj", "list"), fields, path, report)


def _check_comparison(node: Node, fields: dict[str, Field], path: Path, report: Report) -> None:
    for operator, left, right in list_links(node):
        names = [_name_encrypted(side, fields) for side in (left, right)]
        for side, name in zip((left, right), names, strict=True):
            if not name:
                _check_tree(side, False, fields, path, report)
        alike = names[0] == names[1] and fields[names[0]].encrypted == SEARCHABLE if names[0] else False
        if any(names) and (operator not in ("==", "!=") or not (alike or ["null"] in (left, right))):
            hint = "only null, and for a searchable field the same field of an event, can be compared with =="
            _report(report, path, f"{quote(names[0] or names[1])} is compared here", hint)


def _check_writing(action: Action, fields: dict[str, Field], report: Report) -> None:
    tree = action.value.tree if action.value else ["null"]
    source = _name_encrypted(tree, fields)
    written = [name for name in action.fields if name in fields]
    if action.verb == "set" and source and action.name not in fields:
        _report(
            report, action.path, f"{quote(source)} is copied to {quote(action.name)}, which is not encrypted", COPY_HINT
        )
    elif action.verb == "set" and written and tree != ["null"]:
        searchable = fields[action.name].encrypted == SEARCHABLE
        if (
            not source
            or (searchable and source != action.name)
            or (not searchable and action.name != source and fields[action.name].types != fields[source].types)
        ):
            hint = f"set it from event.{action.name}, or from a result's field of that name"
            _report(report, action.path, f"{quote(action.name)} is set to something else", hint)
    elif action.verb != "set" and action.verb != "unset" and written:
        _report(report, action.path, f"{quote(written[0])} is written here", "only set and unset write it")


def _name_encrypted(node: Node, fields: dict[str, Field]) -> str:
    """Return the encrypted field that a node reads: of the data, or what has its name in a payload; "" for none."""
    if node[0] == "data":
        return node[1] if node[1] in fields else ""
    if node[0] == "get" and node[2][0] == "str" and node[2][1] in fields:
        return str(node[2][1])
    return ""


def _report(report: Report, path: Path, what: str, hint: str) -> None:
    report.add("SB128", path, f"{what}: the field is stored encrypted" if "encrypt" not in what else what, hint)


CHECKS = (
    references.review,
    types.review,
    review_encrypted,
    graph.review,
    review_transitions,
    review_timers,
    references.review_names,
    review_accepts,
    review_approval,
    program.review,
)


def review(machine: Machine, report: Report) -> None:
    for check in CHECKS:
        check(machine, report)
