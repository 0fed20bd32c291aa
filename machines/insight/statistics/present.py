"""Computes current rates: from the last measured minutes and the counters since."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db.models import Sum

from machines.conf.database import PreparedQuery
from machines.engine import Live

from .models import Measurement, SamplingTurn
from .recording import GAP, Counters, Period, WentBack, add_counters, difference, readings

MINUTES = 2  # that were measured and count as now
FLOW_MINUTES = 15  # over which the rate of each transition is computed: one that is rare has a rate, too
LEAST = 20_000  # ms: of a shorter time nothing is said
STORM = 60  # refused events a minute, from which on it needs attention
UNUSUAL = 3  # times what was usual in the last day
DAY = 86_400  # s


@dataclass(frozen=True, slots=True)
class Present:
    """A minute's rates of one machine. ``refused``: by event."""

    transitions: float
    refused: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flow:
    """Counts transitions by ``<version>:<transition>`` in the last ``window`` ms."""

    counted: dict[str, int]
    window: int


@dataclass(frozen=True, slots=True)
class Storm:
    """So many events a minute are refused by a machine: ``events``, the most frequent first."""

    machine: str
    rate: float
    events: list[str]


def select_noisy(lives: Mapping[str, Live]) -> dict[str, Live]:
    """Return the machines that refused enough events, ever, for ``storms`` to say anything of them."""
    return {name: live for name, live in lives.items() if sum(live.refused.values()) * 60_000 >= STORM * LEAST}


def present(lives: Mapping[str, Live], now: int) -> dict[str, Present]:
    """Return machine -> its rates at ``now``, ms by the clock of Redis; those that nobody measured lately are
    missing."""
    return {name: _rates(counted, window) for name, (counted, window) in _count_lately(lives, MINUTES, now).items()}


def recent_flow(live: Live) -> Flow | None:
    """Count the transitions of a machine in the last ``FLOW_MINUTES``; None while nobody measures it."""
    found = _count_lately({live.machine: live}, FLOW_MINUTES, live.now).get(live.machine)
    return found and Flow(dict(found[0].get("edges", {})), found[1])


def _count_lately(lives: Mapping[str, Live], minutes: int, now: int) -> dict[str, tuple[Counters, int]]:
    """Return machine -> what was counted in the last minutes, measured and since, and in how many ms."""
    if not lives:
        return {}
    held = readings(lives)
    measured = _measure(lives, minutes, now)
    found = {}
    for name, live in lives.items():
        if name not in held or not 0 <= now - held[name].at <= GAP:
            continue
        try:
            since = difference({"edges": live.flow, "refused": live.refused}, _of_machine(held[name].counters))
        except WentBack:
            continue
        ms, counted = measured.get(name, (0, {}))
        window = ms + now - held[name].at
        if window >= LEAST:
            found[name] = (add_counters(counted, since), window)
    return found


def last_measured() -> int:
    """Return ms by the clock of Redis; 0 where nobody has measured yet."""
    return next((at for (at,) in _measured_at.rows(1)), 0)


_measured_at = PreparedQuery(SamplingTurn, lambda pk: SamplingTurn.objects.filter(pk=pk).values_list("at"))


def storms(rates: Mapping[str, Present]) -> list[Storm]:
    """Return the machines that refuse more than ``STORM`` events a minute, and far more than they usually do."""
    loud = {name: sum(each.refused.values()) for name, each in rates.items()}
    loud = {name: rate for name, rate in loud.items() if rate >= STORM}
    usual = _read_usual(list(loud)) if loud else {}
    return [
        Storm(name, rate, sorted(rates[name].refused, key=lambda event: -rates[name].refused[event]))
        for name, rate in sorted(loud.items())
        if rate >= UNUSUAL * usual.get(name, 0)
    ]


def _measure(lives: Mapping[str, Live], minutes: int, now: int) -> dict[str, tuple[int, Counters]]:
    """Return machine -> ms that were measured of the last minutes, and what was counted in them."""
    now //= 1000
    rows = Measurement.objects.filter(
        machine__in=list(lives), period=Period.MINUTE, at__gte=now - now % 60 - minutes * 60
    )
    found: dict[str, tuple[int, Counters]] = {}
    for name, ms, numbers in rows.values_list("machine", "covered", "numbers"):
        before, counted = found.get(name, (0, {}))
        found[name] = (before + ms, add_counters(counted, _of_machine(numbers)))
    return found


def _of_machine(numbers: Counters) -> Counters:
    """Return the rates of a machine without its queues."""
    return {name: numbers[name] for name in ("edges", "refused") if name in numbers}


def _rates(counted: Counters, window: int) -> Present:
    refused = {event: count * 60_000 / window for event, count in counted.get("refused", {}).items()}
    return Present(sum(counted.get("edges", {}).values()) * 60_000 / window, refused)


def _read_usual(machines: list[str]) -> dict[str, float]:
    """Return machine -> events refused in a minute of the day before this hour; where nothing is known it is
    missing."""
    last = Measurement.objects.filter(period=Period.HOUR).order_by("-at").values_list("at", flat=True).first() or 0
    rows = Measurement.objects.filter(machine__in=machines, period=Period.HOUR, at__gte=last - DAY, at__lt=last)
    sums = rows.order_by().values_list("machine").annotate(Sum("refused"), Sum("covered"))
    return {name: count * 60_000 / ms for name, count, ms in sums if ms}
