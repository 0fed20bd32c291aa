"""Presents the machines of the overview: one row each, those in trouble first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest, QueryDict
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.shared.counts import StateCount, StateCounts, VersionCounts
from machines.alarms.alarm import Alarm, rank_severity
from machines.catalog.queries import MissingPartitions, count_missing
from machines.engine import Live, QueueStats, Rollout
from machines.insight.statistics.present import Present


@dataclass(frozen=True, slots=True)
class Facts:
    """Holds the figures of one machine.

    ``flow`` and ``refused``: per minute, ``flow`` None without measurements; ``oldest``: ms at which the oldest
    instance entered its state; ``late``: instances over a service level; ``dead``: jobs; ``versions``: the versions of
    its instances.
    """

    flow: float | None
    state: str
    oldest: int | None
    late: int
    dead: int
    refused: int
    missing: MissingPartitions | None = None
    versions: VersionCounts | None = None

    @property
    def pace(self) -> str:
        """Return ``42 /min`` or ``0.3 /min``; a dash without measurements."""
        if self.flow is None:
            return "–"
        return f"{self.flow:,.0f} /min" if self.flow >= 10 or self.flow == 0 else f"{self.flow:.1f} /min"


def summarize(counts: StateCounts, live: Live, rates: Present | None, versions: VersionCounts | None = None) -> Facts:
    """Summarize a machine. The oldest instance is one in a state that is not final."""
    final = {state.name for state in counts.view.outline.states if state.type == "final"}
    waiting = {state: since for state, since in live.oldest.items() if state not in final}
    state = min(waiting, key=lambda name: waiting[name], default="")
    return Facts(
        flow=rates and rates.transitions,
        state=state,
        oldest=waiting.get(state),
        late=sum(live.breaches.values()),
        dead=sum(depth.dead for depth in counts.depths),
        refused=round(sum(rates.refused.values())) if rates else 0,
        missing=count_missing(live.missing),
        versions=versions,
    )


CALM = 9  # the rank of a machine without an alarm
TINTS = ("s-a", "s-b", "s-c", "s-d", "s-e", "s-f")
REST, LATE = "s-rest", "s-late"
WIDTH = 100  # of the bar of states


@dataclass(frozen=True, slots=True)
class Segment:
    """Holds a state in the bar of a machine: where it begins and how wide it is, of ``WIDTH``."""

    block: StateCount
    colour: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class MachineRow:
    """Holds a machine. ``alarms``: those about it, the worst first; ``paused``: its paused queues; ``late``: states
    with instances past a service level."""

    counts: StateCounts
    facts: Facts
    spark: SafeString
    alarms: list[Alarm] = field(default_factory=list)
    paused: list[str] = field(default_factory=list)
    rollout: Rollout | None = None
    late: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.counts.name

    @property
    def alarm(self) -> Alarm | None:
        """Return the worst alarm."""
        return self.alarms[0] if self.alarms else None

    @property
    def more(self) -> int:
        """Return how many alarms there are beside the worst."""
        return max(0, len(self.alarms) - 1)

    @property
    def segments(self) -> list[Segment]:
        return lay_out(self.counts.shown, self.late)

    @property
    def states_text(self) -> str:
        """Return ``New 3, Waiting 37`` for screen readers: all that the list below a bar shows."""
        held = [f"{block.state} {block.count:,}" for block in self.counts.shown]
        left = self.counts.left_out
        return ", ".join([*held, *([f"{left} more state{'s' * (left > 1)}"] if left else [])])


def lay_out(blocks: Iterable[StateCount], late: Set[str] = frozenset()) -> list[Segment]:
    """Lay out the states of a machine side by side, as wide as their counts. Those in ``late`` alone are in colour."""
    blocks = list(blocks)
    total = sum(block.count for block in blocks) or 1
    found, x, tints = [], 0.0, 0
    for block in blocks:
        width = round(WIDTH * block.count / total, 2)
        is_late = not late.isdisjoint((block.state, *block.leaves))
        colour = LATE if is_late else REST if block.final else TINTS[tints % len(TINTS)]
        tints += not block.final
        found.append(Segment(block, colour, round(x, 2), width))
        x += width
    return found


class Figures(NamedTuple):
    """Holds what a machine is sorted by. ``worst``: the rank of its worst alarm; ``oldest``: ms, 0 for none."""

    name: str
    worst: int
    dead: int
    late: int
    instances: int
    rate: float
    refused: float
    oldest: int


def gather_figures(
    lives: Mapping[str, Live], worst: Mapping[str, str], rates: Mapping[str, Present]
) -> dict[str, Figures]:
    """Gather the figures that order the machines. ``worst``: machine -> the severity of its worst alarm."""
    return {name: _gather(name, live, worst.get(name, ""), rates.get(name)) for name, live in lives.items()}


def _gather(name: str, live: Live, severity: str, rates: Present | None) -> Figures:
    return Figures(
        name,
        rank_severity(severity) if severity else CALM,
        sum(places.get("dead", 0) for places in live.queues.values()),
        sum(live.breaches.values()) + live.late,
        live.total,
        rates.transitions if rates else -1.0,
        sum(rates.refused.values()) if rates else 0.0,
        min((at for state, at in live.oldest.items() if live.counts.get(state)), default=0),
    )


class Column(NamedTuple):
    """Describes a column that sorts. ``key``: a smaller one comes first; equal ones are ordered by name."""

    label: str
    key: Callable[[Figures], tuple[float | str, ...]]
    number: bool = True
    title: str = ""


COLUMNS = {
    "trouble": Column(
        "alarm", lambda one: (one.worst, -one.dead, -one.late), False,
        "the worst alarm, then dead jobs, then instances past a service level",
    ),
    "name": Column("machine", lambda one: (one.name.lower(),), False),
    "instances": Column("instances", lambda one: (-one.instances,)),
    "rate": Column("transitions", lambda one: (-one.rate,)),
    "oldest": Column(
        "oldest", lambda one: (not one.oldest, one.oldest), False, "the instance that is longest in a state"
    ),
    "dead": Column("dead", lambda one: (-one.dead,), True, "dead jobs whose instances have not dealt with them"),
    "refused": Column("refused", lambda one: (-one.refused,), True, "refused events per minute"),
    "late": Column("late", lambda one: (-one.late,), True, "instances past a service level"),
}  # fmt: skip
DEFAULT = "trouble"
TERMS = ("sort", "system")
MAX_TERM = 40


@dataclass(frozen=True, slots=True)
class Ordering:
    """Orders machines by a column. ``reverse``: the other way round."""

    column: str = DEFAULT
    reverse: bool = False

    @classmethod
    def parse(cls, text: str) -> Ordering:
        """Read ``dead`` or ``-dead``. Anything else is the default."""
        column = text.removeprefix("-")
        return cls(column, text.startswith("-")) if column in COLUMNS else cls()

    @property
    def text(self) -> str:
        """Say the order in words, for the pager."""
        if self.column == DEFAULT:
            return "least trouble first" if self.reverse else "those in trouble first"
        return f"by {COLUMNS[self.column].label}{', reversed' if self.reverse else ''}"

    def sort(self, figures: Mapping[str, Figures]) -> list[str]:
        named = sorted(figures.values(), key=lambda one: one.name)
        key = COLUMNS[self.column].key
        return [one.name for one in sorted(named, key=key, reverse=self.reverse)]


@dataclass(frozen=True, slots=True)
class Header:
    """Holds a header of the table. ``sorted``: "ascending" or "descending" as ``aria-sort`` has it, else ""."""

    name: str
    column: Column
    url: str
    sorted: str = ""


def list_headers(request: HttpRequest, ordering: Ordering) -> dict[str, Header]:
    """List the headers, each with the address that sorts by it, the other way round if the table is sorted by it."""
    found = {}
    for name, column in COLUMNS.items():
        current = name == ordering.column
        wanted = f"-{name}" if current and not ordering.reverse else name
        descends = (column.number or name == "trouble") != ordering.reverse
        sorted_as = ("descending" if descends else "ascending") if current else ""
        found[name] = Header(
            name, column, address_with(request.GET, sort=None if wanted == DEFAULT else wanted), sorted_as
        )
    return found


def address_with(query: QueryDict, **terms: str | None) -> str:
    """Return the query of this page with other terms, from its first page; None removes one."""
    kept = {name: query[name][:MAX_TERM] for name in TERMS if query.get(name) and name not in terms}
    kept.update((name, text) for name, text in terms.items() if text is not None)
    return f"?{urlencode(kept)}"


def list_paused(queues: Mapping[str, QueueStats]) -> list[str]:
    return sorted(name for name, stats in queues.items() if stats.paused is not None)


def group_alarms(alarms: Iterable[Alarm]) -> dict[str, list[Alarm]]:
    """Return machine -> the alarms about it, in the given order."""
    found: dict[str, list[Alarm]] = {}
    for alarm in alarms:
        for machine in alarm.affected:
            found.setdefault(machine, []).append(alarm)
    return found


SPARKLINE_WIDTH, HEIGHT, EDGE = 96, 22, 2  # units of the drawing; the edge keeps the line's width inside


def draw_sparkline(values: Sequence[float | None], over: str) -> SafeString:
    """Draw rates per minute, the newest last; None leaves a gap. ``over``: the interval in words."""
    known = [value for value in values if value is not None]
    if not known:
        return format_html('<span class="faint">{}</span>', "no data")
    words = describe(values, over)
    return format_html(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>'
        '<path class="base" d="M0 {} H{}"/>'
        '<path d="{}"/></svg>',
        SPARKLINE_WIDTH, HEIGHT, words, words, HEIGHT - EDGE, SPARKLINE_WIDTH, trace(values),
    )  # fmt: skip


def describe(values: Sequence[float | None], over: str) -> str:
    """Return ``transitions per minute over the last hour: 0 to 42, latest 12``, with the steps that have no data."""
    known = [value for value in values if value is not None]
    gaps = len(values) - len(known)
    missing = f", no data in {gaps} of {len(values)} steps" if gaps else ""
    low, high, latest = (_format(value) for value in (min(known), max(known), known[-1]))
    return f"transitions per minute over {over}: {low} to {high}, latest {latest}{missing}"


def trace(values: Sequence[float | None]) -> str:
    """Return the path of the line. A value between two gaps is a dot."""
    high = max([value for value in values if value is not None], default=0) or 1
    step = SPARKLINE_WIDTH / max(1, len(values) - 1)
    parts: list[str] = []
    pen = False
    for place, value in enumerate(values):
        if value is None:
            pen = False
            continue
        x, y = place * step, HEIGHT - EDGE - value / high * (HEIGHT - 2 * EDGE)
        parts.append(f"L{x:.1f} {y:.1f}" if pen else f"M{x:.1f} {y:.1f}h.1")
        pen = True
    return "".join(parts)


def _format(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}".removesuffix(".0")
