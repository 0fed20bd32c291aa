"""Schedules on a cluster: their instances, what they do and the jobs lie on different nodes."""

from __future__ import annotations

import pytest

from tests.engine.connection import clusters

from .clock import HOUR, NOON, Clock
from .conftest import REPORT


@pytest.fixture
def clock(nodes, prefix) -> Clock:
    with clusters.engine_on(nodes, prefix, 12) as engine:
        engine.publish(REPORT)
        yield Clock(engine)


def test_schedules_of_many_partitions_run_once(clock):
    what = {"do": "create", "machine": "report"}
    names = [clock.put(name=f"s{n}", when={"every": "1h"}, what=what, overlap="skip") for n in range(10)]
    jobs = clock.put(name="jobs", when={"every": "1h"})
    clock.run_until(NOON + 2 * HOUR)
    for name in names:
        assert [run["o"] for run in clock.schedules.history(name)] == ["skipped", "done"]
        assert clock.engine.get("report", f"{name}-20270115T130000Z").state == "open"
    assert len(clock.engine.jobs("report", "make_report")) == clock.schedules.get(jobs).count == 2
    assert [row.name for row in clock.schedules.find()] == sorted([*names, jobs])
