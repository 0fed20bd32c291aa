"""Insight at ten million steps of a million instances: time to answer, bytes a step, and what reading steps costs.

python -m benchmarks.insight                      # some minutes and 300 MB of disk
python -m benchmarks.insight --instances 100000   # a tenth
python -m benchmarks.insight --read 20000         # beside that, steps are read from the Redis of the settings
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
django.setup()

from django.conf import settings  # noqa: E402

from machines.connections import get_engine  # noqa: E402
from machines.engine import Engine  # noqa: E402
from machines.insight import questions  # noqa: E402
from machines.insight.comparison import compare  # noqa: E402
from machines.insight.ingestion import InsightDuty  # noqa: E402
from machines.insight.records import Search  # noqa: E402
from machines.insight.store import Store  # noqa: E402

STEPS = 10  # of an instance
WAITED = "(exp(hash(i * 13) % 1000 / 72))::BIGINT * 10"
VISITED = "\t".join(f"State{number}" for number in range(STEPS))
STEP_ROWS = f"""SELECT (i // {STEPS} + 1)::INTEGER n, (i % {STEPS} + 1)::INTEGER revision,
  (1.7e12 + (i // {STEPS}) * 700 + i % {STEPS} * 60000 + hash(i) % 50000)::BIGINT ms,
  CASE i % {STEPS} WHEN 0 THEN '(create)' ELSE 'event' || (hash(i * 7) % 12) END event,
  CASE i % {STEPS} WHEN 0 THEN '' ELSE 'State' || (i % {STEPS} - 1) END source, 'State' || (i % {STEPS}) target,
  't' || (hash(i * 3) % 20) transitions, {WAITED} waited,
  CASE WHEN hash(i * 5) % 10 < 3 THEN 'user' || (hash(i * 11) % 50) ELSE '' END actor, 1::INTEGER AS version,
  CASE hash(i * 17) % 3 WHEN 0 THEN 'timer' WHEN 1 THEN 'job' ELSE 'person' END kind,
  CASE kind WHEN 'job' THEN 'queue' || (hash(i * 19) % 5) ELSE '' END queue, '' handler,
  CASE kind WHEN 'job' THEN 'host-' || (hash(i * 23) % 40) || '-4711-abcdef' ELSE '' END worker,
  CASE kind WHEN 'job' THEN 1 + (hash(i * 29) % 20 // 19) END::INTEGER attempt,
  CASE kind WHEN 'job' THEN hash(i * 31) % 5000 END::BIGINT queued,
  CASE attempt WHEN 2 THEN hash(i * 37) % 60000 WHEN 1 THEN 0 END::BIGINT retried,
  CASE kind WHEN 'job' THEN (exp(hash(i * 41) % 1000 / 100))::BIGINT END ran
  FROM range({{0}}, {{1}}) t(i)"""
INSTANCE_ROWS = """SELECT i::INTEGER n, 'order-' || (hash(i) % 10000000) || '-' || i instance,
  (1.7e12 + i * 700)::BIGINT created, 10::INTEGER revision, created AS first, created + (hash(i) % 9000000)::BIGINT AS
  "last", created entered, 'State9' state, (1 + hash(i * 3) % 3)::INTEGER AS version, true ended,
  'State0' || chr(9) || 'State' || (hash(i * 5) % 50) AS path, '{1}' visited, 0::INTEGER loops,
  10::INTEGER steps, 0::INTEGER lost, '{{"region": "' || (hash(i * 9) % 8) || '"}}' AS data, '' tags
  FROM range(1, {0}) t(i)"""


def fill(store: Store, instances: int) -> None:
    new = known = store.manifest("order")
    store.folder("order").mkdir(parents=True)
    for begin in range(0, instances * STEPS, 2_500_000):
        rows = STEP_ROWS.format(begin, min(begin + 2_500_000, instances * STEPS))
        new = store._write_steps("order", new, rows)
    base = store._copy("order", "instances", f"SELECT * FROM ({INSTANCE_ROWS.format(instances + 1, VISITED)})")
    store._commit("order", known, replace(new, base=base, marks={"0": 1}, number=instances + 1))


def measure(name: str, ask: Callable[[], object]) -> None:
    begin, cpu = time.perf_counter(), time.process_time()
    ask()
    took, cpu = time.perf_counter() - begin, time.process_time() - cpu
    print(f"{name:34} {1000 * took:8.0f} ms, {1000 * cpu:8.0f} ms of all cores")


def count_commands(engine: Engine) -> int:
    return sum(one["calls"] for name, one in engine.client.info("commandstats").items() if name != "cmdstat_info")


def read_steps(folder: Path, count: int) -> None:
    """Take steps, and measure the duty that reads them."""
    engine, machine = get_engine(), "bench_insight"
    states = {"A": {"on": {"go": "B"}}, "B": {"on": {"go": "A"}}}
    engine.publish({"id": machine, "initial": "A", "states": states})
    for turn, place in enumerate((None, str(folder)) * 2):
        settings.SIGNALBOX = settings.SIGNALBOX | {"INSIGHT": place}
        before = count_commands(engine)
        for number in range(count // STEPS // 4):
            engine.create(machine, f"{turn}-{number}")
            for _ in range(STEPS - 1):
                engine.fire(machine, f"{turn}-{number}", "go")
        print(f"INSIGHT {place}: {(count_commands(engine) - before) / count * 4:.2f} commands a step")
    duty = InsightDuty(engine, store=Store(folder))
    begin, cpu = time.perf_counter(), time.process_time()
    while duty.run_once():
        pass
    took, cpu = time.perf_counter() - begin, time.process_time() - cpu
    share = 5000 * cpu / count
    print(f"read: {count / took:,.0f} steps/s, {1e6 * cpu / count:.1f} us of a core a step; 5,000/s: {share:.0%}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--instances", type=int, default=1_000_000)
    parser.add_argument("--read", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "facts")
        fill(store, given.instances)
        size = sum(path.stat().st_size for path in store.folder("order").iterdir())
        print(f"{given.instances * STEPS:,} steps, {size / given.instances / STEPS:.1f} bytes a step with its instance")
        every, one = Search("order"), Search("order", where=(("region", "3"),))
        for search, name in ((every, "all"), (one, "region 3"), (Search("order", versions=(2,)), "version 2")):
            measure(f"paths, {name}", lambda search=search: questions.paths(search, store=store))
            measure(f"durations, {name}", lambda search=search: questions.durations(search, store=store))
            measure(
                f"funnel, {name}", lambda search=search: questions.funnel(search, ["State0", "State5"], store=store)
            )
            measure(f"bottlenecks, {name}", lambda search=search: questions.bottlenecks(search, store=store))
            for by in ("actor", "worker"):
                measure(f"{by}s, {name}", lambda search=search, by=by: questions.people(search, by, store=store))
        measure("compare region 3 with all", lambda: compare(one, every, store=store))
        measure("compare version 2 with all", lambda: compare(Search("order", versions=(2,)), every, store=store))
        if given.read:
            read_steps(Path(folder) / "read", given.read)


if __name__ == "__main__":
    main()
