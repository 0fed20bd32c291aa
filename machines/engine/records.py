"""Records that the engine returns. Times are milliseconds since the epoch unless a name says otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any, TypeVar

from .permits import Permit

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class PlainRecord:
    """The base of records that are plain JSON-able data."""

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        return asdict(self)


class InStates:
    """The base of records of an instance in some states; ``configuration`` are the active leaves."""

    __slots__ = ()
    configuration: list[str]

    @property
    def state(self) -> str:
        """Return the configuration as one line of text."""
        return ", ".join(self.configuration)


class PartialList(list[Item]):
    """A list of what partitions answered. ``missing``: roots of partitions, or keys, that did not answer."""

    def __init__(self, items: Iterable[Item] = (), *, missing: Iterable[str] = ()) -> None:
        super().__init__(items)
        self.missing = tuple(missing)


class PartialDict(dict[str, Item]):
    """Figures by name of what partitions answered. ``missing``: roots of partitions that did not answer."""

    def __init__(self, items: Mapping[str, Item] | None = None, *, missing: Iterable[str] = ()) -> None:
        super().__init__(items or {})
        self.missing = tuple(missing)


@dataclass(frozen=True, slots=True)
class PublishedMachine:
    """The result of publishing. ``created`` is False when this very content was the current version already."""

    name: str
    version: int
    digest: str
    created: bool
    findings: list[Any] = field(default_factory=list)


NOT_REPLICATED = "written, not replicated"


@dataclass(slots=True)  # not frozen: it is made in large numbers, and that takes half the time
class Outcome:
    """What a call did: the transitions it took, in order. ``replayed``: an idempotency key returned the first outcome
    again.

    ``before``: the active leaf states before the call, for a call with a permit or in a trace; else empty.
    ``replicas``: the number of replicas that the call waited for; ``replicated``: how many had written the step when it
    returned, None where it waited for none.
    """

    transitions: list[str]
    replayed: bool = False
    before: list[str] = field(default_factory=list)
    replicas: int = 0
    replicated: int | None = None

    @property
    def durability(self) -> str:
        """Return "written", "replicated" or "written, not replicated": the step happened in each case."""
        if self.replicated is None:
            return "written"
        return "replicated" if self.replicated >= self.replicas else NOT_REPLICATED


@dataclass(frozen=True, slots=True)
class Timer:
    """A deadline of an instance. ``state`` is the state whose ``after`` it is; empty for an event sent with a delay,
    whose ``target`` is empty when the instance sends it to itself."""

    id: str
    event: str
    due: int
    state: str = ""
    sendid: str = ""
    target: str = ""


@dataclass(slots=True)  # not frozen: it is made in large numbers, and that takes half the time
class Instance(InStates):
    """One instance at one moment. ``revision`` counts its steps: ``expect`` takes it. ``version`` is the version of the
    machine that it runs.

    ``configuration`` lists the active leaf states in document order. ``children``: running instances that it invoked,
    ``{invoke: {"machine", "id"}}``; ``parent``: the instance that invoked it, ``{"machine", "id", "invoke"}``;
    ``suspended``: since when, or None. ``actor``: the actor of the last step that had one; steps by timers, jobs and
    other instances have none. ``archived_at``: ms since the epoch, for an instance that was read from an archive; None
    for one in Redis. ``pinned``: no plan moves it to another version.
    """

    id: str
    machine: str
    configuration: list[str]
    data: dict[str, Any]
    _: KW_ONLY
    revision: int
    version: int
    entered: int
    created: int
    done: bool = False
    jobs: list[str] = field(default_factory=list)
    outcome: Outcome | None = None
    timers: list[Timer] = field(default_factory=list)
    children: dict[str, dict[str, str]] = field(default_factory=dict)
    parent: dict[str, str] | None = None
    suspended: int | None = None
    actor: str = ""
    archived_at: int | None = None
    pinned: bool = False

    @property
    def archived(self) -> bool:
        """Tell whether Redis no longer holds the instance: it can be read, and not changed."""
        return self.archived_at is not None

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        found = asdict(self) | {"state": self.state, "archived": self.archived}
        if not self.archived:
            del found["archived_at"], found["archived"]
        if not self.pinned:
            del found["pinned"]
        return found


@dataclass(frozen=True, slots=True)
class Because:
    """One part of a guard that decided it, with the values it read. ``verdict``: "true", "false" or "error"."""

    text: str
    verdict: str
    values: dict[str, Any] = field(default_factory=dict)
    message: str | None = None

    def __str__(self) -> str:
        seen = ", ".join(f"{name} = {_format_value(value)}" for name, value in sorted(self.values.items()))
        head = f"{self.text} is {self.verdict}"
        if self.verdict == "error":
            head = f"{self.text} fails" + (f": {self.message}" if self.message else "")
        return f"{head}: {seen}" if seen else head


@dataclass(frozen=True, slots=True)
class Candidate:
    """A transition whose event matches. ``verdict``: "taken", "guard", "error", "not reached" (an earlier one was
    taken) or "pre-empted" (one of another region left the same states). ``allow``: groups of people who may send its
    event."""

    id: str
    event: str
    target: str | None
    guard: str | None
    verdict: str
    because: list[Because] = field(default_factory=list)
    allow: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        head = f"{self.id} → {self.target}" if self.target else f"{self.id} (stays)"
        reasons = "; ".join(map(str, self.because)) or self.verdict
        return f"{head}: {reasons}"


@dataclass(frozen=True, slots=True)
class Explanation(InStates):
    """What an event does, or would do, and why.

    ``why`` is None when a transition is taken, else "unknown event", "final", "no transition", "guards" or "error" (an
    action failed; ``error`` says how). ``outcome`` holds the configuration, data and transitions after the step.
    ``known_events`` are the first thousand. ``work``: units of work that the step took up to its commit, of the 250,000
    it may take; ``exhausted``: it needs more. ``omitted``: number of candidates left out because explaining them all
    would also take too much work.
    """

    machine: str
    id: str
    event: str
    taken: bool
    revision: int
    configuration: list[str]
    _: KW_ONLY
    candidates: list[Candidate] = field(default_factory=list)
    why: str | None = None
    error: str | None = None
    outcome: dict[str, Any] | None = None
    known_events: list[str] = field(default_factory=list)
    work: int = 0
    exhausted: bool = False
    omitted: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        return asdict(self) | {"state": self.state, "text": str(self)}

    def without_values(self) -> Explanation:
        """Return a copy without any value that a guard or an action read: only what the definition itself says."""
        candidates = [
            replace(candidate, because=[replace(part, values={}, message=None) for part in candidate.because])
            for candidate in self.candidates
        ]
        return replace(self, candidates=candidates, error=None, outcome=None)

    def __str__(self) -> str:
        if self.taken:
            return f"event {self.event!r} is taken in state {self.state}"
        head = f"event {self.event!r} is refused in state {self.state}"
        if not self.configuration:
            head = "the instance could not begin"
        if self.why == "unknown event":
            known = ", ".join(self.known_events) or "none"
            return f"machine {self.machine!r} has no event {self.event!r}; its events: {known}"
        if self.why == "final":
            return f"{head}: the state is final"
        if self.why == "no transition":
            return f"{head}: no transition accepts it"
        if self.why == "error":
            return f"{head}: {self.error or 'an action failed'}"
        more = [f"and {self.omitted} more"] if self.omitted else []
        return f"{head}: " + " | ".join([*map(str, self.candidates), *more])


def _format_value(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Step(PlainRecord):
    """One entry of an instance's history. ``changes`` maps a data field to its new value, None where it was unset.

    ``revision`` is the instance's after the step. ``source`` is the configuration before the step, None where the entry
    before is no longer kept. ``version`` is the version of the machine that the instance had after the step; 0 where
    that is not known.
    """

    revision: int
    at: int
    event: str
    source: list[str] | None
    configuration: list[str]
    _: KW_ONLY
    transitions: list[str]
    actor: str
    reason: str
    payload: dict[str, Any]
    changes: dict[str, Any]
    version: int = 0


@dataclass(frozen=True, slots=True)
class Live(PlainRecord):
    """Absolute figures of a machine at one moment.

    ``counts``: instances in each leaf state; ``oldest``: ms at which the longest-staying instance entered the state;
    ``flow``: how often each transition was taken; ``total``: instances; ``timers``, ``overdue``, ``mail``: timers,
    overdue timers and messages that wait; ``breaches``: for each state with a service level, the instances that reached
    or passed it and are not suspended; ``unchecked``: for states where very many did, how many of these may be
    suspended after all; ``breached_since``: ms at which the first of them entered the state; ``refused``: for each
    event, how often ``fire`` was refused, under "" the events that no transition names; ``late``: overdue timers whose
    step failed and is tried again every minute; ``versions``: instances of each version that has any;
    ``compile_failures``: steps that the interpreter takes because they could not be compiled, since the server loaded
    the library; ``missing``: roots of partitions that did not answer, whose figures are not included.
    """

    machine: str
    version: int
    counts: dict[str, int]
    _: KW_ONLY
    oldest: dict[str, int]
    flow: dict[str, int]
    queues: dict[str, dict[str, int]]
    now: int
    total: int = 0
    timers: int = 0
    overdue: int = 0
    mail: int = 0
    breaches: dict[str, int] = field(default_factory=dict)
    unchecked: dict[str, int] = field(default_factory=dict)
    breached_since: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    late: int = 0
    versions: dict[str, int] = field(default_factory=dict)
    compile_failures: int = 0
    missing: tuple[str, ...] = ()


@dataclass(slots=True)  # not frozen: it is made in large numbers, and that takes half the time
class Fire:
    """One call for ``Engine.fire_many``; the fields are the arguments of ``Engine.fire``."""

    machine: str
    id: str
    event: str
    payload: Mapping[str, Any] | None = None
    expect: int | None = None
    _: KW_ONLY
    key: str | None = None
    actor: str = ""
    reason: str = ""
    now: int | None = None
    permit: Permit | None = None
