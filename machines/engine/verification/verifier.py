"""Verifies a definition: walks over what it can do, and reports what is wrong with it, what is right, and what could
not be decided."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from machines.engine.connection.calls import Caller
from machines.engine.definitions import CompiledDefinition
from machines.engine.definitions.model import Machine
from machines.engine.definitions.program import name_types
from machines.engine.definitions.reading.document import read_sound_machine
from machines.engine.publishing.machine_meta import read_encrypted_fields
from machines.engine.simulation import Simulator

from .checks import (
    check_ends,
    check_failed_creations,
    check_failures,
    check_invokes,
    check_properties,
    check_rest,
    check_restless,
    check_states,
    check_transitions,
    is_of_engine,
)
from .dead_guards import DeadGuards
from .report import FOUND, PROVEN, RESTLESS, UNDECIDED, Report, VerificationFinding
from .usage import Usage, list_transitions
from .walk import Alphabet, Walk

CHECKS = (
    check_states, check_transitions, check_rest, check_restless, check_ends, check_invokes, check_failures,
    check_properties,
)  # fmt: skip
"""What is checked of a machine whose instances can begin, in that order: later ones leave out what is reported."""
BY_DATA = frozenset({"SB801", "SB802", "SB806"})  # no finding where data that is given at the creation leads there


class Verifier:
    """The verification of one definition."""

    def __init__(self, caller: Caller, root: str, compiled: CompiledDefinition) -> None:
        machine = read_sound_machine(compiled.source)
        assert machine is not None  # it was compiled
        self._machine: Machine = machine
        self._simulator = Simulator(caller, root, make_plain(compiled.program))
        self._caller, self._root, self._compiled = caller, root, compiled
        self._prepare(())

    def verify(self, budget: int, seconds: float) -> list[VerificationFinding]:
        """Return the findings: those that were found first, then what was not decided, then what was proven."""
        found = self._judge(budget, seconds)
        is_dead = any(one.verdict == FOUND and one.code in BY_DATA for one in found)
        if is_dead and (free := self._usage.list_free_fields()):
            self._prepare(free)
            freer = self._judge(budget, seconds)
            found = [one for one in found if one.code not in BY_DATA] + [one for one in freer if one.code in BY_DATA]
        order = {FOUND: 0, UNDECIDED: 1, PROVEN: 2}
        return sorted(found, key=lambda one: (order[one.verdict], one.code))

    def _judge(self, budget: int, seconds: float) -> list[VerificationFinding]:
        self._walk.explore(budget, seconds)
        if not self._can_happen() and (free := self._usage.list_free_fields()):
            self._prepare(free)
            self._walk.explore(budget, seconds)
        self._doubt_failed_steps()
        self._doubt_errors()
        report = Report(self._machine, self._simulator, self._walk, self._usage, self._dead)
        if not self._walk.nodes:
            check_failed_creations(report)
        else:
            for check in CHECKS:
                check(report)
        report.conclude()
        return report.found

    def _prepare(self, given: Collection[str]) -> None:
        """Make the walk. ``given``: fields with a value of their own that are given at the creation anyway."""
        machine, program = self._machine, make_plain(self._compiled.program)
        trees = [tree for one in machine.properties for tree in one.trees]
        self._usage = Usage(machine, trees, given)
        alphabet = Alphabet(machine, self._usage, program.get("known", ()))
        self._dead = DeadGuards(machine, self._usage)
        self._walk = Walk(self._caller, self._root, program, alphabet, self._usage.relevant, self._usage.blurred, trees)
        self._walk.doubts += dict.fromkeys([*self._usage.doubts, *alphabet.doubts])

    def _can_happen(self) -> bool:
        """Return whether anything happened with the declared values."""
        return any(edge.outcome in ("taken", "failed") for node in self._walk.nodes for edge in node.edges)

    def _doubt_failed_steps(self) -> None:
        """Doubt the values tried where a step failed with each of them: with others it may not."""
        for node in self._walk.nodes:
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

    def _doubt_errors(self) -> None:
        """Doubt a walk that lacks events which only the engine sends, and instances that could not begin."""
        if any(is_of_engine(transition) for _, transition in list_transitions(self._machine)):
            self._walk.doubts.append("errors of the engine were not tried")
        if self._walk.failed and self._walk.nodes:
            self._walk.doubts.append(f"an instance could not begin: {self._walk.failed[0].error}")


def list_counts(findings: Iterable[VerificationFinding]) -> Mapping[str, int]:
    """Count findings by their verdict."""
    found = {FOUND: 0, PROVEN: 0, UNDECIDED: 0}
    for one in findings:
        found[one.verdict] += 1
    return found


def make_plain(program: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a program whose encrypted fields take plain values: those that are
    tried come from the definition."""
    marks = read_encrypted_fields(program.get("sensitive", {}))
    if not marks:
        return program

    def lay_open(name: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        if name not in marks:
            return spec
        return {**{key: part for key, part in spec.items() if key != "types"}, **name_types(marks[name].types)}

    return {
        **program,
        "data": [lay_open(spec["name"], spec) for spec in program.get("data", ())],
        "events": {
            event: {
                name: {**spec, "types": marks[name].types} if name in marks else spec for name, spec in fields.items()
            }
            for event, fields in program.get("events", {}).items()
        },
        "sensitive": {name: part for name, part in program["sensitive"].items() if name != "encrypted"},
    }
