"""The difference between two searches, each with an interval of 95 %: what the interval does not tell from 0 is noise.

Shares are compared by Newcombe's interval for two proportions (method 10 of Newcombe 1998, from Wilson's intervals);
medians by the order statistics that bound each of them (binomial), combined in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from . import questions
from .questions import STAYS, VISITED
from .records import Comparison, Difference, Extent, Search
from .selection import select
from .store import Store, get_store

Z = 1.959964  # of a normal distribution, for 95 %
LEAST = 20  # observations on each side below which no difference counts
MOST_STATES = 60  # whose times are compared


def compare(first: Search, second: Search, *, store: Store | None = None) -> Comparison:
    """Compare two searches, which may be of two machines."""
    store = store or get_store()
    (one, visits, steps), (other, other_visits, other_steps) = (_count(search, store) for search in (first, second))
    states = sorted({*visits, *other_visits})
    medians = [_find_medians(search, states, store) for search in (first, second)]
    shares = [
        compare_shares(state, (visits.get(state, 0), one.instances), (other_visits.get(state, 0), other.instances))
        for state in states
    ]
    extent, rows = _cut(one, shares)
    extent, transitions = _cut(extent, _compare_transitions(steps, other_steps))
    return Comparison(
        extent,
        other,
        rows,
        transitions,
        tuple(_compare_times(*medians)),
    )


def _cut(extent: Extent, rows: list[Difference]) -> tuple[Extent, tuple[Difference, ...]]:
    """Leave noise out first."""
    kept = sorted(rows, key=lambda one: one.is_noise) if len(rows) > questions.MOST_ROWS else rows
    return questions.cut(extent, kept)


Steps = dict[tuple[str, str, str], int]  # source, target, event -> number of steps


def _count(search: Search, store: Store) -> tuple[Extent, dict[str, int], Steps]:
    """Count instances by the states that they were in, with regions also by each of several at once, and steps."""
    chosen = select(search, store)
    visits = chosen.ask(
        f"SELECT unnest(list_distinct({VISITED})), sum(n)::BIGINT "
        "FROM (SELECT visited, count(*) AS n FROM {chosen_instances} GROUP BY 1) GROUP BY 1"
    )
    steps = chosen.ask(
        "SELECT source, target, event, count(*) FROM {chosen_steps} WHERE event <> '(create)' GROUP BY 1, 2, 3"
    )
    return chosen.extent(), dict(visits), {(source, target, event): n for source, target, event, n in steps}


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


Median = tuple[int, int, int, int]  # count, median, and the bounds of its interval


def _find_medians(search: Search, states: list[str], store: Store) -> Mapping[str, Median]:
    """Return the medians of the stays with their intervals, which need the counts first."""
    chosen = select(search, store)
    counts = dict(chosen.ask(f"SELECT source, count(*) {STAYS} GROUP BY source"))
    asked = [state for state in states if counts.get(state)][:MOST_STATES]
    if not asked:
        return {}
    parts, values = [], list[str]()
    for state in asked:
        half = Z * math.sqrt(counts[state]) / 2 / counts[state]
        parts.append(
            f"quantile_disc(waited, [{max(0.0, 0.5 - half)}, 0.5, {min(1.0, 0.5 + half)}]) FILTER (source = ?)"
        )
        values.append(state)
    (row,) = chosen.ask(f"SELECT {', '.join(parts)} {STAYS}", before=tuple(values))
    return {state: (counts[state], mid, low, high) for state, (low, mid, high) in zip(asked, row, strict=True)}


def _compare_times(one: Mapping[str, Median], other: Mapping[str, Median]) -> list[Difference]:
    found = []
    for state in sorted({*one} & {*other}):
        (count, p, low_p, high_p), (count_q, q, low_q, high_q) = one[state], other[state]
        low, high = q - p - math.hypot(q - low_q, high_p - p), q - p + math.hypot(high_q - q, p - low_p)
        found.append(Difference(state, p, q, low, high, min(count, count_q) < LEAST or low <= 0 <= high))
    return found
