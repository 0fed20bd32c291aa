"""The questions that insight answers. Each takes a ``Search`` and reads the facts, no Redis; figures are exact.

Each raises InsightOff, StoreUnavailable and BadSearch. Names of people stand in ``people`` and nowhere else: who asks
checks whether the asker may see them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

from .errors import BadSearch
from .facts import CREATE, Row
from .records import (
    Bottleneck,
    Bottlenecks,
    Bucket,
    Conformance,
    Deviation,
    Drift,
    Duration,
    Durations,
    Extent,
    Funnel,
    FunnelStage,
    InstancePage,
    Path,
    Paths,
    People,
    PersonFigure,
    Search,
    ServiceLevel,
    ServiceLevels,
    Spread,
    StateFigure,
    TransitionFigure,
)
from .rules import Rules
from .selection import Selection, select
from .store import Store, get_store

MOST_PATHS = 20
MOST_ROWS = 1_000  # of states, or of transitions: regions and computed events make any number
SPREAD = "count({0}), quantile_disc({0}, [0.5, 0.95, 0.99]), sum({0})"
STAYS = "FROM {chosen_steps} WHERE source <> target AND source <> '' AND waited IS NOT NULL"
VISITED = "(string_split(visited, chr(9)) || string_split(replace(visited, ', ', chr(9)), chr(9)))"
"""The states of an instance, and of regions each of several at once; some are there twice."""
ASKED = "WITH asked AS (SELECT ? AS state, ? AS towards, ? AS longest, ? AS now)"
STAYS_IN_REGIONS = f"""{ASKED}, ways AS (SELECT shape, list_contains(string_split(source, ', '), state) AS leaves,
    list_contains(string_split(target, ', '), towards) AS hits FROM {{shapes}}, asked
  WHERE leaves <> list_contains(string_split(target, ', '), state)),
moves AS MATERIALIZED (SELECT n, revision, ms, leaves, hits FROM {{chosen_rows}} JOIN ways USING (shape)),
stays AS (SELECT leaves, hits, ms, lag(leaves) OVER of AS left_before, ms - lag(ms) OVER of AS stay FROM moves
  WINDOW of AS (PARTITION BY n ORDER BY revision))"""
"""Stays in a state that may be one of several, and whether each ended ``towards`` another."""
LEVEL_IN_REGIONS = f"""{STAYS_IN_REGIONS},
entries AS (SELECT n, max(ms) AS since FROM moves GROUP BY n HAVING NOT arg_max(leaves, revision)),
late AS (SELECT count(*) AS late FROM {{chosen_instances}} i LEFT JOIN entries USING (n), asked
  WHERE NOT ended AND list_contains(string_split(i.state, ', '), asked.state)
    AND now - coalesce(since, entered) > longest)
