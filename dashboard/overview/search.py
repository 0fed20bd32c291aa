"""Searches everything: instances of any machine by id, archived ones too, machines and queues by name, jobs by id, and
words in all that instances hold and definitions name.

The search is bounded however much there is: the names of what is published, one command for each machine, and a page of
the index of ids where a definition declares one. A page counts what it leaves out, or says that there is more. Words
are read within a budget (``machines.instances.words``).
"""

import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from dashboard.shared.addresses import JobId, parse_number
from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.rendering import render_page
from dashboard.shared.search.instance_filter import IDS
from machines.catalog.queries import find_definitions
from machines.conf import conf
from machines.engine import BadInput, ids
from machines.engine.limits import MAX_INSTANCE_ID
from machines.instances import query_line
from machines.instances.archive.store import get_archive
from machines.instances.words import SECONDS, count_instances
from machines.jobs.failures.queries import list_groups
from machines.jobs.search import JobHits
from machines.jobs.search import find_words as find_job_words
from machines.people.actor import Actor

MAX_HITS = 20  # of each kind on the page
BY_PREFIX = 20  # machines whose ids are looked through for one page
MAX_PAGE = 10_000
HEADINGS = Path(__file__).with_name("docs_headings.json")
"""Page -> its headings with their anchors, the first of which is the title."""
LEAST = 3  # characters of what is looked for in the docs
JOB = re.compile(JobId.regex)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Hit:
    """Holds a result. ``of``: its machine; ``exact``: the whole name was typed; ``places``: where words were found."""

    kind: str
    name: str
    url: str
    of: str = ""
    exact: bool = False
    places: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Remainder:
    """Says that a page shows only a part of one kind: the results from ``first`` to ``last`` of ``total``.

    ``total`` is None where it is not known; then ``url`` is the list of ``of``, a machine, with all of them. For the
    kind "machine index" it counts the machines whose ids were looked through.
    """

    kind: str
    first: int
    last: int
    total: int | None = None
    of: str = ""
    url: str = ""


@dataclass(slots=True)
class Results:
    """Holds one page of a search. ``page`` counts from 1; ``more``: there is a next page."""

    page: int = 1
    hits: list[Hit] = field(default_factory=list)
    remainders: list[Remainder] = field(default_factory=list)
    more: bool = False

    def cut(self, kind: str, found: Sequence[T], size: int = MAX_HITS) -> Sequence[T]:
        """Return the part of ``found`` that is on this page, and note what is left out."""
        start = (self.page - 1) * size
        part = found[start : start + size]
        if len(found) > size and part:
            self.remainders.append(Remainder(kind, start + 1, start + len(part), len(found)))
        self.more = self.more or len(found) > start + size
        return part


def search_page(request: HttpRequest, asked: str, page: int = 1) -> Results:
    """Return a page of what has this name on the machines that the person sees: at most ``MAX_HITS`` of each kind."""
    engine, found = redacted_engine(request), Results(page)
    names = sorted(engine.machines())

    def add(kind: str, machines: Iterable[str], page: str = "") -> None:
        for name in found.cut(kind, list(machines)):
            address = reverse(f"signalbox:{page or kind}", args=[name, asked])
            found.hits.append(Hit(kind, asked, address, name, exact=True))

    add("instance", engine.find_machines(asked, names))
    here = {hit.of for hit in found.hits}
    archived = (name for name in get_archive().find_machines(asked, names) if name not in here)
    add("archived instance", archived, "instance")
    _find_by_prefix(engine, names, asked, found)
    if JOB.fullmatch(asked):
        add("job", engine.find_machines(asked, names, of="job"))
    wanted = asked.lower()
    for name in found.cut("machine", _sort_exact_first([(name,) for name in names if wanted in name.lower()], asked)):
        address = reverse("signalbox:machine", args=name)
        found.hits.append(Hit("machine", name[0], address, exact=name[0] == asked))
    queues = [pair for pair in engine.queue_names(names) if wanted in pair[1].lower()]
    for name, queue in found.cut("queue", _sort_exact_first(queues, asked)):
        address = reverse("signalbox:queue", args=[name, queue])
        found.hits.append(Hit("queue", queue, address, name, exact=queue == asked))
    return found


def _sort_exact_first(names: list[tuple[str, ...]], asked: str) -> list[tuple[str, ...]]:
    return sorted(names, key=lambda name: name[-1] != asked)


def _find_by_prefix(engine: RedactedEngine, machines: list[str], prefix: str, found: Results) -> None:
    """Add instances whose id begins with the prefix, of machines that index their ids."""
    for name in found.cut("machine index", engine.find_indexed(IDS, machines), BY_PREFIX):
        listed = engine.find_ids(name, prefix, MAX_HITS + 1)
        for id in listed[:MAX_HITS]:
            if id != prefix:
                found.hits.append(Hit("instance", id, reverse("signalbox:instance", args=[name, id]), name))
        if len(listed) > MAX_HITS:
            address = f"{reverse('signalbox:machine', args=[name])}?{urlencode({'id': f'{prefix}*'})}#instances"
            found.remainders.append(Remainder("instance", 1, MAX_HITS, of=name, url=address))


@cache
def _read_headings() -> dict[str, list[tuple[str, str]]]:
    return {
        page: [(text, anchor) for text, anchor in found] for page, found in json.loads(HEADINGS.read_text()).items()
    }


