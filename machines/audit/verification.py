"""Verifies the hash chain of the audit: finds entries that were edited, removed, inserted or swapped, and newest ones
that were cut off. What a program did that may write to the database as Signalbox does is found by heads that were kept
outside of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .chain import FACTS, digest_of, find_seals
from .models import AuditEntry, AuditHead

MOST = 100  # findings that are reported
READ = 2000  # entries of one read


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
