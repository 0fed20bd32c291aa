"""The questions that insight answers. Each takes a ``Search`` and reads the facts, no Redis; figures are exact.

Each raises InsightOff, StoreUnavailable and BadSearch. Names of people stand in ``people`` and nowhere else: who asks
checks whether the asker may see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .records import (
    Bucket,
    Duration,
    Durations,
    Extent,
    Path,
    Paths,
    Search,
    Spread,
    StateFigure,
    TransitionFigure,
)
from .selection import Selection, select
from .store import Store, get_store

MOST_PATHS = 20
SPREAD = "count({0}), quantile_disc({0}, [0.5, 0.95, 0.99]), sum({0})"
STEPS_IN_BUCKETS = 4  # buckets for each power of ten


def paths(search: Search, *, most: int = MOST_PATHS, store: Store | None = None) -> Paths:
    """Answer how instances went: each state and transition, and the commonest ``most`` paths."""
    chosen = select(search, store or get_store())
    extent = chosen.extent()
    stays = {
        source: spread
        for source, *spread in chosen.ask(f"SELECT source, {SPREAD.format('waited')} FROM {{chosen_steps}} "
            "WHERE source <> target AND source <> '' GROUP BY source")
    }  # fmt: skip
    return Paths(
        extent,
        tuple(_list_states(chosen, extent, stays)),
        tuple(_list_transitions(chosen)),
        *_list_paths(chosen, extent, most),
    )


def _list_states(chosen: Selection, extent: Extent, stays: dict[str, Sequence[Any]]) -> list[StateFigure]:
    rows = chosen.ask(
        "WITH entries AS (SELECT target AS state, count(*) AS entries FROM {chosen_steps} "
        "WHERE source <> target OR event = '(create)' GROUP BY target), "
        "visits AS (SELECT unnest(string_split(visited, chr(9))) AS state, count(*) AS instances "
        "FROM {chosen_instances} GROUP BY 1), "
        "here AS (SELECT state, count(*) AS here FROM {chosen_instances} GROUP BY state) "
        "SELECT state, coalesce(instances, 0), coalesce(entries, 0), coalesce(here, 0) FROM visits "
        "FULL JOIN entries USING (state) FULL JOIN here USING (state) ORDER BY 2 DESC, 1"
    )
    return [
        StateFigure(state, instances, divide(instances, extent.instances), entries, here, make_spread(stays.get(state)))
        for state, instances, entries, here in rows
    ]


def _list_transitions(chosen: Selection) -> list[TransitionFigure]:
    rows = chosen.ask(
        "SELECT source, target, event, count(*), sum(count(*)) OVER (PARTITION BY source), "
        f"list_sort(list(DISTINCT version || ':' || transitions)), {SPREAD.format('waited')} "
        "FROM {chosen_steps} WHERE event <> '(create)' GROUP BY source, target, event ORDER BY 4 DESC, 1, 2, 3"
    )
    return [
        TransitionFigure(
            source, target, event, tuple(_split_keys(keys)), count, divide(count, out), make_spread(spread)
        )
        for source, target, event, count, out, keys, *spread in rows
    ]


def _split_keys(keys: Sequence[str]) -> list[str]:
    """Return ``<version>:<transition>`` for each transition of steps that took several at once."""
    found = (key.partition(":") for key in keys)
    return list(dict.fromkeys(f"{version}:{one}" for version, _, taken in found for one in taken.split()))


def _list_paths(chosen: Selection, extent: Extent, most: int) -> tuple[tuple[Path, ...], int, int]:
    """Return the commonest paths, and instances and number of the others."""
    rows = chosen.ask(
        "SELECT path, count(*) AS found, count(*) FILTER (loops > 0), sum(loops), count(*) FILTER (ended), "
        "count(*) FILTER (ended), quantile_disc(last - first, [0.5, 0.95, 0.99]) FILTER (ended), "
        "sum(last - first) FILTER (ended), count(*) OVER () FROM {chosen_instances} GROUP BY path "
        "ORDER BY found DESC, path LIMIT ?",
        most,
    )
    found = tuple(
        Path(tuple(path.split("\t")), count, divide(count, extent.instances), looped, int(loops), ended,
             make_spread(spread))
        for path, count, looped, loops, ended, *spread, _ in rows
    )  # fmt: skip
    rest = extent.instances - sum(path.count for path in found)
    return found, rest, (rows[0][-1] if rows else 0) - len(found)


def durations(search: Search, *, store: Store | None = None) -> Durations:
    """Answer how long stays in each state were, as distributions."""
    chosen = select(search, store or get_store())
    step = f"greatest(-1, floor(log10(greatest(waited, 0.1)) * {STEPS_IN_BUCKETS}))"
    stays = "FROM {chosen_steps} WHERE source <> target AND source <> '' AND waited IS NOT NULL"
    buckets: dict[str, list[Bucket]] = {}
    for state, index, count in chosen.ask(
        f"SELECT source, {step}::INTEGER AS b, count(*) {stays} GROUP BY ALL ORDER BY 1, 2"
    ):
        buckets.setdefault(state, []).append(Bucket(_edge(index), _edge(index + 1), count))
    rows = chosen.ask(f"SELECT source, {SPREAD.format('waited')} {stays} GROUP BY source ORDER BY sum(waited) DESC, 1")
    found = (Duration(state, make_spread(spread), tuple(buckets[state])) for state, *spread in rows)
    return Durations(chosen.extent(), tuple(found))


def _edge(index: int) -> int:
    return 0 if index < 0 else -(-(10 ** (index / STEPS_IN_BUCKETS)) // 1).__int__()


def divide(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def make_spread(found: Sequence[Any] | None) -> Spread:
    """Make a spread of count, quantiles and sum."""
    if not found or not found[0]:
        return Spread()
    count, (p50, p95, p99), total = found
    return Spread(count, p50, p95, p99, int(total))
