"""Answers the palette while a person types: places, views, actions and what the search finds, the best first.

Words in instances take longer than names: the palette asks for them apart, after a pause.
"""

import math
from collections.abc import Iterator
from itertools import islice
from urllib.parse import urlencode

from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.utils.text import slugify

from dashboard.alarms.queries import collect_alarms
from dashboard.models import SavedView
from dashboard.shared.navigation import list_navigation_links
from dashboard.shared.permissions import require
from dashboard.shared.redacted_engine import redacted_engine
from machines.connections import get_pattern
from machines.engine.limits import MAX_INSTANCE_ID
from machines.patterns import Throttle
from machines.people.limits import spend_if_available
from machines.people.permissions import allows, scope_of

from .search import Hit, search_docs, search_page, search_words

MOST = 20  # rows of one answer
MOST_OF_A_KIND = 8
MOST_OF_WORDS = 5  # rows of a search for words
WORD_SECONDS = 0.3  # of such a search
LEAST_WORD = 3  # characters: fewer stand everywhere
LIMIT, PER = 60, 10  # requests of one person in so many seconds: typing fast needs ten
WORD_LIMIT = 15  # of those that search for words
ORDER = ("instance", "archived instance", "job", "machine", "place", "queue", "view", "action", "docs")
VERBS = ("pause", "resume", "retry", "open alarm", "alarm")
"""How actions begin that take a survey of the machines: it is read only for a text that begins so, too."""


@require("view")
def suggest(request: HttpRequest) -> JsonResponse:
    """Answer ``?q=`` with ``rows`` of kind, name, of, url and place, the best first; without ``q``, places and actions;
    with ``words``, what holds the words of ``q``."""
    by_words = "words" in request.GET
    name, limit = ("word-suggestions", WORD_LIMIT) if by_words else ("suggestions", LIMIT)
    turn = spend_if_available(get_pattern(Throttle).count, name, str(request.user.pk), limit=limit, per=PER)
    if not turn.allowed:
        seconds = max(1, math.ceil(turn.retry_after))
        return JsonResponse({"rows": []}, status=429, headers={"Retry-After": str(seconds)})
    asked = " ".join(request.GET.get("q", "")[:MAX_INSTANCE_ID].replace("\0", "").split())
    hits = _collect_by_words(request, asked) if by_words else _collect(request, asked)
    rows = [
        {"kind": hit.kind, "name": hit.name, "of": hit.of, "url": hit.url, "place": next(iter(hit.places), "")}
        for hit in hits
    ]
    return JsonResponse({"query": asked, "rows": rows}, headers={"Cache-Control": "no-store"})


def _collect_by_words(request: HttpRequest, asked: str) -> list[Hit]:
    if len(asked) < LEAST_WORD:
        return []
    return list(search_words(request, asked, limit=MOST_OF_WORDS, seconds=WORD_SECONDS).hits)


def _collect(request: HttpRequest, asked: str) -> list[Hit]:
    wanted = asked.lower()
    hits = [*(search_page(request, asked).hits if asked else ()), *_list_own_hits(request, wanted), *search_docs(asked)]
    hits.sort(key=lambda hit: _rank(hit, wanted))
    taken: dict[str, int] = {}
    kept = []
    for hit in hits:
        taken[hit.kind] = taken.get(hit.kind, 0) + 1
        if taken[hit.kind] <= MOST_OF_A_KIND:
            kept.append(hit)
    return kept[:MOST]


def _list_own_hits(request: HttpRequest, wanted: str) -> Iterator[Hit]:
    """Yield the places and saved views whose name contains the text, and the actions whose name has all its words."""
    user = request.user
    for place in list_navigation_links(user):
        if wanted in place.label.lower():
            yield Hit("place", place.label, place.url)
    for view in islice(SavedView.list_for(user, name__icontains=wanted), MOST_OF_A_KIND):
        yield Hit("view", view.name, view.address, view.machine)
    words = wanted.split()
    actions = [*_list_machine_actions(request), *(_list_survey_actions(request) if _names_verb(wanted) else ())]
    for label, url in actions:
        if all(word in label.lower() for word in words):
            yield Hit("action", label, url)


def _names_verb(wanted: str) -> bool:
    return len(wanted) >= LEAST_WORD and any(verb.startswith(wanted) or wanted.startswith(verb) for verb in VERBS)


def _list_machine_actions(request: HttpRequest) -> Iterator[tuple[str, str]]:
    """Yield what the person may do with machines, each with the address of its form."""
    names = sorted(redacted_engine(request).machines())
    for name in names:
        if allows(request.user, "fire", name):
            yield f"New instance of {name}", f"{reverse('signalbox:machine', args=[name])}#create"
    for name in names:
        if allows(request.user, "publish", name):
            yield f"Edit and publish {name}", reverse("signalbox:studio", args=[name])
    if allows(request.user, "publish"):
        yield "Publish a new machine", reverse("signalbox:studio-new")


def _list_survey_actions(request: HttpRequest) -> Iterator[tuple[str, str]]:
    """Yield what the person may do now about queues, each with the address of its form, and the alarms that stand."""
    seen, operated = scope_of(request.user), scope_of(request.user, "operate")
    survey = redacted_engine(request).survey()
    for machine, queues in sorted(survey.queues.items()):
        for queue, stats in sorted(queues.items()) if machine in operated else ():
            address = reverse("signalbox:queue", args=[machine, queue])
            verb = "resume" if stats.paused else "pause"
            yield f"{verb.capitalize()} queue {queue} of {machine}", f"{address}#act-{verb}-sheet"
            if dead := stats.depth.get("dead"):
                yield (
                    f"Retry dead jobs ({dead:,}) of queue {queue} of {machine}",
                    f"{reverse('signalbox:error-retry')}?{urlencode({'queue': f'{machine}/{queue}'})}",
                )
    for alarm in collect_alarms(seen, operated, survey):
        yield f"Open alarm: {alarm.text}", f"{reverse('signalbox:alarms')}#{slugify(alarm.key)}"


def _rank(hit: Hit, wanted: str) -> tuple[bool, bool, int, str]:
    name = hit.name.lower()
    order = name if wanted else ""  # without a text, places stand as in the bar
    return (not (hit.exact or name == wanted), not name.startswith(wanted), ORDER.index(hit.kind), order)