SELECT count(stay), count(stay) FILTER (stay > longest), any_value(late)
FROM late, asked LEFT JOIN stays ON leaves AND NOT left_before"""
"""Those stays, those above a limit, and instances that are late."""
MOST_STAGES = 20
MOST_HELD = 12_000_000  # steps: some 150 MB
MEASURES = {name: name for name in ("actor", "queue", "handler", "worker", "kind")} | {"attempt": "attempt::VARCHAR"}
OF_JOBS = ("queue", "handler", "worker", "attempt")  # those of them that tell how jobs went
STEPS_IN_BUCKETS = 4  # buckets for each power of ten


def paths(search: Search, *, most: int = MOST_PATHS, store: Store | None = None) -> Paths:
    """Answer how instances went: each state and transition, and the commonest ``most`` paths."""
    chosen = select(search, store or get_store())
    return chosen.remember(("paths", search, most), lambda: _list_ways(chosen, most))


def _list_ways(chosen: Selection, most: int) -> Paths:
    extent = chosen.extent()
    stays, steps, keys = _read_steps(chosen, extent)
    found = _list_paths(chosen, extent, most)
    extent, states = cut(extent, _list_states(chosen, extent, stays, steps))
    extent, transitions = cut(extent, _list_transitions(steps, keys))
    leaves = _list_states(chosen, extent, stays, steps, is_split=True) if extent.has_regions else []
    return Paths(extent, states, transitions, *found, tuple(leaves[:MOST_ROWS]))


def cut(extent: Extent, rows: Sequence[Any]) -> tuple[Extent, tuple[Any, ...]]:
    """Keep the first rows, and count the others in the extent."""
    return replace(extent, left_out=extent.left_out + max(0, len(rows) - MOST_ROWS)), tuple(rows[:MOST_ROWS])


Keys = dict[tuple[str, str, str], dict[str, None]]  # source, target, event -> keys of transitions


def _read_steps(chosen: Selection, extent: Extent) -> tuple[dict[str, Row], list[Row], Keys]:
    """Return the stays by state, the steps by source, target and event, the most frequent first, and the transitions of
    these. The steps are read from the files once, unless they are too many to be held."""
    held = "" if extent.steps <= MOST_HELD else "NOT "
    columns = "source, target, event, version, transitions"
    rows = chosen.ask(
        f"WITH s AS {held}MATERIALIZED (SELECT shape, waited FROM {{chosen_rows}}), "
        f"places AS MATERIALIZED (SELECT shape, {columns}, source <> target AND source <> '' AS is_stay, "
        "dense_rank() OVER (ORDER BY source) AS origin, "
        "dense_rank() OVER (ORDER BY source, target, event) AS place FROM {shapes}), "
        f"stays AS (SELECT origin, {SPREAD.format('waited')} FROM s JOIN places USING (shape) "
        "WHERE is_stay AND waited IS NOT NULL GROUP BY origin), "
        f"steps AS (SELECT place, count(*), {SPREAD.format('waited')} FROM s JOIN places USING (shape) GROUP BY place) "
        "SELECT 0, source, '', '', 0, '', 0, * EXCLUDE (origin, source) FROM stays "
        "JOIN (SELECT DISTINCT origin, source FROM places) USING (origin) "
        "UNION ALL SELECT 1, source, target, event, 0, '', * EXCLUDE (place, source, target, event) FROM steps "
        "JOIN (SELECT DISTINCT place, source, target, event FROM places) USING (place) "
        f"UNION ALL SELECT DISTINCT 2, {columns}, 0, 0, NULL, 0 FROM (SELECT DISTINCT shape FROM s) "
        "JOIN places USING (shape) ORDER BY 1, 2, 3, 4, 5, 6"
    )
    stays: dict[str, Row] = {}
    steps: list[Row] = []
    keys: Keys = {}
    for part, *place, version, taken, count, found, quantiles, total in rows:
        spread = (found, quantiles, total)
        if part == 0:
            stays[place[0]] = spread
        elif part == 1:
            steps.append((*place, count, *spread))
        else:
            keys.setdefault(tuple(place), {}).update((f"{version}:{one}", None) for one in taken.split())
    return stays, sorted(steps, key=lambda row: (-row[3], *row[:3])), keys


def _list_states(
    chosen: Selection, extent: Extent, stays: Mapping[str, Row], steps: Sequence[Row], *, is_split: bool = False
) -> list[StateFigure]:
    """List the figures of the states. ``is_split``: of each leaf of the configurations."""
    entries: Counter[str] = Counter()
    for source, target, event, count, *_ in steps:
        before, after = ({*text.split(", ")} if is_split else {text} for text in (source, target))
        entries.update(dict.fromkeys(after if event == CREATE else after - before, count))
    split = (lambda column: f"replace({column}, ', ', chr(9))") if is_split else str
    rows = chosen.ask(
        "WITH i AS MATERIALIZED (SELECT state, visited, ended IS NULL AS is_gone, count(*) AS n "
        "FROM {chosen_instances} GROUP BY ALL), "
        f"visits AS (SELECT unnest(list_distinct(string_split({split('visited')}, chr(9)))) AS state, "
        "sum(n)::BIGINT AS instances FROM i GROUP BY 1), "
        f"here AS (SELECT unnest(string_split({split('state')}, chr(9))) AS state, sum(n)::BIGINT AS here FROM i "
        "WHERE NOT is_gone GROUP BY 1) "
        "SELECT state, instances, coalesce(here, 0) FROM visits LEFT JOIN here USING (state) ORDER BY 2 DESC, 1"
    )
    return [
        StateFigure(
            state, instances, divide(instances, extent.instances), entries[state], here, make_spread(stays.get(state))
        )
        for state, instances, here in rows
    ]


def _list_transitions(steps: Sequence[Row], keys: Keys) -> list[TransitionFigure]:
    outs: Counter[str] = Counter()
    for source, _, _, count, *_ in steps:
        outs[source] += count
    return [
        TransitionFigure(
            source, target, event, tuple(keys[source, target, event]), count, divide(count, outs[source]),
            make_spread(spread),
        )
        for source, target, event, count, *spread in steps
        if event != CREATE
    ]  # fmt: skip


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
    buckets: dict[str, list[Bucket]] = {}
    for state, index, count in chosen.ask(
        f"SELECT source, {step}::INTEGER AS b, count(*) {STAYS} GROUP BY ALL ORDER BY 1, 2"
    ):
        buckets.setdefault(state, []).append(Bucket(_edge(index), _edge(index + 1), count))
    rows = chosen.ask(f"SELECT source, {SPREAD.format('waited')} {STAYS} GROUP BY source ORDER BY sum(waited) DESC, 1")
    found = [Duration(state, make_spread(spread), tuple(buckets[state])) for state, *spread in rows]
    return Durations(*cut(chosen.extent(), found))


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


def funnel(search: Search, states: Sequence[str], within: int | None = None, *, store: Store | None = None) -> Funnel:
    """Answer how many reach these states one after the other; ``within``: ms from the first to the last. Of each the
    first entry after the state before counts."""
    if len(states) < 2 or len(set(states)) < len(states):
        raise BadSearch("a funnel has two states or more, each once")
    chosen = select(search, store or get_store())
    parts, values = _reach(states, within, "{chosen_steps}")
    rows = " UNION ALL ".join(
        f"SELECT {index}, count(*), {SPREAD.format('wait')} FROM e{index}" for index in range(1, len(states))
    )
    sql = f"WITH {parts} SELECT 0, count(*), 0, NULL, 0 FROM e0 UNION ALL {rows} ORDER BY 1"
    found = chosen.ask(sql, *values)
    stages: list[FunnelStage] = []
    for (_, count, *spread), state in zip(found, states, strict=True):
        first, previous = (stages[0].instances, stages[-1].instances) if stages else (count, count)
        stages.append(FunnelStage(state, count, divide(count, first), divide(count, previous), make_spread(spread)))
    return Funnel(chosen.extent(), within, tuple(stages))


def _reach(states: Sequence[str], within: int | None, steps: str) -> tuple[str, list[Any]]:
    """Return expressions ``e0``, ``e1`` and so on with the instances that reached each state, and their values."""
    if len(states) > MOST_STAGES:
        raise BadSearch(f"a funnel has at most {MOST_STAGES} states")
    parts = [
        "e0 AS MATERIALIZED (SELECT n, min(revision) AS revision, arg_min(ms, revision) AS ms "
        f"FROM {steps} WHERE target = ? AND (source <> target OR event = '(create)') GROUP BY n)"
    ]
    for index in range(1, len(states)):
        limit = " AND s.ms <= b.begin + ?" if within is not None else ""
        before = "(SELECT *, ms AS begin FROM e0)" if index == 1 else f"e{index - 1}"
        parts.append(
            f"e{index} AS MATERIALIZED (SELECT b.n, min(s.revision) AS revision, arg_min(s.ms, s.revision) AS ms, "
            "any_value(b.begin) AS begin, arg_min(s.ms, s.revision) - any_value(b.ms) AS wait "
            f"FROM {{steps}} s JOIN {before} b ON s.n = b.n AND s.revision > b.revision "
            f"WHERE s.target = ? AND s.source <> s.target{limit} GROUP BY b.n)"
        )
    values: list[Any] = [states[0]]
    for state in states[1:]:
        values += [state] if within is None else [state, within]
    return ", ".join(parts), values


def bottlenecks(search: Search, *, now: int | None = None, store: Store | None = None) -> Bottlenecks:
    """Answer where instances spend their time: stays that ended, and those that last, up to ``now`` (ms)."""
    chosen = select(search, store or get_store())
    stays = {row[0]: row[1:] for row in chosen.ask(f"SELECT source, {SPREAD.format('waited')} {STAYS} GROUP BY source")}
    at = chosen.manifest.read_up_to if now is None else now
    waiting = {
        state: (count, int(total))
        for state, count, total in chosen.ask(
            "SELECT state, count(*), sum(greatest(0, ? - entered)) FROM {chosen_instances} WHERE NOT ended GROUP BY 1",
            before=(at,),
        )
    }
    rows = []
    for state in {*stays, *waiting}:
        stay, (count, open_) = make_spread(stays.get(state)), waiting.get(state, (0, 0))
        rows.append((state, stay.total + open_, count, stay))
    whole = sum(row[1] for row in rows)
    found = [Bottleneck(state, total, divide(total, whole), count, stay) for state, total, count, stay in rows]
    return Bottlenecks(*cut(chosen.extent(), sorted(found, key=lambda one: (-one.total, one.state))))


def people(search: Search, by: str = "actor", *, most: int = 200, store: Store | None = None) -> People:
    """Answer who or what takes the steps and how long these waited before: ``by`` is actor, queue, handler, worker,
    attempt or kind."""
    measure, chosen = _find_measure(by), select(search, store or get_store())
    times = ", ".join(
        map(SPREAD.format, ("waited", "queued", "ran", "nullif(retried, 0)")[: 4 if by in OF_JOBS else 1])
    )
    rows = chosen.ask(
        f"SELECT count(*) OVER (), coalesce({measure}, ''), count(*), count(DISTINCT n), "
        f"count(*) FILTER (kind = 'job failed'), {times} FROM {{chosen_steps}} "
        f"WHERE {'queue' if by in ('worker', 'attempt') else measure} <> '' GROUP BY 2 ORDER BY 3 DESC, 2 LIMIT ?",
        most,
    )
    extent = replace(chosen.extent(), left_out=rows[0][0] - len(rows) if rows else 0)
    found = (
        PersonFigure(name, steps, n, failed, *(make_spread(spreads[at : at + 3]) for at in range(0, len(spreads), 3)))
        for _, name, steps, n, failed, *spreads in rows
    )
    return People(extent, by, tuple(found))


def _find_measure(by: str) -> str:
    if by not in MEASURES:
        raise BadSearch(f"there is no measure {by!r}; there are {', '.join(MEASURES)}")
    return MEASURES[by]


def service_levels(
    search: Search, limits: Mapping[str, int], *, now: int | None = None, store: Store | None = None
) -> ServiceLevels:
    """Answer how many stays in each state were, or are, longer than a limit in ms."""
    chosen = select(search, store or get_store())
    at, extent = chosen.manifest.read_up_to if now is None else now, chosen.extent()
    found = []
    for state, limit in limits.items():
        if limit < 0:
            raise BadSearch(f"the limit of {state} is below 0")
        if extent.has_regions:
            ((stays, missed, late),) = chosen.ask(LEVEL_IN_REGIONS, before=(state, "", limit, at))
            found.append(ServiceLevel(state, limit, stays, missed, divide(missed, stays), late))
            continue
        ((stays, missed),) = chosen.ask(
            f"SELECT count(*), count(*) FILTER (waited > ?) {STAYS} AND source = ?", state, before=(limit,)
        )
        ((late,),) = chosen.ask(
            "SELECT count(*) FROM {chosen_instances} WHERE state = ? AND NOT ended AND ? - entered > ?",
            state, at, limit,
        )  # fmt: skip
        found.append(ServiceLevel(state, limit, stays, missed, divide(missed, stays), late))
    return ServiceLevels(extent, tuple(found))


class Figure(TypedDict, total=False):
    """The figure that instances are behind: those that were in a state, took a transition (source, target, event),
    went a path, reached all ``stages`` of a funnel ``within`` ms, or have a step of a ``measure`` with a value
    (``queue``, its name)."""

    state: str
    transition: tuple[str, str, str]
    path: Sequence[str]
    stages: Sequence[str]
    within: int | None
    measure: tuple[str, str]


def list_instances(
    search: Search, *, limit: int = 100, after: str = "", store: Store | None = None, **figure: Unpack[Figure]
) -> InstancePage:
    """List the instances behind a figure; without one, all of the search."""
    chosen = select(search, store or get_store())
    terms, values = ["true"], list[Any]()
    if state := figure.get("state"):
        terms.append(f"list_contains({VISITED}, ?)")
        values.append(state)
    if transition := figure.get("transition"):
        terms.append("n IN (SELECT n FROM {steps} WHERE source = ? AND target = ? AND event = ?)")
        values += transition
    if (path := figure.get("path")) is not None:
        terms.append("path = ?")
        values.append("\t".join(path))
    if stages := figure.get("stages"):
        reached, given = _reach(stages, figure.get("within"), "{steps}")
        terms.append(f"n IN (WITH {reached} SELECT n FROM e{len(stages) - 1})")
        values += given
    if measure := figure.get("measure"):
        terms.append(f"n IN (SELECT n FROM {{steps}} WHERE {_find_measure(measure[0])} = ?)")
        values.append(measure[1])
    where = f"FROM {{chosen_instances}} WHERE {' AND '.join(terms)}"
    ((total,),) = chosen.ask(f"SELECT count(*) {where}", *values)
    rows = chosen.ask(
        f"SELECT DISTINCT instance {where} AND instance > ? ORDER BY 1 LIMIT ?", *values, after, limit + 1
    )
    ids = tuple(id for (id,) in rows[:limit])
    return InstancePage(total, ids, ids[-1] if len(rows) > limit else "")


def drift(
    search: Search, state: str, quantile: float, window: int, *, now: int | None = None, store: Store | None = None
) -> Drift:
    """Compare a quantile of the stays in a state that ended in the latest ``window`` (ms) with those of the window
    before. The input of an alarm such as *p95 of Paying over 2 x last week*."""
    figure, place = f"quantile_disc(stay, {_check_quantile(quantile)})", "stay IS NOT NULL"
    return _measure_stays(select(search, store or get_store()), state, "", figure, place, window, now)


def share_drift(
    search: Search, source: str, target: str, window: int, *, now: int | None = None, store: Store | None = None
) -> Drift:
    """Do the same for the share of the steps out of a state that lead to another one; with the state itself as
    ``target``, of all steps from it."""
    figure = "count(*) FILTER (hits) / count(*)"
    return _measure_stays(select(search, store or get_store()), source, target, figure, "true", window, now)


def path_drift(
    search: Search, path: Sequence[str], quantile: float | None, window: int, *, now: int | None = None,
    store: Store | None = None,
) -> Drift:  # fmt: skip
    """Do the same for a path, of the instances that ended in a window: for a quantile of its time, or without one for
    its share."""
    chosen, figure, place = select(search, store or get_store()), "count(*) FILTER (path = ?) / count(*)", "true"
    if quantile is not None:
        figure, place = f"quantile_disc(last - first, {_check_quantile(quantile)})", "path = ?"
    is_latest, is_near = _choose_windows(chosen, "last", window, now)
    sql = f"SELECT {is_latest}, count(*), {figure} FROM instances WHERE {place} GROUP BY 1"
    ended = f"WITH instances AS (FROM {{chosen_instances}} WHERE ended AND {is_near})"
    return _make_drift(" > ".join(path), chosen.ask(f"{ended} {sql}", "\t".join(path)))


def _measure_stays(
    chosen: Selection, state: str, target: str, figure: str, place: str, window: int, now: int | None
) -> Drift:
    is_latest, is_near = _choose_windows(chosen, "ms", window, now)
    stays = (
        f"{ASKED}, ways AS (SELECT shape, target = towards AS hits, source <> target AS leaves FROM {{shapes}}, asked "
        "WHERE source = state AND (source <> target OR state = towards)), stays AS (SELECT hits, ms, "
        "CASE WHEN leaves THEN waited END AS stay FROM {chosen_rows} JOIN ways USING (shape))"
    )
    if ", " not in state + target and chosen.extent().has_regions:
        if state == target:
            raise BadSearch(f"a step of another region stays in {state}, too: ask about one that leaves it")
        stays, place = STAYS_IN_REGIONS, f"leaves AND NOT left_before AND {place}"
    sql = f"{stays} SELECT {is_latest}, count(*), {figure} FROM stays WHERE {place} AND {is_near} GROUP BY 1"
    return _make_drift(state, chosen.ask(sql, before=(state, target, 0, 0)))


def _check_quantile(quantile: float) -> float:
    if not 0 < quantile < 1:
        raise BadSearch("a quantile lies between 0 and 1")
    return float(quantile)


def _choose_windows(chosen: Selection, ms: str, window: int, now: int | None) -> tuple[str, str]:
    """Return the conditions for the latest window, and for that and the one before."""
    if window <= 0:
        raise BadSearch("a window is longer than 0 ms")
    at = chosen.manifest.read_up_to if now is None else int(now)
    return f"{ms} > {at - int(window)}", f"{ms} > {at - 2 * int(window)} AND {ms} <= {at}"


def _make_drift(name: str, rows: Sequence[Row]) -> Drift:
    found = {is_latest: (count, value) for is_latest, count, value in rows}
    (count, value), (count_before, value_before) = found.get(True, (0, 0)), found.get(False, (0, 0))
    return Drift(name, value, value_before, count, count_before)


def conformance(
    search: Search, load: Callable[[int], Mapping[str, Any] | None], *, most: int = 100, store: Store | None = None
) -> Conformance:
    """Answer which steps the definition of their version does not have. ``load``: returns the definition of a version,
    None where it is gone. A step of the engine itself, such as a repair, is no deviation."""
    chosen = select(search, store or get_store())
    rows = chosen.ask(
        "SELECT version, source, target, event, transitions, count(*), min(n) FROM {chosen_steps} "
        "WHERE event NOT LIKE '(%' GROUP BY ALL ORDER BY ALL"
    )
    models: dict[int, Rules | None] = {}
    wrong, unchecked = [], 0
    deviations: dict[tuple[int, str, str, str], tuple[int, int]] = {}
    for version, source, target, event, taken, count, n in rows:
        if version not in models:
            definition = load(version)
            models[version] = None if definition is None else Rules.of(definition)
        rules = models[version]
        if rules is None or not source:
            unchecked += count
        elif not rules.allows_step(source.split(", "), target.split(", "), event, taken.split()):
            wrong.append((version, source, target, event, taken))
            before, example = deviations.get(wrong[-1][:4], (0, n))
            deviations[wrong[-1][:4]] = before + count, min(example, n)
    shown = sorted(deviations.items(), key=lambda item: (-item[1][0], item[0]))[:most]
    extent, deviating, names = chosen.extent(), 0, dict[int, str]()
    if wrong:
        kinds = ", ".join(f"unnest(?::{type}[])" for type in ("INTEGER", *["VARCHAR"] * 4))
        ((deviating,),) = chosen.ask(
            "SELECT count(DISTINCT n) FROM {chosen_steps} WHERE (version, source, target, event, transitions) IN "
            f"(SELECT ({kinds}))", *map(list, zip(*wrong, strict=True))
        )  # fmt: skip
        names = dict(
            chosen.ask("SELECT n, instance FROM {chosen_instances} WHERE list_contains(?::INTEGER[], n)",
                       [n for _, (_, n) in shown])
        )  # fmt: skip
    found = tuple(Deviation(*step, count, names.get(n, "")) for step, (count, n) in shown)
    return Conformance(extent, extent.instances - deviating, unchecked, found)
