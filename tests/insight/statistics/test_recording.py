"""Each thing that happened is written once, in the minute and the hour it happened in, whoever measures and whenever.

The whole file runs on SQLite, and what another writer or an end may break once more on PostgreSQL
(``test_on_postgresql.py``).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from django.db import connection, connections

from machines.engine import Engine
from machines.insight.statistics import recording
from machines.insight.statistics.recording import Sampler
from machines.models import CounterReading, Measurement, SamplingTurn
from tests.installation.processes import ROOT, eventually
from tests.patterns.rewinding import older, rewind

from .conftest import LAMP, MINUTE, START, survey_at
from .written import GAPS, HOURS, MINUTES, rows, total


def test_the_first_look_says_nothing_and_each_further_one_what_happened_since(sample, rounds, refuse):
    rounds(5)
    assert sample(0)
    assert rows(MINUTES) == []
    rounds(2)
    refuse(3)
    assert sample(1)
    rounds(1)
    assert sample(2)
    assert sample(3)
    assert rows(MINUTES) == [(0, 4), (1, 2), (2, 0)]
    assert rows(MINUTES, "refused") == [(0, 3), (1, 0), (2, 0)]
    assert rows(MINUTES, "enqueued") == [(0, 2), (1, 1), (2, 0)]
    assert rows(MINUTES, "covered") == [(0, 60_000), (1, 60_000), (2, 60_000)]
    assert total(period=HOURS) == 6
    numbers = Measurement.objects.filter(period=HOURS).get().numbers
    assert sorted(numbers["edges"].values()) == [3, 3]
    assert numbers["refused"] == {"abandon": 3}
    assert numbers["queues"]["work"]["enqueued"] == 3


def test_what_jobs_did_and_how_long_they_took_is_kept_by_queue(box, sample):
    sample(0)
    box.fire("errand", "one", "start")
    (job,) = box.take("errand", "work", worker="w")
    box.complete(job)
    sample(1)
    row = Measurement.objects.get(period=MINUTES)
    assert (row.completed, row.enqueued, row.failed, row.instances) == (1, 1, 0, 1)
    queue = row.numbers["queues"]["work"]
    assert (sum(queue["waits"].values()), sum(queue["runs"].values()), queue["taken"]) == (1, 1, 1)


def test_looks_within_one_minute_add_up_to_it(sample, rounds):
    for number in range(7):
        rounds(1)
        sample(number / 6)
    assert rows(MINUTES) == [(0, 12)]
    assert rows(MINUTES, "covered") == [(0, 60_000)]


def test_two_workers_at_the_same_moment_measure_once(box, rounds):
    """Both look whose turn it is, both read the counters, and then both add the differences."""
    recording.record(survey_at(box, START), recording.turn(), now=START)
    rounds(4)
    both, measured = threading.Barrier(2), []

    def work() -> None:
        seen, found = recording.turn(), survey_at(box, START + MINUTE)
        both.wait(60)
        try:
            measured.append(recording.record(found, seen, now=START + MINUTE))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(measured) == [False, True]
    assert (total(), total(period=HOURS)) == (8, 8)


def test_who_read_before_another_wrote_does_not_write_after_it(box, sample, rounds):
    """It stood still between its reading and its writing: its counters are older than those written meanwhile."""
    sample(0)
    rounds(1)
    slow, old = recording.turn(), survey_at(box, START + MINUTE)
    rounds(3)
    assert sample(1)
    assert not recording.record(old, slow, now=START + MINUTE)
    assert sample(2)
    assert total() == 8


def test_minutes_in_which_nothing_happens_are_measured_and_add_to_an_hour_that_has_counts(sample, rounds):
    sample(0)
    for minute, busy in ((1, 0), (2, 3), (3, 0)):
        rounds(busy)
        sample(minute)
    hour, newest = Measurement.objects.get(period=HOURS), Measurement.objects.filter(period=MINUTES).latest("at")
    assert (hour.covered, hour.transitions, hour.instances) == (3 * MINUTE, 6, newest.instances)
    assert rows(MINUTES) == [(0, 0), (1, 6), (2, 0)]


def test_many_machines_are_measured_at_once(box, sample, rounds, monkeypatch):
    monkeypatch.setattr(recording, "BATCH", 1)
    box.publish({"id": "lamp", "initial": "off", "states": {"off": {"on": {"press": "off"}}}})
    box.create("lamp", "hall")
    sample(0)
    rounds(1)
    box.fire("lamp", "hall", "press")
    sample(1)
    assert (total(), total(period=HOURS)) == (3, 3)


def test_a_machine_of_which_a_partition_does_not_answer_is_measured_when_it_does(redis_url, prefix, transactional_db):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=2)
    engine.publish(LAMP)
    for number in range(8):
        engine.create("lamp", f"l{number}")
        engine.fire("lamp", f"l{number}", "press")
    recording.record(survey_at(engine, START), recording.turn(), now=START)
    found = survey_at(engine, START + MINUTE)
    lost = engine.keys.partition("lamp", 1).root
    partial = replace(found.lives["lamp"], flow={}, missing=(lost,))
    recording.record(replace(found, lives={"lamp": partial}), recording.turn(), now=START + MINUTE)
    engine.fire("lamp", "l0", "press")
    recording.record(survey_at(engine, START + 2 * MINUTE), recording.turn(), now=START + 2 * MINUTE)
    assert (total(), total(period=HOURS), total("covered")) == (1, 1, 2 * MINUTE)
    engine.client.close()


DIES = """
import os, signal, sys, django
django.setup()
from django.db import connection
from machines.connections import get_engine
from machines.insight.statistics import recording
from tests.insight.statistics.conftest import survey_at
def die_after(execute, sql, params, many, context):
    execute(sql, params, many, context)
    if where in sql and not sql.startswith("SELECT"):  # PostgreSQL inserts many rows by INSERT ... SELECT
        os.kill(os.getpid(), signal.SIGKILL)
