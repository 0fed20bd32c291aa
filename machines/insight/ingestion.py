"""The background duty that adds the facts of new steps to the store.

Instances that entered a state since the mark are found by the indexes of states; now and then all are looked at, which
finds steps that stayed in their state and steps with a time of the caller's. Of each that has a higher revision than
its facts the missing steps are read, or counted as lost where the history has them no longer. Finished instances that
retention took away before they were read come from the archive. A step costs nothing for that.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from machines.catalog import builtin_machines
from machines.conf import conf
from machines.conf.database import DatabaseDuty
from machines.conf.server_share import ServerShare, Walk
from machines.engine import Engine, errors
from machines.engine.definitions import outline
from machines.engine.keys import Partition, choose_partition
from machines.instances.archive.store import Archive, get_archive
from machines.instances.models import ArchivedInstance, DamagedBody

from . import comparison
from .errors import InsightOff, StoreUnavailable
from .facts import Case, Entry, HistoryReader, Row, Sighting, VersionFacts, read_archived
from .store import FAN, Store, get_store

log = logging.getLogger(__name__)

PAUSE = 5.0
OFF = 60.0
OVERLAP = 2_000  # ms before the mark that are read again, for a server that took over with a clock behind
SWEEP = 60_000  # ms between two looks at all instances, and more where they are many:
SWEEP_EACH = 3.6  # ms for each instance, an hour for a million
FAR = 10**15  # ms after any time of an instance
MARK = 60_000  # ms after which a mark is written though nothing was read
BATCH = 20_000  # instances that are looked up in the facts at once
MOST_BYTES = 2**26  # of archived instances that are looked up at once
PAGE = 500  # archived instances of one read
MOST_STEPS = 100_000  # steps of one commit: about 15 MB of memory


@dataclass(frozen=True, slots=True)
class MachineTerms:
    """What the versions of a machine say about its facts, read once while no machine is published or deleted.
    ``hidden``: sensitive fields; ``fields``: indexed ones that are not; ``leaves``: of the current version; ``finals``,
    ``versions``: of any."""

    hidden: frozenset[str]
    fields: Sequence[str]
    leaves: frozenset[str]
    finals: frozenset[str]
    versions: dict[int, VersionFacts] = field(default_factory=dict)

    @classmethod
    def read(cls, engine: Engine, machine: str) -> MachineTerms:
        definition, hidden = engine.definition(machine), engine.sensitive(machine).names
        return cls(
            hidden, [name for name in definition.get("index") or () if isinstance(name, str) and name not in hidden],
            frozenset(outline(definition).leaves),
            frozenset(engine.retirement().final_states(machine)),
        )  # fmt: skip


class InsightDuty(DatabaseDuty):
    """Reads all machines, one after the other."""

    MESSAGE = "insight waits: the archive cannot be read: %s"

    def __init__(
        self, engine: Engine, *, store: Store | None = None, share: ServerShare | None = None,
        archive: Archive | None = None, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._engine = engine
        self._store, self._archive = store, archive
        self._reader = HistoryReader(engine, share or ServerShare())
        self._walk = Walk(clock=clock)
        self._is_off = self._is_store_away = False
        self._terms: dict[str, tuple[str, MachineTerms]] = {}

    def look(self) -> bool:
        """Read for about a second; return whether there is more."""
        try:
            store = self._store or get_store()
        except InsightOff as error:
            if conf.INSIGHT is not None and not self._is_off:
                log.error("%s", error)
            self._is_off = True
            return False
        self._is_off = False
        return self._walk.go_on(lambda: self._pass(store))

    def pause(self) -> float:
        return OFF if self._is_off else PAUSE

    def _pass(self, store: Store) -> Iterator[None]:
        """Read each machine; yield after each batch. A store that is away is reported once, and the next pass goes on
        from the marks."""
        is_away, revision = False, self._engine.catalog_revision()
        for machine, version in self._engine.recent_versions().items():
            if machine in builtin_machines.NAMES:
                continue
            try:
                terms = self._read_terms(machine, f"{revision} {version}")
                one = MachineIngestion(self._engine, self._reader, store, machine, terms)
                yield from one.run(self._archive or get_archive())
            except StoreUnavailable as error:
                is_away = True
                if not self._is_store_away:
                    log.error("insight of %s waits, and goes on by itself: %s", machine, error)
            except (errors.EngineFault, errors.LookupFailed) as fault:
                log.error("insight of %s: %s", machine, fault)
        self._is_store_away = is_away

    def _read_terms(self, machine: str, revision: str) -> MachineTerms:
        held = self._terms.get(machine)
        if held is None or held[0] != revision:
            held = self._terms[machine] = revision, MachineTerms.read(self._engine, machine)
        return held[1]


class MachineIngestion:
    """One look at one machine."""

    def __init__(self, engine: Engine, reader: HistoryReader, store: Store, machine: str, terms: MachineTerms) -> None:
        self._engine, self._reader, self._store, self._machine = engine, reader, store, machine
        self._manifest, self._terms = store.manifest(machine), terms

    def run(self, archive: Archive) -> Iterator[None]:
        """Add what is new; yield after each batch."""
        partitions = self._reader.partitions(self._machine)
        begun = self._reader.now(partitions[0])
        is_sweep = begun - self._manifest.swept >= max(SWEEP, SWEEP_EACH * self._manifest.number)
        if set(self._manifest.hidden) != self._terms.hidden:
            self._manifest = self._store.hide(self._machine, self._manifest, self._terms.hidden)
        before = self._manifest
        for number, partition in enumerate(partitions):
            yield from self._read_partition(str(number), partition, is_sweep=is_sweep)
        if archive.enabled:
            yield from self._read_archive(archive, begun)
        if is_sweep:
            yield from self._mark_deleted(partitions)
            self._commit([], [], swept=begun)
        if begun - self._manifest.drifted >= comparison.DRIFT_PAUSE:
            found = comparison.measure_drifts(self._store, self._machine, self._terms.leaves)
            if found or self._manifest.drifts:
                self._commit([], [], drifts=found, drifted=begun)
        if self._manifest.steps != before.steps:
            while self._compact():
                yield

    def _read_partition(self, number: str, partition: Partition, *, is_sweep: bool) -> Iterator[None]:
        until = self._reader.now(partition) - 1
        mark = self._manifest.marks.get(number, 0)
        since = 0 if is_sweep else max(0, mark - OVERLAP)
        waiting: list[str] = []
        for ids in self._reader.list_entered(partition, since, FAR if is_sweep else until):
            waiting += ids
            if len(waiting) >= BATCH:
                yield from self._add_found(partition, waiting)
                waiting = []
        yield from self._add_found(partition, waiting)
        if until - mark >= MARK or waiting or is_sweep:
            self._commit([], [], marks={**self._manifest.marks, number: until})

    def _add_found(self, partition: Partition, ids: Sequence[str]) -> Iterator[None]:
        """Add the steps of these instances that are missing."""
        # With parallel regions an instance is in several states at once.
        found = self._reader.look(partition, list(dict.fromkeys(ids)), self._terms.fields)
        known = self._find_known(found)
        wanted = [
            (one, known[one.id, one.created].revision if (one.id, one.created) in known else 0)
            for one in found
            if (one.id, one.created) not in known or known[one.id, one.created].revision < one.revision
        ]
        yield from self._add(self._reader.read(partition, wanted), known)

    def _read_archive(self, archive: Archive, begun: int) -> Iterator[None]:
        """Add finished instances that were archived before their last steps were read."""
        since, cursor = max(0, self._manifest.archived - OVERLAP), None
        gathered, size = list[ArchivedInstance](), 0
        while True:
            page = archive.search(self._machine, since=since, limit=PAGE, cursor=cursor)
            gathered += page.records
            size += sum(len(record.body) for record in page.records)
            cursor = page.cursor
            if cursor is None or len(gathered) >= BATCH or size >= MOST_BYTES:
                yield from self._add_archived(archive, gathered)
                gathered, size = [], 0
            if cursor is None:
                break
            yield
        if begun - self._manifest.archived >= MARK:
            self._commit([], [], archived=begun)

    def _add_archived(self, archive: Archive, records: Sequence[ArchivedInstance]) -> Iterator[None]:
        known = self._find_known(records)
        fresh = [
            record for record in records
            if (case := known.get((record.instance, record.created))) is None or case.revision < record.revision
        ]  # fmt: skip
        yield from self._add(self._restore(archive, fresh), known)

    def _mark_deleted(self, partitions: Sequence[Partition]) -> Iterator[None]:
        """Mark instances that went before they ended: they wait no more."""
        after = 0
        while rows := self._store.ask(
            self._machine, f"SELECT * FROM {{instances}} WHERE NOT ended AND n > ? ORDER BY n LIMIT {BATCH}",
            values=[after], manifest=self._manifest,
        ):  # fmt: skip
            cases = [Case.read(row) for row in rows]
            after = cases[-1].n
            there = set[tuple[str, int]]()
            for number, partition in enumerate(partitions):
                ids = [case.instance for case in cases if choose_partition(case.instance, len(partitions)) == number]
                there |= {(one.id, one.created) for one in self._reader.look(partition, ids, ())}
            gone = [replace(case, ended=None) for case in cases if (case.instance, case.created) not in there]
            if gone:
                self._commit([], [case.row() for case in gone])
            yield

    def _restore(self, archive: Archive, records: Iterable[ArchivedInstance]) -> Iterator[tuple[Sighting, list[Entry]]]:
        for record in records:
            whole = record if record.body else archive.find(self._machine, record.instance)
            try:
                if whole is not None and whole.created == record.created:
                    yield read_archived(whole.restore(), self._terms.fields)
            except DamagedBody as damage:
                log.error("insight of %s: %s", self._machine, damage)

    def _find_known(self, found: Sequence[Sighting] | Sequence[ArchivedInstance]) -> dict[tuple[str, int], Case]:
        """Return the facts of instances that have any, by id and time of creation."""
        if not found or not (self._manifest.deltas or self._manifest.base):
            return {}
        ids = [one.id if isinstance(one, Sighting) else one.instance for one in found]
        rows = self._store.ask(
            self._machine, "SELECT * FROM {instances} WHERE instance IN (SELECT unnest(?::VARCHAR[]))", values=[ids],
            manifest=self._manifest,
        )  # fmt: skip
        return {(case.instance, case.created): case for case in map(Case.read, rows)}

    def _add(
        self, histories: Iterable[tuple[Sighting, list[Entry]]], known: dict[tuple[str, int], Case]
    ) -> Iterator[None]:
        steps: list[Row] = []
        rows: list[Row] = []
        number, lost = self._manifest.number, 0
        for one, entries in histories:
            case = known.get((one.id, one.created))
            if case is None:
                case = known[one.id, one.created] = Case(number, one.id, one.created)
                number += 1
            before = case.lost
            entries = [entry for entry in entries if entry[0] <= one.revision]  # later ones belong to data of later
            steps += case.add(entries, one.version, self._load_versions(one.version, entries))
            case.close(one.revision, one.state, one.entered)
            case.ended = self._terms.finals.issuperset(case.state.split(", "))
            case.data = json.dumps(one.data, ensure_ascii=False)
            case.tags = self._find_tags(one.version, case.state)
            lost += case.lost - before
            rows.append(case.row())
            if len(steps) >= MOST_STEPS:
                self._commit(steps, rows, number=number, lost=self._manifest.lost + lost)
                steps, rows, lost = [], [], 0
                yield
        if rows:
            self._commit(steps, rows, number=number, lost=self._manifest.lost + lost)
        yield

    def _find_tags(self, version: int, state: str) -> str:
        tags = self._load(version).tags
        return "\t".join(dict.fromkeys(tag for leaf in state.split(", ") for tag in tags.get(leaf, ())))

    def _load_versions(self, version: int, entries: Sequence[Entry]) -> dict[int, VersionFacts]:
        """Return what the versions say that steps of these entries may have."""
        self._load(version)
        for entry in entries:
            if entry[2] == "(migrate)" and isinstance(entry[7], dict):
                for name in ("from", "to"):
                    self._load(int(entry[7].get(name) or 0))
        return self._terms.versions

    def _load(self, version: int) -> VersionFacts:
        versions = self._terms.versions
        if version not in versions:
            try:
                versions[version] = VersionFacts.of(self._engine.definition(self._machine, version))
            except errors.LookupFailed:  # it was removed: its steps count without queue and tags
                versions[version] = VersionFacts()
        return versions[version]

    def _commit(self, steps: list[Row], rows: list[Row], **changes: Any) -> None:
        self._manifest = self._store.append(self._machine, self._manifest, steps, rows, **changes)
        if len(self._manifest.deltas) >= FAN:
            self._compact()

    def _compact(self) -> bool:
        """Merge small files; tell whether there may be more. Nobody else's change is taken over: what was read before
        an erasure may not be added after it."""
        before, self._manifest = self._manifest, self._store.compact(self._machine, self._manifest)
        return self._manifest != before
