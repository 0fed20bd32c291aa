"""Jobs in tests: instances that wait for one, and the one place each is in."""

from __future__ import annotations

from collections import Counter
from typing import Any

from machines.engine import Engine, Job
from tests.engine.builders import NOW, errand, publish

from .stored_jobs import read_job

PLACES = ("ready", "leased", "delayed", "dead", "handled")


def busy(engine: Engine, *ids: str, **invoke: Any) -> str:
    """Instances of ``errand`` that wait for their work; the name of the machine."""
    publish(engine, errand(**invoke), *ids)
    for id in ids:
        engine.fire("errand", id, "start", now=NOW)
    return "errand"


def take(engine: Engine, **options: Any) -> list[Job]:
    return engine.take("errand", "work", "w", **({"now": NOW} | options))


def places(engine: Engine, queue: str = "work", name: str = "errand") -> dict[str, str]:
    """Job -> the one place it is in, by the sorted sets; its own hash must say the same."""
    partition = engine.keys.partition(name)
    found = {}
    for place in PLACES:
        for job in engine.client.zrange(getattr(partition, place)(queue), 0, -1):
            assert job not in found, f"{job} is in {found[job]} and in {place}"
            found[job] = place
    hashes = {key.rpartition(":")[2]: read_job(engine.client, key)["place"]
              for key in engine.client.scan_iter(match=f"{partition.root.replace('{', '[{]')}:job:*")}  # fmt: skip
    assert hashes == found
    assert Counter(found.values()) == {p: n for p, n in engine.queues(name)[queue].items() if n}
    return found
