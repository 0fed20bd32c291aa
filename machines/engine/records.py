"""What the engine answers with. Times are milliseconds since the epoch unless a name says otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .late import Late


@dataclass(frozen=True, slots=True)
class PublishedMachine:
    """``created`` is False when this very content was the current version already."""

    name: str
    version: int
    digest: str
    created: bool
    findings: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call did: the transitions it took, in order; ``replayed`` when a key gave the first answer again."""

    transitions: list[str]
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Timer:
    """A deadline of an instance. ``state`` is the state whose ``after`` it is; empty for an event sent with a delay,
    whose ``target`` is empty when it is for the instance itself."""

    id: str
    event: str
    due: int
    state: str = ""
    sendid: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance at one moment. ``version`` is what ``expect`` takes; ``definition`` is a version of the machine.

    ``configuration`` lists the active leaf states in document order. ``children``: what it invoked and is still
    running, ``{invoke: {"machine", "id"}}``; ``parent``: who invoked it, ``{"machine", "id", "invoke"}``;
    ``suspended``: since when, or None.
    """

    id: str
    machine: str
    configuration: list[str]
    data: dict[str, Any]
    version: int
    definition: int
    entered: int
    created: int
    done: bool = False
    jobs: list[str] = field(default_factory=list)
    outcome: Outcome | None = None
    timers: list[Timer] = field(default_factory=list)
    children: dict[str, dict[str, str]] = field(default_factory=dict)
    parent: dict[str, str] | None = None
    suspended: int | None = None

    @property
    def state(self) -> str:
        """The configuration as one line of text."""
        return ", ".join(self.configuration)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"state": self.state}


@dataclass(frozen=True, slots=True)
class Because:
    """One part of a guard that decided it, with the values it saw. ``verdict``: "true", "false" or "error"."""

    text: str
    verdict: str
    values: dict[str, Any] = field(default_factory=dict)
    message: str | None = None

    def __str__(self) -> str:
        seen = ", ".join(f"{name} = {_shown(value)}" for name, value in sorted(self.values.items()))
        head = f"{self.text} fails: {self.message}" if self.verdict == "error" else f"{self.text} is {self.verdict}"
        return f"{head}: {seen}" if seen else head


@dataclass(frozen=True, slots=True)
class Candidate:
    """A transition that listens for the event. ``verdict``: "taken", "guard", "error", "not reached" (an earlier one
    was open) or "pre-empted" (one of another region left the same states). ``allow``: groups of people who may send its
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
class Explanation:
    """What an event does, or would do, and why.

    ``why`` is None when taken, else "unknown event", "final", "no transition", "guards" or "error" (an action
    failed; ``error`` says how). ``outcome`` holds the configuration, data and transitions after the step.
    """

    machine: str
    id: str
    event: str
    taken: bool
    version: int
    configuration: list[str]
    candidates: list[Candidate] = field(default_factory=list)
    why: str | None = None
    error: str | None = None
    outcome: dict[str, Any] | None = None
    known_events: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        return ", ".join(self.configuration)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"state": self.state, "text": str(self)}

    def __str__(self) -> str:
        if self.taken:
            return f"event {self.event!r} is taken in state {self.state}"
        head = f"event {self.event!r} is refused in state {self.state}"
        if not self.configuration:
            head = "the instance could not begin"
        if self.why == "unknown event":
            known = ", ".join(self.known_events) or "none"
            return f"machine {self.machine!r} knows no event {self.event!r}; it knows: {known}"
        if self.why == "final":
            return f"{head}: the state is final, nothing more can happen"
        if self.why == "no transition":
            return f"{head}: no transition listens for it there"
        if self.why == "error":
            return f"{head}: {self.error}"
        return f"{head}: " + " | ".join(map(str, self.candidates))


