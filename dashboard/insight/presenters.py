"""Presents the answer to a question: rows with figures and the addresses of the instances behind them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import log10
from typing import Any

from django.http import Http404, HttpRequest
from django.utils.safestring import SafeString

from dashboard.jobs.failures.presenters import Trend, draw_trend
from dashboard.shared.addresses import page_of
from dashboard.shared.counts import count_versions
from dashboard.shared.diagram_modes import format_share
from dashboard.shared.list_pages import ListLinks
from dashboard.shared.redacted_engine import redacted_engine
from dashboard.shared.version_view import VersionView, load_version
from machines.catalog.queries import get_version
from machines.engine import SignalboxError, errors
from machines.engine.definitions import durations
from machines.insight import comparison, questions
from machines.insight.errors import InsightOff, StoreUnavailable
from machines.insight.records import Difference, Duration, Extent, InstancePage, Paths
from machines.insight.statistics.ages import format_duration
from machines.people.actor import Actor

from . import diagram
from .forms import GROUPS, NAMES, QUESTIONS, SECOND, STAGES, make_filter

log = logging.getLogger(__name__)

SIZE = 100  # instances on a page
BEHIND = 3_600_000  # ms: for so long retention leaves what is not archived
Answer = Callable[["InsightPage"], Any]


class InsightPage:
    """Presents one question about a machine to the person of a request. ``mistake``: why it could not be answered;
    ``is_off``: nothing is kept here."""

    def __init__(self, request: HttpRequest, machine: str) -> None:
        engine, actor = redacted_engine(request), Actor.of(request)
        self.machine, self.live, self._asked = machine, engine.live(machine), request.GET
        self.versions = count_versions(engine, machine, self.live)
        self.may_see_names = actor.may(NAMES, machine)
        current = load_version(machine, self.live.version, who=str(request.user.pk))
        self.form = make_filter(actor, current, request.GET)
        self.question = self.form.question
        self.view, self.mistake, self.is_off = current, "", False
        self.answer: Any = None
        self.paths: Paths | None = None
        self.mode = diagram.MODES.get(request.GET.get("figure", ""), diagram.MODES["share"])
        if self.form.is_valid():
            self._answer()

    def _answer(self) -> None:
        try:
            self.search = self.form.read_search()
            self.view = self._choose_view()
            if self.question == "instances":
                self.answer = self._list_instances()
                return
            self.paths = questions.paths(self.search)
            self.answer = ANSWERS[self.question](self) if self.question in ANSWERS else self.paths
        except InsightOff:
            self.is_off = True
        except SignalboxError as error:
            if isinstance(error, StoreUnavailable):
                log.error("insight of %s: %s %s", self.machine, error.code, error)
            self.mistake = f"{error.code} {error.message}"

    def _choose_view(self) -> VersionView:
        """Return the version that the search is about, where it is one and still there; else the current one."""
        if len(self.search.versions) == 1:
            try:
                return load_version(self.machine, self.search.versions[0])
            except errors.LookupFailed:
                pass
        return self.view

    @property
    def status(self) -> int:
        return 400 if self.form.errors else 200

    @property
    def template(self) -> str:
        return f"signalbox/insight/{'_paths' if self.question == 'paths' else '_answer'}.html"

    @property
    def extent(self) -> Extent | None:
        return self.paths and self.paths.extent

    @property
    def is_behind(self) -> bool:
        """Tell whether reading is so late that instances may have gone unread."""
        return self.extent is not None and 0 < self.extent.read_up_to < self.live.now - BEHIND

    @property
    def is_narrowed(self) -> bool:
        return any(self.form.given.values())

    # Addresses

    @cached_property
    def links(self) -> ListLinks:
        return ListLinks("insight", self.machine, **self.form.given)

    @property
    def tabs(self) -> list[tuple[str, str, bool]]:
        shown = QUESTIONS | ({"instances": "Instances"} if self.question == "instances" else {})
        return [
            (label, self.links.url(show="" if name == "paths" else name), name == self.question)
            for name, label in shown.items()
        ]

    @property
    def figures(self) -> list[tuple[str, str, bool]]:
        """List the figures that the diagram can show."""
        return [(one.label, self._keep(figure=one.name), one is self.mode) for one in diagram.MODES.values()]

    def _keep(self, **changes: str) -> str:
        """Return the address of this page with other terms."""
        kept = {name: text for name, text in self._asked.items() if text}
        return ListLinks("insight", self.machine, **kept).url(**changes)

    @property
    def xes_url(self) -> str:
        return ListLinks("insight-xes", self.machine, **self.form.given).url()

    def link_instances(self, **figure: str) -> str:
        """Return the address of the instances behind a figure."""
        return self.links.url(show="instances", **figure)

    # The diagram

    @property
    def shown_mode(self) -> diagram.Mode:
        return diagram.DIFFERENCE if self.question == "compare" else self.mode

    @property
    def drawing(self) -> SafeString:
        assert self.paths is not None
        if self.question == "compare":
            return diagram.draw_difference(self.view, self.answer, self.paths)
        return diagram.draw_paths(self.view, self.paths, self.mode, self.link_instances)

    # Rows

    @property
    def state_rows(self) -> Iterator[tuple[Any, str]]:
        """Yield the figures of states, of whatever question, each with the address of its instances."""
        rows = self.answer.levels if self.question == "levels" else self.answer.states
        return ((one, self.link_instances(at=one.state)) for one in rows)

    @property
    def transition_rows(self) -> Iterator[tuple[Any, str]]:
        assert self.paths is not None
        return (
            (one, self.link_instances(source=one.source, target=one.target, event=one.event))
            for one in self.paths.transitions
        )

    @property
    def path_rows(self) -> Iterator[tuple[Any, str]]:
        assert self.paths is not None
        return ((one, self.link_instances(path=json.dumps(one.states))) for one in self.paths.paths)

    @property
    def stage_rows(self) -> Iterator[tuple[Any, str]]:
        stages = self.answer.stages
        for number, one in enumerate(stages, 1):
            reached = json.dumps([stage.state for stage in stages[:number]])
            yield one, self.link_instances(stages=reached, within=self._asked.get("within", ""))

    @property
    def group_rows(self) -> Iterator[tuple[Any, str, str]]:
        """Yield figures, the address of the instances, and of the page of a queue, which has the times of its jobs."""
        by = self.answer.by
        for one in self.answer.rows:
            about = page_of("queue", self.machine, one.name) if by == "queue" else ""
            yield one, self.link_instances(each=by, name=one.name) if one.name else "", about

    @property
    def has_job_times(self) -> bool:
        return any(one.running.count for one in self.answer.rows)

    @property
    def time_rows(self) -> Iterator[tuple[Duration, Trend, str]]:
        return ((one, draw_buckets(one), self.link_instances(at=one.state)) for one in self.answer.states)

    @property
    def group_label(self) -> str:
        return GROUPS[self.answer.by]

    @property
    def differences(self) -> list[tuple[str, list[DifferenceRow]]]:
        found = self.answer
        return [
            ("States, share of the instances", [_describe_shares(row, row.name) for row in found.states]),
            (
                "Transitions, share of the steps out of a state",
                [_describe_shares(row, f"{row.source} → {row.target}: {row.event}") for row in found.transitions],
            ),
            ("Median time in state", [_describe_times(row) for row in found.times]),
        ]

    @property
    def deviation_rows(self) -> Iterator[tuple[Any, str]]:
        return ((one, page_of("instance", self.machine, one.example)) for one in self.answer.deviations)

    @property
    def listed(self) -> list[tuple[str, str]]:
        return [(id, page_of("instance", self.machine, id)) for id in self.answer.ids]

    @property
    def listed_of(self) -> str:
        """Say which figure the list is behind."""
        asked = self._asked
        if asked.get("path"):
            return f"went {' → '.join(_read_path(asked['path']))}"
        if asked.get("stages"):
            within = f", within {asked['within']}" if asked.get("within") else ""
            return f"reached {' → '.join(_read_path(asked['stages']))}{within}"
        if asked.get("name"):
            return f"have a step of {asked['each']} {asked['name']}"
        if asked.get("event"):
            step = f"{asked.get('source', '')} → {asked.get('target', '')}: {asked['event']}"
            return f"took {step}, some more than once"
        return f"were in {asked['at']}" if asked.get("at") else "all of the search"

    @property
    def next_url(self) -> str:
        return self._keep(after=self.answer.after) if self.answer.after else ""

    @property
    def first_url(self) -> str:
        return self._keep(after="") if self._asked.get("after") else ""

    def _list_instances(self) -> InstancePage:
        asked = self._asked
        step = (asked.get("source", ""), asked.get("target", ""), asked.get("event", ""))
        path, stages = (_read_path(asked[name]) if asked.get(name) else () for name in ("path", "stages"))
        within = durations.parse_duration(asked.get("within", ""))
        measure = (asked.get("each", ""), asked.get("name", ""))
        given = choose_figure(asked.get("at", ""), step, path, stages, within, measure)
        return questions.list_instances(self.search, **given, limit=SIZE, after=asked.get("after", ""))


def choose_figure(
    state: str, step: tuple[str, str, str], path: Sequence[str], stages: Sequence[str], within: int | None,
    measure: tuple[str, str],
) -> questions.Figure:  # fmt: skip
    """Return which figure instances are behind, as ``list_instances`` takes it: the path, else stages, measure, step
    or state; all of the search without one."""
    if path:
        return {"path": tuple(path)}
    if stages:
        return {"stages": tuple(stages), "within": within}
    if measure[1]:
        return {"measure": measure}
    if step[2]:
        return {"transition": step}
    return {"state": state} if state else {}


def _read_path(text: str) -> tuple[str, ...]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(state, str) for state in found):
        raise Http404("A path is a list of states.")
    return tuple(found)


def _ask_funnel(page: InsightPage) -> Any:
    given = page.form.cleaned_data
    states = [given[name] for name in STAGES if given[name]]
    return questions.funnel(page.search, states, within=given["within"]) if len(states) > 1 else None


def _ask_people(page: InsightPage) -> Any:
    return questions.people(page.search, by=page.form.cleaned_data["each"] or "queue")


def _ask_levels(page: InsightPage) -> Any:
    return questions.service_levels(page.search, choose_limits(page.view, page.form.cleaned_data["limit"]))


def choose_limits(view: VersionView, limit: int | None) -> Mapping[str, int]:
    """Return state -> ms: ``limit`` for every state, or the service levels of the definition."""
    limits = {state.name: limit or state.sla for state in view.outline.states if state.type == "atomic"}
    return {name: limit for name, limit in limits.items() if limit}


def find_definition(machine: str, version: int) -> Mapping[str, Any] | None:
    """Return the definition of a version; None where it is gone."""
    try:
        return get_version(machine, version).definition
    except errors.LookupFailed:
        return None


def _ask_comparison(page: InsightPage) -> Any:
    return comparison.compare(page.search, page.form.read_search(SECOND))


ANSWERS: Mapping[str, Answer] = {
    "times": lambda page: questions.durations(page.search),
    "bottlenecks": lambda page: questions.bottlenecks(page.search),
    "funnel": _ask_funnel,
    "people": _ask_people,
    "levels": _ask_levels,
    "compare": _ask_comparison,
    "conformance": lambda page: questions.conformance(page.search, partial(find_definition, page.machine)),
}


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """A row of a comparison, in words."""

    name: str
    first: str
    second: str
    change: str
    interval: str
    is_noise: bool


def _describe_shares(row: Difference, name: str) -> DifferenceRow:
    points = diagram.format_points
    return DifferenceRow(
        name, format_share(row.first), format_share(row.second), points(row.second - row.first),
        f"{points(row.low)} to {points(row.high)}", row.is_noise,
    )  # fmt: skip


def _describe_times(row: Difference) -> DifferenceRow:
    def write(ms: float) -> str:
        return f"{'−' if ms < 0 else '+'}{format_duration(abs(ms))}" if abs(ms) >= 1 else "0"

    return DifferenceRow(
        row.name, format_duration(row.first), format_duration(row.second), write(row.second - row.first),
        f"{write(row.low)} to {write(row.high)}", row.is_noise,
    )  # fmt: skip


def draw_buckets(found: Duration) -> Trend:
    """Draw a distribution, and say it in words. Buckets that are empty have their place."""
    words = ", ".join(
        f"{format_duration(one.low)} to {format_duration(one.high)}: {one.count:,}" for one in found.buckets
    )
    counts: list[int] = []
    high = 0
    for one in found.buckets:
        if high:
            counts += [0] * round(questions.STEPS_IN_BUCKETS * log10(one.low / high))
        counts.append(one.count)
        high = one.high
    return replace(draw_trend(counts, "", bars=len(counts) or 1), words=words)
