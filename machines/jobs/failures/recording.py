"""Computes the shape of an error message and the key of its group, and writes a page of dead jobs to SQL: counts,
trend, position. One transaction, so each death counts once.

A page that comes again after a kill finds its rows there. The position is locked first: of two followers at the same
moment the second waits and then finds what the first wrote.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import F
from django.utils.crypto import salted_hmac

from .dead_jobs import DeadJob, Place
from .models import FailedJob, FailureGroup, FailureHour, FailurePart, FailurePosition

HOUR_MS = 3_600_000
MAX_SHAPES = 200  # groups of one handler and exception; further shapes share one group
OTHER = "(other messages)"
MAX_LISTED = 50  # versions and queues named by one part
MAX_MS = 2**52


@dataclass
class _Bundle:
    """The failures of one page that belong to one group."""

    handler: str
    kind: str
    shape: str
    hidden: bool
    jobs: list[DeadJob] = field(default_factory=list)


def record(place: Place, jobs: Sequence[DeadJob], until: int, *, hidden: bool, now: int) -> int:
    """Count those of the jobs that were not counted before; return how many. ``until``: the position afterwards, ms.
    ``hidden``: whether the machine has sensitive fields, so that no part of a message is kept."""
    with transaction.atomic():
        position = _lock_position(place)
        fresh = [job for job in _drop_counted(place.machine, jobs) if job.died < MAX_MS]
        for bundle in _bundle(fresh, hidden):
            _count(place, bundle, now)
        if until > position.died:
            FailurePosition.objects.filter(pk=position.pk).update(died=min(until, MAX_MS))
    return len(fresh)


def read_position(place: Place) -> int:
    """Return the ms of the newest death that was counted; 0 before the first."""
    found = _list_positions(place).values_list("died", flat=True).first()
    return found or 0


def _list_positions(place: Place):  # type: ignore[no-untyped-def]
    return FailurePosition.objects.filter(machine=place.machine, partition=place.number, queue=place.queue)


def _lock_position(place: Place) -> FailurePosition:
    row, _ = FailurePosition.objects.get_or_create(machine=place.machine, partition=place.number, queue=place.queue)
    FailurePosition.objects.filter(pk=row.pk).update(died=F("died"))  # takes the lock on any database
    return FailurePosition.objects.get(pk=row.pk)


def _drop_counted(machine: str, jobs: Iterable[DeadJob]) -> list[DeadJob]:
    jobs = list(jobs)
    rows = FailedJob.objects.filter(machine=machine, job__in=[job.id for job in jobs])
    known = set(rows.values_list("job", "died"))
    return [job for job in jobs if (job.id, job.died) not in known]


def _bundle(jobs: Iterable[DeadJob], hidden: bool) -> list[_Bundle]:
    found: dict[tuple[str, str, str], _Bundle] = {}
    for job in jobs:
        handler, kind, shape = clean_name(job.handler), clean_name(job.kind), compute_shape(job.error)
        found.setdefault((handler, kind, shape), _Bundle(handler, kind, shape, hidden)).jobs.append(job)
    return list(found.values())


def _count(place: Place, bundle: _Bundle, now: int) -> None:
    deaths = [job.died for job in bundle.jobs]
    group = _find_group(place, bundle, min(deaths), max(deaths))
    part = _count_part(group, place, bundle, deaths)
    for hour, count in Counter(died // HOUR_MS for died in deaths).items():
        row, _ = FailureHour.objects.get_or_create(group=group, machine=place.machine, hour=hour)
        FailureHour.objects.filter(pk=row.pk).update(count=F("count") + count)
    FailedJob.objects.bulk_create(
        FailedJob(group=group, machine=place.machine, queue=place.queue, job=job.id, died=job.died, checked=now)
        for job in bundle.jobs
    )
    _wake(group, part, bundle.jobs)


def _find_group(place: Place, bundle: _Bundle, first: int, last: int) -> FailureGroup:
    """Find or make the group. A machine with sensitive fields has groups of its own, without a shape."""
    own = place.machine if bundle.hidden else ""
    key = compute_key(bundle.handler, bundle.kind, bundle.shape, own)
    group = FailureGroup.objects.filter(key=key).first()
    if group is None:
        shape = bundle.shape
        if FailureGroup.objects.filter(handler=bundle.handler, kind=bundle.kind).count() >= MAX_SHAPES:
            shape, key = OTHER, compute_key(bundle.handler, bundle.kind, OTHER, own)
        defaults = {
            "handler": bundle.handler, "kind": bundle.kind, "shape": "" if bundle.hidden else shape,
            "first_seen": first, "last_seen": last,
        }  # fmt: skip
        group, _ = FailureGroup.objects.get_or_create(key=key, defaults=defaults)
    group.first_seen, group.last_seen = min(group.first_seen, first), max(group.last_seen, last)
    group.save(update_fields=["first_seen", "last_seen"])
    return group


def _count_part(group: FailureGroup, place: Place, bundle: _Bundle, deaths: list[int]) -> FailurePart:
    part, _ = FailurePart.objects.get_or_create(
        group=group, machine=place.machine, defaults={"first_seen": min(deaths), "last_seen": max(deaths)}
    )
    part.count += len(deaths)
    part.attempts += sum(job.attempts for job in bundle.jobs)
    part.first_seen, part.last_seen = min(part.first_seen, *deaths), max(part.last_seen, *deaths)
    part.versions = sorted({*part.versions, *(job.version for job in bundle.jobs if job.version)})[-MAX_LISTED:]
    part.queues = sorted({*part.queues, place.queue})[:MAX_LISTED]
    part.save()
    return part


def _wake(group: FailureGroup, part: FailurePart, jobs: Sequence[DeadJob]) -> None:
    """Open a resolved group that fails again, and a muted one that fails in a version it was not muted for."""
    if group.state == FailureGroup.State.RESOLVED:
        after = [job.died for job in jobs if job.died > group.resolved_at]
        if after:
            FailureGroup.objects.filter(pk=group.pk).update(state=FailureGroup.State.OPEN, regressed_at=min(after))
    elif group.state == FailureGroup.State.MUTED:
        known: dict[str, list[int]] = defaultdict(list, group.muted_versions)
        new = sorted({job.version for job in jobs if job.version} - set(known[part.machine]))
        if part.machine not in group.muted_versions or new:
            why = f"version {new[-1]} of {part.machine}" if new else part.machine
            FailureGroup.objects.filter(pk=group.pk).update(state=FailureGroup.State.OPEN, unmuted_by=why)


MAX_MESSAGE = 1_000  # characters of a message that are read
MAX_SHAPE = 300
MAX_NAME = 200  # characters of a handler and of an exception

_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
_DIGITS = r"\d{1,40}(?:[.,]\d{1,40}){0,8}"
_PLACEHOLDERS = (
    (re.compile(r"(?<!\w)'[^']{0,300}'(?!\w)|(?<!\w)\"[^\"]{0,300}\"(?!\w)|`[^`]{0,300}`"), "<text>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://[^\s<>\"']{1,500}", re.I), "<address>"),
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){0,8}"), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I), "<uuid>"),
    (re.compile(rf"\b\d{{4}}-\d{{2}}-\d{{2}}(?:[T ]{_TIME}(?:Z|[+-]\d{{2}}:?\d{{2}})?)?\b"), "<time>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"), "<address>"),
    (re.compile(r"(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}(?![\w:])", re.I), "<address>"),
    (re.compile(rf"\b{_TIME}\b"), "<time>"),
    (re.compile(r"\b0x[0-9a-f]{1,64}\b", re.I), "<hex>"),
    (re.compile(r"\b(?=[a-f]{0,63}\d)[0-9a-f]{8,64}\b(?!\.)", re.I), "<hex>"),
    (re.compile(rf"(?<![\w.-])[+-]?{_DIGITS}(?:e[+-]?\d{{1,4}})?(?=(?:[a-zµ]{{1,2}}|%)?(?![\w-]))", re.I),
     "<number>"),
    (re.compile(r"(?<![\w<-])[\w-]{0,100}\d[\w-]{0,100}"), "<id>"),
)  # fmt: skip
"""Pattern -> placeholder, applied in this order. Every repetition is bounded: a hostile message costs no more time."""
_REPEATED = re.compile(r"(<[a-z]+>)(?:, ?\1)+")


def compute_shape(message: str) -> str:
    """Return a message with the parts that differ from one failure to the next replaced by placeholders."""
    text = " ".join("".join(map(_make_printable, message[:MAX_MESSAGE])).split())
    for pattern, placeholder in _PLACEHOLDERS:
        text = pattern.sub(placeholder, text)
    return _REPEATED.sub(r"\1, …", text)[:MAX_SHAPE]


def clean_name(text: str) -> str:
    """Return a handler's or an exception's name as one line that SQL can hold."""
    return " ".join("".join(map(_make_printable, text[:MAX_NAME])).split())


def compute_key(handler: str, kind: str, shape: str, machine: str = "") -> str:
    """Return the key of a group, 64 hexadecimal digits. ``machine``: for a group of one machine alone. The secret key
    of the site goes in, so that nobody can try out messages against a key."""
    return salted_hmac("machines.failures", "\0".join((machine, handler, kind, shape)), algorithm="sha256").hexdigest()


def _make_printable(sign: str) -> str:
    """Replace control characters, invisible marks and halves of surrogate pairs by spaces."""
    return " " if unicodedata.category(sign)[0] == "C" else sign
