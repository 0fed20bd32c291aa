"""One version of a machine as plans and comparisons read it: names, states, timers, invokes and fields."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from machines.engine.arguments import check_machine, show
from machines.engine.definitions import CompiledDefinition, FieldOutline, Outline, StateOutline, compile_definition
from machines.engine.errors import BadInput, DefinitionError
from machines.engine.expressions import Node

MOST_CONFIGURATIONS = 2000
KEPT = 16  # compiled versions in memory


@dataclass(frozen=True, slots=True)
class TimerPart:
    """A timer of ``after``: the event it raises, the state that arms it, and the tree and text of its delay."""

    event: str
    state: str
    delay: Node
    text: str


@dataclass(frozen=True, slots=True)
class InvokePart:
    """An invoke: its id, its state, and what does the work: ``handler charge`` or ``machine refund``."""

    id: str
    state: str
    work: str


@dataclass(frozen=True, slots=True)
class EntryResult:
    """What is active after an entry. ``conflict``: two states that exclude each other, or None."""

    leaves: tuple[str, ...]
    active: frozenset[str]
    conflict: tuple[str, str] | None = None


@dataclass(frozen=True)
class VersionContent:
    """A version with its compiled definition. ``number`` is 0 and ``digest`` empty for a draft."""

    number: int
    digest: str
    compiled: CompiledDefinition

    @property
    def key(self) -> str:
        """Return ``<version>:<digest>``, as instances carry it."""
        return f"{self.number}:{self.digest}"

    @property
    def program(self) -> dict[str, Any]:
        return self.compiled.program

    @property
    def outline(self) -> Outline:
        return self.compiled.outline

    @cached_property
    def names(self) -> list[str]:
        return [state.name for state in self.outline.states]

    @cached_property
    def fields(self) -> dict[str, FieldOutline]:
        return {field.name: field for field in self.outline.data}

    @cached_property
    def programs(self) -> dict[str, dict[str, Any]]:
        """Return state name -> its part of the program."""
        return {state["name"]: state for state in self.program["states"]}

    @cached_property
    def paths(self) -> dict[str, StateOutline]:
        return {state.path: state for state in self.outline.states if state.path}

    def find(self, name: str) -> StateOutline | None:
        """Return a state by its name, else by its path."""
        return self.outline.state(name) or self.paths.get(name)

    def list_timers(self, state: str) -> list[TimerPart]:
        """List the timers that a state arms, in document order."""
        texts = {t.id: t.delay for t in self._state(state).transitions}
        return [
            TimerPart(transition["events"][0], state, transition["delay"], texts.get(transition["id"], ""))
            for transition in self.programs[state].get("transitions", ())
            if "delay" in transition
        ]

    def list_invokes(self, state: str) -> list[InvokePart]:
        """List the invokes of a state, in document order."""
        return [
            InvokePart(one.id, state, f"machine {one.machine}" if one.machine else f"handler {one.src}")
            for one in self._state(state).invokes
        ]

    @cached_property
    def timers(self) -> dict[str, TimerPart]:
        """Return event -> timer, of all states."""
        return {timer.event: timer for state in self.outline.states for timer in self.list_timers(state.name)}

    @cached_property
    def invokes(self) -> dict[str, InvokePart]:
        """Return id -> invoke, of all states."""
        return {invoke.id: invoke for state in self.outline.states for invoke in self.list_invokes(state.name)}

    def _state(self, name: str) -> StateOutline:
        found = self.outline.state(name)
        if found is None:
            raise KeyError(name)
        return found

    def enter(self, targets: Iterable[str]) -> EntryResult:
        """Compute what is active when these states are entered together, each by its default, without a memory."""
        chosen: set[str] = set()
        for target in targets:
            self._choose(target, chosen)
        tops = [state for state in self.outline.states if state.parent is None and state.name in chosen]
        leaves: list[str] = []
        active: set[str] = set()
        conflict = (tops[0].name, tops[1].name) if len(tops) > 1 else None
        waiting = tops[:1]
        while waiting:
            state = waiting.pop()
            active.add(state.name)
            if state.is_leaf:
                leaves.append(state.name)
                continue
            inside = [child for name in state.children if (child := self._state(name)).type != "history"]
            if state.type == "parallel":
                waiting += inside
                continue
            if not any(child.name in chosen for child in inside):
                for target in state.initial:
                    self._choose(target, chosen)
            picked = [child for child in inside if child.name in chosen]
            if len(picked) > 1 and conflict is None:
                conflict = (picked[0].name, picked[1].name)
            waiting += picked[:1]
        order = {name: position for position, name in enumerate(self.names)}
        return EntryResult(tuple(sorted(leaves, key=order.__getitem__)), frozenset(active), conflict)

    def _choose(self, target: str, chosen: set[str], depth: int = 0) -> None:
        state = self._state(target)
        if state.type == "history" and depth < 20:
            for inner in state.initial or (state.parent or "",):
                if inner:
                    self._choose(inner, chosen, depth + 1)
            return
        chosen.update(around.name for around in self.outline.lineage(target))

    @cached_property
    def configurations(self) -> list[tuple[str, ...]]:
        """List the configurations as leaves, MOST_CONFIGURATIONS at most; those of one leaf are left out."""
        tops = [state for state in self.outline.states if state.parent is None and state.type != "history"]
        found = (leaves for state in tops for leaves in self._combine(state) if len(leaves) > 1)
        return list(itertools.islice(found, MOST_CONFIGURATIONS))

    def _combine(self, state: StateOutline) -> Iterator[tuple[str, ...]]:
        if state.is_leaf:
            yield (state.name,)
            return
        inside = [child for name in state.children if (child := self._state(name)).type != "history"]
        if state.type != "parallel":
            for child in inside:
                yield from self._combine(child)
            return
        # Lists of one region are cut as well: their product would be longer than what is looked at.
        regions = [list(itertools.islice(self._combine(child), MOST_CONFIGURATIONS)) for child in inside]
        for picked in itertools.product(*regions):
            yield tuple(leaf for leaves in picked for leaf in leaves)


def read_content(number: int, digest: str, definition: Any) -> VersionContent:
    """Compile a definition as a version, once for the plan, the dry run and the move by it. Raises DefinitionError
    where it cannot run."""
    return _compile(number, digest, json.dumps(definition))


@lru_cache(maxsize=KEPT)
def _compile(number: int, digest: str, text: str) -> VersionContent:
    content = VersionContent(number, digest, compile_definition(json.loads(text)))
    _ = content.program, content.outline
    return content


def read_draft(machine: str, definition: Any) -> VersionContent:
    """Compile a draft of a machine. Raises DefinitionError where it has errors, BadInput for another machine's, and for
    what is no definition."""
    if not isinstance(definition, Mapping | CompiledDefinition):
        raise BadInput(f"a version is a number or a definition, not {show(definition)}", code="SB636")
    compiled = compile_definition(definition)
    if compiled.has_errors:
        raise DefinitionError(compiled.findings)
    content = VersionContent(0, "", compiled)
    if content.outline.id != check_machine(machine):
        raise BadInput(f"the draft is one of machine {show(content.outline.id)}, not of {show(machine)}", code="SB636")
    return content
