"""What must be true of all that Redis holds of a machine whose instances have several versions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from machines.engine import Engine
from machines.engine.definitions import compile_definition
from tests.engine.jobs.stored_jobs import read_job

PLACES = ("ready", "leased", "delayed", "dead", "handled")


class Version:
    """The states of one version, by index and name."""

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.states = compile_definition(dict(definition)).program["states"]
        self.index = {state["name"]: n for n, state in enumerate(self.states, start=1)}
        self.invoked = {one["id"]: (n, one) for n, s in enumerate(self.states, 1) for one in s.get("invoke", ())}

    def children(self, index: int) -> list[int]:
        return [
            n for n, s in enumerate(self.states, start=1) if s.get("parent", 0) == index and s.get("kind") != "history"
        ]

    def find_active(self, leaves: list[str]) -> set[int]:
        active = set()
        for leaf in leaves:
            index = self.index[leaf]
            assert "kind" not in self.states[index - 1]
            while index:
                active.add(index)
                index = self.states[index - 1].get("parent", 0)
        return active

    def check_configuration(self, leaves: list[str]) -> None:
        """SCXML 3.11: one child of each active compound state, all of each parallel one, in document order."""
        active = self.find_active(leaves)
        assert leaves == sorted(leaves, key=lambda name: self.index[name])
        assert sum(1 for n in self.children(0) if n in active) == 1
        for index in active:
            inside = [child for child in self.children(index) if child in active]
            kind = self.states[index - 1].get("kind")
            assert len(inside) == {"parallel": len(self.children(index)), "compound": 1}.get(kind, 0)


class StorageAudit:
    """Compares indexes, timers, jobs, histories and counters with the hashes of the instances."""

    def __init__(self, engine: Engine, name: str, definitions: Mapping[int, Mapping[str, Any]]) -> None:
        self.engine, self.name, self.redis = engine, name, engine.client
        self.keys = engine.keys.partition(name)
        self.versions = {number: Version(definition) for number, definition in definitions.items()}

    def scan(self, end: str) -> Iterator[str]:
        return self.redis.scan_iter(
            match=self.keys.root.replace("{", "[{]").replace("}", "[}]") + ":" + end, count=1000
        )

    def read(self) -> dict[str, dict[str, str]]:
        """Read all hashes, by a scan and not by an index."""
        start = f"{self.keys.root}:i:"
        return {key.removeprefix(start): self.redis.hgetall(key) for key in self.scan("i:*")}

    def check(self) -> dict[str, dict[str, str]]:
        held = self.read()
        for row in held.values():
            self.version_of(row).check_configuration(row["_state"].split("\n"))
        self.check_indexes(held)
        self.check_timers(held)
        self.check_jobs(held)
        self.check_histories(held)
        self.check_figures(held)
        return held

    def version_of(self, row: Mapping[str, str]) -> Version:
        return self.versions[int(row["_def"].partition(":")[0])]

    def check_indexes(self, held: Mapping[str, Mapping[str, str]]) -> None:
        expected: dict[str, set[str]] = {}
        for id, row in held.items():
            for leaf in row["_state"].split("\n"):
                expected.setdefault(leaf, set()).add(id)
        start = f"{self.keys.root}:in:"
        found = {
            key.removeprefix(start): dict(self.redis.zrange(key, 0, -1, withscores=True)) for key in self.scan("in:*")
        }
        assert {leaf: set(scores) for leaf, scores in found.items()} == expected
        for id, row in held.items():
            scores = {leaf: found[leaf][id] for leaf in row["_state"].split("\n")}
            assert max(scores.values()) == float(row["_entered"]), (id, scores, row)

    def check_timers(self, held: Mapping[str, Mapping[str, str]]) -> None:
        expected = {}
        for id, row in held.items():
            version, own = self.version_of(row), json.loads(row.get("_timers", "[]"))
            active = version.find_active(row["_state"].split("\n"))
            for timer in own:
                if timer[3]:
                    assert timer[3] in active
                    state = version.states[timer[3] - 1]
                    assert timer[2] in [t["events"][0] for t in state.get("transitions", ()) if "delay" in t]
                if "_suspended" not in row:
                    expected[timer[0], id] = float(timer[1])
            of_states = [timer[2] for timer in own if timer[3]]
            assert len(of_states) == len(set(of_states))
        waiting, late = self._pointers(self.keys.timers), self._pointers(self.keys.late)
        assert waiting | {pointer: expected[pointer] for pointer in late} == expected
        assert not set(late) & set(waiting)

    def _pointers(self, key: str) -> dict[tuple[str, str], float]:
        found = {}
        for member, score in self.redis.zrange(key, 0, -1, withscores=True):
            number, _, id = member.partition(":")
            found[re.sub("[a-z]", ".", number)[1:], id] = score
        return found

    def check_jobs(self, held: Mapping[str, Mapping[str, str]]) -> None:
        rows = {key.rpartition(":")[2]: read_job(self.redis, key) for key in self.scan("job:*")}
        placed: Counter[str] = Counter()
        for queue in self.redis.smembers(self.keys.queues):
            for place in PLACES:
                members = self.redis.zrange(getattr(self.keys, place)(queue), 0, -1)
                placed.update(members)
                assert all(rows[job]["queue"] == queue and rows[job]["place"] == place for job in members)
        assert placed == Counter(rows.keys())
        waited = set()
        for id, row in held.items():
            version = self.version_of(row)
            active = version.find_active(row["_state"].split("\n"))
            for job in row.get("_jobs", "").split():
                assert rows[job]["instance"] == id
                state, invoke = version.invoked[rows[job]["invoke"]]
                assert state in active
                assert rows[job]["src"] == invoke["src"]
                assert job not in waited
                waited.add(job)
        assert waited == {job for job, row in rows.items() if row["place"] not in ("dead", "handled")}

    def check_histories(self, held: Mapping[str, Mapping[str, str]]) -> None:
        for id, row in held.items():
            reply = self.redis.fcall("sb_history", 1, self.keys.root, id, 0, -1)
            steps = [json.loads(text) for text in reply[3:]]
            assert [step[0] for step in steps] == list(range(1, int(row["_version"]) + 1))
            last = steps[-1][3]
            assert (last if isinstance(last, list) else [last]) == row["_state"].split("\n")

    def check_figures(self, held: Mapping[str, Mapping[str, str]]) -> None:
        live = self.engine.live(self.name)
        assert live.total == len(held)
        assert {leaf: n for leaf, n in live.counts.items() if n} == Counter(
            leaf for row in held.values() for leaf in row["_state"].split("\n")
        )
        of_versions = Counter(int(row["_def"].partition(":")[0]) for row in held.values())
        figures = {one.version: one.instances for one in self.engine.version_figures(self.name)}
        assert {version: n for version, n in figures.items() if n} == of_versions

    # Comparisons

    def dump(self, id: str) -> dict[str, Any]:
        """Everything that Redis holds of an instance, but for its revision, its history and the undo record."""
        redis, keys = self.redis, self.keys
        row = redis.hgetall(keys.instance(id))
        row.pop("_version", None)
        indexes = {key: redis.zscore(key, id) for key in self.scan("in:*")}
        timers = {m: s for m, s in redis.zrange(keys.timers, 0, -1, withscores=True) if m.endswith(f":{id}")}
        jobs = {job: read_job(redis, keys.job(job)) for job in row.get("_jobs", "").split()}
        places = {
            (job, place): redis.zscore(getattr(keys, place)(of["queue"]), job)
            for job, of in jobs.items()
            for place in PLACES
        }
        return {
            "hash": row, "indexes": {key: score for key, score in indexes.items() if score is not None},
            "timers": timers, "jobs": jobs, "places": places, "held": redis.lrange(keys.held(id), 0, -1),
        }  # fmt: skip
