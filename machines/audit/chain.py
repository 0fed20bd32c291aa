"""The hash chain of the audit: each entry has a number and a digest over its fields and the digest of the entry before.

The head is the number and digest of the newest entry. Its row is locked while an entry is chained, so that entries
follow each other also where many processes write. An entry of a longer transaction is chained after that commits: the
lock never waits for what else the transaction does. Each new head goes to the log, and to the file ``AUDIT_HEADS``.

Where retention removes the beginning, an entry seals it: it says which numbers went, how many entries these were, and
the digest of the last of them.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from machines.conf import conf

from .models import AuditEntry, AuditHead

log = logging.getLogger(__name__)

heads = logging.getLogger("signalbox.audit.head")

FACTS = (
    "at", "actor", "actor_id", "action", "machine", "instance", "queue", "target", "reason", "source", "request",
    "outcome", "detail",
)  # fmt: skip
SEAL = "audit.seal"
AT_ONCE = 500  # entries that one transaction chains
ENTRIES, HEAD = AuditEntry._meta.db_table, AuditHead._meta.db_table
CHAIN = f"UPDATE {ENTRIES} SET number = %s, digest = %s WHERE id = %s"  # noqa: S608
LOCK = f"UPDATE {HEAD} SET number = number + 1 WHERE id = 1"  # noqa: S608
READ_HEAD = f"SELECT number, digest FROM {HEAD} WHERE id = 1"  # noqa: S608
MOVE = f"UPDATE {HEAD} SET number = %s, digest = %s WHERE id = 1"  # noqa: S608
MOST = 100  # findings that are reported
READ = 2000  # entries of one read


def digest_of(previous: str, number: int, facts: dict[str, Any]) -> str:
    """Return the SHA-256 of a canonical JSON: the digest before, the number and the fields, ``detail`` as stored."""
    at = facts["at"]
    held = facts | {
        "at": (at if at.tzinfo is None else at.astimezone(UTC)).isoformat(timespec="microseconds"),
        "detail": AuditEntry._meta.get_field("detail").get_prep_value(facts["detail"]),
        "number": number,
        "previous": previous,
    }
    return hashlib.sha256(json.dumps(held, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write(entry: AuditEntry) -> None:
    """Insert an entry and chain it. Raises a database error, and writes nothing then."""
    if transaction.get_connection().in_atomic_block:
        with transaction.atomic():
            entry.save()
        transaction.on_commit(chain_waiting, robust=True)
        return
    with transaction.atomic():
        _append(entry)


def _append(entry: AuditEntry) -> None:
    number, previous = _lock_head()
    facts = {name: getattr(entry, name) for name in FACTS}
    entry.number, entry.digest = number, digest_of(previous, number, facts)
    entry.save()
    _move_head(number, entry.digest)


def chain_waiting() -> int:
    """Chain entries that have no number yet, the oldest first; return how many."""
    waiting = AuditEntry.objects.filter(number=None).order_by("pk")
    if not waiting.exists():
        return 0
    with transaction.atomic():
        number, digest = _lock_head()
        links = []
        for facts in list(waiting.values("pk", *FACTS)[:AT_ONCE]):
            pk = facts.pop("pk")
            digest = digest_of(digest, number, facts)
            links.append((number, digest, pk))
            number += 1
        if links:
            with transaction.get_connection().cursor() as cursor:
                cursor.executemany(CHAIN, links)
            _move_head(number - 1, digest)
        else:  # another process chained them meanwhile
            AuditHead.objects.update(number=number - 1)
    return len(links)


def find_seals() -> QuerySet[AuditEntry]:
    """Find the entries that seal what retention removed, the oldest first."""
    return AuditEntry.objects.filter(action=SEAL, number__gt=0).order_by("number")


def remove_oldest(through: int) -> int:
    """Remove the entries up to a number, which the product's manager refuses, and seal them; return how many."""
    with transaction.atomic():
        gone = QuerySet(AuditEntry).filter(number__lte=through)
        end = gone.order_by("-number").values_list("number", "digest").first()
        if end is None:
            return 0
        before = find_seals().last()
        count = int(gone._raw_delete(gone.db))  # type: ignore[attr-defined]
        first = before.detail["last"] + 1 if before else 1
        detail = {"first": first, "last": end[0], "count": count, "digest": end[1]}
        _append(AuditEntry(actor="retention", action=SEAL, outcome="done", source="worker", detail=detail))
    return count


