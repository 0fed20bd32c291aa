"""Erases what is kept of an instance, or of a value of a data field, and looks again whether anything is left.

Erased are the instances with their histories, timers, jobs and archived copies; log entries, outcomes of idempotency
keys and cached answers that are about them or hold a value; in the audit and all other tables the values are masked,
and the rows stay. Another instance that holds a value is not touched: it is reported as left.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from machines.audit import chain
from machines.audit.models import AuditEntry
from machines.conf import conf
from machines.engine import BadInput, Engine, Instance, LookupFailed, Step, UnknownInstance, limits
from machines.insight.errors import InsightOff, StoreUnavailable
from machines.insight.store import get_store
from machines.instances.archive.store import decode, get_archive

from . import search
from .search import LEAST, Entry, Place, SearchValues, is_telling, list_named

KEPT_KINDS = frozenset(["i", "h", "held", "def", "meta", "states", "in", "by", "job", "q", "timers"])
"""Kinds of keys that hold another instance or a definition."""


@dataclass(slots=True)
class ErasureReport:
    """``removed``: store -> how many; ``left``: places that still hold a value; ``masked``: number of an audit entry ->
    digest of what it holds now, by which its chain is verified."""

    removed: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)
    instances: list[str] = field(default_factory=list)
    masked: dict[str, str] = field(default_factory=dict)


class Erasure:
    """One erasure in one machine. ``where``: a data field and its value; or ``id``: one instance."""

    def __init__(self, engine: Engine, machine: str, *, id: str = "", where: tuple[str, str] | None = None) -> None:
        self._engine, self._machine, self._id, self._where = engine, machine, id, where
        self._report = ErasureReport()
        self._values = SearchValues.of([where[1]]) if where else SearchValues(())
        self._doomed: set[str] = set()
        self._former: set[str] = set()  # of facts, where another instance has the id now
        self._faults: dict[str, None] = {}  # of the store of insight

    def run(self, *, actor: str, reason: str) -> ErasureReport:
        """Erase, look again, and return the report. Raises BadInput, UnknownMachine, UnknownInstance."""
        self._engine.versions(self._machine)
        if self._where and not is_telling(self._where[1]):
            raise BadInput(f"the value is too short to be looked for everywhere: at least {LEAST} characters")
        self._collect()
        if self._id and not (self._doomed or self._faults):
            raise UnknownInstance(self._machine, self._id)
        self._report.instances = sorted(self._doomed)
        self._remove_instances(actor, reason)
        self._clean_redis(actor, reason)
        self._clean_sql()
        self._report.left = list(self._find_left())
        return self._report

    # What is to go

    def _collect(self) -> None:
        """Find the instances, in the facts of insight, in Redis and in the archive, and what is sensitive in them."""
        names = self._engine.sensitive(self._machine).names
        self._collect_facts(names)
        for instance, steps in self._list_candidates():
            if self._where and instance.id not in self._doomed and not self._matches(instance, steps):
                continue
            self._doomed.add(instance.id)
            held = [instance.data, *(part for step in steps for part in (step.changes, step.payload))]
            self._values += SearchValues.of(list_named(held, names))

    def _collect_facts(self, names: frozenset[str]) -> None:
        if conf.INSIGHT is None:
            return
        with self._noting_faults():
            ids = [self._id] if self._id else []
            for id, created, data in get_store().find(self._machine, self._values.texts, ids):
                held = json.loads(data)
                if not self._where or str(held.get(self._where[0])) == self._where[1]:
                    is_former = self._where is not None and self._is_other(id, created)
                    (self._former if is_former else self._doomed).add(id)
                    self._values += SearchValues.of(list_named(held, names))

    def _is_other(self, id: str, created: int) -> bool:
        try:
            return self._engine.get(self._machine, id).created != created
        except UnknownInstance:
            return False

    @contextmanager
    def _noting_faults(self) -> Iterator[None]:
        """Go on where the store of insight cannot, and report it."""
        try:
            yield
        except (InsightOff, StoreUnavailable) as fault:
            self._faults[str(fault)] = None

    def _matches(self, instance: Instance, steps: list[Step]) -> bool:
        """Tell whether the field has the value, or had it in a step that is kept."""
        assert self._where is not None
        name, value = self._where
        return any(str(held.get(name)) == value for held in (instance.data, *(step.changes for step in steps)))

    def _list_candidates(self) -> Iterator[tuple[Instance, list[Step]]]:
        archive = get_archive()
        seen = {self._id} if self._id else set(self._doomed)
        for id in sorted(seen):
            with suppress(UnknownInstance):
                yield self._read(id)
            yield from map(decode, archive.find_all(self._machine, id))
        if self._id:
            return
        for place, entries in search.walk(self._engine):
            id = place.instance
            if id and place.machine == self._machine and id not in seen and self._holds(place, entries):
                seen.add(id)
                with suppress(LookupFailed):
                    yield self._read(id)
        for record in archive.walk(self._machine):
            held = record.restore()
            if self._values.are_in("".join([*held.raw.values(), *held.steps])):
                yield decode(record)

    def _read(self, id: str) -> tuple[Instance, list[Step]]:
        steps = self._engine.history(self._machine, id, limit=limits.MAX_HISTORY)
        return self._engine.get(self._machine, id), steps

    # Removing

    def _remove_instances(self, actor: str, reason: str) -> None:
        archive = get_archive()
        for id in self._doomed:
            try:
                self._engine.delete(self._machine, id, actor=actor, reason=reason)
            except UnknownInstance:
                pass
            else:
                self._report.removed["instances in Redis"] += 1
            self._report.removed["archived instances"] += archive.erase(self._machine, id)
        if conf.INSIGHT is not None and (facts := self._doomed | self._former):
            with self._noting_faults():  # after Redis: what is read from it until then cannot be added any more
                self._report.removed["steps of insight"] += get_store().erase(self._machine, facts)

    def _clean_redis(self, actor: str, reason: str) -> None:
        for place, entries in search.walk(self._engine):
            if place.job and self._is_ours(place, entries):
                self._withdraw(place, actor, reason)
            elif self._is_outcome(place):
                self._drop_key(place, "outcomes of idempotency keys")
            elif not self._is_kept(place):
                self._clean_entries(place, entries)

    def _withdraw(self, place: Place, actor: str, reason: str) -> None:
        """Withdraw a job that no other instance waits for."""
        try:
            job = self._engine.job(place.machine, place.job)
            if job.instance and job.invoke and job.instance not in self._doomed:
                return
            self._engine.withdraw(place.machine, place.job, actor=actor, reason=reason)
        except LookupFailed:
            return
        self._report.removed["jobs"] += 1

    def _clean_entries(self, place: Place, entries: list[Entry]) -> None:
        """Remove the members that hold a value or are about an instance that went."""
        if self._values and self._values.are_in(place.key):
            self._drop_key(place, "keys with a value in their name")
            return
        for entry in entries:
            about = place.kind == "stream" and place.machine == self._machine and self._is_about(entry)
            if about or self._values.are_in(entry[1]) or self._values.are_in(entry[0]):
                masked = self._values.mask_bytes(entry[1])
                search.remove_entry(place, entry, entry[1] if self._values.are_in(entry[0]) else masked)
                self._report.removed["log entries" if place.suffix == "log" else "other entries in Redis"] += 1

    def _drop_key(self, place: Place, store: str) -> None:
        place.server.delete(place.key)
        self._report.removed[store] += 1

    def _clean_sql(self) -> None:
        entries = set()
        for cell in list(search.find_cells(self._values)) if self._values else ():
            search.mask_cell(cell, self._values)
            if cell.table == AuditEntry._meta.db_table:
                entries.add(cell.key)
            self._report.removed[f"texts masked in {cell.table}"] += 1
        self._report.masked = chain.digest_contents(entries)

    # Telling

    def _is_ours(self, place: Place, entries: list[Entry]) -> bool:
        instance = dict(entries).get(b"instance", b"").decode(errors="replace")
        return (place.machine == self._machine and instance in self._doomed) or self._holds(place, entries)

    def _is_outcome(self, place: Place) -> bool:
        """Tell whether a key is the outcome of a call to an instance that went: ``k:<bytes of the id>:<id>:<key>``."""
        kind, _, rest = place.suffix.partition(":")
        if kind not in ("k", "c") or place.machine != self._machine:
            return False
        length, _, rest = rest.partition(":")
        size = int(length) if length.isdigit() else 0
        return rest.encode()[:size].decode(errors="replace") in self._doomed

    def _is_about(self, entry: Entry) -> bool:
        parts = entry[1].split(b"\0")
        fields = dict(zip(parts[::2], parts[1::2], strict=False))
        deleted = fields.get(b"kind") == b"deleted"  # says that it went, and who did that
        return not deleted and fields.get(b"instance", b"").decode(errors="replace") in self._doomed

    def _is_kept(self, place: Place) -> bool:
        """Tell whether a key is another instance's or a definition's, which this erasure may not change."""
        kind = place.suffix.partition(":")[0]
        return bool(place.root) and kind in KEPT_KINDS

    def _holds(self, place: Place, entries: list[Entry]) -> bool:
        if not self._values:
            return False
        return self._values.are_in(place.key) or any(
            self._values.are_in(name) or self._values.are_in(content) for name, content in entries
        )

    def _find_left(self) -> Iterator[str]:
        """Look again, everywhere."""
        found: set[str] = set()
        for place, entries in search.walk(self._engine):
            ours = place.machine == self._machine and place.instance in self._doomed
            if (ours or self._holds(place, entries)) and str(place) not in found:
                found.add(str(place))
                yield f"Redis: {self._values.mask(str(place))}"
        for cell in search.find_cells(self._values) if self._values else ():
            yield f"SQL: {cell}"
        for machine in self._engine.machines():
            for record in get_archive().walk(machine):
                held = record.restore()
                text = "".join([record.instance, record.indexed, *held.raw.values(), *held.steps])
                if self._values.are_in(text) or (machine == self._machine and record.instance in self._doomed):
                    yield f"archive: {machine}/{self._values.mask(record.instance)}"
        if conf.INSIGHT is not None:
            with self._noting_faults():
                for machine in get_store().machines():
                    yield from self._find_facts_left(machine)
            yield from (f"insight: {self._values.mask(fault)}" for fault in self._faults)

    def _find_facts_left(self, machine: str) -> Iterator[str]:
        with self._noting_faults():
            ids = self._doomed if machine == self._machine else ()
            for id in {id: None for id, *_ in get_store().find(machine, self._values.texts, ids)}:
                yield f"insight: {machine}/{self._values.mask(id)}"


def erase(engine: Engine, machine: str, *, id: str = "", where: tuple[str, str] | None = None, actor: str,
          reason: str) -> ErasureReport:  # fmt: skip
    """Erase one instance, or all that have or had a value in a data field. See ``Erasure``."""
    return Erasure(engine, machine, id=id, where=where).run(actor=actor, reason=reason)


def summarize(report: ErasureReport) -> dict[str, Any]:
    """Return the report for the audit: numbers and digests, and no values."""
    found = {"instances": len(report.instances), "removed": dict(report.removed), "left": len(report.left)}
    return found | ({"masked": report.masked} if report.masked else {})
