"""Reads a machine with its instances from a file of an export, into any server, prefix and number of partitions."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from machines.engine import rates
from machines.engine.connection.calls import Caller
from machines.engine.connection.client import Client
from machines.engine.connection.replies import require_ok
from machines.engine.errors import SignalboxError, UnknownMachine
from machines.engine.jobs.group_admissions import GroupAdmissions
from machines.engine.jobs.queue_operations import JobMethods
from machines.engine.keys import Keys, Partition
from machines.engine.publishing.catalog import Catalog
from machines.engine.publishing.machine_meta import refuse_growing, restore_policy

from .records import Chunk, Damaged, TransferHeader, read_chunks

TOGETHER = 50  # records that one call writes
MAX_KEPT = 1000  # problems that a report keeps
ACTOR = "import"
REASON = "as it was before"
KEEP_MS = 30 * 24 * 3600 * 1000  # of the marks of an import; sb_import keeps its own as long

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class ImportReport:
    """What an import did. ``written`` and ``there``: records written now, and before; ``others``: records that were not
    written; ``problems``: the name of each of these and why, the first thousand."""

    machine: str
    versions: list[int] = field(default_factory=list)
    written: int = 0
    there: int = 0
    others: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, name: str, outcome: str, why: str) -> None:
        if outcome == "written":
            self.written += 1
        elif outcome == "there":
            self.there += 1
        else:
            self.others += 1
            if len(self.problems) < MAX_KEPT:
                self.problems.append(f"{name}: {why}")


@dataclass(slots=True)
class _Content:
    """What the first reading of a file finds."""

    header: TransferHeader
    versions: dict[int, dict[str, Any]]
    settings: dict[str, Any]
    records: int


class Import:
    """One import from ``path``. The file is read twice: first to check all of it, then to write.

    An import that was stopped goes on when it is run again. Definitions are checked as at publication, and the server
    checks each record against them. No instance that exists is changed.
    """

    def __init__(
        self,
        client: Client,
        keys: Keys,
        path: Path,
        *,
        partitions: int | None = None,
        check: Callable[[dict[str, Any]], None] = lambda source: None,
    ) -> None:
        """Import a machine. ``check``: raises for a definition that this installation does not take; nothing is written
        then."""
        self._caller = Caller(client, keys.prefix)
        self._keys = keys
        self._partitions = partitions
        self._check_source = check
        self.path = path

    def run(self, progress: Progress = lambda done, total: None) -> ImportReport:
        """Write what the file holds and return a report. Raises Damaged before anything is written, DefinitionError,
        BadInput for a version that has other content here, EngineUnavailable."""
        content = self._check()
        catalog = Catalog(self._caller, self._keys, 1)
        refuse_growing(content.header.machine, catalog.find_growth(content.header.machine))
        report = ImportReport(content.header.machine)
        marks, done = self._keys.partition(report.machine).imported(content.header.transfer), 0
        self._publish(catalog, content, report, marks)
        if self._caller.command("HGET", marks, "settings"):  # before the jobs: a paused queue hands out none
            self._apply_settings(catalog, report.machine, content.settings)
            self._caller.command("HDEL", marks, "settings")
        for chunk in read_chunks(self.path):
            mark, records = f"chunk:{chunk.number}", _records(chunk)
            if records and self._caller.command("HGET", marks, mark) is None:
                self._write(catalog, report, content.header, records)
                self._caller.command("HSET", marks, mark, 1)
                self._caller.command("PEXPIRE", marks, KEEP_MS)
            else:
                report.there += len(records)
            done += len(records)
            progress(done, content.records)
        for name in self._caller.command("HKEYS", marks):  # a later import of this file begins again
            if str(name).startswith("chunk:"):
                self._caller.command("HDEL", marks, name)
        return report

    def _check(self) -> _Content:
        """Read the whole file. Raises Damaged where it is cut, damaged or incomplete."""
        header, versions, settings, records = None, {}, None, 0
        last: dict[str, Any] = {}
        for chunk in read_chunks(self.path):
            for line in chunk.lines:
                header, last = header or TransferHeader.read(self.path, line), line
                if line.get("kind") == "version":
                    versions[_read_number(self.path, chunk, line)] = line["source"]
                elif line.get("kind") == "settings":
                    settings = line
            records += len(_records(chunk))
        if header is None:
            raise Damaged(self.path, "the file is empty")
        if last.get("kind") != "end" or settings is None or not versions:
            raise Damaged(self.path, "the file has no end: the export was stopped, or the file was cut")
        if any(source.get("id") != header.machine for source in versions.values()):
            raise Damaged(self.path, "a version belongs to another machine")
        for source in versions.values():
            self._check_source(source)
        return _Content(header, versions, settings, records)

    def _publish(self, catalog: Catalog, content: _Content, report: ImportReport, marks: str) -> None:
        """Publish the versions that are missing; the current version of a machine that is here stays current. Mark that
        a new machine needs its settings."""
        name = content.header.machine
        try:
            here, current = set(catalog.versions(name)), catalog.machines().get(name)
        except UnknownMachine:
            here, current = set(), None
            self._caller.command("HSET", marks, "settings", 1)
            self._caller.command("PEXPIRE", marks, KEEP_MS)
            self._publish_first(catalog, content)
        for number, source in sorted(content.versions.items()):
            if number in here and catalog.definition(name, number) == source:
                continue
            # The same again, or raises for other content under this number. What is current here stays.
            catalog.publish(source, number, True, store=True)
            report.versions.append(number)
        wanted = current or content.settings.get("current")
        if current is None and isinstance(wanted, int) and catalog.machines()[name] != wanted:
            catalog.publish(catalog.definition(name, wanted), wanted, True)

    def _publish_first(self, catalog: Catalog, content: _Content) -> None:
        """Publish the first version of a new machine, whose partitions the caller or the file says."""
        name, (number, source) = content.header.machine, min(content.versions.items())
        self._caller.command("HSETNX", self._keys.machines, name, self._partitions or content.header.partitions)
        try:
            catalog.publish(source, number, True)
        except SignalboxError:
            if self._caller.command("EXISTS", self._keys.partition(name).meta) == 0:
                self._caller.command("HDEL", self._keys.machines, name)
            raise

    def _write(self, catalog: Catalog, report: ImportReport, header: TransferHeader, records: list[_Record]) -> None:
        """Write the records of a chunk, some at a time for each partition."""
        groups: dict[str, list[_Record]] = {}
        for record in records:
            groups.setdefault(self._find_home(catalog, header.machine, record).root, []).append(record)
        for root, group in groups.items():
            left = group
            while left:
                part = left[:TOGETHER]
                reply = require_ok(
                    "sb_import",
                    self._caller.call("sb_import", root, header.transfer, "", *(record.text for record in part)),
                )
                outcomes = list(zip(reply[1::2], reply[2::2], strict=True))
                for record, (outcome, why) in zip(part, outcomes, strict=False):
                    report.add(record.name, str(outcome), str(why))
                left = left[len(outcomes) :]

    def _find_home(self, catalog: Catalog, machine: str, record: _Record) -> Partition:
        """Return the partition of a record: of its instance, else of a job's unique key or id, else of its number."""
        if record.key is not None:
            return catalog.partition(machine, record.key)
        partitions = catalog.partitions(machine)
        return partitions[zlib.crc32(record.name.encode()) % len(partitions)]

    def _apply_settings(self, catalog: Catalog, machine: str, settings: dict[str, Any]) -> None:
        """Set pauses, limits and the roll-out as they were."""
        apply_rules(self._caller, catalog, machine, settings.get("queues"))
        if isinstance(settings.get("versions"), dict):
            restore_policy(self._caller, catalog.partitions(machine)[0], settings["versions"])
            catalog.align_partitions(machine)


