"""Charts of an hour, a day or a month: lines for the script, and tables without it."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils import timezone

from machines.engine import SignalboxError
from machines.engine.definitions.outline import TransitionOutline
from machines.insight.statistics.ages import format_duration
from machines.insight.statistics.series import SPANS, Line, Series, several

from . import times, version_view
from .redacted_engine import RedactedEngine, redacted_engine

SPAN = "hour"
OVER = {"hour": "the last hour", "day": "the last 24 hours", "month": "the last 30 days"}
STEPS = {"hour": "1 minute", "day": "15 minutes", "month": "6 hours"}
UNITS = {"/min": "per minute", "ms": "", "": ""}
SHAPES = ("s-a", "s-b", "s-c", "s-d", "s-e", "s-f")
"""Each line has a colour and a pattern of dashes of its own."""
REST = "s-rest"  # grey dots, for what is left over
FEW = 3  # machines that the overview tells apart: their names fit on one line
POWERS = "approximate (±2×)"
Names = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Chart:
    """Names a chart: ``what`` of the statistics, and its title."""

    what: str
    title: str
    note: str = ""


OVERVIEW = (
    Chart("transitions", "Transitions"),
    Chart("work", "Jobs"),
    Chart("failures", "Failures and refusals"),
)
MACHINE = (
    Chart("edges", "Transitions by type"),
    Chart("refused", "Refused events"),
    Chart("instances", "Instances", "at the end of each interval"),
)
OF_JOBS = (
    Chart("waits", "Job wait time", POWERS),
    Chart("runs", "Job run time", POWERS),
)
QUEUE = (Chart("throughput", "Jobs in and out"), *OF_JOBS)


@dataclass(frozen=True, slots=True)
class Key:
    """Holds one line of a legend. ``shape``: the class of its colour and dashes."""

    name: str
    shape: str
    last: str


@dataclass(frozen=True, slots=True)
class Figure:
    """Combines a chart with its numbers."""

    chart: Chart
    series: Series
    lines: list[Line]

    @property
    def unit(self) -> str:
        return ", ".join(part for part in (UNITS[self.series.unit], self.chart.note) if part)

    @property
    def keys(self) -> list[Key]:
        return [
            Key(line.name, shape, self._format_last(line))
            for line, shape in zip(self.lines, _choose_shapes(self.lines), strict=True)
        ]

    @property
    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the newest step first, without steps that have no measurement."""
        columns = [line.values for line in self.lines]
        for at, *values in reversed(list(zip(self.series.at, *columns, strict=True))):
            if any(value is not None for value in values):
                yield _format_clock(at, self.series.span), [self._format(value) for value in values]

    def as_dict(self) -> dict[str, Any]:
        lines = [
            {"name": line.name, "shape": shape, "values": line.values}
            for line, shape in zip(self.lines, _choose_shapes(self.lines), strict=True)
        ]
        return {"id": self.chart.what, "unit": self.series.unit, "lines": lines}

    def _format(self, value: float | None) -> str:
        if value is None:
            return "–"
        if self.series.unit == "ms":
            return format_duration(value)
        return f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")

    def _format_last(self, line: Line) -> str:
        known = [value for value in line.values if value is not None]
        return self._format(float(f"{known[-1]:.3g}")) if known else "–"  # more digits cannot be read off a line


