"""What a schedule says: its name, when it is due, what it does, and how it deals with overlaps and outages; and the
store in which its order is kept.

::

    {"name": "nightly-report", "when": {"cron": "30 2 * * *"}, "zone": "Europe/Zurich",
     "what": {"do": "enqueue", "machine": "report", "src": "make_report", "input": {"kind": "daily"}},
     "overlap": "skip", "jitter": 30, "catch_up": "last", "bound": 10}
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any

from machines.engine import Engine, Permit
from machines.engine.errors import UnknownMachine
from machines.engine.keys import choose_partition
from machines.engine.storage import Storage
from machines.people.transition_groups import Groups

from . import occurrences
from .errors import Finding, InvalidSchedule, UnknownSchedule
from .occurrences import When

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,99}")
OVERLAPS = ("allow", "skip", "queue")
CATCH_UPS = ("none", "last", "all")
DOES = {
    "enqueue": ("machine", "src", "queue", "input", "priority", "attempts"),
    "fire": ("machine", "instance", "event", "payload"),
    "fire_all": ("machine", "filter", "event", "payload", "rate"),
    "create": ("machine", "data"),
}
"""what it does -> the fields of ``what`` beside ``do``."""
REQUIRED = {
    "enqueue": ("machine", "src"),
    "fire": ("machine", "instance", "event"),
    "fire_all": ("machine", "filter", "event"),
    "create": ("machine",),
}
TEXTS = ("machine", "src", "queue", "instance", "event")
OBJECTS = ("payload", "data", "filter")
KEYS = (
    "name", "when", "zone", "what", "overlap", "jitter", "catch_up", "bound", "start", "end", "description",
)  # fmt: skip
MAX_BOUND = 1000
MAX_JITTER = 86400
MAX_TEXT = 1000
LOOKED = 50  # occurrences whose distance the jitter is compared with
MAX_DOCUMENT = 48 * 1024
SCHEDULES = "schedules"
"""The machine whose instances are schedules."""
PEOPLE = "people"
"""The source of what people and programs made; others are modules, and ``the definition of <machine>``."""


@dataclass(frozen=True)
class Schedule:
    """A valid schedule. ``start`` and ``end``: seconds since the epoch; the end itself is no occurrence any more.

    ``anchor``: from where an interval counts, where it has no start. ``given``: the document it was read from.
    """

    name: str
    when: When
    zone: str
    what: Mapping[str, Any]
    overlap: str = "allow"
    jitter: int = 0
    catch_up: str = "last"
    bound: int = 100
    start: int | None = None
    end: int | None = None
    description: str = ""
    anchor: int = 0
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def machine(self) -> str:
        return str(self.what["machine"])

    @property
    def does(self) -> str:
        return str(self.what["do"])

    def iterate(self, after: int) -> Iterator[int]:
        """Yield the planned times later than ``after``, within start and end."""
        if self.start is not None:
            after = max(after, self.start - 1)
        for at in self.when.iterate(after):
            if self.end is not None and at >= self.end:
                return
            yield at

    def next(self, after: int) -> int | None:
        return next(self.iterate(after), None)

    def list_next(self, after: int, count: int = 5) -> list[int]:
        return list(islice(self.iterate(after), count))

    def due(self, planned: int) -> int:
        """Return when an occurrence is due: its planned time and its share of the jitter, the same at each call."""
        if not self.jitter:
            return planned
        digest = hashlib.sha256(f"{self.name}\n{planned}".encode()).digest()
        return planned + int.from_bytes(digest[:8], "big") % (self.jitter + 1)

    def instance_id(self, planned: int, mark: str = "") -> str:
        """Return the id of the instance that an occurrence creates."""
        return f"{self.name}-{occurrences.compact(planned)}{mark}"

    def as_dict(self) -> dict[str, Any]:
        return dict(self.given)


def read(document: object, *, anchor: int = 0) -> Schedule:
    """Read a schedule. Raises InvalidSchedule with all findings."""
    if not isinstance(document, Mapping):
        raise InvalidSchedule("", [Finding("", f"is {type(document).__name__}, not an object with name, when, what")])
    findings = list(_check_form(document))
    zone = document.get("zone", "UTC")
    findings += occurrences.check_zone(zone)
    known = zone if not occurrences.check_zone(zone) else "UTC"
    start, found = _read_bound("start", document, known)
    findings += found
    end, found = _read_bound("end", document, known)
    findings += found
    moment, found = occurrences.read(document.get("when"), known, anchor if start is None else start)
    findings += found if "when" in document else []
    if start is not None and end is not None and end <= start:
        findings.append(Finding("end", "is not after start", "a later moment"))
    if findings or moment is None:
        raise InvalidSchedule(document.get("name"), findings)
    schedule = Schedule(
        name=document["name"],
        when=moment,
        zone=known,
        what=document["what"],
        overlap=document.get("overlap", "allow"),
        jitter=occurrences.parse_duration(document.get("jitter", 0)) or 0,
        catch_up=document.get("catch_up", "last"),
        bound=document.get("bound", 100),
        start=start,
        end=end,
        description=document.get("description", ""),
        anchor=anchor,
        given={key: document[key] for key in KEYS if key in document},
    )
    if found := [*_check_jitter(schedule), *_check_reach(schedule)]:
        raise InvalidSchedule(schedule.name, found)
    return schedule


def _read_bound(name: str, document: Mapping[str, Any], zone: str) -> tuple[int | None, list[Finding]]:
    given = document.get(name)
    return (None, []) if given is None else occurrences.read_moment(name, given, zone)


def _check_form(document: Mapping[str, Any]) -> Iterator[Finding]:
    for key in document:
        if key not in KEYS:
            yield Finding(str(key), "is no key of a schedule", f"the keys are {', '.join(KEYS)}")
    for key in ("name", "when", "what"):
        if key not in document:
            yield Finding(key, "is missing")
    name = document.get("name", "x")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield Finding(
            "name", f"{name!r} is no name", "1 to 100 letters, digits or _ . : -, beginning with a letter or _"
        )
    for key, choices in (("overlap", OVERLAPS), ("catch_up", CATCH_UPS)):
        if document.get(key, choices[0]) not in choices:
            yield Finding(key, f"{document[key]!r} is none of them", ", ".join(choices))
    bound = document.get("bound", 1)
    if isinstance(bound, bool) or not isinstance(bound, int) or not 1 <= bound <= MAX_BOUND:
        yield Finding("bound", f"{bound!r} is out of range", f"1 to {MAX_BOUND} occurrences")
    jitter = occurrences.parse_duration(document.get("jitter", 0))
    if jitter is None or not 0 <= jitter <= MAX_JITTER:
        yield Finding(
            "jitter", f"{document['jitter']!r} is no jitter", "seconds, or a number and a unit as 5m; 0 to 1d"
        )
    description = document.get("description", "")
    if not isinstance(description, str) or len(description) > MAX_TEXT:
        yield Finding("description", f"is no text of at most {MAX_TEXT} characters")
    if "what" in document:
        yield from _check_what(document["what"])


def _check_what(what: object) -> Iterator[Finding]:
    if not isinstance(what, Mapping) or str(what.get("do")) not in DOES:
        hint = '{"do": "enqueue", ...}, with ' + ", ".join(DOES)
        yield Finding("what.do" if isinstance(what, Mapping) else "what", "does not say what to do", hint)
        return
    does = what["do"]
    for key in what:
        if key != "do" and key not in DOES[does]:
            yield Finding(f"what.{key}", f"is no key of {does}", f"the keys are {', '.join(DOES[does])}")
    for key in REQUIRED[does]:
        if not what.get(key) and key != "filter":
            yield Finding(f"what.{key}", "is missing")
    for kind, word, keys in ((str, "a text", TEXTS), (Mapping, "a JSON object", OBJECTS)):
        for key in keys:
            if key in what and not isinstance(what[key], kind):
                yield Finding(f"what.{key}", f"is {type(what[key]).__name__}, not {word}")
    if does == "fire_all" and "filter" not in what:
        yield Finding("what.filter", "is missing", "{} finds every instance")
    try:
        if len(json.dumps(dict(what), allow_nan=False)) > MAX_DOCUMENT:
            yield Finding("what", f"has more than {MAX_DOCUMENT // 1024} KiB of JSON")
    except (TypeError, ValueError) as error:
        yield Finding("what", f"is no JSON: {error}", "texts, numbers, true, false, null, lists and objects")


def _check_jitter(schedule: Schedule) -> Iterator[Finding]:
    times = list(islice(schedule.when.iterate(schedule.start or schedule.anchor), LOOKED))
    least = min((later - earlier for earlier, later in pairwise(times)), default=None)
    if least is not None and schedule.jitter >= least:
        text = f"{schedule.jitter} s is not shorter than the {least} s between two occurrences"
        yield Finding("jitter", text, f"at most {least - 1} s")


def _check_reach(schedule: Schedule) -> Iterator[Finding]:
    if schedule.end is not None and schedule.next((schedule.start or 0) - 1) is None:
        yield Finding("when", "has no occurrence between start and end")


@dataclass(frozen=True, slots=True)
class Order:
    """A schedule with its author. ``person``: whether a person made it, so that rules for people hold; ``groups``:
    theirs at that time. ``made`` and ``changed``: ms."""

    schedule: Schedule
    source: str = PEOPLE
    author: str = ""
    person: bool = False
    groups: Groups = None
    made: int = 0
    changed: int = 0

    @property
    def is_declared(self) -> bool:
        return self.source != PEOPLE

    def permit(self) -> Permit | None:
        """Return what the engine holds each event to; None for a program's."""
        return Permit(self.groups) if self.person else None

    def encode(self) -> str:
        groups = None if self.groups is None else sorted(self.groups)
        facts = {name: getattr(self, name) for name in ("source", "author", "person", "made", "changed")}
        document = {**facts, "groups": groups, "anchor": self.schedule.anchor, "schedule": self.schedule.as_dict()}
        return json.dumps(document, separators=(",", ":"))