class _Queues(JobMethods):
    def __init__(self, caller: Caller, catalog: Catalog) -> None:
        self._caller = caller
        self._catalog = catalog
        self._admissions = GroupAdmissions(caller)


def apply_rules(caller: Caller, catalog: Catalog, machine: str, rules: Any, *, pauses: bool = True) -> None:
    """Set pauses and limits of queues, as ``read_settings`` returns them."""
    queues = _Queues(caller, catalog)
    for queue, rule in rules.items() if isinstance(rules, dict) else ():
        if "concurrency" in rule or "rate" in rule:
            rate = rule.get("rate", "")
            text = None if rate == "" else "none" if rate is None else str(rates.QueueRate(*map(int, rate)))
            queues.limit(machine, queue, concurrency=rule.get("concurrency"), rate=text, actor=ACTOR, reason=REASON)
        if pauses and "paused" in rule:
            queues.pause(machine, queue, actor=ACTOR, reason=str(rule["paused"].get("reason") or REASON))
        for group, own in rule.get("groups", {}).items():
            _apply_group(queues, machine, queue, group, own)


def _apply_group(queues: _Queues, machine: str, queue: str, group: str, own: Any) -> None:
    """Set what one group of a queue has of its own: the texts that ``sb_queue`` stored."""
    rate = own.get("rate")
    limits = None if own.get("concurrency") is None else int(own["concurrency"])
    text = None if rate is None else str(rates.QueueRate.decode(str(rate)) or "none")
    if limits is not None or text is not None:
        queues.limit(machine, queue, group=group, concurrency=limits, rate=text, actor=ACTOR, reason=REASON)
    if "paused" in own:
        queues.pause(machine, queue, group=group, actor=ACTOR, reason=str(own.get("reason") or REASON))


@dataclass(frozen=True, slots=True)
class _Record:
    """A record to write: its name for people, the text, and the id that chooses its partition, None for any."""

    name: str
    text: str
    key: str | None


def _records(chunk: Chunk) -> list[_Record]:
    return list(_read_records(chunk))


def _read_records(chunk: Chunk) -> Iterator[_Record]:
    for line, text in zip(chunk.lines, chunk.texts, strict=True):
        if line.get("kind") == "instance":
            yield _Record(f"instance {line.get('id')}", text, str(line.get("id")))
        elif line.get("kind") == "job":
            yield _read_job(line, text)
        elif line.get("kind") == "counters":
            yield _Record(f"counters of partition {line.get('partition')}", text, None)


def _read_job(line: dict[str, Any], text: str) -> _Record:
    words: Sequence[Any] = line.get("job") if isinstance(line.get("job"), list) else []  # type: ignore[assignment]
    row = dict(zip(map(str, words[2::2]), words[3::2], strict=False))
    return _Record(f"job {words[0] if words else ''}", text, row.get("instance") or row.get("unique") or None)


def _read_number(path: Path, chunk: Chunk, line: dict[str, Any]) -> int:
    number, source = line.get("number"), line.get("source")
    if type(number) is not int or number < 1 or not isinstance(source, dict):
        raise Damaged(path, "a version has a number and a definition", chunk=chunk.number, offset=chunk.start)
    return number
