"""A definition that was read once: its findings, and all that is made from it.

The editor, the publisher, the engine and the diagrams use this one object, so that a definition is checked and compiled
once.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import cache, cached_property
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from machines.engine.errors import DefinitionError
from machines.engine.expressions import Node

from .checks.types import find_comparisons
from .findings import Finding, Path, Report, make_finding, render
from .model import Machine
from .outline import Outline, build_outline
from .program import build_program, collect_feeds, compute_digest
from .reading.document import find_embedded, read_document, read_sound_machine

Record = TypeVar("Record")


class CompiledDefinition:
    """A checked definition. ``source``: the document as it was given. ``findings``: errors and warnings, in document
    order. ``along``: the machines embedded in it, compiled, by full name in publish order.

    ``program``, ``digest`` and ``outline`` raise DefinitionError with all findings when one is an error that no release
    ever let pass. What was published must go on running, so later rules do not take it away.
    """

    def __init__(
        self,
        source: Any,
        findings: Sequence[Finding],
        machine: Machine | None = None,
        along: Mapping[str, CompiledDefinition] | None = None,
    ) -> None:
        self.source = source
        self.findings = tuple(findings)
        self.along = dict(along or {})
        self._machine = machine

    @property
    def has_errors(self) -> bool:
        """Tell whether it may not be published."""
        return any(finding.is_error for finding in self.findings)

    @cached_property
    def runs(self) -> bool:
        """Tell whether it can be published again under its number, if it was published before."""
        return self._machine is not None

    @cached_property
    def program(self) -> dict[str, Any]:
        """Return the program that the functions library interprets."""
        return build_program(self._checked)

    @cached_property
    def digest(self) -> str:
        """Return the digest of the program."""
        return compute_digest(self.program)

    @cached_property
    def outline(self) -> Outline:
        """Return the outline that people read and diagrams draw."""
        return build_outline(self._checked, find_comparisons(self._checked))

    @cached_property
    def recipients(self) -> tuple[Recipient, ...]:
        """Return the machines it sends to or invokes, without those of embedded machines."""
        return find_machine_recipients(self._checked)

    @cached_property
    def work_names(self) -> tuple[WorkName, ...]:
        """Return the handlers and queues it names, without those of embedded machines."""
        return find_work_names(self._checked)

    @property
    def feeds(self) -> dict[str, set[str]]:
        """Return the queues it puts jobs on, each with the handlers that its jobs ask for."""
        return collect_feeds(self._checked)

    def list_paths(self) -> tuple[dict[int, Path], dict[str, Path]]:
        """Return where each state, by index, and each transition, by id, stands in the document."""
        states = self._checked.states.values()
        return (
            {state.index: state.path for state in states},
            {each.id: each.path for state in states for each in state.all_transitions},
        )

    @property
    def partitions(self) -> int | None:
        """Return the number of partitions for a machine that is published for the first time; None where the definition
        leaves it to the installation."""
        named = self.source.get("partitions") if isinstance(self.source, dict) else None
        return named if isinstance(named, int) else None

    def compare_partitions(self, held: int) -> list[Finding]:
        """Return a warning where the machine was published with another number of partitions than this one names."""
        wanted, name = self.partitions, self.source["id"]
        if wanted in (None, held):
            return []
        message = f"{name} has {held} partitions and keeps them; {wanted} would apply to a new machine only"
        return [
            make_finding("SB218", "partitions", message, f"run `manage.py machine repartition {name} --to {wanted}`")
        ]

    @property
    def _checked(self) -> Machine:
        if self._machine is None:
            raise DefinitionError(list(self.findings))
        return self._machine

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as JSON, for another process. Raises DefinitionError."""
        return {
            "source": self.source,
            "findings": [asdict(finding) for finding in self.findings],
            "program": self.program,
            "digest": self.digest,
            "outline": asdict(self.outline),
            "recipients": [asdict(one) for one in self.recipients],
            "work_names": [asdict(one) for one in self.work_names],
            "along": {name: inner.as_dict() for name, inner in self.along.items()},
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> CompiledDefinition:
        """Restore what ``as_dict`` returned."""
        findings = [Finding(**finding) for finding in found["findings"]]
        along = {name: cls.from_dict(inner) for name, inner in found["along"].items()}
        made = cls(found["source"], findings, along=along)
        made.__dict__ |= {
            "runs": True,
            "program": found["program"],
            "digest": found["digest"],
            "outline": rebuild(Outline, found["outline"]),
            "recipients": tuple(rebuild(Recipient, one) for one in found["recipients"]),
            "work_names": tuple(rebuild(WorkName, one) for one in found["work_names"]),
        }
        return made


def compile_definition(definition: object) -> CompiledDefinition:
    """Read and check a definition; a compiled one is returned as it is. Never raises."""
    if isinstance(definition, CompiledDefinition):
        return definition
    machine, report = read_document(definition)
    # What has errors is not taken apart: it may be nested deeper than anything should be.
    sources = find_embedded(definition) if report.embedded and not report.has_old_errors else {}
    inside = {inner.id: _compile(sources[inner.id], inner, found) for inner, found in report.embedded if sources}
    return _compile(definition, machine, report, inside)


def _compile(
    source: Any, machine: Machine | None, report: Report, along: Mapping[str, CompiledDefinition] | None = None
) -> CompiledDefinition:
    made = CompiledDefinition(source, report.findings(), None if report.has_old_errors else machine, along)
    if made.runs and report.program is not None:  # made when its size was checked
        made.__dict__["program"] = report.program
    return made


def rebuild(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """Rebuild a frozen record from what ``asdict`` wrote. ``kind``: a dataclass of texts, numbers, JSON (``Any``),
    other such classes, lists and tuples of them, and objects by name."""
    hints = read_hints(cast(Any, kind))
    return kind(**{name: _rebuild_value(hints[name], value) for name, value in values.items()})


@cache
def read_hints(kind: Any) -> dict[str, Any]:
    """Return name -> annotation of the fields of a dataclass."""
    found = get_type_hints(kind)
    return {field.name: found[field.name] for field in fields(kind)}


def _rebuild_value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _rebuild_value(next(one for one in inner if one is not type(None)), value)
    if origin is tuple and inner[-1] is not ...:
        return tuple(_rebuild_value(each, one) for each, one in zip(inner, value, strict=True))
    if origin in (tuple, list):
        return origin(_rebuild_value(inner[0], one) for one in value)
    if origin is dict:
        return {name: _rebuild_value(inner[1], one) for name, one in value.items()}
    return rebuild(hint, value) if is_dataclass(hint) and isinstance(hint, type) else value


@dataclass(frozen=True, slots=True)
class WorkName:
    """The name of a handler or a queue, and where it stands."""

    name: str
    path: Path


def find_work_names(machine: Machine) -> tuple[WorkName, ...]:
    """Find the names in document order, without those of embedded machines."""
    work = [(one.src, one.name, one.path) for one in machine.actions if one.verb == "enqueue"]
    invokes = (one for state in machine.states.values() for one in state.invokes if not one.is_machine)
    work += [(one.src, one.queue, one.path) for one in invokes]
    found: dict[WorkName, None] = {}
    for src, queue, path in work:
        found[WorkName(src, (*path, "src"))] = None
        if queue != src:
            found[WorkName(queue, (*path, "queue"))] = None
    return tuple(found | dict.fromkeys(WorkName(name, ("queues", name)) for name in machine.limits))


_ADDRESS = "#_scxml_"


@dataclass(frozen=True, slots=True)
class Recipient:
    """A machine that is sent to (``kind``: "send") or invoked ("invoke")."""

    kind: Literal["send", "invoke"]
    machine: str
    path: str


def find_recipients(definition: object) -> tuple[Recipient, ...]:
    """Find the receivers of a definition in document order, without the machine itself, its parent, its children and
    embedded machines, and those whose names are computed. Definitions with errors are read as well."""
    machine = read_sound_machine(definition)
    return () if machine is None else find_machine_recipients(machine)


def find_machine_recipients(machine: Machine) -> tuple[Recipient, ...]:
    """Find the receivers of a machine that was read."""
    found = dict.fromkeys([*_sends(machine), *_invokes(machine)])
    return tuple(one for one in found if one.machine not in ("", machine.id))


def _sends(machine: Machine) -> Iterator[Recipient]:
    for action in machine.actions:
        if action.sending is not None and action.sending.to is not None:
            for head in _heads(action.sending.to.tree):
                name, slash, _ = head.removeprefix(_ADDRESS).partition("/")
                if slash and head.startswith(_ADDRESS):
                    yield Recipient("send", name, render(action.path))


def _invokes(machine: Machine) -> Iterator[Recipient]:
    for state in machine.states.values():
        for invoke in state.invokes:
            tree = invoke.computed.tree if invoke.computed else ["str", invoke.machine]
            for name in _heads(tree) if tree[0] in ("str", "if") else ():
                yield Recipient("invoke", name, render((*invoke.path, "src")))


def _heads(tree: Node) -> list[str]:
    """Return what the text of an expression can begin with, as far as it tells."""
    if tree[0] == "str":
        return [str(tree[1])]
    if tree[0] == "if":
        return [*_heads(tree[2]), *_heads(tree[3])]
    if tree[0] == "bin" and tree[1] == "+":
        return _heads(tree[2])
    if tree[0] == "obj":
        machine = next((part[1] for part in tree[1:] if part[0] == "machine"), None)
        return [f"{_ADDRESS}{machine[1]}/"] if machine is not None and machine[0] == "str" else []
    return []