@lru_cache(maxsize=256)
def decode(text: str) -> Order:
    """Decode a schedule once: each occurrence reads it."""
    found: dict[str, Any] = json.loads(text)
    schedule = read(found.pop("schedule"), anchor=found.pop("anchor"))
    groups = found.pop("groups")
    return Order(schedule, groups=None if groups is None else frozenset(groups), **found)


class Store:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._storage = Storage(engine.client)
        self._count: int | None = None

    def put(self, order: Order) -> None:
        self._storage.command("HSET", self._find_key(order.schedule.name), "order", order.encode())

    def remove(self, name: str) -> None:
        self._storage.command("UNLINK", self._find_key(name))

    def find(self, name: str) -> Order | None:
        try:
            text = self._storage.command("HGET", self._find_key(name), "order")
        except UnknownMachine:
            return None
        return None if text is None else decode(text)

    def get(self, name: str) -> Order:
        """Return a schedule. Raises UnknownSchedule."""
        order = self.find(name)
        if order is None:
            raise UnknownSchedule(name)
        return order

    def get_with_time(self, name: str) -> tuple[Order, int]:
        """Return the schedule and ms of the server's clock. Raises UnknownSchedule."""
        key = self._find_key(name)
        text, (seconds, micros) = self._storage.commands([(key, ("HGET", key, "order")), (key, ("TIME",))])
        if text is None:
            raise UnknownSchedule(name)
        return decode(text), int(seconds) * 1000 + int(micros) // 1000

    def read_time(self, name: str) -> int:
        """Return ms of the server's clock."""
        key = self._find_key(name)
        seconds, micros = self._storage.commands([(key, ("TIME",))])[0]
        return int(seconds) * 1000 + int(micros) // 1000

    def read(self, names: Sequence[str]) -> Mapping[str, Order]:
        """Return the schedules of several names, in one round trip; those that are gone are left out."""
        if not names:
            return {}
        keys = [self._find_key(name) for name in names]
        texts = self._storage.commands([(key, ("HGET", key, "order")) for key in keys])
        return {name: decode(text) for name, text in zip(names, texts, strict=True) if text is not None}

    def _find_key(self, name: str) -> str:
        if self._count is None:
            self._count = self._engine.count_partitions(SCHEDULES)
        return self._engine.keys.partition(SCHEDULES, choose_partition(name, self._count)).schedule(name)
