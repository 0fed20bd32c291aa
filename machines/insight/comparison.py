"""The difference between two searches, each with an interval of 95 %: what the interval does not tell from 0 is noise.

Shares are compared by Newcombe's interval for two proportions (method 10 of Newcombe 1998, from Wilson's intervals);
medians by the order statistics that bound each of them (binomial), combined in the same way. ``DriftRule``:
alarms of the setting ``INSIGHT_ALARMS``, which compare one window of time with the one before.
"""

import logging
import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass

from machines.conf import conf
from machines.conf.kinds import DRIFT
from machines.engine.definitions.durations import parse_duration

from . import questions
from .errors import BadSearch, InsightOff, StoreUnavailable
from .questions import STAYS, VISITED, drift, path_drift, share_drift
from .records import Comparison, Difference, Drift, Extent, Search
from .selection import Selection, select
from .store import Manifest, Store, get_store

Steps = dict[tuple[str, str, str], int]  # source, target, event -> number of steps
Median = tuple[int, int, int, int]  # count, median, and the bounds of its interval
Z = 1.959964  # of a normal distribution, for 95 %
LEAST = 20  # observations on each side below which no difference counts
MOST_STATES = 60  # whose times are compared


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared: instances by the states that they were in, with regions also by each of several at once; steps;
    and the stays in the states that most left."""

    extent: Extent
    visits: Mapping[str, int]
    steps: Steps
    medians: Mapping[str, Median]


def compare(first: Search, second: Search, *, store: Store | None = None) -> Comparison:
    """Compare two searches, which may be of two machines."""
    store = store or get_store()
    one, other = (_measure(search, store) for search in (first, second))
    shares = [
        compare_shares(
            state,
            (one.visits.get(state, 0), one.extent.instances),
            (other.visits.get(state, 0), other.extent.instances),
        )
        for state in sorted({*one.visits, *other.visits})
    ]
    extent, rows = _cut(one.extent, shares)
    extent, transitions = _cut(extent, _compare_transitions(one.steps, other.steps))
    times = tuple(_compare_times(one.medians, other.medians))
    return Comparison(extent, other.extent, rows, transitions, times)


def _cut(extent: Extent, rows: list[Difference]) -> tuple[Extent, tuple[Difference, ...]]:
    """Leave noise out first."""
    kept = sorted(rows, key=lambda one: one.is_noise) if len(rows) > questions.MOST_ROWS else rows
    return questions.cut(extent, kept)


def _measure(search: Search, store: Store) -> Side:
    """Read one side, once while the facts stay the same: who changes one filter does not wait for the other one."""
    chosen = select(search, store)
    return chosen.remember(("side", search), lambda: _read(chosen))


def _read(chosen: Selection) -> Side:
    rows = chosen.ask(
        "WITH v AS MATERIALIZED (SELECT visited, count(*) AS n FROM {chosen_instances} GROUP BY 1), "
        "s AS (SELECT shape, count(*) AS n, count(waited) AS stays FROM {chosen_rows} GROUP BY 1) "
        "SELECT state, NULL, NULL, sum(n)::BIGINT, 0 FROM "
        f"(SELECT unnest(list_distinct({VISITED})) AS state, n FROM v) GROUP BY 1 "
        "UNION ALL SELECT source, target, event, sum(n)::BIGINT, sum(stays)::BIGINT FROM s JOIN {shapes} USING (shape) "
        "WHERE event <> '(create)' GROUP BY 1, 2, 3"
    )
    steps: Steps = {}
    visits, stays = dict[str, int](), Counter[str]()
    for source, target, event, count, waited in rows:
        if target is None:
            visits[source] = count
        else:
            steps[source, target, event] = count
            stays[source] += waited if source and source != target else 0
    return Side(chosen.extent(), visits, steps, _find_medians(chosen, stays))


def _compare_transitions(*counts: Steps) -> list[Difference]:
    outs: list[dict[str, int]] = [{}, {}]
    for out, count in zip(outs, counts, strict=True):
        for (source, _, _), n in count.items():
            out[source] = out.get(source, 0) + n
    return [
        compare_shares(
            f"{source} → {target} ({event})", (counts[0].get(key, 0), outs[0].get(source, 0)),
            (counts[1].get(key, 0), outs[1].get(source, 0)), key,
        )
        for key in sorted({*counts[0], *counts[1]})
        for source, target, event in [key]
    ]  # fmt: skip


def compare_shares(
    name: str, first: tuple[int, int], second: tuple[int, int], key: tuple[str, str, str] = ("", "", "")
) -> Difference:
    """Compare two shares, each a count and the whole."""
    (a, of_a), (b, of_b) = first, second
    p, q = (a / of_a if of_a else 0.0), (b / of_b if of_b else 0.0)
    (low_p, high_p), (low_q, high_q) = find_interval(a, of_a), find_interval(b, of_b)
    low = q - p - math.hypot(q - low_q, high_p - p)
    high = q - p + math.hypot(high_q - q, p - low_p)
    is_noise = min(of_a, of_b) < LEAST or low <= 0 <= high
    return Difference(name, p, q, max(-1.0, low), min(1.0, high), is_noise, *key)


def find_interval(count: int, whole: int) -> tuple[float, float]:
    """Return Wilson's interval of a share."""
    if not whole:
        return 0.0, 1.0
    share, square = count / whole, Z * Z
    middle = (share + square / (2 * whole)) / (1 + square / whole)
    half = Z / (1 + square / whole) * math.sqrt(share * (1 - share) / whole + square / (4 * whole * whole))
    return max(0.0, middle - half), min(1.0, middle + half)


