"""Tries out a machine on a real engine, and keeps a graph of what led where.

An instance tries whatever is untried at its node. Then it follows known edges to the nearest node where something is
untried; if there is none ahead, another instance begins. The clock only moves for waits that are tried, so that the
same steps have the same results.
"""

import json
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from machines.engine import Instance, SignalboxError
from machines.engine.definitions import CompiledDefinition, TransitionOutline
from machines.engine.definitions.model import MISSING, State
from machines.engine.definitions.outline import is_match
from machines.engine.definitions.reading.document import read_sound_machine
from machines.engine.expressions import walk
from machines.engine.limits import is_reserved_event
from machines.engine.verification.usage import Usage, list_links
from machines.engine.verification.walk import FIELD, Alphabet
from machines.testing.job_runner import Impossible
from machines.testing.scenarios.document import FAILED, When, find_target, format_delay, read_time
from machines.testing.scenarios.runner import Sandbox

MOST_STARTS = 8
SECOND, DAY = 1000, 86_400_000  # ms
LONGEST_WAIT = 3650 * DAY
MOST_STEPS = 4000  # tries of one exploration
MOST_SECONDS = 30.0
MOST_VARIANTS = 12  # nodes of one configuration with other data that are tried out
BEGIN = "2026-01-01 09:00:00"  # the time of every run, so that times in data are the same each time
DECADE = 315_360_000  # seconds: a number that near to the present is a time

Key = str