def _find_headings(asked: str) -> Iterator[Hit]:
    """Yield the headings that have all the words, themselves or with the title of their page."""
    words = asked.lower().split()
    if not conf.DOCS_URL or len(asked) < LEAST:
        return
    for page, headings in _read_headings().items():
        title = headings[0][0]
        for text, anchor in headings:
            named = text.lower()
            if all(word in f"{named} {title.lower()}" for word in words) and any(word in named for word in words):
                yield Hit("docs", text, f"{conf.DOCS_URL.rstrip('/')}/{page}.html#{anchor}", places=[title])


def search_docs(asked: str) -> list[Hit]:
    """Return the headings of the docs that hold these words, at most ``MAX_HITS``."""
    return list(islice(_find_headings(asked), MAX_HITS))


@dataclass(frozen=True, slots=True)
class WordResults:
    """Holds hits of words. ``looked``: how many instances were compared, with those of the pages before, of ``total``;
    ``cursor``: where to go on, "" where all were; ``missing``: machines that did not answer; ``is_full``: the page ends
    because of its hits, not of its budget; ``jobs``: how many jobs were compared, None where all were."""

    hits: Sequence[Hit] = ()
    looked: int = 0
    total: int = 0
    cursor: str = ""
    missing: Sequence[str] = ()
    is_full: bool = False
    jobs: int | None = None


def search_words(
    request: HttpRequest, asked: str, *, cursor: str = "", looked: int = 0, limit: int = MAX_HITS,
    seconds: float = SECONDS,
) -> WordResults:  # fmt: skip
    """Find the words in instances of the machines that the person sees; on the first page also in definitions, groups
    of errors, and jobs without an instance."""
    actor, engine, words = Actor.of(request), redacted_engine(request), asked.split()
    names = list(engine.machines())
    try:
        page = engine.find_words(words, names, limit=limit, cursor=cursor, seconds=seconds)
    except BadInput:  # too many words, or letters that nothing holds
        return WordResults()
    named = {} if cursor else find_definitions(words, names, limit)
    hits = [
        Hit("definition", name, reverse("signalbox:machine", args=[name]), name, places=places)
        for name, places in named.items()
    ]
    jobs = JobHits()
    if not cursor:
        for view in list_groups(actor, query=asked, size=limit).items:
            name = f"{view.group.kind} in {view.group.handler}"
            address = reverse("signalbox:error-group", args=[view.group.pk])
            hits.append(Hit("error group", name, address, view.machines[0], places=[view.group.shape]))
        jobs = find_job_words(actor, words, names, limit=limit, seconds=seconds / 2)
    for hit in page.hits:
        view = "job" if hit.kind == "job" else "instance"
        address = reverse(f"signalbox:{view}", args=[hit.machine, hit.id])
        hits.append(Hit(hit.kind, hit.id, address, hit.machine, places=hit.places))
    for job in jobs.jobs:
        place = "error" if all(word in job.error.casefold() for word in asked.casefold().split()) else "input"
        address = reverse("signalbox:job", args=[job.machine, job.id])
        hits.append(Hit("job", job.id, address, job.machine, places=[f"{place} of {job.src}"]))
    total = count_instances(names) if page.cursor else 0
    # A page that is full looked further than its last hit, where the next one begins.
    looked = min(looked + page.looked, total) if page.cursor else looked + page.looked
    is_full = len(page.hits) >= limit
    missing = sorted({*page.missing, *jobs.missing})
    return WordResults(hits, looked, total, page.cursor, missing, is_full, jobs.looked if jobs.next == 0 else None)


AHEAD = 300  # seconds that an id, or the clock it was made by, may be before this process's own


@require("view")
def show(request: HttpRequest) -> HttpResponse:
    """Answer ``?q=``, further pages by ``?page=``, of words by ``?after=``. A single exact match is opened at once."""
    asked = request.GET.get("q", "").strip()[:MAX_INSTANCE_ID]
    page, cursor = _read_page(request), request.GET.get("after", "")
    found = search_page(request, asked, page) if asked else Results()
    exact = [hit for hit in found.hits if hit.exact]
    if len(exact) == 1 and page == 1 and not request.GET.get("all"):
        return redirect(exact[0].url)
    looked = parse_number(request.GET.get("looked", "")) or 0
    context = {
        "section": "search",
        "asked": asked,
        "hits": [*sorted(found.hits, key=lambda hit: not hit.exact), *(search_docs(asked) if page == 1 else ())],
        "found": found,
        "words": search_words(request, asked, cursor=cursor, looked=looked) if asked and page == 1 else None,
        "line": " ".join(map(query_line.quote, asked.split())),
        "made": _decode_id(asked.lower()),
    }
    return render_page(request, "signalbox/overview/search.html", context)


def _read_page(request: HttpRequest) -> int:
    """Read ``?page=``; 1 for what is no page."""
    page = parse_number(request.GET.get("page", "")) or 1
    return page if page <= MAX_PAGE else 1


def _decode_id(text: str) -> ids.Decoded | None:
    """Decode the time of an id; None for a text that only looks like one, as an id of the future does."""
    made = ids.decode(text) if ids.is_id(text) else None
    return made if made and made.at < (time.time() + AHEAD) * 1000 else None