where, now = sys.argv[1], int(sys.argv[2])
seen = recording.turn()
with connection.execute_wrapper(die_after):
    recording.record(survey_at(get_engine(), now), seen, now=now)
os.kill(os.getpid(), signal.SIGKILL)
"""


def environment(redis_url: str, prefix: str) -> dict[str, str]:
    """Of another process on this test's server and database."""
    given = connection.settings_dict
    url = f"sqlite:///{given['NAME']}"
    if connection.vendor == "postgresql":
        url = f"postgres://{given['USER']}@{given['HOST']}:{given['PORT']}/{given['NAME']}"
    return os.environ | {
        "DATABASE_URL": url,
        "REDIS_URL": redis_url,
        "SIGNALBOX_PREFIX": prefix,
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
        "PYTHONPATH": str(ROOT),
    }


TABLES = [model._meta.db_table for model in (SamplingTurn, Measurement, CounterReading)]


@pytest.mark.parametrize("where", [*TABLES, "after it"])
@pytest.mark.faults
def test_a_worker_that_is_killed_at_any_point_leaves_each_count_written_once(sample, rounds, redis_url, prefix, where):
    sample(0)
    rounds(2)
    env = environment(redis_url, prefix)
    command = [sys.executable, "-c", DIES, where, str(START + MINUTE)]
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert rows(MINUTES) == ([(0, 4)] if where == "after it" else [])
    sample(1.5)
    assert (total(), total(period=HOURS), total("covered")) == (4, 4, 90_000)


def test_a_database_that_is_away_is_said_once_and_what_happened_meanwhile_is_measured_later(box, rounds, caplog):
    moment = START / 1000
    sampler = Sampler(box, clock=lambda: moment)
    assert sampler.run_once() is False
    rounds(3)
    with connection.schema_editor() as editor:
        editor.delete_model(SamplingTurn)
    try:
        for _ in range(9):
            assert sampler.run_once() is False
        assert sampler.pause() > 0
    finally:
        with connection.schema_editor() as editor:
            editor.create_model(SamplingTurn)
    assert [record.getMessage()[:28] for record in caplog.records] == ["statistics are not measured:"]
    moment += 10
    sampler.run_once()
    assert sum(Measurement.objects.exclude(period=HOURS).values_list("transitions", flat=True)) == 6


def forget(box, minus: int | None) -> None:
    """The counters of a server that lost its last writes, or all of them."""
    partition = box.keys.partition("errand")
    flow = box.client.hgetall(partition.flow)
    for edge in flow:
        if minus is None:
            box.client.hdel(partition.flow, edge)
        else:
            box.client.hincrby(partition.flow, edge, -minus)


