"""Filling the machines: several processes, each in pipelines of engine calls."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.stage import PREFIX, call_many
from machines.engine import Engine

from .fleet import DEAD, PUT_OFF, Member, fleet

PROCESSES = 2
ENTRIES = 100_000  # of the audit, for a million instances
ACTIONS = ("fire", "force", "suspend", "queue.pause", "publish")


@dataclass(frozen=True, slots=True)
class Seeded:
    """``bytes``: what the server holds more than before, of all kinds."""

    members: list[Member]
    instances: int
    calls: int
    took: float
    bytes: int


def seed(url: str, instances: int) -> Seeded:
    engine = Engine.from_url(url, prefix=PREFIX)
    members = fleet(instances)
    for member in members:
        engine.publish(member.definition)
    before, started = _memory(engine), time.perf_counter()
    now = int(time.time() * 1000)
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        orders = [(url, member, now) for member in sorted(members, key=lambda member: -member.size)]
        calls = sum(pool.starmap(_fill, orders, chunksize=1))
    took = time.perf_counter() - started
    held = sum(engine.live(member.name).total for member in members)
    return Seeded(members, held, calls, took, _memory(engine) - before)


def _memory(engine: Engine) -> int:
    return int(engine.client.info("memory")["used_memory"])


def _fill(url: str, member: Member, now: int) -> int:
    engine = Engine.from_url(url, prefix=PREFIX)
    root = engine.keys.partition(member.name).root
    return call_many(engine.client, root, _calls(member, now)) + _spoil(engine, member)


def _calls(member: Member, now: int) -> Iterator[tuple[str | int, ...]]:
    for id, data, came, events in member.instances(now):
        yield "sb_create", id, json.dumps(data), "", "", "bench", "", came
        for place, event in enumerate(events, 1):
            yield "sb_fire", id, event, "", "", "", "bench", "", came + place * 60_000


def fill(url: str, member: Member) -> int:
    """Seed one published machine; answer how many calls that took."""
    return _fill(url, member, int(time.time() * 1000))


def _spoil(engine: Engine, member: Member) -> int:
    """Some jobs end up dead, some are put off."""
    ready = engine.live(member.name).queues.get("work", {}).get("ready", 0)
    for count, retry in ((int(ready * DEAD), False), (int(ready * PUT_OFF), True)):
        for job in engine.take(member.name, "work", "bench", count=count) if count else ():
            engine.fail(job, "the other side does not answer", retry=retry)
    return int(ready * DEAD) + int(ready * PUT_OFF)


def fill_audit(instances: int) -> int:
    """Entries as the audit has them, in the site's database; Django has to be set up."""
    from machines.models import AuditEntry

    count = max(1000, int(ENTRIES * instances / 1_000_000))
    now = datetime.now(UTC)
    for at in range(0, count, 5000):
        AuditEntry.objects.bulk_create(
            AuditEntry(
                at=now - timedelta(seconds=number),
                actor=f"user{number % 40}",
                action=ACTIONS[number % len(ACTIONS)],
                machine=f"desk-{number % 5 + 1}",
                instance=f"desk-{number % 5 + 1}-{number:07}",
                outcome="done" if number % 9 else "refused",
                source="page /x/",
            )
            for number in range(at, min(count, at + 5000))
        )
    return count
