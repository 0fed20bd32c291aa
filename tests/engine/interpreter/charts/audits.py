"""What must be true of all that Redis holds of a machine, whatever happened: counts, indexes, timers, jobs."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from machines.engine import Engine, Instance
from machines.engine.definitions import outline
from tests.engine.jobs.stored_jobs import read_job

from .model import Chart, State
from .rendering import QUEUE, definition_of

PLACES = ("ready", "leased", "delayed", "dead", "handled")
ALL = 10_000


class Audit:
    """``gone`` counts the transitions of instances that were deleted."""

    def __init__(self, engine: Engine, chart: Chart) -> None:
        self.engine, self.chart, self.name = engine, chart, chart.top.name
        self.keys = engine.keys.partition(self.name)
        self.outline = outline(definition_of(chart))
        self.gone: Counter[str] = Counter()

    def instances(self) -> dict[str, Instance]:
        """By a scan of all keys, not by any index."""
        ids = [key.rpartition(":")[2] for key in self._scan("i:*")]
        return {id: self.engine.get(self.name, id) for id in ids}

    def check(self) -> None:
        held = self.instances()
        for instance in held.values():
            assert is_legal(self.chart, instance.configuration)
        self._check_indexes(held)
        self._check_counts(held)
        self._check_timers(held)
        self._check_jobs(held)
        self._check_histories(held)

    def _check_indexes(self, held: dict[str, Instance]) -> None:
        indexed = {key.partition(":in:")[2] for key in self._scan("in:*")}
        assert indexed == {leaf for instance in held.values() for leaf in instance.configuration}
        entered: dict[str, list[float]] = {id: [] for id in held}
        for leaf in indexed:
            places = dict(self.engine.client.zrange(self.keys.state(leaf), 0, -1, withscores=True))
            assert set(places) == {id for id, instance in held.items() if leaf in instance.configuration}
            for id, score in places.items():
                entered[id].append(score)
        assert {id: max(scores) for id, scores in entered.items()} == {id: one.entered for id, one in held.items()}

    def _check_counts(self, held: dict[str, Instance]) -> None:
        live = self.engine.live(self.name)
        active = {id: active_states(self.chart, instance.configuration) for id, instance in held.items()}
        assert live.total == len(held)
        assert {leaf: n for leaf, n in live.counts.items() if n} == Counter(
            leaf for instance in held.values() for leaf in instance.configuration
        )
        counted = self.outline.sum_counts(live.counts)
        for state in self.chart.states.values():
            inside = {id for id, states in active.items() if state in states}
            if state.name in counted:
                assert counted[state.name] == len(inside)
            if state.name in counted and not state.is_history:
                found = self.engine.find(self.name, state=state.name, limit=1000)
                assert sorted(one.id for one in found) == sorted(inside)
        assert sorted(one.id for one in self.engine.find(self.name, limit=1000)) == sorted(held)

    def _check_timers(self, held: dict[str, Instance]) -> None:
        """The partition's lists point at the instances' own. Late are those whose step failed when they were due."""
        awake = [instance for instance in held.values() if instance.suspended is None]
        expected = {(timer.id, one.id): timer.due for one in awake for timer in one.timers}
        waiting, late = self._pointers(self.keys.timers), self._pointers(self.keys.late)
        assert waiting | {pointer: expected[pointer] for pointer in late} == expected
        assert not set(late) & set(waiting)
        assert self.engine.live(self.name).timers == len(expected)

    def _pointers(self, key: str) -> dict[tuple[str, str], float]:
        """(timer, instance) -> score. In a member, a letter before each part of the id says how long it is."""
        scores = self.engine.client.zrange(key, 0, -1, withscores=True)
        parts = {member: member.partition(":") for member, _ in scores}
        return {(re.sub("[a-z]", ".", parts[member][0])[1:], parts[member][2]): score for member, score in scores}

    def _check_jobs(self, held: dict[str, Instance]) -> None:
        """Each job is in exactly one place, and those somebody waits for are those of active states."""
        placed: Counter[str] = Counter()
        for place in PLACES:
            placed.update(self.engine.client.zrange(getattr(self.keys, place)(QUEUE), 0, -1))
        rows = {key.rpartition(":")[2]: read_job(self.engine.client, key) for key in self._scan("job:*")}
        assert placed == Counter(rows.keys())
        for id, instance in held.items():
            states = active_states(self.chart, instance.configuration)
            for job in instance.jobs:
                assert rows[job]["instance"] == id
                assert self.chart.states[rows[job]["invoke"]] in states
        waited = {job for instance in held.values() for job in instance.jobs}
        assert waited == {job for job, row in rows.items() if row["place"] not in ("dead", "handled")}

    def _check_histories(self, held: dict[str, Instance]) -> None:
        told = self.gone.copy()
        for id, instance in held.items():
            steps = self.engine.history(self.name, id, limit=ALL)
            assert [step.revision for step in steps] == list(range(instance.revision, 0, -1))
            assert steps[0].configuration == instance.configuration
            assert all(step.source == older.configuration for step, older in pairwise(steps))
            told += self.taken_by(id)
        assert self.engine.live(self.name).flow == told

    def taken_by(self, id: str) -> Counter[str]:
        steps = self.engine.history(self.name, id, limit=ALL)
        return Counter(f"1:{edge}" for step in steps for edge in step.transitions)

    def _scan(self, end: str) -> list[str]:
        pattern = self.keys.root.replace("{", "[{]") + ":" + end
        return list(self.engine.client.scan_iter(match=pattern, count=1000))


def active_states(chart: Chart, configuration: list[str]) -> set[State]:
    leaves = [chart.states[name] for name in configuration]
    return {state for leaf in leaves for state in [leaf, *leaf.ancestors()]}


def is_legal(chart: Chart, configuration: list[str]) -> bool:
    """SCXML 3.11: one child of each active compound state, all of each parallel one, in document order."""
    active = active_states(chart, configuration)
    if configuration != sorted(configuration, key=lambda name: chart.states[name].order):
        return False
    for state in active:
        inside = [child for child in state.real_children if child in active]
        wanted = {"parallel": len(state.real_children), "compound": 1}.get(state.kind, 0)
        if len(inside) != wanted:
            return False
    return bool(active) and all(chart.states[name].is_leaf for name in configuration)