def digest_contents(rows: Iterable[int]) -> dict[str, str]:
    """Return the digests of what entries hold now, by number, for those that an erasure masked."""
    found = AuditEntry.objects.filter(pk__in=list(rows), number__gt=0).values("number", *FACTS)
    return {str(number): digest_of("", number, facts) for facts in found for number in [facts.pop("number")]}


def _lock_head() -> tuple[int, str]:
    """Lock the head until the transaction ends; return the next number and the digest before that. It is an update,
    because a read would lock nothing on SQLite. As plain SQL it takes a third of the time."""
    with transaction.get_connection().cursor() as cursor:
        head = _step_head(cursor)
        if head is None:
            last = AuditEntry.objects.filter(number__gt=0).order_by("-number").values_list("number", "digest").first()
            number, digest = last or (0, "")
            AuditHead.objects.get_or_create(pk=1, defaults={"number": number, "digest": digest})
            head = _step_head(cursor)
        assert head is not None
        return head


def _step_head(cursor: Any) -> tuple[int, str] | None:
    if transaction.get_connection().features.can_return_columns_from_insert:
        cursor.execute(f"{LOCK} RETURNING number, digest")
    else:  # SQLite before 3.35
        cursor.execute(LOCK)
        cursor.execute(READ_HEAD)
    found: tuple[int, str] | None = cursor.fetchone()
    return found


def _move_head(number: int, digest: str) -> None:
    """Store the head, and publish it once it is committed."""
    with transaction.get_connection().cursor() as cursor:
        cursor.execute(MOVE, [number, digest])
    transaction.on_commit(partial(_publish, f"{number} {digest}"), robust=True)


def _publish(line: str) -> None:
    """Write a head to the log and the file: outside the database."""
    heads.info(line)
    if conf.AUDIT_HEADS:
        try:
            with open(conf.AUDIT_HEADS, "a", encoding="ascii") as file:
                file.write(f"{line}\n")
        except OSError as error:
            log.error("the head of the audit could not be written: %s", error)


@dataclass(slots=True)
class Report:
    """``waiting``: entries that are not chained yet; ``compared``: heads from outside that were compared."""

    checked: int = 0
    sealed: int = 0
    waiting: int = 0
    compared: int = 0
    number: int = 0
    digest: str = ""
    findings: list[str] = field(default_factory=list)

    def add(self, finding: str) -> None:
        if len(self.findings) < MOST:
            self.findings.append(finding)


def read_heads(lines: Iterable[str]) -> dict[int, set[str]]:
    """Read heads of the file or the log: a line ends with number and digest, or with the first digits of it. Raises
    ValueError."""
    found: dict[int, set[str]] = {}
    for line in lines:
        if words := line.split():
            number, digest = words[-2:]
            if len(digest) < 12 or set(digest) - set("0123456789abcdef"):
                raise ValueError(digest)
            found.setdefault(int(number), set()).add(digest)
    return found


