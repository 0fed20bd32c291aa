"""Workers that are killed while they share limits of a queue or of groups whose jobs lie on several partitions."""

import random
from collections import Counter
from typing import Any

import pytest

from machines.engine import Engine
from tests.installation.processes import eventually

from .audit import audit
from .builders import begin, line
from .processes import LONG, Workers

pytestmark = pytest.mark.redis

INSTANCES, PARTITIONS, LIMIT = 300, 6, 3
WORKERS, KILLS = 3, 4


@pytest.mark.parametrize(
    "limits", [{"limited": LIMIT}, {"queues": {"jobs": {"concurrency": LIMIT}}}], ids=["group", "queue"]
)
def test_nothing_passes_its_limit_and_nothing_stands_still_while_workers_are_killed(
    own_engine: Engine, workers: Workers, limits: dict[str, Any]
) -> None:
    engine, dice = own_engine, random.Random(36)
    engine.publish(line("counted", "counted", **limits, partitions=PARTITIONS))
    begin(engine, [f"i{number}" for number in range(INSTANCES)])
    running = [workers.start(concurrency=4) for _ in range(WORKERS)]
    for number in range(1, KILLS + 1):
        wanted = number * INSTANCES // 3
        eventually(lambda wanted=wanted: engine.client.llen("counts") >= wanted, "jobs are done", LONG)
        running.pop(dice.randrange(WORKERS)).kill()
        running.append(workers.start(concurrency=4))
    eventually(lambda: not any(engine.queues("line")["jobs"].values()), "no job is left", LONG)
    for worker in running:
        worker.finish()
    counts = Counter(int(count) for count in engine.client.lrange("counts", 0, -1))
    assert max(counts) <= LIMIT, counts
    found = audit(engine, "line")
    assert found.states == {"done": INSTANCES}
    assert {row["moved"] for row in found.instances.values()} == {"2"}
    assert counts[LIMIT] > 0, "the limit was reached"