@dataclass(frozen=True, slots=True)
class Charts:
    """Holds the charts of a span. ``address``: of the same as JSON."""

    span: str
    figures: list[Figure]
    spans: list[tuple[str, str]]
    address: str

    @property
    def over(self) -> str:
        return OVER[self.span]

    @property
    def step(self) -> str:
        return STEPS[self.span]

    @property
    def is_empty(self) -> bool:
        return all(figure.series.is_empty for figure in self.figures)

    @property
    def measured(self) -> int:
        """Return the ms of the last measurement; 0 before the first."""
        return max((figure.series.measured for figure in self.figures), default=0) * 1000

    @property
    def zone(self) -> str:
        return timezone.get_current_timezone_name()

    @property
    def gaps(self) -> list[tuple[int, int, int]]:
        """List the gaps without measurements: ms from, ms to, transitions in them."""
        found: dict[int, tuple[int, int]] = {}
        for gap in self.figures[0].series.gaps if self.figures else ():
            end, count = found.get(gap.begin, (0, 0))
            found[gap.begin] = (max(end, gap.end), count + gap.transitions)
        return [(begin * 1000, end * 1000, count) for begin, (end, count) in sorted(found.items(), reverse=True)]

    def as_dict(self) -> dict[str, Any]:
        first = self.figures[0].series
        return {
            "span": self.span,
            "step": first.step,
            "at": first.at,
            "measured": self.measured,
            "gaps": [[begin // 1000, end // 1000] for begin, end, _ in self.gaps],
            "charts": [figure.as_dict() for figure in self.figures],
        }


def of_overview(request: HttpRequest, machines: Collection[str]) -> Charts:
    """Make the charts of several machines, which the viewer may see."""
    return _make_charts(request, reverse("signalbox:charts"), OVERVIEW, machines, most=FEW)


def of_machine(request: HttpRequest, machine: str, *, queues: bool) -> Charts:
    """Make the charts of a machine. ``queues``: it has queues."""
    wanted = (*MACHINE, *OF_JOBS) if queues else MACHINE
    return _make_charts(
        request,
        reverse("signalbox:machine-charts", args=[machine]),
        wanted,
        [machine],
        names=Edges(redacted_engine(request), machine),
    )


def of_queue(request: HttpRequest, machine: str, queue: str) -> Charts:
    return _make_charts(
        request, reverse("signalbox:queue-charts", args=[machine, queue]), QUEUE, [machine], queue=queue
    )


def _make_charts(
    request: HttpRequest,
    address: str,
    wanted: tuple[Chart, ...],
    machines: Collection[str],
    *,
    queue: str = "",
    names: Names = str,
    most: int = len(SHAPES),
) -> Charts:
    span = request.GET.get("span") or SPAN
    if span not in SPANS:
        raise Http404(f"Charts are of an {', a '.join(SPANS)}.")
    found = several(machines, span, [chart.what for chart in wanted], queue=queue, most=most)
    figures = [
        Figure(chart, series, _name_lines(series, names if chart.what != "instances" else lambda _: "instances"))
        for chart, series in zip(wanted, found, strict=True)
    ]
    return Charts(span, figures, [(name, _make_span_url(request, name)) for name in SPANS], f"{address}?span={span}")


def _name_lines(series: Series, names: Names) -> list[Line]:
    return [line if line.rest else replace(line, name=names(line.name)) for line in series.lines]


def _make_span_url(request: HttpRequest, span: str) -> str:
    """Return the address of this page with another span. Other terms stay."""
    terms = request.GET.copy()
    terms["span"] = span
    return f"{request.path}?{terms.urlencode()}#charts"


def _choose_shapes(lines: list[Line]) -> list[str]:
    return [REST if line.rest or number >= len(SHAPES) else SHAPES[number] for number, line in enumerate(lines)]


def _format_clock(at: int, span: str) -> str:
    """Format the start of a step in the person's time zone."""
    moment = times.read_local(at * 1000)
    if moment is None:
        return times.UNKNOWN
    return f"{moment.day} {times.MONTHS[moment.month - 1]} {moment:%H:%M}" if span != "hour" else f"{moment:%H:%M}"


class Edges:
    """Names transitions and events as people know them, by ``<version>:<transition>``."""

    def __init__(self, engine: RedactedEngine, machine: str) -> None:
        self._engine = engine
        self._machine = machine
        self._known: dict[str, dict[str, str]] = {}
        self._current = ""

    def __call__(self, name: str) -> str:
        version, colon, edge = name.partition(":")
        if not name:
            return "events that no state accepts"
        if not (colon and version.isdigit()):
            return name
        self._current = self._current or str(self._engine.machines().get(self._machine, ""))
        text = self._describe_edges(version).get(edge, edge)
        return text if version == self._current else f"{text} (v{version})"

    def _describe_edges(self, version: str) -> dict[str, str]:
        if version not in self._known:
            try:
                states = version_view.load_version(self._machine, int(version)).outline.states
            except SignalboxError:
                states = ()
            self._known[version] = {each.id: _describe_edge(each) for state in states for each in state.transitions}
        return self._known[version]


def _describe_edge(transition: TransitionOutline) -> str:
    """Return ``entitle: Waiting → Active`` or ``after 28d: Active → Suspended``."""
    if transition.delay:
        cause = f"after {transition.delay}"
    else:
        cause = ", ".join(transition.events) if transition.cause == "on" else transition.cause
    return f"{cause}: {transition.source} → {transition.target or transition.source}"
