"""Finds words in instances of all machines, archived ones too, within one budget over all of them."""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from django.db.models import Sum

from machines.audit import redaction
from machines.audit.redaction import MASK, Redactor
from machines.catalog.queries import outline_of
from machines.connections import get_engine
from machines.engine import EngineFault, EngineUnavailable, Instance, LookupFailed, Problem, UnknownMachine
from machines.instances import queries
from machines.instances.archive import store
from machines.instances.models import ArchiveTotal
from machines.people.actor import Actor

BUDGET = 40_000  # instances that one page compares, of all machines together
SECONDS = 1.0  # after which a page begins nothing more
ARCHIVE_PAGE = 100  # archived instances that are read at once: each is decompressed
JOBS = 3  # jobs of one instance that are hits
KINDS = ("instance", "archived instance")  # in the order they are searched


@dataclass(frozen=True, slots=True)
class WordHit:
    """Holds an instance in which all words stand, or a job. ``places``: where, as "data note" or "tag late"."""

    kind: str
    machine: str
    id: str
    places: tuple[str, ...]


@dataclass(slots=True)
class WordPage:
    """Holds a page of hits. ``looked``: how many instances were compared; ``cursor``: where the next page begins, ""
    on the last one; ``missing``: machines that did not answer, whole or in part."""

    hits: list[WordHit] = field(default_factory=list)
    looked: int = 0
    cursor: str = ""
    missing: list[str] = field(default_factory=list)


def find_words(
    actor: Actor, words: Sequence[str], machines: Iterable[str], *, limit: int, cursor: str = "",
    seconds: float = SECONDS,
) -> WordPage:  # fmt: skip
    """Find instances of these machines in which all words stand, machine by machine, those in Redis first.

    What a person may not see is not searched. Raises BadInput for words or a cursor that are not valid.
    """
    number, name, inner = _read_cursor(cursor)
    names = sorted(machines)
    places = [place for kind in range(len(KINDS)) for each in names if (place := (kind, each)) >= (number, name)]
    search = _WordSearch(actor, words, limit, time.monotonic() + seconds)
    page = search.page
    for kind, each in places:
        if search.is_over:
            page.cursor = f"{kind}:{each}:"
            break
        try:
            after = search.read(kind, each, inner if (kind, each) == (number, name) else "")
        except UnknownMachine:  # removed since the machines were listed
            continue
        except EngineUnavailable:
            page.missing.append(each)
            continue
        if after:
            page.cursor = f"{kind}:{each}:{after}"
            break
    return page


def count_instances(machines: Iterable[str]) -> int:
    """Count the instances of these machines, archived ones too."""
    names = frozenset(machines)
    lives = get_engine().survey().only(names).lives.values()
    archived = ArchiveTotal.objects.filter(machine__in=names).aggregate(all=Sum("instances"))["all"]
    return (archived or 0) + sum(live.total for live in lives)


def _read_cursor(cursor: str) -> tuple[int, str, str]:
    kind, _, rest = cursor.partition(":")
    name, _, inner = rest.partition(":")
    return (int(kind), name, inner) if kind in ("0", "1") else (0, "", "")


