"""The longest time that each kind of call holds the server at very many instances, by its slowlog."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.report import Aim, Row, Section
from benchmarks.room import seeding
from benchmarks.room.fleet import DEFINITIONS, Member
from benchmarks.stage import PREFIX
from machines.engine import Engine

INSTANCES, JOBS, ROUNDS = 200_000, 20_000, 3
BOUND, NOTED = 8.0, 1.0  # ms: at most for a call; from where the slowlog notes one
KEPT = 100_000  # entries of the slowlog
DESK, WORK = "desk-1", "work-1"
Call = Callable[[Any], object]


def reindex(engine: Any) -> None:
    partition = engine.keys.partition(DESK)
    engine.client.hset(partition.meta, "by", "customer:0 total:0")
    engine.reindex(DESK)


def fire_many(engine: Any, count: int = 5000) -> None:
    for event in ("ask", "take", "hold", "answer"):
        engine.fire_many([(DESK, f"{DESK}-{number * 20 + 19:07}", event, {}) for number in range(count)])


def work_off(engine: Any) -> None:
    for queue in range(4):
        jobs = engine.take(WORK, "work", "bench", count=500)
        engine.complete_many([(job, {}) for job in jobs[:250]])
        for job in jobs[250:]:
            engine.fail(job, "not today", retry=bool(queue % 2))
    engine.redrive(WORK, "work", actor="bench", reason="bench")


def export(engine: Any) -> None:
    from machines.engine.transfer.exporting import Export

    with tempfile.TemporaryDirectory() as folder:
        Export(engine.client, engine.keys, WORK, Path(folder) / "work").run()


def dry_run(engine: Any) -> None:
    engine.dry_run(engine.plan(DESK, max(engine.versions(DESK))))


def retire(engine: Any) -> None:
    found = engine.retirement()
    partition = found.partitions(DESK)[0]
    found.read(DESK, partition, "Closed", 2**52, skip=0, limit=200)


CALLS: dict[str, Call] = {
    "reindex": reindex,
    "replay": lambda engine: engine.replay(DESK, 1, 4000),
    "find by an unindexed actor": lambda engine: engine.find(DESK, actor="nobody"),
    "find by unindexed data": lambda engine: engine.find(DESK, state="Open", where={"asked": 77}),
    "find, a thousand of them": lambda engine: engine.find(DESK, state="Open", limit=1000),
    "find by an index": lambda engine: engine.find(DESK, where={"total": {"ge": 3}, "asked": 77}, limit=1000),
    "tally": lambda engine: engine.tally(DESK, actor="nobody", where={"asked": 77}, state="Open"),
    "fire_many": fire_many,
    "dry run": dry_run,
    "counts of versions": lambda engine: engine.version_figures(DESK),
    "survey": lambda engine: [engine.survey(), engine.live(DESK)],
    "jobs": work_off,
    "mending": lambda engine: [engine.mend(WORK), engine.sweep(WORK)],
    "export": export,
    "retirement": retire,
    "simulation, verification": lambda engine: engine.verify(engine.definition(DESK)),
    "timers": lambda engine: engine.tick(DESK),
}


def exercise(url: str, prefix: str) -> dict[str, tuple[float, str]]:
    """Make each call; return the ms for which the longest command of it held the server, in the best round, and its
    name."""
    engine = Engine.from_url(url, prefix=prefix)
    engine.load_library()
    client, found = engine.client, {}
    for title, call in CALLS.items():
        rounds = []
        for _ in range(ROUNDS):
            start_slowlog(client)
            call(engine)
            rounds.append(max(read_slowlog(client), default=(0.0, "")))
        found[title] = min(rounds)
    return found


def start_slowlog(client: Any) -> None:
    client.config_set("slowlog-log-slower-than", int(NOTED * 1000))
    client.config_set("slowlog-max-len", KEPT)
    client.slowlog_reset()


def read_slowlog(client: Any) -> list[tuple[float, str]]:
    """Return ms and name of each function of the library that ran for a millisecond or more."""
    rows = ((row["duration"] / 1000, _name(row["command"])) for row in client.slowlog_get(KEPT))
    return [(ms, name) for ms, name in rows if name.startswith("sb_")]


def measure(one: Any) -> Section:
    with one.engine(1) as engine:
        for member in (Member(DESK, "desk", INSTANCES), Member(WORK, "work", JOBS)):
            engine.publish(member.definition)
            seeding.fill(one.url, member)
        engine.publish({"id": DESK, **DEFINITIONS["desk"], "description": "the same, again"})
        found = exercise(one.url, PREFIX)
    rows = [Row(title, ms, {}, name, "ms") for title, (ms, name) in found.items()]
    title = f"Longest function of a call, {INSTANCES:,} instances in one partition (slowlog)"
    note = f"The best of {ROUNDS} rounds each, from {NOTED:.0f} ms on: other programs share the cores."
    aim = Aim("longest function, ms", BOUND, max(row.rate for row in rows), at_most=True)
    return Section(title, rows, note, [aim])


def _name(command: Any) -> str:
    words = (command.decode(errors="replace") if isinstance(command, bytes) else str(command)).split()
    return words[1] if words[0].startswith("FCALL") else words[0]
