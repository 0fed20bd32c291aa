"""Verifies a definition: walks over what it can do, and reports what is wrong with it, what is right, and what could
not be decided."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from machines.engine import limits
from machines.engine.connection.calls import Caller
from machines.engine.definitions import CompiledDefinition, render
from machines.engine.definitions.model import MISSING, Machine, State, Transition
from machines.engine.definitions.reading.document import read_sound_machine
from machines.engine.definitions.report import Path, quote
from machines.engine.errors import SignalboxError
from machines.engine.simulation.records import SimulatedStep
from machines.engine.simulation.simulator import START, Simulator

from .alphabet import Alphabet
from .dead_guards import DeadGuards
from .findings import CHECKS, FOUND, PROVEN, UNDECIDED, VerificationFinding
from .reachability import find_lost, list_leading
from .terms import list_fields, walk
from .usage import Usage, list_transitions
from .walk import ID, Edge, Node, Walk

RESTLESS = ("microsteps", "events in one step", "raised events wait", "sent events wait", "units of work")
ENGINE_ERRORS = ("error.", "done.data")
MOST_OF_A_KIND = 20

WITNESSED = frozenset({"SB801", "SB802", "SB806", "SB807", "SB808"})
"""Of these a run of each part is a proof, also where not all runs are known."""

Found = VerificationFinding


class Verifier:
    """The verification of one definition."""

    def __init__(self, caller: Caller, root: str, compiled: CompiledDefinition) -> None:
        machine = read_sound_machine(compiled.source)
        assert machine is not None  # it was compiled
        self._machine: Machine = machine
        self._simulator = Simulator(caller, root, compiled.program)
        self._caller, self._root, self._compiled = caller, root, compiled
        self._prepare(())
        self._found: list[Found] = []
        self._open: dict[str, str] = {}  # code -> why it is not decided as a whole
        self._told: set[str] = set()  # codes of which findings of other codes tell

    def _prepare(self, given: Collection[str]) -> None:
        """Make the walk. ``given``: fields with a value of their own that are given at the creation all the same."""
        machine, program = self._machine, self._compiled.program
        trees = [tree for one in machine.properties for tree in one.trees]
        self._usage = Usage(machine, trees, given)
        alphabet = Alphabet(machine, self._usage, program.get("known", ()))
        self._dead = DeadGuards(machine, self._usage)
        self._walk = Walk(self._caller, self._root, program, alphabet, self._usage.relevant, self._usage.blurred, trees)
        self._walk.doubts += dict.fromkeys([*self._usage.doubts, *alphabet.doubts])

    def _list_placeholders(self) -> list[str]:
        """List the fields that no action writes and that decide, where nothing can happen with their declared values:
        these stand for what is given at the creation."""
        if any(edge.outcome in ("taken", "failed") for node in self._walk.nodes for edge in node.edges):
            return []
        return [
            field.name
            for field in self._machine.fields.values()
            if field.initial is not MISSING
            and field.name in self._usage.relevant
            and field.name not in self._usage.written
        ]

    def verify(self, budget: int, seconds: float) -> list[Found]:
        """Return the findings: those that were found first, then what was not decided, then what was proven."""
        self._walk.explore(budget, seconds)
        if given := self._list_placeholders():
            self._prepare(given)
            self._walk.explore(budget, seconds)
        self._learn()
        self._doubt_failed_steps()
        self._doubt_errors()
        if not self._walk.nodes:
            self._check_failed_creations()
        else:
            for check in (
                self._check_states, self._check_transitions, self._check_rest, self._check_restless, self._check_ends,
                self._check_invokes, self._check_failures, self._check_properties,
            ):  # fmt: skip
                check()
        self._conclude()
        order = {FOUND: 0, UNDECIDED: 1, PROVEN: 2}
        return sorted(self._found, key=lambda one: (order[one.verdict], one.code))

    def _doubt_errors(self) -> None:
        """Doubt a walk that lacks events which only the engine sends, and instances that could not begin."""
        if any(_is_of_engine(transition) for _, transition in list_transitions(self._machine)):
            self._walk.doubts.append("errors of the engine were not tried")
        if self._walk.failed and self._walk.nodes:
            self._walk.doubts.append(f"an instance could not begin: {self._walk.failed[0].error}")

    def _learn(self) -> None:
        """Collect which states and transitions occurred."""
        self._nodes = self._walk.nodes
        self._taken = {id for ids in self._walk.first for id in ids}
        self._taken |= {id for node in self._nodes for edge in node.edges for id in edge.transitions}
        self._active: dict[str, Node] = {}
        for node in self._nodes:
            for name in node.active:
                self._active.setdefault(name, node)
        self._passed = set(self._active)
        for state, transition in list_transitions(self._machine):
            if transition.id in self._taken:
                self._passed.update([state.name, *transition.targets])
        for name in list(self._passed):
            self._pass_around(name)

    def _doubt_failed_steps(self) -> None:
        """Doubt the values tried where a step failed with each of them: with others it may not."""
        for node in self._nodes:
            failed = {edge.event: edge.error for edge in node.edges if edge.outcome == "failed"}
            for edge in node.edges:
                if edge.outcome != "failed":
                    failed.pop(edge.event, None)
            restless = any(part in edge.error for edge in node.edges for part in RESTLESS)
            doubt = "a step without end hides what would follow it"
            if restless and doubt not in self._walk.doubts:
                self._walk.doubts.append(doubt)
            for event, error in failed.items():
                doubt = f"each step on {event} that was tried failed: {error}"
                if not any(part in error for part in RESTLESS) and doubt not in self._walk.doubts:
                    self._walk.doubts.append(doubt)

    def _pass_around(self, name: str) -> None:
        """Note the states that are active with one: those around it, and those entered by default."""
        waiting = [name]
        while waiting:
            state = self._machine.states.get(waiting.pop())
            if state is None:
                continue
            entered = [state.parent] if state.parent else []
            if state.kind == "compound" and state.start and not any(child in self._passed for child in state.children):
                entered += state.start.targets
            if state.kind == "parallel":
                entered += state.children
            for one in entered:
                if one not in self._passed:
                    self._passed.add(one)
                    waiting.append(one)

    # Reporting

    @property
    def _why(self) -> str:
        return "; ".join(self._walk.doubts[:3]) or "not all snapshots were tried"

    def _add(self, code: str, path: Path, message: str, verdict: Any, node: Node | None = None, *more: Any) -> None:
        if sum(one.code == code and one.verdict == verdict for one in self._found) >= MOST_OF_A_KIND:
            return
        run = self._walk.list_run(node.number) if node else []
        self._found.append(
            Found(
                code,
                render(path),
                message,
                CHECKS[code].advice if verdict != PROVEN else "",
                "warning",
                verdict,
                (*run, *more),
                node.data if node else {},
            )
        )

    def _add_found(
        self, code: str, path: Path, message: str, node: Node, more: Sequence[Any], shows: Callable[[Any], bool]
    ) -> bool:
        """Add a finding whose run, repeated, shows it; else leave the check undecided."""
        run = [*self._walk.list_run(node.number), *more]
        try:
            records = self._simulator.run(run, node.data, ID, START, None)
        except SignalboxError:
            records = []
        if records and shows(records):
            self._add(code, path, message, FOUND, node, *more)
            return True
        self._open.setdefault(code, "a run that may show it could not be repeated")
        return False

    def _conclude(self) -> None:
        """Add for each kind of which nothing was found whether it was proven."""
        known = {one.code for one in self._found}
        whole = self._walk.is_whole and bool(self._nodes)
        for code, check in CHECKS.items():
            if code in known | self._told or code == "SB811" or not self._applies(code):
                continue
            why = self._open.get(code) or ("" if whole or (code in WITNESSED and self._nodes) else self._why)
            if why:
                self._add(code, (), f"{check.holds}: not decided, because {why}", UNDECIDED)
            else:
                self._add(code, (), check.holds, PROVEN)

    def _applies(self, code: str) -> bool:
        transitions = [transition for _, transition in list_transitions(self._machine)]
        return {
            "SB805": self._can_end,
            "SB806": any(one.cause == "after" for one in transitions),
            "SB807": any(state.invokes for state in self._machine.states.values()),
            "SB808": any(one.allow for one in transitions),
        }.get(code, True)

    @property
    def _can_end(self) -> bool:
        tops = (None, self._machine.root)
        return any(state.final and state.parent in tops for state in self._machine.states.values())

    # States and transitions

    def _check_states(self) -> None:
        for state in self._machine.states.values():
            if state.name in self._passed or state.kind == "history" or state.root:
                continue
            if self._walk.is_whole or state.name not in self._dead.reachable:
                around = state.parent
                if around is None or around in self._passed:  # else the state around it is reported
                    self._add("SB801", state.path, f"{quote(state.name)} is never reached", FOUND, self._nodes[0])
            else:
                self._undecide("SB801", state.path, f"whether {quote(state.name)} is ever reached")

    def _undecide(self, code: str, path: Path, what: str) -> None:
        self._add(code, path, f"{what} was not decided, because {self._why}", UNDECIDED)

    def _check_transitions(self) -> None:
        for state, transition in list_transitions(self._machine):
            if transition.id in self._taken or state.name not in self._passed:
                continue
            code = "SB806" if transition.cause == "after" else "SB802"
            if _is_of_engine(transition) or self._is_job_end(transition):
                self._open[code] = "errors of the engine and of jobs were not all tried"
                continue
            if code == "SB802" and transition.allow == () and self._is_locked(state, transition):
                continue
            targets = self._list_targets(transition)
            if any(one.code == "SB801" and one.verdict == FOUND and one.path in targets for one in self._found):
                self._told.add(code)  # by that finding
                continue
            what = _describe(transition)
            if self._walk.is_whole or transition.id in self._dead.transitions:
                node = self._active.get(state.name, self._nodes[0])
                self._add(code, transition.path, f"{what} is never taken", FOUND, node, *_trigger(transition))
            else:
                self._undecide(code, transition.path, f"whether {what} is ever taken")

    def _list_targets(self, transition: Transition) -> list[str]:
        return [render(state.path) for name in transition.targets for state in self._machine.lineage(name)]

    def _is_locked(self, state: State, transition: Transition) -> bool:
        """Report a transition for everybody that stands behind one for groups, so that others are refused."""
        before = state.transitions[: state.transitions.index(transition)] if transition in state.transitions else ()
        lock = next(
            (one for one in before if one.allow and one.guard is None and set(transition.events) <= set(one.events)),
            None,
        )
        if lock is None:
            return False
        node = self._active.get(state.name, self._nodes[0])
        message = f"only {', '.join(lock.allow)} may send {quote(lock.events[0])}: {_describe(transition)} is behind it"
        self._add("SB808", transition.path, message, FOUND, node, {"event": lock.events[0], "groups": []})
        return True

    def _is_job_end(self, transition: Transition) -> bool:
        """Tell whether a transition listens for the end of an invoke whose payload was not tried as it may be."""
        return any(one.startswith("error.invoke.") for one in transition.events) and transition.guard is not None

    # What happens at rest

    def _check_rest(self) -> None:
        reported: set[frozenset[str]] = set()
        for node in self._nodes:
            if node.done or not node.expanded or node.active in reported:
                continue
            if any(edge.target is not None for edge in node.edges) or (node.edges and self._walk.doubts):
                continue
            if node.came is not None and self._is_lost_end(node):
                self._told.add("SB803")  # SB807 tells it
                continue
            if not self._can_end and not self._listens_at_all(node):
                self._told.add("SB803")  # a machine without final states ends where no way goes on
                continue
            names = self._list_leaves(node)
            path = self._machine.states[names[0]].path
            message = f"nothing can happen any more in {', '.join(map(quote, names))}, which is no end"
            if self._add_found("SB803", path, message, node, (), partial(_rests_in, node.active)):
                reported.add(node.active)

    def _listens_at_all(self, node: Node) -> bool:
        return any(self._machine.states[name].all_transitions for name in node.active)

    def _is_lost_end(self, node: Node) -> bool:
        """Tell whether a node came about by the end of an invoke for which nobody listens."""
        before, given = node.came or (0, None)
        edges = [edge for edge in self._nodes[before].edges if edge.target == node.number and edge.input == given]
        return any(edge.event.startswith("done.invoke.") and not edge.transitions for edge in edges)

    def _list_leaves(self, node: Node) -> list[str]:
        return [state.name for state in self._machine.states.values() if state.name in node.active and state.is_leaf]

    def _check_restless(self) -> None:
        reported: set[str] = set()
        for node, edge in self._list_edges():
            if edge.outcome == "failed" and any(part in edge.error for part in RESTLESS) and edge.event not in reported:
                reported.add(edge.event)
                path = self._find_circle(node, edge)
                message = f"{quote(edge.event)} makes a step without end: {edge.error}"
                self._add_found("SB804", path, message, node, [_written(edge.input)], _shows_failed_step)

    def _find_circle(self, node: Node, edge: Edge) -> Path:
        for name in self._list_leaves(node):
            for transition in self._machine.states[name].transitions:
                if edge.event in transition.events:
                    return transition.path
        return ()

    def _list_edges(self) -> Iterator[tuple[Node, Edge]]:
        return ((node, edge) for node in self._nodes for edge in node.edges)

    def _check_ends(self) -> None:
        if not self._can_end:
            return
        ending = list_leading(self._nodes, {node.number for node in self._nodes if node.done})
        lost = [node for node in self._nodes if node.number not in ending]
        moving = [
            node
            for node in lost
            if any(edge.target not in (None, node.number) for edge in node.edges)
            or any(edge.target == node.number for edge in node.edges)
        ]
        if not lost or not self._walk.is_whole:
            if lost:
                self._open["SB805"] = self._why
            return
        if not moving or all(self._leads_to_rest(node) for node in moving):
            self._told.add("SB805")  # SB803 tells it
            return
        node = next(node for node in moving if not self._leads_to_rest(node))
        names = self._list_leaves(node)
        message = f"from {', '.join(map(quote, names))} no way leads to an end"
        self._add_found(
            "SB805", self._machine.states[names[0]].path, message, node, (),
            partial(_rests_in, node.active),
        )  # fmt: skip

    def _leads_to_rest(self, node: Node) -> bool:
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
                waiting.append(self._nodes[number])
        return True

    # Invokes

    def _check_invokes(self) -> None:
        for state in self._machine.states.values():
            for invoke in state.invokes:
                event = f"done.invoke.{invoke.id}"
                ends = [(node, edge) for node, edge in self._list_edges() if edge.event == event]
                if not ends or any(edge.transitions or edge.outcome in ("refused", "failed") for _, edge in ends):
                    continue
                if (
                    any(one.events and _listens(one, event) for _, one in list_transitions(self._machine))
                    and not self._walk.is_whole
                ):
                    self._open["SB807"] = self._why
                    continue
                if not self._can_end and self._only_fails(state, invoke.id):
                    self._told.add("SB807")  # its work is the last of a machine without final states
                    continue
                node, edge = ends[0]
                message = f"nobody listens for the end of {quote(invoke.id)}: its result is lost"
                self._add_found(
                    "SB807", invoke.path, message, node, [_written(edge.input)],
                    partial(_has_no_listener, event),
                )  # fmt: skip

    def _only_fails(self, state: State, invoke: str) -> bool:
        """Tell whether nothing but the failure of an invoke leads out of its state."""
        around = [one for each in self._machine.lineage(state.name) for one in each.all_transitions]
        return bool(around) and all(one.events == (f"error.invoke.{invoke}",) for one in around)

    # Failures

    def _check_failures(self) -> None:
        by_id = {transition.id: transition for _, transition in list_transitions(self._machine)}
        reported: set[str] = set()
        for node, edge in self._list_edges():
            for id, why in edge.failing.items():
                transition = by_id[id]
                if (
                    id in reported
                    or transition.guard is None
                    or not self._is_allowed(edge, transition.guard.expression.tree)
                ):
                    continue
                reported.add(id)
                self._report_failure(node, edge, transition.guard.path, transition.guard.expression.tree, why)
            if edge.outcome == "failed" and not any(part in edge.error for part in RESTLESS):
                self._report_failed_step(node, edge, reported)

    def _is_allowed(self, edge: Edge, tree: Any) -> bool:
        """Tell whether the definition itself allows the payload: one that is declared, or that is not read."""
        declared = self._machine.events.get(edge.event)
        if declared is not None and declared.fields is not None:
            return True
        return not any(part[0] == "event" for part in walk(tree))

    def _report_failure(self, node: Node, edge: Edge, path: Path, tree: Any, why: str) -> None:
        unset = self._list_unset(node, list_fields(tree))
        code = "SB809" if unset else "SB810"
        what = f"{', '.join(map(quote, unset))} is read before it is set" if unset else "the guard fails"
        self._add_found(
            code, path, f"{what} on {quote(edge.event)}: {why}", node, [_written(edge.input)],
            _shows_failing_guard,
        )  # fmt: skip

    def _list_unset(self, node: Node, names: Iterable[str]) -> list[str]:
        raw = node.snapshot["raw"]
        return [
            name for name in sorted(names)
            if name not in raw and self._machine.fields[name].initial is MISSING and name in self._usage.written
        ]  # fmt: skip

    def _report_failed_step(self, node: Node, edge: Edge, reported: set[str]) -> None:
        if edge.event in reported:
            return
        trees = [tree for name in node.active for tree in self._list_trees(name, edge.event)]
        unset = self._list_unset(node, {name for tree in trees for name in list_fields(tree)})
        if not unset or not any(word in edge.error for word in ("null", "None", "nothing")):
            return
        reported.add(edge.event)
        path, what = self._find_circle(node, edge), f"{', '.join(map(quote, unset))} is read before it is set"
        self._add_found(
            "SB809", path, f"{what} on {quote(edge.event)}: {edge.error}", node,
            [_written(edge.input)], _shows_failed_step,
        )  # fmt: skip

    def _list_trees(self, name: str, event: str) -> list[Any]:
        state = self._machine.states[name]
        actions = [action for one in state.transitions if _listens(one, event) for action in one.actions]
        for one in state.transitions:
            if _listens(one, event):
                for target in one.targets:
                    actions += self._machine.states[target].entry
        return [value.tree for action in actions for value in action.values]

    def _check_failed_creations(self) -> None:
        failed = self._walk.failed[0]
        code = "SB804" if any(part in failed.error for part in RESTLESS) else "SB810"
        self._found.append(
            Found(
                code,
                "initial",
                f"an instance cannot begin: {failed.error}",
                CHECKS[code].advice,
                "warning",
                FOUND,
                (),
                failed.data,
            )
        )
        self._walk.doubts.append("no instance can begin")

    # Properties

    def _check_properties(self) -> None:
        at = 0
        for one in self._machine.properties:
            columns = list(range(at, at + len(one.trees)))
            at += len(one.trees)
            if one.kind == "leads":
                self._check_leads(one, *columns)
            else:
                self._check_always(one, columns[0])

    def _check_always(self, one: Any, column: int) -> None:
        for node in self._nodes:
            if node.holds[column] is not (one.kind == "always"):
                value = node.holds[column]
                what = f"fails: {value}" if isinstance(value, str) else "is violated"
                message = f"{one.kind} {one.texts[0]}: {what} in {', '.join(map(quote, self._list_leaves(node)))}"
                if self._add_found(
                    "SB811", one.path, message, node, (),
                    partial(_rests_in, node.active),
                ):  # fmt: skip
                    return
        self._settle(one, f"{one.kind} {one.texts[0]}")

    def _settle(self, one: Any, text: str) -> None:
        if self._walk.is_whole:
            self._add("SB811", one.path, f"{text}: holds in all {len(self._nodes)} snapshots", PROVEN)
        else:
            self._add("SB811", one.path, f"{text}: not decided, because {self._why}", UNDECIDED)

    def _check_leads(self, one: Any, first: int, then: int) -> None:
        text = f"{one.texts[0]} leads to {one.texts[1]}"
        if self._walk.is_whole:
            arriving = {node.number for node in self._nodes if node.holds[then] is True}
            lost = find_lost(self._nodes, first, arriving)
            if lost is not None:
                names = ", ".join(map(quote, self._list_leaves(lost)))
                if self._add_found(
                    "SB811", one.path, f"{text}: from {names} it is out of reach", lost, (),
                    partial(_rests_in, lost.active),
                ):  # fmt: skip
                    return
        self._settle(one, text)


def _rests_in(active: frozenset[str], records: Sequence[SimulatedStep]) -> bool:
    return set(records[-1].configuration) <= active and records[-1].outcome in ("taken", "ignored")


def _has_no_listener(event: str, records: Sequence[SimulatedStep]) -> bool:
    return records[-1].event == event and not records[-1].transitions


def _shows_failed_step(records: Sequence[SimulatedStep]) -> bool:
    return records[-1].outcome == "failed"


def _shows_failing_guard(records: Sequence[SimulatedStep]) -> bool:
    explanation = records[-1].explanation
    if explanation is None:
        return False
    return any(
        candidate.verdict == "error" or any(part.verdict == "error" for part in candidate.because)
        for candidate in explanation.candidates
    )


def _is_of_engine(transition: Transition) -> bool:
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


def _listens(transition: Transition, event: str) -> bool:
    for one in transition.events:
        stem = one.removesuffix(".*")
        if one == "*" or event in (one, stem) or event.startswith(f"{stem}."):
            return True
    return False


def _written(given: Any) -> Any:
    from .walk import simplify

    return simplify(given)


def list_counts(findings: Iterable[VerificationFinding]) -> Mapping[str, int]:
    """Count findings by their verdict."""
    found = {FOUND: 0, PROVEN: 0, UNDECIDED: 0}
    for one in findings:
        found[one.verdict] += 1
    return found