class _WordSearch:
    """Fills one page. ``end``: of its time, by the monotonic clock."""

    def __init__(self, actor: Actor, words: Sequence[str], limit: int, end: float) -> None:
        self.page = WordPage()
        self._actor = actor
        self._words = words
        self._limit = limit
        self._end = end
        self._tags: dict[tuple[str, int], dict[str, list[str]]] = {}

    @property
    def is_over(self) -> bool:
        late = self.page.looked and time.monotonic() > self._end
        return bool(late) or self.page.looked >= BUDGET or len(self.page.hits) >= self._limit

    def read(self, kind: int, machine: str, cursor: str) -> str:
        """Add hits of one machine; return where it goes on, "" at its end."""
        redactor = redaction.redactor_if(self._actor.may("reveal", machine), machine)
        return (self._read_archive if kind else self._read_machine)(machine, redactor, cursor)

    def _read_machine(self, machine: str, redactor: Redactor, cursor: str) -> str:
        found = queries.find(
            self._actor, machine, redactor=redactor, text=self._words, limit=self._limit - len(self.page.hits),
            cursor=cursor or None, most=BUDGET - self.page.looked, seconds=max(0.0, self._end - time.monotonic()),
        )  # fmt: skip
        self.page.looked += found.looked
        if found.missing:
            self.page.missing.append(machine)
        failing = get_engine().problems(machine, [one.id for one in found.instances]) if redactor.open else {}
        for one in found.instances:
            # The server found each word; what it reads besides these texts is the input of jobs.
            places = _choose_places(self._read_texts(one, failing.get(one.id, ())), self._words)
            jobs = [] if places else self._find_jobs(one)
            self.page.hits += jobs
            if not jobs:
                self._add(KINDS[0], one, places or ["job input"])
        return found.cursor or ""

    def _find_jobs(self, instance: Instance) -> list[WordHit]:
        """Find open jobs of the instance whose input holds all words."""
        found = []
        for id in instance.jobs:
            try:
                job = get_engine().job(instance.machine, id)
            except (LookupFailed, EngineUnavailable):  # finished since it was found
                continue
            text = json.dumps(job.input, ensure_ascii=False, separators=(",", ":"))
            if all(_choose_places([("", text)], [word]) for word in self._words):
                found.append(WordHit("job", instance.machine, id, (f"input of {job.src}",)))
            if len(found) == min(JOBS, self._limit - len(self.page.hits)) or time.monotonic() > self._end:
                break
        return found

    def _read_archive(self, machine: str, redactor: Redactor, cursor: str) -> str:
        while True:
            room = min(ARCHIVE_PAGE, BUDGET - self.page.looked, self._limit - len(self.page.hits))
            found = queries.find_archived(self._actor, machine, limit=room, cursor=cursor or None)
            for record in found.records:
                try:
                    (one,) = redactor.instances([store.decode(record)[0]])
                except EngineFault:  # its page says that the record is damaged
                    continue
                texts = list(self._read_texts(one))
                if all(_choose_places(texts, [word]) for word in self._words):
                    self._add(KINDS[1], one, _choose_places(texts, self._words))
            self.page.looked += len(found.records)
            cursor = found.cursor or ""
            if not cursor or self.is_over:
                return cursor

    def _add(self, kind: str, instance: Instance, places: list[str]) -> None:
        self.page.hits.append(WordHit(kind, instance.machine, instance.id, tuple(dict.fromkeys(places))))

    def _read_texts(self, instance: Instance, problems: Iterable[Problem] = ()) -> Iterator[tuple[str, str]]:
        """Read what is searched, each text with its place. A value with something masked is left out."""
        yield "id", instance.id
        for name, value in instance.data.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if MASK not in text:
                yield f"data {name}", text
        tags = self._list_tags(instance.machine, instance.version)
        yield from ((f"tag {tag}", tag) for state in instance.configuration for tag in tags.get(state, ()))
        yield from (("error", f"{problem.kind} {problem.text}") for problem in problems)

    def _list_tags(self, machine: str, version: int) -> dict[str, list[str]]:
        """Return state -> its tags and those of the states around it, of a version that is published still."""
        if (machine, version) not in self._tags:
            tags: dict[str, list[str]] = {}
            try:
                for state in outline_of(machine, version).states:  # those around a state come before it
                    tags[state.name] = [*state.tags, *tags.get(state.parent or "", ())]
            except UnknownMachine:
                pass
            self._tags[machine, version] = tags
        return self._tags[machine, version]


def _choose_places(texts: Iterable[tuple[str, str]], words: Sequence[str]) -> list[str]:
    """List the places in whose text one of the words stands."""
    lowered = [word.lower() for word in words]
    return [place for place, text in texts if any(word in text.lower() for word in lowered)]
