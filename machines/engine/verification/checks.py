"""The checks of a verification: states and transitions, rest and ends, properties, invokes, guards that fail."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from machines.engine import limits
from machines.engine.definitions import render
from machines.engine.definitions.findings import Path, quote
from machines.engine.definitions.model import MISSING, Machine, State, Transition
from machines.engine.expressions import walk
from machines.engine.simulation import SimulatedStep

from .report import FOUND, PROVEN, RESTLESS, UNDECIDED, Report, listens
from .usage import list_fields, list_transitions
from .walk import Edge, Node, simplify


def check_states(report: Report) -> None:
    forbidden = list_forbidden(report.machine)
    for state in report.machine.states.values():
        if state.name in report.passed or state.kind == "history" or state.root:
            continue
        if state.name in forbidden:  # the property tells
            report.covered.add("SB801")
            continue
        if report.walk.is_whole or state.name not in report.dead.reachable:
            around = state.parent
            if around is None or around in report.passed:  # else the state around it is reported
                report.add("SB801", state.path, f"{quote(state.name)} is never reached", FOUND, report.nodes[0])
        else:
            report.undecide("SB801", state.path, f"whether {quote(state.name)} is ever reached")


def check_transitions(report: Report) -> None:
    forbidden = list_forbidden(report.machine)
    for state, transition in list_transitions(report.machine):
        if transition.id in report.taken or state.name not in report.passed:
            continue
        code = "SB806" if transition.cause == "after" else "SB802"
        if is_of_engine(transition) or _is_job_end(report, transition):
            report.open[code] = "errors of the engine and of jobs were not all tried"
            continue
        if code == "SB802" and transition.allow == () and _is_locked(report, state, transition):
            continue
        targets = [render(state.path) for name in transition.targets for state in report.machine.lineage(name)]
        if forbidden.intersection(transition.targets):
            report.covered.add(code)
            continue
        if any(one.code == "SB801" and one.verdict == FOUND and one.path in targets for one in report.found):
            report.covered.add(code)  # by that finding
            continue
        what = _describe(transition)
        if report.walk.is_whole or transition.id in report.dead.transitions:
            node = report.active.get(state.name, report.nodes[0])
            report.add(code, transition.path, f"{what} is never taken", FOUND, node, *_trigger(transition))
        else:
            report.undecide(code, transition.path, f"whether {what} is ever taken")


def list_forbidden(machine: Machine) -> frozenset[str]:
    """Return the states of which a property says that they are never entered: not to reach them is what is wanted."""
    found: set[str] = set()
    for one in machine.properties:
        waiting = list(one.trees) if one.kind == "never" else []
        while waiting:
            match waiting.pop():
                case ["in", str(name)]:
                    found.add(name)
                case ["because", _, inner]:
                    waiting.append(inner)
                case ["or", *parts]:
                    waiting.extend(parts)
    return frozenset(found)


def _is_locked(report: Report, state: State, transition: Transition) -> bool:
    """Report a transition for everybody that stands behind one for groups, so that others are refused."""
    before = state.transitions[: state.transitions.index(transition)] if transition in state.transitions else ()
    lock = next(
        (one for one in before if one.allow and one.guard is None and set(transition.events) <= set(one.events)),
        None,
    )
    if lock is None:
        return False
    node = report.active.get(state.name, report.nodes[0])
    message = f"only {', '.join(lock.allow)} may send {quote(lock.events[0])}: {_describe(transition)} is behind it"
    report.add("SB808", transition.path, message, FOUND, node, {"event": lock.events[0], "groups": []})
    return True


def _is_job_end(report: Report, transition: Transition) -> bool:
    """Tell whether a transition listens for the end of an invoke whose payload was not tried as it may be."""
    return any(one.startswith("error.invoke.") for one in transition.events) and transition.guard is not None


def is_of_engine(transition: Transition) -> bool:
    """Tell whether only the engine itself sends its event, for reasons that a walk does not have."""
    return bool(transition.events) and all(
        (event.startswith("error.") and not event.startswith("error.invoke."))
        or event in ("error", "error.*", "done.*")
        for event in transition.events
    )


def _describe(transition: Transition) -> str:
    where = f" to {', '.join(map(quote, transition.targets))}" if transition.targets else ""
    cause = {"always": "the eventless transition", "after": "the timer's transition"}.get(transition.cause)
    return f"{cause or 'the transition on ' + quote(', '.join(transition.events))}{where}"


def _trigger(transition: Transition) -> list[Any]:
    """List the input that would take a transition."""
    if transition.cause == "after":
        return [{"advance": "next"}]
    event = transition.events[0] if transition.events else ""
    return [event] if event and not limits.is_reserved_event(event) and not event.endswith("*") else []


def check_rest(report: Report) -> None:
    reported: set[frozenset[str]] = set()
    for node in report.nodes:
        if node.done or not node.expanded or node.active in reported:
            continue
        if any(edge.target is not None for edge in node.edges) or (node.edges and report.walk.doubts):
            continue
        if node.came is not None and _is_lost_end(report, node):
            report.covered.add("SB803")  # SB807 tells it
            continue
        if not report.can_end and not any(report.machine.states[name].all_transitions for name in node.active):
            report.covered.add("SB803")  # a machine without final states ends where no way goes on
            continue
        names = report.list_leaves(node)
        path = report.machine.states[names[0]].path
        message = f"nothing can happen any more in {', '.join(map(quote, names))}, which is no end"
        if _add_rest(report, "SB803", path, message, node):
            reported.add(node.active)


def _is_lost_end(report: Report, node: Node) -> bool:
    """Tell whether a node came about by the end of an invoke for which nobody listens."""
    before, given = node.came or (0, None)
    edges = [edge for edge in report.nodes[before].edges if edge.target == node.number and edge.input == given]
    return any(edge.event.startswith("done.invoke.") and not edge.transitions for edge in edges)


def check_restless(report: Report) -> None:
    reported: set[str] = set()
    for node, edge in report.list_edges():
        if edge.outcome == "failed" and any(part in edge.error for part in RESTLESS) and edge.event not in reported:
            reported.add(edge.event)
            path = report.find_circle(node, edge)
            message = f"{quote(edge.event)} makes a step without end: {edge.error}"
            report.add_found("SB804", path, message, node, [simplify(edge.input)], shows_failed_step)


def check_ends(report: Report) -> None:
    if not report.can_end:
        return
    ending = list_leading(report.nodes, {node.number for node in report.nodes if node.done})
    lost = [node for node in report.nodes if node.number not in ending]
    moving = [node for node in lost if any(edge.target is not None for edge in node.edges)]
    if not lost or not report.walk.is_whole:
        if lost:
            report.open["SB805"] = report.why
        return
    if not moving or all(_leads_to_rest(report, node) for node in moving):
        report.covered.add("SB805")  # SB803 tells it
        return
    node = next(node for node in moving if not _leads_to_rest(report, node))
    names = report.list_leaves(node)
    message = f"from {', '.join(map(quote, names))} no way leads to an end"
    _add_rest(report, "SB805", report.machine.states[names[0]].path, message, node)


def _leads_to_rest(report: Report, node: Node) -> bool:
    """Tell whether each way on ends where nothing can happen any more."""
    seen, waiting = {node.number}, [node]
    while waiting:
        one = waiting.pop()
        followers = {edge.target for edge in one.edges if edge.target is not None}
        if one.number in followers:
            return False
        for number in followers:
            if number in seen and number != node.number:
                continue
            if number == node.number:
                return False
            seen.add(number)
            waiting.append(report.nodes[number])
    return True


def _add_rest(report: Report, code: str, path: Path, message: str, node: Node) -> bool:
    """Add a finding that the run to a node shows."""
    return report.add_found(code, path, message, node, (), partial(rests_in, node.active))


def rests_in(active: frozenset[str], records: Sequence[SimulatedStep]) -> bool:
    return set(records[-1].configuration) <= active and records[-1].outcome in ("taken", "ignored")


def shows_failed_step(records: Sequence[SimulatedStep]) -> bool:
    return records[-1].outcome == "failed"


def list_leading(nodes: Sequence[Node], targets: set[int]) -> set[int]:
    """List the numbers of the nodes from which one of the targets is within reach, the targets included."""
    before: dict[int, set[int]] = {}
    for node in nodes:
        for edge in node.edges:
            if edge.target is not None:
                before.setdefault(edge.target, set()).add(node.number)
    found, waiting = set(targets), list(targets)
    while waiting:
        for number in before.get(waiting.pop(), ()):
            if number not in found:
                found.add(number)
                waiting.append(number)
    return found


def find_lost(nodes: Sequence[Node], first: int, arriving: set[int]) -> Node | None:
    """Find the nearest node, behind one where the property ``first`` holds and before one of ``arriving``, from which
    these are out of reach."""
    able = list_leading(nodes, arriving)
    waiting = [node.number for node in nodes if node.holds[first] is True and node.number not in arriving]
    seen = set(waiting)
    while waiting:
        number = waiting.pop(0)
        if number not in able:
            return nodes[number]
        for edge in nodes[number].edges:
            if edge.target is not None and edge.target not in seen and edge.target not in arriving:
                seen.add(edge.target)
                waiting.append(edge.target)
    return None


def check_properties(report: Report) -> None:
    at = 0
    for one in report.machine.properties:
        columns = list(range(at, at + len(one.trees)))
        at += len(one.trees)
        if one.kind == "leads":
            _check_leads(report, one, *columns)
        else:
            _check_always(report, one, columns[0])


def _check_always(report: Report, one: Any, column: int) -> None:
    for node in report.nodes:
        if node.holds[column] is not (one.kind == "always"):
            value = node.holds[column]
            what = f"fails: {value}" if isinstance(value, str) else "is violated"
            message = f"{one.kind} {one.texts[0]}: {what} in {', '.join(map(quote, report.list_leaves(node)))}"
            if _add_rest(report, "SB811", one.path, message, node):
                return
    _settle(report, one, f"{one.kind} {one.texts[0]}")


def _settle(report: Report, one: Any, text: str) -> None:
    if report.walk.is_whole:
        report.add("SB811", one.path, f"{text}: holds in all {len(report.nodes)} snapshots", PROVEN)
    else:
        report.add("SB811", one.path, f"{text}: not decided, because {report.why}", UNDECIDED)


def _check_leads(report: Report, one: Any, first: int, then: int) -> None:
    text = f"{one.texts[0]} leads to {one.texts[1]}"
    if report.walk.is_whole:
        arriving = {node.number for node in report.nodes if node.holds[then] is True}
        lost = find_lost(report.nodes, first, arriving)
        if lost is not None:
            names = ", ".join(map(quote, report.list_leaves(lost)))
            if _add_rest(report, "SB811", one.path, f"{text}: from {names} it is out of reach", lost):
                return
    _settle(report, one, text)


def check_invokes(report: Report) -> None:
    for state in report.machine.states.values():
        for invoke in state.invokes:
            event = f"done.invoke.{invoke.id}"
            ends = [(node, edge) for node, edge in report.list_edges() if edge.event == event]
            if not ends or any(edge.transitions or edge.outcome in ("refused", "failed") for _, edge in ends):
                continue
            if (
                any(one.events and listens(one, event) for _, one in list_transitions(report.machine))
                and not report.walk.is_whole
            ):
                report.open["SB807"] = report.why
                continue
            if not report.can_end and _can_only_fail(report, state, invoke.id):
                report.covered.add("SB807")  # its work is the last of a machine without final states
                continue
            node, edge = ends[0]
            message = f"nobody listens for the end of {quote(invoke.id)}: its result is lost"
            report.add_found(
                "SB807", invoke.path, message, node, [simplify(edge.input)],
                partial(lambda ending, records: records[-1].event == ending and not records[-1].transitions, event),
            )  # fmt: skip


def _can_only_fail(report: Report, state: State, invoke: str) -> bool:
    """Tell whether nothing but the failure of an invoke leads out of its state."""
    around = [one for each in report.machine.lineage(state.name) for one in each.all_transitions]
    return bool(around) and all(one.events == (f"error.invoke.{invoke}",) for one in around)


def check_failures(report: Report) -> None:
    by_id = {transition.id: transition for _, transition in list_transitions(report.machine)}
    reported: set[str] = set()
    for node, edge in report.list_edges():
        for id, why in edge.failing.items():
            transition = by_id[id]
            if (
                id in reported
                or transition.guard is None
                or not _is_allowed(report, edge, transition.guard.expression.tree)
            ):
                continue
            reported.add(id)
            _report_failure(report, node, edge, transition.guard.path, transition.guard.expression.tree, why)
        if edge.outcome == "failed" and not any(part in edge.error for part in RESTLESS):
            _report_failed_step(report, node, edge, reported)


def _is_allowed(report: Report, edge: Edge, tree: Any) -> bool:
    """Tell whether the definition itself allows the payload: one that is declared, or that is not read."""
    declared = report.machine.events.get(edge.event)
    if declared is not None and declared.fields is not None:
        return True
    return not any(part[0] == "event" for part in walk(tree))


def _report_failure(report: Report, node: Node, edge: Edge, path: Path, tree: Any, why: str) -> None:
    unset = _list_unset(report, node, list_fields(tree))
    code = "SB809" if unset else "SB810"
    what = f"{', '.join(map(quote, unset))} is read before it is set" if unset else "the guard fails"
    report.add_found(
        code, path, f"{what} on {quote(edge.event)}: {why}", node, [simplify(edge.input)],
        _shows_failing_guard,
    )  # fmt: skip


def _list_unset(report: Report, node: Node, names: Iterable[str]) -> list[str]:
    raw = node.snapshot["raw"]
    return [
        name for name in sorted(names)
        if name not in raw and report.machine.fields[name].initial is MISSING and name in report.usage.written
    ]  # fmt: skip


def _report_failed_step(report: Report, node: Node, edge: Edge, reported: set[str]) -> None:
    if edge.event in reported:
        return
    trees = [tree for name in node.active for tree in _list_trees(report, name, edge.event)]
    unset = _list_unset(report, node, {name for tree in trees for name in list_fields(tree)})
    if not unset or not any(word in edge.error for word in ("null", "None", "nothing")):
        return
    reported.add(edge.event)
    path, what = report.find_circle(node, edge), f"{', '.join(map(quote, unset))} is read before it is set"
    report.add_found(
        "SB809", path, f"{what} on {quote(edge.event)}: {edge.error}", node,
        [simplify(edge.input)], shows_failed_step,
    )  # fmt: skip


def _list_trees(report: Report, name: str, event: str) -> list[Any]:
    state = report.machine.states[name]
    actions = [action for one in state.transitions if listens(one, event) for action in one.actions]
    for one in state.transitions:
        if listens(one, event):
            for target in one.targets:
                actions += report.machine.states[target].entry
    return [value.tree for action in actions for value in action.values]


def check_failed_creations(report: Report) -> None:
    failed = report.walk.failed[0]
    code = "SB804" if any(part in failed.error for part in RESTLESS) else "SB810"
    report.add(code, ("initial",), f"an instance cannot begin: {failed.error}", FOUND, data=failed.data)
    report.walk.doubts.append("no instance can begin")


def _shows_failing_guard(records: Sequence[SimulatedStep]) -> bool:
    explanation = records[-1].explanation
    if explanation is None:
        return False
    return any(
        candidate.verdict == "error" or any(part.verdict == "error" for part in candidate.because)
        for candidate in explanation.candidates
    )
