"""Records which sensitive values a person was shown: audit entries with the action ``reveal``.

An entry names the person, the machine, the instance and the fields, and no value. A request leaves one for each machine
of which it showed something; what the same person was shown of the same instance in the last quarter of an hour, as far
as this process remembers, is not written again. Callers with the permission read through a ``RevealAudit``::

    seen = redactor_of(actor, "payment")                  # machines.instances.queries
    page["instance"] = seen.instance(instance)        # as it is; what of it is sensitive is noted
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from machines.audit import redaction
from machines.audit.redaction import Redactor
from machines.connections import get_engine
from machines.engine import Explanation, Instance, Job, Preview, Refused, SignalboxError, Step

from .entries import record

EVERY = 900.0  # s in which one person's looks at one instance are one entry, in each process
MOST = 50_000  # instances that a process remembers
LISTED = 200  # instances that one entry names; beside them it says how many there are
WORK = ("input", "error", "trace", "unique", "group", "batch")
"""Of a job: what a handler was given and said, which may hold anything, and is hidden as a whole."""

Key = tuple[str, str, str, str]
"""Account, door with address and token, machine, instance ("" where it is of none)."""
Shown = Mapping[str, frozenset[str]]
"""Instance -> what was shown of it."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who is shown something. ``user``: a Django user; ``source``: as the audit says it."""

    user: Any
    source: str

    def key(self, machine: str, instance: str) -> Key:
        return str(self.user.pk), self.source, machine, instance


