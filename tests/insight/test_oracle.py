"""Figures equal those of pm4py, which computes them from the exported log by code of its own."""

from __future__ import annotations

import io
import json
import random
from collections import Counter
from functools import cache
from itertools import pairwise
from statistics import quantiles
from types import ModuleType

import pytest

from dashboard.demo import traffic
from machines.insight import questions
from machines.insight.discovery import discover
from machines.insight.exports import write_parquet, write_xes
from machines.insight.ingestion import InsightDuty
from machines.insight.records import Search
from tests.installation.processes import ROOT
from tests.retention.conftest import Restless

pytestmark = pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
ALL = Search("order")


@cache
def load_oracle() -> ModuleType:
    """Import pm4py for the first test that asks it: that takes a quarter of the time of collecting all tests."""
    return pytest.importorskip("pm4py")


def draw(seed: int, count: int) -> dict[str, list[tuple[str, int]]]:
    """Histories of a process with loops, branches and cases that are still open."""
    chance, found = random.Random(seed), {}
    follow = {"New": ["Paid", "Paid", "Gone"], "Paid": ["Sent", "Sent", "New", "Held"], "Held": ["Paid", "Gone"]}
    for number in range(count):
        stops, state = [("New", 0)], "New"
        while state in follow and chance.random() > 0.05:
            state = chance.choice(follow[state])
            stops.append((state, chance.randint(1, 10_000)))
        found[f"i{number:04}"] = stops
    return found


@pytest.fixture
def log(store, tell, tmp_path):
    for seed in range(3):
        tell({f"{seed}-{id}": stops for id, stops in draw(seed, 400).items()})
    return read_log(ALL, store, tmp_path, 1200)


def read_log(search, store, folder, count):
    out = io.StringIO()
    assert write_xes(search, out, store=store) == count
    (folder / "log.xes").write_text(out.getvalue())
    return load_oracle().read_xes(str(folder / "log.xes"))


def fold(variant: tuple[str, ...]) -> tuple[str, ...]:
    """Take loops out of a variant, the other way round than the product: from its end, by the last place of each."""
    found, at = [], 0
    while at < len(variant):
        last = len(variant) - 1 - variant[::-1].index(variant[at])
        found.append(variant[at])
        at = last + 1
    return tuple(found)


def count_paths(log) -> Counter[tuple[str, ...]]:
    expected: Counter[tuple[str, ...]] = Counter()
    for variant, count in load_oracle().get_variants(log).items():
        expected[fold(variant)] += count if isinstance(count, int) else len(count)
    return expected


def test_paths_are_the_variants(store, log):
    expected = count_paths(log)
    found = questions.paths(ALL, most=1000, store=store)
    assert {path.states: path.count for path in found.paths} == expected
    assert found.rest == 0


def test_transitions_are_the_directly_follows_graph(store, log):
    follows, starts, ends = load_oracle().discover_dfg(log)
    found = questions.paths(ALL, store=store)
    assert {(one.source, one.target): one.count for one in found.transitions} == dict(follows)
    assert starts == {"New": 1200}
    assert {one.state: one.here for one in found.states if one.here} == dict(ends)


def test_times_are_those_between_the_events(store, log):
    times: dict[tuple[str, str], list[float]] = {}
    for _, case in log.groupby("case:concept:name"):
        rows = list(zip(case["concept:name"], case["time:timestamp"], strict=True))
        for (before, begin), (after, end) in pairwise(rows):
            times.setdefault((before, after), []).append((end - begin).total_seconds() * 1000)
    found = questions.paths(ALL, store=store)
    for one in found.transitions:
        values = sorted(times[one.source, one.target])
        assert (one.wait.count, one.wait.total) == (len(values), sum(values))
        assert one.wait.p50 in values
        low, high = quantiles(values, n=100, method="inclusive")[48], quantiles(values, n=100, method="inclusive")[50]
        assert low <= one.wait.p50 <= high
    durations = load_oracle().get_all_case_durations(log)
    assert sum(path.duration.total for path in found.paths) == round(sum(durations) * 1000)


def test_the_draft_of_a_log_has_its_graph(log, tmp_path):
    follows, _, _ = load_oracle().discover_dfg(log)
    draft = discover((tmp_path / "log.xes").read_text(), least=0.0)
    states = draft.definition["states"]
    edges = {(a, b) for a, state in states.items() for b in state.get("on", {}).values() if a != "Begin" and b != "End"}
    assert (edges, draft.kept) == (set(follows), 1.0)


def test_a_copy_in_parquet_has_every_step(store, log, tmp_path):
    import pandas

    assert write_parquet("order", tmp_path / "copy.parquet", store=store) == len(log)
    assert len(pandas.read_parquet(tmp_path / "copy.parquet")) == len(log)


@pytest.mark.redis
def test_histories_of_the_demo_have_the_same_figures(engine, store, transactional_db, tmp_path, monkeypatch):
    monkeypatch.setattr(traffic, "ACTIVATIONS", 40)
    engine.publish(json.loads((ROOT / "examples" / "activation.json").read_text()))
    story = traffic.Traffic(engine, 1)
    story.populate()
    for _ in range(200):
        story.beat()
    duty, search = InsightDuty(engine, store=store, share=Restless()), Search("activation")
    while duty.run_once():
        pass
    log = read_log(search, store, tmp_path, 40)
    found = questions.paths(search, most=1000, store=store)
    assert {path.states: path.count for path in found.paths} == count_paths(log)
    assert (found.extent.steps, found.extent.lost) == (len(log), 0)
    follows: Counter[tuple[str, str]] = Counter()
    for one in found.transitions:
        follows[one.source, one.target] += one.count
    assert follows == Counter(load_oracle().discover_dfg(log)[0])
    assert len(follows) > 5
