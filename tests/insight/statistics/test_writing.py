"""What waits for the database is written once: after an outage, in any order, by many at a time.

The whole file runs on SQLite, and once more on PostgreSQL (``test_on_postgresql.py``).
"""

from __future__ import annotations

import threading

from django.db import connection, connections

from machines.insight.statistics import recording, writing
from machines.insight.statistics.recording import Sampler
from machines.insight.statistics.writing import BufferFlush
from machines.models import Measurement, SamplingTurn

from .conftest import MINUTE, START, flush
from .written import GAPS, HOURS, MINUTES, rows, stretches, total


def test_an_hour_without_a_database_is_minutes_and_no_gap_and_few_transactions(sample, rounds):
    sample(0)
    for minute in range(1, 61):
        rounds(1)
        assert sample(minute, flushed=False)
    rounds(2)
    assert (rows(MINUTES), flush()) == ([], 1)
    assert rows(MINUTES) == [(minute, 2) for minute in range(60)]
    assert (rows(GAPS), total(period=HOURS), stretches()) == ([], 120, [(0, 60)])
    sample(61)
    assert (rows(MINUTES)[-1], stretches()) == ((60, 4), [(0, 61)])


def test_minutes_in_which_nothing_happens_are_measured_and_add_to_an_hour_that_has_counts(sample, rounds):
    sample(0)
    for minute, busy in ((1, 0), (2, 3), (3, 0)):
        rounds(busy)
        sample(minute)
    hour, newest = Measurement.objects.get(period=HOURS), Measurement.objects.filter(period=MINUTES).latest("at")
    assert (hour.covered, hour.transitions, hour.instances) == (3 * MINUTE, 6, newest.instances)
    assert (rows(MINUTES), stretches()) == ([(0, 0), (1, 6), (2, 0)], [(0, 3)])


def test_more_than_may_wait_becomes_a_gap_and_is_said_once(box, sample, rounds, monkeypatch, caplog):
    monkeypatch.setattr(recording, "MOST", 3)
    moment = START / 1000
    sampler = Sampler(box, clock=lambda: moment)
    sample(0)
    for minute in (1, 2):
        rounds(1)
        sample(minute, flushed=False)
    moment += 10_000
    for _ in range(3):
        sampler.once()
    assert [record.getMessage()[:32] for record in caplog.records] == ["statistics are not measured: 3 e"]
    rounds(5)
    flush()
    sample(62)
    assert (rows(MINUTES), rows(GAPS), total(period=HOURS)) == ([(0, 2), (1, 2)], [(2, 10)], 4)


def test_batches_in_any_order_and_more_than_once_are_each_counted_once(box, sample, rounds, caplog):
    sample(0)
    batches = []
    for minute in range(1, 5):
        rounds(minute)
        sample(minute, flushed=False)
        batches.append(recording.buffer().claim())
    for number in (2, 0, 2, 3, 0, 1, 1):
        writing.write(batches[number])
    assert rows(MINUTES) == [(0, 2), (1, 4), (2, 6), (3, 8)]
    assert (total(period=HOURS), stretches()) == (20, [(0, 4)])
    assert SamplingTurn.objects.get().at == START + 4 * MINUTE
    assert len(caplog.records) == 3


def test_what_others_put_in_its_place_is_left_out_and_stops_nothing(box, sample, rounds, caplog):
    buffer = recording.buffer()
    buffer.add_many([], marks={"errand": (None, "[]"), recording.TURN: (None, "[1]")})
    sample(0)
    rounds(2)
    sample(1, flushed=False)
    for entity in ("errand", "errand 60 x", "errand 60 1", "a b c d"):
        buffer.add(entity, counters={"covered": 1}, fields={"instances": 1, "2": 1})
    assert flush() == 1
    assert (rows(MINUTES), len(caplog.records), Measurement.objects.count()) == ([(0, 4)], 4, 2)


STRETCH = {"instances": 1, str(START): START + 1}
FOREIGN = [
    ("a\0b 1 60", {"covered": 1}, STRETCH),
    ("x" * 65 + " 1 60", {"covered": 1}, STRETCH),
    ("errand 99999 60", {"covered": 1}, STRETCH),
    (f"errand 1 {2**63}", {"covered": 1}, STRETCH),
    ("errand 1 60", {"covered": -1}, STRETCH),
    ("errand 1 120", {"covered": 1}, STRETCH | {"instances": 10**30}),
    ("errand 1 180", {"covered": 1}, {"instances": 1, "5": 2**70}),
    ("errand 1 240", {"covered": 1, **{f'["edges","{n}"]': 2**52 for n in range(3)}}, STRETCH),
    (recording.SAMPLED, {}, {"at": "soon", "began": 2**70}),
]


def test_what_no_database_would_take_holds_up_no_batch(box, sample, rounds):
    sample(0)
    rounds(2)
    sample(1, flushed=False)
    for entity, counters, fields in FOREIGN:
        recording.buffer().add(entity, counters=counters, fields=fields)
    assert flush() == 1
    assert (rows(MINUTES), Measurement.objects.count(), recording.buffer().size()) == ([(0, 4)], 2, 0)


def test_flushers_at_the_same_moment_add_to_the_same_hour(box, sample, rounds):
    sample(0)
    batches = []
    for minute in range(1, 9):
        rounds(1)
        sample(minute, flushed=False)
        batches.append(recording.buffer().claim())
    both = threading.Barrier(4)

    def work(mine: list) -> None:
        both.wait(60)
        try:
            for batch in mine:
                writing.write(batch)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=[batches[at::4] + batches[at - 1 :: 4]]) for at in range(1, 4)]
    threads.append(threading.Thread(target=work, args=[batches[0::4]]))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (total(), total(period=HOURS), stretches()) == (16, 16, [(0, 8)])


def test_a_database_that_is_away_is_said_once_and_what_waits_is_written_when_it_is_back(box, sample, rounds, caplog):
    flusher = BufferFlush(recording.buffer, writing.write, message="statistics wait for the database: %s")
    sample(0)
    rounds(3)
    sample(1, flushed=False)
    with connection.schema_editor() as editor:
        editor.delete_model(SamplingTurn)
    try:
        for _ in range(9):
            assert flusher.once() is False
        assert flusher.pause() > 0
    finally:
        with connection.schema_editor() as editor:
            editor.create_model(SamplingTurn)
    assert [record.getMessage()[:33] for record in caplog.records] == ["statistics wait for the database:"]
    assert (flusher.once(), flusher.once()) == (True, False)
    assert rows(MINUTES) == [(0, 6)]