class Memory:
    """What a process has written lately. ``clock``: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._written: dict[Key, tuple[float, frozenset[str]]] = {}

    def fresh(self, key: Key, names: frozenset[str]) -> bool:
        """Tell whether some of it is to be written; from then on it counts as written."""
        now = self._clock()
        with self._lock:
            at, known = self._written.get(key, (now, frozenset()))
            if now - at >= EVERY:
                known = frozenset()
            if names <= known:
                return False
            if len(self._written) >= MOST:
                self._written = {key: held for key, held in self._written.items() if now - held[0] < EVERY}
            if len(self._written) >= MOST:
                self._written.clear()  # rather an entry twice than one that is missing
            self._written[key] = (now if not known else at, known | names)
            return True

    def forget(self, keys: Iterable[Key]) -> None:
        """Drop the reveals that could not be written."""
        with self._lock:
            for key in keys:
                self._written.pop(key, None)


memory = Memory()


@dataclass(slots=True)
class ShownFields:
    """What one request has shown so far. False while that is nothing. ``is_over``: nobody writes what comes now."""

    found: dict[tuple[Viewer, str], dict[str, set[str]]] = field(default_factory=dict)
    is_over: bool = False

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, viewer: Viewer, machine: str, instance: str, names: Iterable[str]) -> None:
        of_machine = self.found.setdefault((viewer, machine), defaultdict(set))
        of_machine[instance] |= set(names)

    def write(self) -> None:
        found, self.found = self.found, {}
        for (viewer, machine), shown in found.items():
            write_entry(viewer, machine, {instance: frozenset(names) for instance, names in shown.items()})


_collected: ContextVar[ShownFields | None] = ContextVar("disclosures", default=None)


@contextmanager
def collect_reveals() -> Iterator[ShownFields]:
    """Collect what the block shows; the caller writes it."""
    found = ShownFields()
    outer = _collected.set(found)
    try:
        yield found
    finally:
        found.is_over = True
        _collected.reset(outer)


def note(viewer: Viewer, machine: str, shown: Mapping[str, Iterable[str]]) -> None:
    """Note by instance what was shown: written at the end of the request, or at once where there is none."""
    found = {instance: held for instance, names in shown.items() if (held := frozenset(names))}
    request = _collected.get()
    if request is None or request.is_over:
        write_entry(viewer, machine, found)
        return
    for instance, names in found.items():
        request.add(viewer, machine, instance, names)


def write_entry(viewer: Viewer, machine: str, shown: Shown) -> None:
    """Write what was not written lately: one entry."""
    fresh = {one: names for one, names in shown.items() if memory.fresh(viewer.key(machine, one), names)}
    if not fresh:
        return
    instances = sorted(one for one in fresh if one)
    detail: dict[str, Any] = {"shown": sorted(frozenset().union(*fresh.values()))}
    if len(instances) > 1:
        detail |= {"instances": instances[:LISTED], "count": len(instances)}
    written = record(
        viewer.user, "reveal", machine=machine, instance=instances[0] if len(instances) == 1 else "",
        detail=detail, source=viewer.source,
    )  # fmt: skip
    if not written:
        memory.forget(viewer.key(machine, one) for one in fresh)


class RevealAudit(Redactor):
    """For an account that may see all data of a machine: redacts nothing, and notes what it gives out of sensitive
    fields.

    ``instance``: the one that records without an id of their own belong to. ``hidden``: what is hidden from others,
    where that was read already.
    """

    def __init__(
        self, viewer: Viewer, machine: str, instance: str = "", *, hidden: frozenset[str] | None = None
    ) -> None:
        super().__init__()
        self._viewer = viewer
        self._machine = machine
        self._instance = instance
        self._hidden: list[frozenset[str]] = [] if hidden is None else [hidden]  # empty until it is asked for

    def of(self, instance: str) -> RevealAudit:
        found = RevealAudit(self._viewer, self._machine, instance)
        found._hidden = self._hidden
        return found

    @property
    def hidden_from_others(self) -> frozenset[str]:
        """The names of what is sensitive. One round trip, the first time."""
        if not self._hidden:
            seen = redaction.available_redactor(self._machine)
            self._hidden.append(frozenset() if seen is None else seen.fields)
        return self._hidden[0]

    def note(self, names: Iterable[str], instance: str = "") -> None:
        self.note_all({instance or self._instance: names})

    def note_all(self, shown: Mapping[str, Iterable[str]]) -> None:
        """Note reveals by instance: one entry at most."""
        if self.hidden_from_others:
            note(self._viewer, self._machine, shown)

    def names_in(self, *values: Any) -> set[str]:
        """Return the sensitive names under which some value stands, at any depth."""
        return names_in(values, self.hidden_from_others)

    def _decrypt(self, value: Any) -> Any:
        """Return a value decrypted, where the codec does so now."""
        return get_engine().decrypt_for_people(self._machine, value)

    # What is given out

    def data(self, values: Mapping[str, Any]) -> dict[str, Any]:
        self.note(self.names_in(values))
        return dict(self._decrypt(values))

    def payload(self, event: str, values: Any) -> Any:
        self.note(self._list_payload_fields(event, values))
        return self._decrypt(values)

    def value(self, value: Any) -> Any:
        self.note(self.names_in(value))
        return self._decrypt(value)

    def redact_request(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        self.note(self.names_in(asked) | ({"result"} if asked.get("result") else set()))
        return dict(self._decrypt(asked))

    def work(self, value: Any) -> Any:
        self.note({"input"} if value else ())
        return self._decrypt(value)

    def redact_text(self, text: str) -> str:
        self.note({"error"} if text else ())
        return text

    def instance(self, instance: Instance) -> Instance:
        self.note(self.names_in(instance.data), instance.id)
        return replace(instance, data=self._decrypt(instance.data))

    def instances(self, instances: Iterable[Instance]) -> list[Instance]:
        return [self.instance(instance) for instance in instances]

    def steps(self, steps: Iterable[Step]) -> list[Step]:
        found = list(steps)
        names = self.names_in(*(step.changes for step in found))
        self.note(names.union(*(self._list_payload_fields(step.event, step.payload) for step in found)))
        return [
            replace(step, payload=self._decrypt(step.payload), changes=self._decrypt(step.changes)) for step in found
        ]

    def job(self, job: Job) -> Job:
        work = {name for name in WORK if getattr(job, name)}
        if (job.progress or {}).get("note"):
            work.add("note")
        if any(attempt.get("error") for attempt in job.log):
            work.add("error")
        self.note(self.names_in(job.data) | work, job.instance)
        return replace(job, input=self._decrypt(job.input), data=self._decrypt(job.data))

    def explanation(self, explanation: Explanation) -> Explanation:
        parts = [part.values for candidate in explanation.candidates for part in candidate.because]
        read = [{name.removeprefix("event."): value for name, value in values.items()} for values in parts]
        self.note(self.names_in(read, explanation.outcome), explanation.id)
        candidates = [
            replace(one, because=[replace(part, values=self._decrypt(part.values)) for part in one.because])
            for one in explanation.candidates
        ]
        return replace(explanation, candidates=candidates, outcome=self._decrypt(explanation.outcome))

    def preview(self, preview: Preview) -> Preview:
        work = {"input"} if any(job.get("input") for job in preview.added) else set()
        self.note(self.names_in(preview.changes) | work, preview.id)
        return replace(preview, changes=self._decrypt(preview.changes), added=self._decrypt(preview.added))

    def error(self, error: BaseException) -> str:
        if isinstance(error, Refused):
            self.explanation(error.explanation)
        return str(error)

    def facts(self, error: SignalboxError) -> dict[str, Any]:
        self.error(error)
        return error.facts()

    @contextmanager
    def raising(self) -> Iterator[None]:
        try:
            yield
        except Refused as error:
            self.error(error)
            raise

    def _list_payload_fields(self, event: str, values: Any) -> set[str]:
        """Return what handlers and children returned is hidden from others as a whole."""
        if event.startswith(("done.", "error.")):
            return {"result"} if values else set()
        return self.names_in(values)


def names_in(value: Any, wanted: frozenset[str]) -> set[str]:
    """Return those of the names under which something is shown, at any depth."""
    if isinstance(value, Mapping):
        found = {name for name, inner in value.items() if name in wanted and inner not in (None, redaction.MASK)}
        return found.union(*(names_in(inner, wanted) for name, inner in value.items() if name not in wanted))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return set().union(*(names_in(inner, wanted) for inner in value))
    return set()