@pytest.mark.parametrize("minus", [None, 2], ids=["begins at zero", "is rewound"])
def test_a_server_that_comes_back_with_less_counts_neither_below_zero_nor_twice(box, sample, rounds, minus):
    sample(0)
    rounds(5)
    sample(1)
    forget(box, minus)
    rounds(1)
    assert sample(2)  # less than before: what happened cannot be told, and is left out
    rounds(3)
    assert sample(3)
    assert rows(MINUTES) == [(0, 10), (2, 6)]
    assert (total(), total(period=HOURS)) == (16, 16)
    assert total("covered", HOURS) == 120_000
    assert min(Measurement.objects.values_list("transitions", flat=True)) >= 0


def test_a_server_that_comes_back_from_an_older_file_counts_nothing_twice(engine, box, sample, rounds):
    sample(0)
    rounds(5)
    file = older(engine)
    rounds(2)
    sample(1)
    rewind(engine, file)
    rounds(1)
    sample(2)  # its counters are lower than they were: what happened cannot be told
    rounds(3)
    sample(3)
    assert rows(MINUTES) == [(0, 14), (2, 6)]
    assert (total(period=HOURS), total("covered")) == (20, 120_000)


def test_an_hour_without_a_worker_is_a_gap_and_no_minute(sample, rounds):
    sample(0)
    rounds(2)
    sample(1)
    rounds(50)
    sample(91)
    rounds(1)
    sample(92)
    assert rows(MINUTES) == [(0, 4), (91, 2)]
    assert rows(GAPS) == [(1, 100)]
    assert rows(GAPS, "covered") == [(1, 90 * MINUTE)]
    assert total(period=HOURS) == 6  # it belongs to no one hour


def test_a_gap_within_one_hour_belongs_to_it(sample, rounds):
    start = 60 - START // MINUTE % 60  # minutes to the next full hour
    sample(start + 5)
    rounds(7)
    sample(start + 25)
    assert (rows(MINUTES), total(period=GAPS), total(period=HOURS)) == ([], 14, 14)


def test_a_machine_that_comes_later_is_measured_from_then_on(box, sample, rounds):
    sample(0)
    box.publish({"id": "lamp", "initial": "off", "states": {"off": {"on": {"press": "off"}}}})
    box.create("lamp", "hall")
    for number in (1, 2):
        box.fire("lamp", "hall", "press")
        sample(number)
    assert list(Measurement.objects.filter(machine="lamp", period=MINUTES).values_list("transitions", flat=True)) == [1]


def test_old_rows_go_some_at_a_time(sample, monkeypatch):
    monkeypatch.setattr(recording, "AT_ONCE", 3)
    now = START // 1000

    def make(period: int, ages: list[int]) -> None:
        Measurement.objects.bulk_create([Measurement(machine="m", period=period, at=now - age) for age in ages])

    day = 86_400
    make(MINUTES, [day, 2 * day + 1, 3 * day, 4 * day])
    make(HOURS, [4 * day, 399 * day, 401 * day])
    make(GAPS, [5, 401 * day])
    assert [recording.prune(START) for _ in range(3)] == [3, 2, 0]
    assert Measurement.objects.count() == 4


def turned(**changed: int) -> int:
    """How often it was sampled since the last call, and the turn as a test wants it from now on."""
    count = recording.turn().number
    SamplingTurn.objects.update(**changed, number=0)
    return count


def test_the_duty_measures_once_a_minute_and_soon_at_first(box):
    moment = time.time() // 60 * 60 + 20
    now = int(moment * 1000)
    sampler = Sampler(box, clock=lambda: moment)
    assert sampler.run_once() is False
    assert (turned(at=now - 8_000), sampler.pause()) == (1, 10)
    sampler.run_once()
    assert turned(began=1, at=now - 19_000) == 0
    sampler.run_once()
    assert turned() == 0  # this minute has been measured
    assert 40 < sampler.pause() < 43.1
    turned(at=now - 21_000)
    sampler.run_once()
    assert turned() > 0


@pytest.mark.faults
def test_a_worker_process_measures_by_itself_and_writes_it(box, redis_url, prefix):
    command = [sys.executable, "manage.py", "worker"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(redis_url, prefix), stdout=subprocess.DEVNULL) as worker:
        eventually(SamplingTurn.objects.filter(at__gt=0, began__gt=0).exists, "it was measured")
        worker.terminate()
        assert worker.wait(90) == 0
    assert list(recording.readings(["errand", "other"])) == ["errand"]