def verify(heads: Mapping[int, Iterable[str]]) -> Report:
    """Verify the chain. ``heads``: number -> digests, as they were kept outside the database."""
    head, report = AuditHead.objects.first(), Report()
    waiting = AuditEntry.objects.filter(number=None).order_by("pk")
    report.waiting = waiting.count()
    if head is None:
        if heads or AuditEntry.objects.filter(number__gt=0).exists():
            report.add("the row of the head is gone")
        return report
    report.number, report.digest = head.number, head.digest
    report.sealed, previous = _read_seals(report)
    links = {report.sealed: previous}
    wrong: list[tuple[str, int, str, dict[str, Any]]] = []
    expected = report.sealed + 1
    for entry in _read_entries(head.number):
        number, digest, pk = entry.pop("number"), entry.pop("digest"), entry.pop("pk")
        name = f"entry {number} (row {pk}, {entry['at']:%Y-%m-%d %H:%M:%S}, {entry['actor']}, {entry['action']})"
        report.checked += 1
        if number < expected:
            report.add(f"{name} was inserted: the number is sealed or taken")
            continue
        if number > expected:
            gone = f"entry {expected} was" if number == expected + 1 else f"entries {expected} to {number - 1} were"
            report.add(f"{gone} removed, before {name}")
        elif digest_of(previous, number, entry) != digest:
            wrong.append((previous, number, digest, entry | {"name": name}))
        expected, previous = number + 1, digest
        if number in heads:
            links[number] = digest
    _explain_wrong(report, wrong)
    _compare_end(report, expected - 1, previous)
    links[head.number] = previous if expected > head.number else head.digest
    _compare_heads(report, links, heads)
    return report


def _read_seals(report: Report) -> tuple[int, str]:
    """Return number and digest of the last entry that the seals cover. Report entries that were gone before retention
    came to them."""
    last, digest, begin = 0, "", 0
    for number, held in find_seals().values_list("number", "detail"):
        try:
            first, last, count, digest = held["first"], int(held["last"]), held["count"], str(held["digest"])
            missing = last - first + 1 - count
        except (KeyError, TypeError, ValueError):
            report.add(f"entry {number}, a seal, cannot be read")
            continue
        if missing or first != (begin or first):
            missing = missing or first - begin
            report.add(f"entry {number} seals {first} to {last}, but {missing} of these had gone before")
        begin = last + 1
    return last, digest


def _read_entries(last: int) -> Iterator[dict[str, Any]]:
    """Read the entries up to the head in the order of the chain; later ones were written meanwhile."""
    rows = AuditEntry.objects.filter(number__lte=last).order_by("number", "pk")
    return iter(rows.values("pk", "number", "digest", *FACTS).iterator(READ))


def _explain_wrong(report: Report, wrong: list[tuple[str, int, str, dict[str, Any]]]) -> None:
    """Report entries whose digest does not fit. An erasure says which entries it masked, and what they hold since."""
    masked = _read_masked() if wrong else {}
    for previous, number, digest, entry in wrong:
        name, facts = entry["name"], {field: entry[field] for field in FACTS}
        if masked.get(number) == digest_of("", number, facts):
            continue
        others = [
            other for _, at, _, held in wrong[:MOST] if at != number
            for other in [at] if digest_of(previous, number, {field: held[field] for field in FACTS}) == digest
        ]  # fmt: skip
        if others:
            report.add(f"{name} was swapped with entry {others[0]}")
        else:
            report.add(f"{name} was edited, or put in the place of another")


def _read_masked() -> dict[int, str]:
    """Return number -> digest of what an entry holds since an erasure, which says so in its own entry."""
    found: dict[int, str] = {}
    for detail in AuditEntry.objects.filter(action="machine.erase").order_by("number").values_list("detail", flat=True):
        held = detail.get("masked") if isinstance(detail, dict) else None
        found |= {int(number): digest for number, digest in held.items()} if isinstance(held, dict) else {}
    return found


def _compare_end(report: Report, last: int, digest: str) -> None:
    """Compare the last entry with the head of the database, and look past it."""
    if last < report.number:
        report.add(f"entries {last + 1} to {report.number}, the newest, were cut off")
    elif digest != report.digest:
        report.add(f"the head of the database is not the digest of entry {last}")


def _compare_heads(report: Report, links: Mapping[int, str], heads: Mapping[int, Iterable[str]]) -> None:
    for number, digests in sorted(heads.items()):
        if number > report.number:
            report.add(f"head {number} was kept outside, but the chain ends at {report.number}: entries were cut off")
        elif number in links:
            report.compared += 1
            if not all(links[number].startswith(digest) for digest in digests):
                report.add(f"entry {number} has another digest than was kept outside: the chain was written anew")