class Choices:
    """What is tried with one machine. ``starts``: data to create instances with, first what has to be given, then
    values of fields that nothing sets."""

    def __init__(self, compiled: CompiledDefinition) -> None:
        machine = read_sound_machine(compiled.source)
        assert machine is not None  # it was compiled
        self._machine = machine
        known = compiled.program.get("known", ())
        needed = [field.name for field in machine.fields.values() if field.required and field.initial is MISSING]
        usage = Usage(machine, given=needed)
        self._alphabet, self._usage = Alphabet(machine, usage, known), usage
        free = Alphabet(machine, Usage(machine, given=[*needed, *usage.list_free_fields()]), known)
        self.starts = [*self._alphabet.creations, *free.creations][:MOST_STARTS]

    def select_relevant(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data that decide what happens; of texts that chance makes only that they are there."""
        found = {name: value for name, value in data.items() if name in self._usage.relevant}
        return found | {name: True for name in self._usage.blurred if isinstance(found.get(name), str)}

    def list_states(self, instance: Instance) -> list[State]:
        """List the active states, those around others included."""
        return list({one.name: one for leaf in instance.configuration for one in self._machine.lineage(leaf)}.values())

    def list_events(self, instance: Instance, to: str) -> Iterator[When]:
        """List the events that an active state listens for, with their payloads."""
        heard = {name for state in self.list_states(instance) for one in state.all_transitions for name in one.events}
        for each in self._alphabet.events:
            name = each["event"]
            if not is_reserved_event(name) and any(is_match(descriptor, name) for descriptor in heard):
                payload = _fill(each["payload"], instance.data)
                yield {"event": name} | ({"payload": payload} if payload else {}) | ({"to": to} if to else {})

    def list_results(self, invoke: str, data: Any) -> list[Any]:
        """List the results that a job may end with. ``data``: of its instance."""
        return [_fill(one, data) for one in self._alphabet.results.get(invoke, [None])]

    def list_times(self, instance: Instance) -> Iterator[float]:
        """List the seconds since the epoch that guards of active states compare the time with."""
        guards = [one.guard for state in self.list_states(instance) for one in state.all_transitions if one.guard]
        compared = [node for guard in guards for node in walk(guard.expression.tree) if node[0] == "cmp"]
        for node in compared:
            for _, *sides in list_links(node):
                parts = [part for side in sides for part in walk(side)]
                values = [instance.data.get(part[1]) if part[0] == "data" else part[1] for part in parts if part[1:]]
                if ["now"] in parts:
                    yield from (one for one in values if isinstance(one, int | float) and not isinstance(one, bool))


def list_candidates(sandbox: Sandbox, choices: Mapping[str, Choices]) -> list[When]:
    """List what can be done now, events first, to the instance and to the machines that it talks to."""
    instance = sandbox.read()
    found = [] if instance.done else list(choices[sandbox.machine].list_events(instance, ""))
    others = {name: sandbox.find_instances(name) for name in choices if name != sandbox.machine}
    for name, running in others.items():
        if len(running) == 1:
            found += choices[name].list_events(running[0], name)
    found += _list_job_ends(sandbox, choices)
    found += _list_delays(sandbox, choices, [instance, *(one for running in others.values() for one in running)])
    return list({repr(one): one for one in found}.values())


def _fill(value: Any, data: Any) -> Any:
    """Put the values that data fields have now where a value names them."""
    if isinstance(value, dict) and FIELD in value:
        return data.get(value[FIELD]) if isinstance(data, dict) else None
    return {key: _fill(one, data) for key, one in value.items()} if isinstance(value, dict) else value


def _list_job_ends(sandbox: Sandbox, choices: Mapping[str, Choices]) -> Iterator[When]:
    """List results and the failure of each job of an invoke that is ready."""
    for job in sandbox.list_waiting():
        if job.invoke and job.place == "ready" and job.machine in choices:
            of = {} if job.machine == sandbox.machine else {"of": job.machine}
            for result in choices[job.machine].list_results(job.invoke, job.data):
                yield {"job": job.invoke, **of, "done": result}
            yield {"job": job.invoke, **of, "failed": FAILED}


def _list_delays(sandbox: Sandbox, choices: Mapping[str, Choices], instances: list[Instance]) -> Iterator[When]:
    """List how long it is until the next timer, and until guards that ask for the time change their answer.
    ``instances``: its own first."""
    now = sandbox.kit.now
    dues = [timer.due for one in instances for timer in one.timers]
    dues += [job.due for job in sandbox.list_waiting() if job.place == "delayed"]
    waits = [min(dues) - now] if dues else []
    times = choices[sandbox.machine].list_times(instances[0])
    for wait in dict.fromkeys([*waits, *(round(at * 1000) - now + SECOND for at in times)]):
        if 0 < wait <= LONGEST_WAIT:
            yield {"after": format_delay(wait)}


@dataclass(slots=True)
class Edge:
    """What one try did: where it led, and the transitions it took."""

    when: When
    source: Key
    target: Key
    transitions: tuple[str, ...]


@dataclass(slots=True)
class Node:
    """An instance with its data, as far as it matters. ``untried``: what has not been done there."""

    key: Key
    configuration: tuple[str, ...]
    untried: deque[When]
    edges: list[Edge] = field(default_factory=list)


@dataclass(slots=True)
class Graph:
    """What is known of a machine. ``starts``: node -> what it is created with; ``tried``: event or cause -> how often
    it was tried; ``whole``: nothing is left to try, within the limits on data."""

    starts: dict[Key, dict[str, Any]] = field(default_factory=dict)
    nodes: dict[Key, Node] = field(default_factory=dict)
    taken: Counter[str] = field(default_factory=Counter)
    tried: Counter[tuple[str, str]] = field(default_factory=Counter)
    steps: int = 0
    whole: bool = False

    def walk(self, sources: Iterable[Key]) -> Iterator[tuple[Node, list[Edge]]]:
        """List each node that can be reached from others with the way there, the nearest first."""
        ways: dict[Key, list[Edge]] = {source: [] for source in sources}
        keys = list(ways)
        for key in keys:
            yield self.nodes[key], ways[key]
            for edge in self.nodes[key].edges:
                if edge.target not in ways:
                    ways[edge.target] = [*ways[key], edge]
                    keys.append(edge.target)


class Explorer:
    """Explores one machine. ``definitions``: of it and of those that it talks to, which are published as well."""

    def __init__(
        self,
        sandbox: Sandbox,
        machine: str,
        definitions: Mapping[str, CompiledDefinition],
        *,
        most_steps: int = MOST_STEPS,
        most_seconds: float = MOST_SECONDS,
    ) -> None:
        self.graph = Graph()
        self._sandbox = sandbox
        self._machine = machine
        self._choices = {name: Choices(compiled) for name, compiled in definitions.items()}
        self._outline = definitions[machine].outline
        self._most_steps = most_steps
        self._deadline = time.monotonic() + most_seconds
        self._variants: Counter[tuple[str, ...]] = Counter()
        sandbox.kit.start_clock(read_time(BEGIN))
        states = self._outline.states
        self._remembering = [state.parent for state in states if state.type == "history" and state.parent]
        self._memory: dict[str, list[str]] = {}
        self._wanted = {one.id for state in self._outline.states for one in state.transitions}

    def explore(self, *, thorough: bool = False) -> Graph:
        """Explore until every transition was taken, with ``thorough`` until nothing is left to try, or the limits are
        reached."""
        starts = deque(self._choices[self._machine].starts)
        here = self._begin(starts.popleft())
        while not self._is_over() and (thorough or not self._wanted <= self.graph.taken.keys()):
            plan = self._plan(here)
            if plan is None and not starts:
                self.graph.whole = True
                break
            if plan is None:
                here = self._begin(starts.popleft())
                continue
            path, node, when = plan
            source = path[0].source if path else node.key
            if here != source:
                here = self._begin(self.graph.starts[source])
            here = self._follow(here, path)
            if here == node.key and when in node.untried:
                node.untried.remove(when)
                here = self._perform(node, when, known=False)
        return self.graph

    def _plan(self, here: Key | None) -> tuple[list[Edge], Node, When] | None:
        """Choose what to try next, and the way there: the nearest try that may take a transition that was never taken,
        else the nearest of all."""
        for choose in (self._find_promising, _find_first):
            for sources in ([here] if here is not None else [], list(self.graph.starts)):
                if (found := self._find_path(sources, choose)) is not None:
                    return found
        return None

    def _find_promising(self, node: Node) -> When | None:
        if not node.untried:
            return None
        states = {state.name: state for leaf in node.configuration for state in self._outline.lineage(leaf)}
        wanted = [one for state in states.values() for one in state.transitions if one.id not in self.graph.taken]
        return next((when for when in node.untried if any(_may_take(when, one) for one in wanted)), None)

    def _is_over(self) -> bool:
        return self.graph.steps >= self._most_steps or time.monotonic() > self._deadline

    def _begin(self, data: dict[str, Any]) -> Key | None:
        """Create an instance; return its node, or None where it cannot begin with this data."""
        self._sandbox.clear()
        self._memory = {}
        self.graph.steps += 1
        try:
            happened = self._sandbox.start(self._machine, {"data": data})
        except (SignalboxError, AssertionError):
            return None
        self.graph.taken.update(happened.transitions)
        key = self._visit(new=bool(happened.transitions))
        self.graph.starts.setdefault(key, data)
        return key

    def _find_path(
        self, sources: list[Key], choose: Callable[[Node], When | None]
    ) -> tuple[list[Edge], Node, When] | None:
        """Find the shortest way from one of these nodes to one where ``choose`` finds something to try."""
        for node, way in self.graph.walk(sources):
            if (when := choose(node)) is not None:
                return way, node, when
        return None

    def _follow(self, here: Key | None, path: list[Edge]) -> Key | None:
        """Do what led along a way; end where the outcome differs."""
        for edge in path:
            if here != edge.source or self._is_over():
                return here
            here = self._perform(self.graph.nodes[edge.source], edge.when, known=True)
        return here

    def _perform(self, node: Node, when: When, *, known: bool) -> Key | None:
        """Do something at a node; return the node that it leads to, None where the instance is in trouble."""
        self.graph.steps += 1
        try:
            happened = self._sandbox.perform(when)
            if happened.error is not None:
                self._count(node, when)
                return node.key if "event" in when else None  # a job whose end is refused stays leased
        except (Impossible, SignalboxError, AssertionError):
            return None
        fresh = [id for id in happened.transitions if id not in self.graph.taken]
        self.graph.taken.update(happened.transitions)
        target = self._visit(new=bool(fresh))
        if not known:
            self._count(node, when)
            if target != node.key or happened.transitions:
                node.edges.append(Edge(when, node.key, target, tuple(happened.transitions)))
        return target

    def _count(self, node: Node, when: When) -> None:
        if "event" in when and not find_target(when):
            states = {one.name for leaf in node.configuration for one in self._outline.lineage(leaf)}
            for state in states:
                self.graph.tried[state, when["event"]] += 1

    def _visit(self, *, new: bool) -> Key:
        """Find the node of the instance as it is; make one where there is none."""
        instance = self._sandbox.read()
        key = self._make_key()
        if key not in self.graph.nodes:
            configuration = tuple(instance.configuration)
            self._variants[configuration] += 1
            few = new or self._variants[configuration] <= MOST_VARIANTS
            untried = list_candidates(self._sandbox, self._choices) if few else []
            self.graph.nodes[key] = Node(key, configuration, deque(untried))
        return key

    def _make_key(self) -> Key:
        """Describe all that decides what can happen: configuration, data, timers, jobs, other machines, and what is
        remembered by history states."""
        now = self._sandbox.kit.now
        parts = []
        for machine, choices in self._choices.items():
            own = machine == self._machine
            for instance in [self._sandbox.read()] if own else self._sandbox.find_instances(machine):
                timers = sorted((timer.event, timer.due - now) for timer in instance.timers)
                parts.append(
                    [machine, instance.configuration, _blur(choices.select_relevant(instance.data), now), timers]
                )
        waiting = [job for job in self._sandbox.list_waiting() if job.invoke]
        leaves = self._sandbox.read().configuration
        for parent in self._remembering:
            inside = [leaf for leaf in leaves if leaf in self._outline.leaves_of(parent)]
            if inside:
                self._memory[parent] = inside
        memory = {parent: inside for parent, inside in self._memory.items() if not set(inside) & set(leaves)}
        jobs = sorted(f"{job.machine} {job.invoke} {job.place}" for job in waiting)
        return json.dumps([parts, jobs, memory], sort_keys=True, default=str)


def _find_first(node: Node) -> When | None:
    return node.untried[0] if node.untried else None


def _may_take(when: When, transition: TransitionOutline) -> bool:
    """Tell whether something may take a transition of an active state, as far as its kind tells."""
    if find_target(when):
        return transition.cause in ("done", "error")
    if "after" in when:
        return transition.cause == "after" or "now" in (transition.guard_text or "")
    name = when.get("event") or f"{'done' if 'done' in when else 'error'}.invoke.{when['job']}"
    return any(is_match(descriptor, name) for descriptor in transition.events)


def _blur(data: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Replace times in data by whether they are past: another second is no other situation."""
    found: dict[str, Any] = {}
    for name, value in data.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if number and abs(value - now / 1000) < DECADE:
            found[name] = "past" if value < now / 1000 else "now" if value == now / 1000 else "future"
        else:
            found[name] = value
    return found