def _shown(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of an instance's history. ``changes`` maps a data field to its new value, None where it was unset.

    ``source`` is None where the entry before is no longer kept.
    """

    version: int
    at: int
    event: str
    source: list[str] | None
    configuration: list[str]
    transitions: list[str]
    actor: str
    reason: str
    payload: dict[str, Any]
    changes: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Page:
    """``cursor`` continues after the last instance; None on the last page."""

    instances: list[Instance]
    cursor: str | None

    def __iter__(self) -> Any:
        return iter(self.instances)

    def __len__(self) -> int:
        return len(self.instances)


@dataclass(frozen=True, slots=True)
class Live:
    """Absolute values of one moment. ``counts``: instances in each leaf state; ``oldest``: ms the longest-staying
    instance entered; ``flow``: times taken; ``total``: instances; ``timers``, ``overdue``, ``mail``: how many wait;
    ``breaches``: for each state with a service level the instances that have been in it for as long, or longer."""

    machine: str
    version: int
    counts: dict[str, int]
    oldest: dict[str, int]
    flow: dict[str, int]
    queues: dict[str, dict[str, int]]
    now: int
    total: int = 0
    timers: int = 0
    overdue: int = 0
    mail: int = 0
    breaches: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Job(Late):
    """One unit of work. ``data``: the instance's when it was taken; ``token`` fences complete, fail and extend.

    ``lease`` and ``timeout`` (0: none) are lengths, all other times moments; 0 where there was no such moment.
    ``due``: since when it is ready, or when it will be; ``deadline``: when this attempt has to be over; ``started``:
    its first attempt, ``taken`` its latest; ``finished``: when it went to the dead. ``progress``: what its handler said
    last, ``{"done", "total", "note", "at"}``. ``log``: the last ten attempts that ended, oldest first, ``{"attempt",
    "worker", "taken", "ended", "outcome", "kind", "error"}``; the outcome is "failed", "timeout", "lost" (its lease ran
    out) or "handed back". ``instance`` and ``invoke`` are empty for work nobody waits for.
    """

    id: str
    machine: str
    root: str
    queue: str
    src: str
    instance: str
    invoke: str
    input: Any
    data: dict[str, Any]
    attempt: int
    attempts: int
    token: str
    lease_until: int
    lease: int
    created: int
    place: str
    worker: str = ""
    error: str = ""
    kind: str = ""
    trace: str = ""
    priority: int = 5
    unique: str = ""
    timeout: int = 0
    deadline: int = 0
    due: int = 0
    started: int = 0
    taken: int = 0
    finished: int = 0
    backoff: int = 0
    jitter: bool = True
    stop: tuple[str, ...] = ()
    progress: dict[str, Any] | None = None
    log: tuple[dict[str, Any], ...] = ()

    @property
    def key(self) -> str:
        """An idempotency key for what the handler does outside: the same for every attempt of this job."""
        return f"{self.machine}:{self.id}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Taken(list[Job]):
    """The jobs one ``take`` gave, and in ``hint`` why they are fewer than asked for: "" (there are no more), "paused",
    "busy" (as many are leased as may be) or "rate"; then ``wait`` is the ms until the rate allows one more."""

    def __init__(self, jobs: Iterable[Job] = (), *, hint: str = "", wait: int | None = None) -> None:
        super().__init__(jobs)
        self.hint = hint
        self.wait = wait


@dataclass(frozen=True, slots=True)
class Enqueue:
    """One job for ``Engine.enqueue_many``; the fields are ``Engine.enqueue``'s arguments."""

    machine: str
    src: str
    input: Any = None
    queue: str | None = None
    priority: int = 5
    delay: int = 0
    unique: str | None = None
    attempts: int = 3
    backoff: int = 1_000
    lease: int = 30_000
    timeout: int = 0
    jitter: bool = True
    stop: Sequence[str] = ()
    instance_key: str | None = None
    now: int | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """``since`` is ms since the epoch."""

    since: int
    actor: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class QueueStats:
    """One queue of a machine at one moment.

    ``depth``: jobs in each place; ``oldest``: since when the ready job has waited that waits longest, None where none
    does. Counters that only grow, from which rates come as differences: ``enqueued``, ``taken``, ``completed``,
    ``failed`` (attempts that raised), ``lost`` (attempts whose lease ran out), ``died`` (jobs that went to the dead),
    ``withdrawn``, ``purged``. ``waits`` and ``runs`` are histograms: magnitude -> how many, see ``quantile``. Limits:
    ``concurrency`` and ``rate`` ("100/s") are those in force, None and "" where there are none.
    """

    queue: str
    now: int
    depth: dict[str, int]
    oldest: int | None
    enqueued: int
    taken: int
    completed: int
    failed: int
    lost: int
    died: int
    withdrawn: int
    purged: int
    waits: dict[int, int]
    runs: dict[int, int]
    paused: Pause | None = None
    concurrency: int | None = None
    rate: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker's heartbeat. ``in_hand``: jobs it holds now; ``seen``: its last beat.

    ``status``: "working", "quiet" (it takes no further jobs) or "stopping"; ``memory``: bytes it occupies, 0 where that
    is not known; ``concurrency``: jobs it works on at a time; ``holding``: the first of those it works on, each
    ``{"id", "machine", "queue", "src", "instance", "attempt", "since"}``; ``done``: jobs completed since it started,
    ``failed``: attempts that were not; ``lacking``: ``machine/queue`` -> handlers asked for there that it lacks.
    """

    id: str
    host: str
    pid: int
    queues: list[str]
    in_hand: int
    started: int
    seen: int
    version: str = ""
    note: str = ""
    status: str = "working"
    memory: int = 0
    concurrency: int = 0
    holding: list[dict[str, Any]] = field(default_factory=list)
    done: int = 0
    failed: int = 0
    lacking: dict[str, list[str]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Fire:
    """One call for ``Engine.fire_many``; the fields are ``Engine.fire``'s arguments."""

    machine: str
    id: str
    event: str
    payload: Mapping[str, Any] | None = None
    expect: int | None = None
    key: str | None = None
    actor: str = ""
    reason: str = ""
    now: int | None = None
