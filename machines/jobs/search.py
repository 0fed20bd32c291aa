"""Searches the jobs of one place of a queue by input, error, group and time, within a budget."""

import json
import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from machines.audit.redaction import MASK, strict_redactor
from machines.connections import get_engine
from machines.engine import Job, UnknownMachine
from machines.engine.keys import get_machine
from machines.people.actor import Actor

BUDGET = 20_000  # jobs that one search compares
SECONDS = 1.0  # after which a search begins no further read
PAGE = 500  # jobs of one read
OPEN = ("dead", "ready", "leased", "delayed")  # places, in the order in which they are searched for words
_PATH = re.compile(r"\s*([\w-]+(?:\.[\w-]+)*)\s*=\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class JobTerms:
    """What a job has to be; all that is given holds. ``input``: a part of its input as JSON, or ``path=value``;
    ``error``: a part of its last error; ``group``: its whole group; ``older``, ``newer``: ms since it was enqueued, at
    least and at most, 0 for any."""

    input: str = ""
    error: str = ""
    group: str = ""
    older: int = 0
    newer: int = 0

    def matches(self, job: Job, now: int) -> bool:
        age = now - job.created
        return (
            age >= self.older
            and (not self.newer or age <= self.newer)
            and self.group in ("", job.group)
            and self.error.casefold() in f"{job.kind}: {job.error}".casefold()
            and (not self.input or _has_input(job.input, self.input))
        )


def _has_input(value: Any, text: str) -> bool:
    if isinstance(value, dict) and (match := _PATH.fullmatch(text)):
        for name in match[1].split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value is not None and match[2] in (value, json.dumps(value, ensure_ascii=False))
    return text.casefold() in json.dumps(value, ensure_ascii=False).casefold()


@dataclass(slots=True)
class JobHits:
    """``looked``: how many jobs were read; ``next``: the offset at which the search goes on, None at the end;
    ``missing``: roots of partitions that did not answer; machines in a search for words."""

    jobs: list[Job] = field(default_factory=list)
    looked: int = 0
    next: int | None = None
    missing: tuple[str, ...] = ()


def find_jobs(  # noqa: PLR0913
    actor: Actor,
    machine: str,
    queue: str,
    terms: JobTerms,
    *,
    place: str,
    limit: int = 50,
    offset: int = 0,
    seconds: float = SECONDS,
) -> JobHits:
    """Find jobs of a place in its order, after ``offset`` others. What is hidden from most people is not searched, and
    masked in what is found. Raises Forbidden."""
    actor.demand("view", machine)
    engine, redactor, hits = get_engine(), strict_redactor(machine), JobHits()
    now, end = engine.read_clock(), time.monotonic() + seconds
    while True:
        found = engine.jobs(machine, queue, place=place, limit=PAGE, offset=offset)
        hits.missing = found.missing or hits.missing
        if not found:
            return hits
        for number, job in enumerate(map(redactor.job, found), start=1):
            if terms.matches(job, now):
                hits.jobs.append(job)
                if len(hits.jobs) == limit:
                    hits.looked, hits.next = hits.looked + number, offset + number
                    return hits
        offset, hits.looked = offset + PAGE, hits.looked + len(found)  # ids without a job shorten a page
        if hits.looked >= BUDGET or time.monotonic() > end:
            hits.next = offset
            return hits


def find_words(
    actor: Actor, words: Sequence[str], machines: Collection[str], *, limit: int, seconds: float = SECONDS
) -> JobHits:
    """Find jobs without an instance whose input or last error holds all words, dead ones first. A job of an instance is
    found with that. Nothing of what is hidden from most people is searched. ``next`` is 0 where the budget ended;
    ``missing``: machines that did not answer, whole or in part."""
    hits, end = JobHits(), time.monotonic() + seconds
    lowered = [word.casefold() for word in words]
    missing: set[str] = set()
    for job in _read_open(actor, machines, missing):
        if hits.looked >= BUDGET or time.monotonic() > end:
            hits.next = 0
            break
        if job.instance:
            continue
        hits.looked += 1
        text = f"{json.dumps(job.input, ensure_ascii=False)} {job.kind}: {job.error}".casefold()
        if MASK not in text and all(word in text for word in lowered):
            hits.jobs.append(job)
            if len(hits.jobs) == limit:
                break
    hits.missing = tuple(sorted(missing))
    return hits


def _read_open(actor: Actor, machines: Collection[str], missing: set[str]) -> Iterator[Job]:
    engine = get_engine()
    survey = engine.survey().only(machines)
    missing.update(survey.faults, map(get_machine, survey.missing))
    for place in OPEN:
        for machine, queues in sorted(survey.queues.items()):
            actor.demand("view", machine)
            with suppress(UnknownMachine):  # it went meanwhile
                redactor = strict_redactor(machine)
                for queue, stats in sorted(queues.items()):
                    for offset in range(0, stats.depth[place], PAGE):
                        found = engine.jobs(machine, queue, place=place, limit=PAGE, offset=offset)
                        missing.update(map(get_machine, found.missing))
                        yield from map(redactor.job, found)