def _find_medians(chosen: Selection, stays: Counter[str]) -> Mapping[str, Median]:
    """Return the medians of the stays with their intervals. ``stays``: state -> how many."""
    asked = {state: _list_parts(count) for state, count in stays.most_common(MOST_STATES) if count}
    # One list for all states is read faster than one list for each.
    parts = sorted({part for each in asked.values() for part in each})
    if not parts:
        return {}
    found = dict(chosen.ask(f"SELECT source, quantile_disc(waited, {parts}) {STAYS} GROUP BY source"))
    return {
        state: (stays[state], *(found[state][parts.index(part)] for part in each))
        for state, each in asked.items()
        if state in found  # erased meanwhile otherwise
    }


def _list_parts(count: int) -> tuple[float, float, float]:
    """Return where in the order of so many stays their median and the bounds of its interval are."""
    half = Z / 2 / math.sqrt(count)
    return 0.5, max(0.0, 0.5 - half), min(1.0, 0.5 + half)


def _compare_times(one: Mapping[str, Median], other: Mapping[str, Median]) -> list[Difference]:
    found = []
    for state in sorted({*one} & {*other}):
        (count, p, low_p, high_p), (count_q, q, low_q, high_q) = one[state], other[state]
        low, high = q - p - math.hypot(q - low_q, high_p - p), q - p + math.hypot(high_q - q, p - low_p)
        found.append(Difference(state, p, q, low, high, min(count, count_q) < LEAST or low <= 0 <= high))
    return found


log = logging.getLogger(__name__)

DRIFT_PAUSE = 300_000  # ms between two looks


@dataclass(frozen=True, slots=True)
class DriftRule:
    """An alarm where a figure is over ``factor`` times that of one window (ms) earlier: with a ``percent`` that
    quantile of the stays in a state or, of several ``states``, of the time of this path; else the share of the steps
    out of a state that lead to another one or, of more states, of this path. ``text``: as the setting has it."""

    text: str
    percent: str
    machine: str
    states: tuple[str, ...]
    factor: float
    window: int

    def is_broken(self, found: Drift) -> bool:
        """Return whether there is an alarm; fewer than 20 in a window are too few to tell, and a difference of shares
        may be chance."""
        if min(found.count, found.count_before) < LEAST or found.now <= self.factor * found.before:
            return False
        before, now = ((round(share * whole), whole) for share, whole in (
            (found.before, found.count_before), (found.now, found.count)))  # fmt: skip
        return bool(self.percent) or not compare_shares(self.text, before, now).is_noise

    @property
    def is_path(self) -> bool:
        return len(self.states) > (1 if self.percent else 2)

    def measure(self, store: Store) -> Drift:
        search, quantile = Search(self.machine), float(self.percent) / 100 if self.percent else None
        if self.is_path:
            return path_drift(search, self.states, quantile, self.window, store=store)
        if quantile is None:
            return share_drift(search, *self.states, self.window, store=store)
        return drift(search, *self.states, quantile, self.window, store=store)


def list_rules(machines: Container[str]) -> Iterator[DriftRule]:
    """Yield the rules for some machines."""
    for text in conf.INSIGHT_ALARMS:
        if (match := DRIFT.fullmatch(text)) and match["machine"] in machines:
            percent, machine, states, last, factor, window = match.groups("")
            named = tuple(states.split(" > ")) + ((last,) if last else ())
            yield DriftRule(text, percent, machine, named, float(factor), parse_duration(window) or 1)


def measure_drifts(store: Store, machine: str, states: Container[str]) -> dict[str, Sequence[object]]:
    """Return what the manifest holds of each rule for a machine, nothing of one that could not be measured.
    ``states``: the leaves of its current version."""
    found: dict[str, Sequence[object]] = {}
    for rule in list_rules({machine}):
        found[rule.text] = ()
        try:
            found[rule.text] = astuple(rule.measure(store))
        except BadSearch as error:  # it took too long, or asks for what regions do not have
            log.warning("INSIGHT_ALARMS has %r: %s", rule.text, error)
        if missing := [leaf for leaf in ", ".join(rule.states).split(", ") if leaf not in states]:
            log.warning("INSIGHT_ALARMS has %r, but %s has no leaf state %s", rule.text, machine, missing[0])
    return found


def find_drifts(machines: Container[str]) -> Iterator[tuple[DriftRule, Drift]]:
    """Yield the rules for some machines that were broken at the last look; none while the store is away or off."""
    known: dict[str, Manifest] = {}
    with suppress(InsightOff, StoreUnavailable):
        for rule in list_rules(machines):
            if rule.machine not in known:
                known[rule.machine] = get_store().manifest(rule.machine)
            held = known[rule.machine].drifts.get(rule.text)
            if held and rule.is_broken(found := Drift(*held)):
                yield rule, found
