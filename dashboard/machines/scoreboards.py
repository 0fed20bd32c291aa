"""Reads the scoreboards of a machine's page: busiest transitions, slowest states, most refused events."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.http import HttpRequest

from dashboard.shared.addresses import find_page_address
from dashboard.shared.charts import Edges
from dashboard.shared.redacted_engine import RedactedEngine, redacted_engine
from dashboard.shared.version_view import VersionView
from machines.engine import EngineUnavailable, SignalboxError
from machines.patterns import Place
from machines.statistics import scoreboards
from machines.statistics.ages import format_age

log = logging.getLogger(__name__)

FIRST = 5  # places of each
SPANS = {"day": ("today", 1), "week": ("7 days", scoreboards.WEEK)}
CHART = "#chart-refused"

Text = Callable[[Place], str]


@dataclass(frozen=True, slots=True)
class Row:
    """Holds one place. ``share``: percent of the first place's score, for the length of its bar."""

    rank: int
    name: str
    figure: str
    share: int
    url: str = ""


@dataclass(frozen=True, slots=True)
class Scoreboard:
    kind: str
    title: str
    said: str
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Scoreboards:
    """Holds the scoreboards. ``spans``: name, address, whether it is current. Both are empty before any measurement."""

    found: list[Scoreboard] = field(default_factory=list)
    spans: list[tuple[str, str, bool]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not any(board.rows for board in self.found)


def read_scoreboards(request: HttpRequest, view: VersionView) -> Scoreboards:
    span = request.GET.get("board", "")
    over, days = SPANS[span] if span in SPANS else SPANS["day"]
    try:
        found = _read(redacted_engine(request), view, over, days)
    except EngineUnavailable:
        raise
    except SignalboxError as error:  # something foreign in the way: the page goes on without them
        log.warning("the scoreboards of %s cannot be read: %s", view.machine, error)
        return Scoreboards()
    return Scoreboards(
        found, [(name, _make_span_url(request, each), name == over) for each, (name, _) in SPANS.items()]
    )


def _read(engine: RedactedEngine, view: VersionView, over: str, days: int) -> list[Scoreboard]:
    machine, named = view.machine, Edges(engine, view.machine)
    sources = {f"{view.version}:{each.id}": each.source for state in view.outline.states for each in state.transitions}
    edges = scoreboards.busiest(machine, "edges", FIRST, days=days)
    states = scoreboards.slowest(machine, FIRST)
    refused = scoreboards.busiest(machine, "refused", FIRST, days=days)
    return [
        Scoreboard(
            "edges", "Busiest transitions", f"count, {over}",
            _make_rows(edges, lambda p: named(p.member), _count, lambda p: _list(machine, sources.get(p.member, ""))),
        ),
        Scoreboard(
            "states", "Slowest states", "median time in state, now",
            _make_rows(
                states, lambda p: p.member, lambda p: format_age(p.score / 1000),
                lambda p: _list(machine, p.member),
            ),
        ),
        Scoreboard(
            "refused", "Most refused events", f"count, {over}",
            _make_rows(
                refused, lambda p: named("" if p.member == scoreboards.UNHEARD else p.member), _count, lambda _: CHART
            ),
        ),
    ]  # fmt: skip


def _make_rows(places: list[Place], name: Text, figure: Text, url: Text) -> list[Row]:
    most = max((place.score for place in places), default=0) or 1
    return [
        Row(place.rank, name(place), figure(place), max(1, round(100 * place.score / most)), url(place))
        for place in places
    ]


def _count(place: Place) -> str:
    return f"{int(place.score):,}"


def _list(machine: str, state: str) -> str:
    """Return the address of the instances in a state, oldest first."""
    return f"{find_page_address('signalbox:machine', machine)}?{urlencode({'state': state})}#instances" if state else ""


def _make_span_url(request: HttpRequest, span: str) -> str:
    """Return the address of this page with another span. Other terms stay."""
    terms = request.GET.copy()
    terms["board"] = span
    return f"{request.path}?{terms.urlencode()}#boards"
