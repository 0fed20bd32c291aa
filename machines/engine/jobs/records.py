"""Records of jobs, queues and workers, and the arguments of a job that is enqueued. Times are as in
``machines.engine.records``.

A job's fields are decoded when they are read: a worker takes thousands of jobs a second and reads few of their fields.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypedDict

from machines.engine import arguments, limits
from machines.engine.errors import BadInput
from machines.engine.records import PlainRecord

_set = object.__setattr__  # of a record that is frozen


class LazyRecord(PlainRecord):
    """A record whose fields are decoded when they are first read: decoding all of them costs more than the rest of
    taking a job. ``_lazy`` holds the decoder of each field by name, and the source they read. ``traceparent``: the
    trace of a job (``tracing``), which is no part of the record."""

    __slots__ = ("_lazy", "traceparent")

    if not TYPE_CHECKING:  # to a type checker, fields are there from the start

        def __getattr__(self, name: str) -> Any:
            try:
                readers, source = ({}, None) if name == "_lazy" else self._lazy
            except AttributeError:  # of a record that has all its fields
                readers, source = {}, None
            if name not in readers:
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            value = readers[name](source)
            _set(self, name, value)
            return value


@dataclass(frozen=True, slots=True)
class Job(LazyRecord):
    """One unit of work. ``data``: the data of its instance when it was taken; ``token`` fences complete, fail and
    extend.

    ``lease`` and ``timeout`` (0: none) are durations in ms, all other times are ms since the epoch, 0 for none.
    ``due``: when it became ready, or will; ``deadline``: when this attempt has to end; ``started``: its first attempt,
    ``taken`` its latest; ``finished``: when it died; ``handled``: when its instance no longer waited for the dead job,
    whose place then is "handled". ``homes``: the roots of the partitions that count it, each with its group before it
    ("" for its queue). ``progress``: the last report of its handler, ``{"done", "total", "note", "at"}``. ``log``: the
    last ten attempts that ended, oldest first, ``{"attempt", "worker", "taken", "ended", "outcome", "kind", "error"}``;
    the outcome is "failed", "timeout", "lost" (its lease ran out) or "handed back". ``instance`` and ``invoke`` are
    empty for a job without an instance. Of a job that was read, ``instance_is`` tells what has become of the instance:
    "present", "finished", "gone", "later" (the id belongs to a later instance, whose data and state the job does not
    show), "elsewhere" (in another partition), or "" for none; ``instance_state``: its active states.
    """

    id: str
    machine: str
    root: str
    queue: str
    src: str
    _: KW_ONLY
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
    group: str = ""
    weight: float = 1
    homes: tuple[tuple[str, str], ...] = ()
    unique: str = ""
    batch: str = ""
    timeout: int = 0
    deadline: int = 0
    due: int = 0
    started: int = 0
    taken: int = 0
    finished: int = 0
    handled: int = 0
    instance_is: str = ""
    instance_state: tuple[str, ...] = ()
    backoff: int = 0
    jitter: bool = True
    stop: tuple[str, ...] = ()
    progress: dict[str, Any] | None = None
    log: tuple[dict[str, Any], ...] = ()

    @property
    def key(self) -> str:
        """Return an idempotency key for what the handler does outside: the same for every attempt of this job."""
        return f"{self.machine}:{self.id}"


@dataclass(frozen=True, slots=True)
class JobBatch(PlainRecord):
    """A set of jobs that are counted together: ``total`` = ``open`` + ``done`` + ``failed``. Dead, purged and withdrawn
    jobs have failed. ``added``: those that are stored; less than ``total`` while a call adds them, or after it was
    killed. ``ended``: when none was open at first, 0 before. ``error``: why a callback could not be enqueued."""

    machine: str
    id: str
    _: KW_ONLY
    total: int
    open: int
    done: int
    failed: int
    added: int
    created: int
    ended: int = 0
    error: str = ""


class Taken(list[Job]):
    """The jobs of one ``take``. ``hint`` says why they are fewer than asked for: "" (there are no more), "paused",
    "busy" (the concurrency limit is reached) or "rate"; then ``wait`` is the ms until the rate allows one more.
    ``emptied``: the partitions that had fewer than were asked of them. ``unanswered``: a partition gave no answer, and
    may have leased jobs anyway."""

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        super().__init__(jobs)
        self.hint = ""
        self.wait: int | None = None
        self.emptied: set[int] = set()
        self.unanswered = False


class EnqueueOptions(TypedDict, total=False):
    """The options of ``Engine.enqueue``.

    ``priority`` 0 to 9, 9 first; ``delay``, ``backoff``, ``lease``, ``timeout`` in ms. ``unique``: a key that has an
    open job on this queue returns that job, and nothing is added; with ``debounce`` (ms, in place of ``delay``), a job
    that no worker has taken becomes this one and waits anew, and beside any other a job is added. It is
    stored on the partition of ``unique``, else of ``instance_key``, else of the idempotency key, else of ``group``,
    else on any. ``stop``: kinds of exceptions that are not retried. Jobs of one priority share the queue fairly by
    ``group`` (a tenant, an account), by the ``weight`` of each, 0.1 to 10.
    """

    queue: str | None
    priority: int
    group: str | None
    weight: float
    delay: int
    unique: str | None
    debounce: int
    attempts: int
    backoff: int
    lease: int
    timeout: int
    jitter: bool
    stop: Sequence[str]
    instance_key: str | None


@dataclass(frozen=True, slots=True)
class Enqueue:
    """One job for ``Engine.enqueue_many``; the fields are the arguments of ``Engine.enqueue``."""

    machine: str
    src: str
    input: Any = None
    queue: str | None = None
    _: KW_ONLY
    priority: int = limits.DEFAULT_PRIORITY
    group: str | None = None
    weight: float = 1
    delay: int = 0
    unique: str | None = None
    debounce: int = 0
    attempts: int = limits.DEFAULT_ATTEMPTS
    backoff: int = limits.DEFAULT_BACKOFF
    lease: int = limits.DEFAULT_LEASE
    timeout: int = 0
    jitter: bool = True
    stop: Sequence[str] = ()
    instance_key: str | None = None
    now: int | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """The pause of a queue. ``since`` is ms since the epoch."""

    since: int
    actor: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class QueueStats(PlainRecord):
    """One queue of a machine at one moment.

    ``depth``: jobs in each place, where "dead" needs a person and "handled" does not; ``oldest``: since when the
    longest-waiting ready job has waited, None for none.
    Counters that only grow, so that rates are differences: ``enqueued``, ``taken``, ``completed``, ``failed`` (attempts
    that raised), ``lost`` (attempts whose lease ran out), ``died`` (jobs that became dead), ``withdrawn``, ``purged``.
    ``waits`` and ``runs`` are histograms of magnitude -> number, see ``rates.estimate_quantile``. ``concurrency`` and
    ``rate`` ("100/s") are the limits in force, None and "" for none. ``held``: ready jobs that wait for the
    limits of their groups. ``missing``: roots of partitions that did not
    answer, whose jobs are not included.
    """

    queue: str
    _: KW_ONLY
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
    held: int = 0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerInfo(PlainRecord):
    """A worker's heartbeat. ``in_hand``: jobs it holds now; ``seen``: its last heartbeat.

    ``status``: "working", "blocked" (a coroutine keeps its event loop from answering: it takes no jobs for that),
    "quiet" (it takes no further jobs), "exhausted" (so many handlers hang that it ends, for a new process to take its
    place) or "stopping"; ``memory``: resident bytes, 0 for unknown;
    ``concurrency``: jobs it runs at a time; ``holding``: the first jobs it runs, each ``{"id", "machine", "queue",
    "src", "instance", "attempt", "since"}``; ``done``: jobs completed since it started, ``failed``: attempts that
    failed; ``lacking``: ``machine/queue`` -> handlers that jobs there need and the worker does not have; ``hanging``:
    the same of handlers that go on past their deadline, or block the event loop.
    """

    id: str
    host: str
    pid: int
    queues: list[str]
    _: KW_ONLY
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
    hanging: dict[str, list[str]] = field(default_factory=dict)

    def only(self, machines: Container[str]) -> WorkerInfo:
        """Return a copy without the jobs, queues and handlers of other machines."""
        lacking = {queue: names for queue, names in self.lacking.items() if queue.partition("/")[0] in machines}
        return replace(
            self,
            note=describe_lacking(lacking),
            holding=[job for job in self.holding if isinstance(job, dict) and job.get("machine") in machines],
            queues=[queue for queue in self.queues if queue.partition("/")[0] in machines],
            lacking=lacking,
            hanging={queue: names for queue, names in self.hanging.items() if queue.partition("/")[0] in machines},
        )


def describe_lacking(lacking: Mapping[str, Iterable[str]]) -> str:
    """Name the handlers that a worker lacks; "" for none."""
    missing = sorted({name for names in lacking.values() for name in names})
    return f"no handler here for {', '.join(missing)}" if missing else ""


FIELDS = tuple(field.name for field in fields(Enqueue))


def read_item(item: Enqueue | Mapping[str, Any]) -> Enqueue:
    """Return one item of ``Engine.enqueue_many``, an Enqueue or its fields by name, as an Enqueue."""
    try:
        return item if isinstance(item, Enqueue) else Enqueue(**item)
    except TypeError as error:
        allowed = ", ".join(FIELDS)
        raise build_refusal(f"a job for enqueue_many() has the fields {allowed}: {error}") from error


def build_refusal(why: str) -> BadInput:
    """Build the error of a job that cannot be enqueued as it is."""
    return BadInput(why, code="SB409")


def build_arguments(call: Enqueue) -> tuple[Any, ...]:
    """Build the twelve arguments of one job for ``sb_enqueue``, in its order. Raises BadInput or BadPayload."""
    arguments.check_machine(call.machine)
    arguments.encode_whole("now", call.now)
    if call.instance_key is not None:
        arguments.check_instance(call.instance_key)
    arguments.check_key(call.key)
    src = arguments.check_name("handler", call.src, limits.check_handler_name(call.src))
    return (
        src,
        src if call.queue is None else arguments.check_queue(call.queue),
        "" if call.input is None else arguments.encode_document("input", call.input, limits.MAX_PAYLOAD),
        _encode_order(call),
        _encode_delay(call),
        arguments.check_unique(call.unique),
        arguments.check_between("attempts", call.attempts, 1, limits.MAX_ATTEMPTS),
        arguments.check_between("backoff", call.backoff, 0, limits.MAX_BACKOFF),
        arguments.check_between("lease", call.lease, 1, limits.MAX_LEASE),
        arguments.check_between("timeout", call.timeout, 0, limits.MAX_TIMEOUT),
        "1" if call.jitter else "0",
        arguments.join_kinds(call.stop) if call.stop else "",
    )


def _encode_delay(call: Enqueue) -> Any:
    """Encode the delay of a job, or that it is debounced."""
    delay = arguments.check_between("delay", call.delay, 0, limits.MAX_DELAY)
    debounce = arguments.check_between("debounce", call.debounce, 0, limits.MAX_DELAY)
    if debounce and (delay or call.unique is None):
        raise BadInput("debounce needs a unique key, and takes the place of delay")
    return f"debounce {debounce}" if debounce else delay


def _encode_order(call: Enqueue) -> Any:
    """Encode the priority of a job, or its priority, weight and group."""
    priority = arguments.check_between("priority", call.priority, 0, limits.MAX_PRIORITY)
    group, weight = arguments.check_group(call.group), arguments.check_weight(call.weight)
    return f"{priority} {weight:g} {group}" if group else priority


def build_row(call: Enqueue, words: tuple[Any, ...]) -> dict[str, Any]:
    """Build the hash of a job that was just enqueued, so that it need not be read back. ``created`` is this process's
    estimate of the server's time."""
    src, queue, given, _, _, unique, attempts, backoff, lease, timeout, jitter, stop = words
    created, delay = round(time.time() * 1000) if call.now is None else call.now, call.delay or call.debounce
    return {
        "place": "delayed" if delay else "ready",
        "src": src,
        "queue": queue,
        "input": given,
        "priority": call.priority,
        "group": call.group,
        "weight": call.weight if call.group else 1,
        "unique": unique,
        "attempts": attempts,
        "backoff": backoff,
        "lease": lease,
        "timeout": timeout,
        "jitter": jitter,
        "stop": stop,
        "created": created,
        "due": created + delay,
    }
