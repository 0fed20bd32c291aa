"""The difference between two searches, each with an interval of 95 %: what the interval does not tell from 0 is noise.

Shares are compared by Newcombe's interval for two proportions (method 10 of Newcombe 1998, from Wilson's intervals);
medians by the order statistics that bound each of them (binomial), combined in the same way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from . import questions
from .questions import STAYS, VISITED
from .records import Comparison, Difference, Extent, Search
from .selection import Selection, select
from .store import Store, get_store

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
