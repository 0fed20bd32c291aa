"""Writes that wait in Redis: each reaches its receiver, whoever dies on the way, and none is counted twice."""

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from machines.engine import BadInput
from machines.engine.keys import choose_partition
from machines.patterns import Changed, Full, Write, WriteBuffer
from machines.patterns.base import Lost, Overflow
from tests.engine.dumps import keys_left, unchanged
from tests.engine.instances.racing import in_threads

from .rewinding import older, rewind

NOW = 1_800_000_000_000
ROOT = Path(__file__).resolve().parents[2]
STRANGE = ["a}b{c}", "a:b", "a\nb", "a\0b", "\U0001f600", " ", "x" * 512]


@pytest.fixture
def buffer(engine, prefix):
    return WriteBuffer(engine.client, "box", prefix=prefix)


def contents(batch):
    return {entry.entity: (entry.counters, entry.fields) for entry in batch.entries}


def test_counters_add_up_the_last_write_of_a_field_wins_and_the_oldest_come_first(buffer):
    buffer.add("b", counters={"seen": 1}, fields={"at": 5, "by": "ada"}, now=NOW)
    buffer.add("a", counters={"seen": 1}, now=NOW + 1)
    buffer.add("b", counters={"seen": 2, "lost": -3}, fields={"at": 7}, now=NOW + 2)
    buffer.add("b", counters={"seen": 2**53 - 4}, fields={"at": "late", "by": None}, now=NOW - 1)
    buffer.add("c", fields={"any": {"json": [1.5, True, "\0é"]}}, now=NOW + 3)
    batch = buffer.claim(limit=2, now=NOW + 10)
    assert [entry.entity for entry in batch.entries] == ["b", "a"]
    assert contents(batch)["b"] == ({"seen": 2**53 - 1, "lost": -3}, {"at": 7, "by": "ada"})
    assert batch.entries[0].written == {"at": NOW + 2, "by": NOW}
    assert [entry.since for entry in batch.entries] == [NOW, NOW + 1]
    assert contents(buffer.claim(now=NOW + 10)) == {"c": ({}, {"any": {"json": [1.5, True, "\0é"]}})}
    assert buffer.claim(now=NOW + 10) is None


def test_an_entity_that_is_written_while_a_batch_holds_it_gets_an_entry_of_its_own(buffer):
    buffer.add("a", counters={"n": 1}, now=NOW)
    first = buffer.claim(now=NOW + 1)
    buffer.add("a", counters={"n": 10}, now=NOW + 2)
    second = buffer.claim(now=NOW + 3)
    assert [batch.entries[0].counters["n"] for batch in (first, second)] == [1, 10]
    assert first.entries[0].id != second.entries[0].id
    assert (buffer.size(), buffer.stats(now=NOW + 5000).oldest) == (2, 5.0)
    buffer.settle(second)
    buffer.settle(first)
    assert (buffer.size(), buffer.stats().batches) == (0, 0)


def test_a_batch_whose_flusher_died_comes_again_as_it_was_and_before_all_others(buffer):
    buffer.add("a", counters={"n": 1}, now=NOW)
    buffer.add("b", counters={"n": 1}, now=NOW + 1)
    died = buffer.claim(limit=1, lease=30, now=NOW + 2)
    other = buffer.claim(limit=1, lease=90, now=NOW + 3)
    assert buffer.claim(now=died.ends - 1) is None
    again = buffer.claim(now=died.ends)
    assert (again.id, again.entries, again.takes) == (died.id, died.entries, 2)
    with pytest.raises(Lost):
        buffer.settle(died)
    with pytest.raises(Lost):
        buffer.give_back(died)
    buffer.settle(again)
    buffer.settle(other)  # its lease ran out, but nobody else has it
    with pytest.raises(Lost):
        buffer.settle(again)
    assert buffer.size() == 0


def test_what_is_given_back_comes_at_once_and_that_claim_does_not_count(buffer):
    buffer.add("a", counters={"n": 1}, now=NOW)
    for _ in range(9):
        batch = buffer.claim(now=NOW)
        buffer.give_back(batch, now=NOW)
    with pytest.raises(Lost):
        buffer.settle(batch)
    assert buffer.claim(now=NOW).takes == 1


def test_a_batch_that_nobody_can_write_is_kept_comes_ever_less_often_and_holds_up_no_other(buffer):
    buffer.add("bad", counters={"n": 1}, now=NOW)
    pauses, now = [], NOW
    for take in range(1, 20):
        batch = buffer.claim(lease=10, now=now)
        assert (batch.entries[0].entity, batch.takes) == ("bad", take)
        (lent,) = buffer.stats().lent
        assert (lent.takes, lent.count, lent.since) == (take, 1, NOW)
        pauses.append(lent.again - now)
        assert buffer.claim(now=lent.again - 1) is None
        now = lent.again
    assert pauses[:7] == [10_000] * 5 + [12_000, 14_000]
    assert max(pauses) == 610_000
    buffer.claim(now=now)
    buffer.add("good", counters={"n": 1}, now=now + 1)
    assert list(contents(buffer.claim(now=now + 2))) == ["good"]


def test_flush_settles_what_was_written_and_leaves_what_failed_to_its_lease(buffer):
    buffer.add_many([Write(f"e{number}", {"n": 1}) for number in range(5)])
    got = []
    assert [buffer.flush(got.append, limit=3) for _ in range(3)] == [3, 2, 0]
    assert [len(batch.entries) for batch in got] == [3, 2]
    buffer.add("a", counters={"n": 1})
    with pytest.raises(ZeroDivisionError):
        buffer.flush(lambda batch: 1 // 0)
    assert (buffer.size(), buffer.claim(), buffer.stats().held) == (1, None, 1)


def test_an_entry_gathers_writes_for_as_long_as_the_flusher_says(buffer):
    buffer.add("a", counters={"n": 1}, now=NOW)
    assert buffer.claim(gather=20, now=NOW + 19_999) is None
    assert buffer.claim(gather=20, now=NOW + 20_000) is not None


def test_an_id_fits_the_unique_key_of_a_job_which_then_is_put_once(engine, prefix, buffer):
    engine.publish({"id": "lamp", "initial": "off", "states": {"off": {}}})
    for entity in STRANGE:
        WriteBuffer(engine.client, "n" * 64, prefix=prefix).add(entity, counters={"n": 2})
    buffer = WriteBuffer(engine.client, "n" * 64, prefix=prefix)

    def hand(batch):
        for entry in batch.entries:
            engine.enqueue("lamp", "write", {"entity": repr(entry.entity), **entry.counters}, unique=entry.id)

    with pytest.raises(ZeroDivisionError):
        buffer.flush(lambda batch: (hand(batch), 1 // 0), lease=0.001)
    while not buffer.flush(hand):
        pass
    jobs = engine.take("lamp", "write", "w", count=100)
    assert sorted(job.input["entity"] for job in jobs) == sorted(map(repr, STRANGE))
    assert {job.input["n"] for job in jobs} == {2}


def test_a_mark_moves_with_the_writes_and_only_from_where_it_was_seen(buffer):
    writes = [Write("a", {"n": 1})]
    buffer.add_many(writes, marks={"source": (None, "1"), "other": (None, "x")})
    assert buffer.marks(["source", "other", "third"]) == {"source": "1", "other": "x"}
    for stale in ({"source": (None, "2")}, {"source": ("0", "2")}, {"other": ("x", "y"), "source": ("0", "2")}):
        with pytest.raises(Changed, match="the mark 'source'"):
            buffer.add_many(writes, marks=stale)
    assert buffer.marks(["source", "other"]) == {"source": "1", "other": "x"}
    results = in_threads([partial(buffer.add_many, writes, marks={"source": ("1", str(n))}) for n in range(2, 10)])
    assert sum(result is None for result in results) == 1
    buffer.add_many([], marks={"other": ("x", "é\n")})
    assert buffer.marks(["other"]) == {"other": "é\n"}
    assert contents(buffer.claim()) == {"a": ({"n": 2}, {})}


def test_what_would_pass_a_bound_is_refused_whole(engine, prefix):
    buffer = WriteBuffer(engine.client, "box", prefix=prefix, most=2)
    buffer.add("a", counters={"n": 2**53 - 1}, fields={f"f{n}": "x" * 60_000 for n in range(16)})
    for too_much in (
        partial(buffer.add, "a", counters={"n": 1}),
        partial(buffer.add_many, [Write("b", {"n": 1 - 2**53}), Write("b", {"n": -1})]),
        partial(buffer.add, "a", fields={f"g{number}": "x" * 60_000 for number in range(2)}),
        partial(buffer.add_many, [Write("b", {f"n{at}{n}": 1 for n in range(10_001)}) for at in range(2)]),
    ):
        with unchanged(engine), pytest.raises(Overflow):
            too_much()
    buffer.add("b", counters={"n": 1})
    with unchanged(engine), pytest.raises(Full, match="2 entries wait"):
        buffer.add_many([Write("a", {"n": -5}), Write("c", {"n": 1})])
    batch = buffer.claim()
    with pytest.raises(Full):  # what a batch holds is not written yet
        buffer.add("c", counters={"n": 1})
    buffer.settle(batch)
    buffer.add("c", counters={"n": 1})


def test_parts_share_the_entities_between_them_and_each_has_its_own_slot(engine, prefix):
    buffer = WriteBuffer(engine.client, "box", prefix=prefix, partitions=4)
    buffer.add_many([Write(entity, {"n": 1}) for entity in [*STRANGE, *map(str, range(30))]])
    tags = {re.match(r"buffer:(\{box:\d\}):", key)[1] for key in keys_left(engine)}
    assert tags == {f"{{box:{part}}}" for part in range(4)}
    parts, found = set(), []
    while batch := buffer.claim(limit=4):
        parts.add(batch.part)
        found += [entry.entity for entry in batch.entries]
        assert {choose_partition(entry.entity, 4) for entry in batch.entries} == {batch.part}
        buffer.settle(batch)
    assert (sorted(found), parts) == (sorted([*STRANGE, *map(str, range(30))]), {0, 1, 2, 3})
    with pytest.raises(BadInput, match="part="):
        buffer.add_many([Write("a", {"n": 1})], marks={"m": (None, "1")})
    buffer.add_many([Write("a", {"n": 1})], marks={"m": (None, "1")}, part=2)
    assert buffer.claim(part=3) is None
    assert (buffer.claim(part=2).part, buffer.marks(["m"], part=2)) == (2, {"m": "1"})


ADDER = """
import sys
from machines.engine import Engine
from machines.patterns import Write, WriteBuffer
url, prefix, rounds = sys.argv[1:]
buffer = WriteBuffer(Engine.from_url(url, prefix=prefix).client, "race", prefix=prefix, partitions=2)
for n in range(int(rounds)):
    buffer.add_many([Write(f"e{(n + k) % 7}", {"n": 1, "twos": 2}) for k in range(3)])
"""
# Appends each entry to its file, and then settles; one that is to die does so between the two, or before the first.
FLUSHER = """
import json, os, signal, sys
from machines.engine import Engine
from machines.patterns import WriteBuffer
url, prefix, path, dies = sys.argv[1:]
buffer = WriteBuffer(Engine.from_url(url, prefix=prefix).client, "race", prefix=prefix, partitions=2)
idle = 0
while dies or idle < 40:
    batch = buffer.claim(limit=3, lease=0.05)
    idle = 0 if batch else idle + 1
    if batch is None:
        continue
    if dies == "claimed":
        os.kill(os.getpid(), signal.SIGKILL)
    with open(path, "a") as kept:
        for entry in batch.entries:
            kept.write(json.dumps([entry.id, entry.entity, entry.counters]) + "\\n")
        kept.flush()
    if dies == "written":
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        buffer.settle(batch)
    except Exception as error:
        assert type(error).__name__ == "Lost"
"""


@pytest.mark.faults
def test_sums_are_exact_where_processes_add_and_flushers_are_killed_between_claim_and_settle(
    redis_url, prefix, engine, tmp_path
):
    def start(code, *words):
        return subprocess.Popen([sys.executable, "-c", code, redis_url, prefix, *map(str, words)], cwd=ROOT)

    adders = [start(ADDER, 150) for _ in range(2)]
    dying = [
        start(FLUSHER, tmp_path / f"{number}", end) for number, end in enumerate(["claimed", "written", "written"])
    ]
    assert [process.wait(90) for process in dying] == [-signal.SIGKILL] * 3
    flushers = [start(FLUSHER, tmp_path / name, "") for name in ("first", "second")]
    adders.append(start(ADDER, 150))
    assert [process.wait(90) for process in (*adders, *flushers)] == [0] * 5
    buffer = WriteBuffer(engine.client, "race", prefix=prefix, partitions=2)
    last = []
    while buffer.size():
        buffer.flush(last.append, lease=0.05)
    kept = [json.loads(line) for path in tmp_path.iterdir() for line in path.read_text().splitlines()]
    kept += [[entry.id, entry.entity, entry.counters] for batch in last for entry in batch.entries]
    once = {}
    for id, entity, counters in kept:
        assert once.setdefault(id, (entity, counters)) == (entity, counters)  # one id, one content
    sums = Counter()
    for _, counters in once.values():
        sums.update(counters)
    assert sums == {"n": 1350, "twos": 2700}
    assert len(kept) > len(once)  # those that were written and not settled came again


def test_a_server_that_comes_back_from_an_older_file_gives_no_id_to_anything_new(buffer, engine):
    """The file holds an entry that is handed out a moment later; the next new one gets a number anew."""
    buffer.add("a", counters={"n": 1}, now=NOW)
    file = older(engine)
    buffer.add("a", counters={"n": 1}, now=NOW + 1)
    buffer.add("b", counters={"n": 1}, now=NOW + 2)
    before = {entry.id: (entry.entity, entry.counters["n"]) for entry in buffer.claim().entries}
    rewind(engine, file)
    buffer.add("b", counters={"n": 5}, now=NOW + 60_000)
    after = {entry.id: (entry.entity, entry.counters["n"]) for entry in buffer.claim().entries}
    assert sorted((before | after).values()) == [("a", 1), ("b", 1), ("b", 5)]
    assert [(before[id], after[id]) for id in before.keys() & after.keys()] == [(("a", 2), ("a", 1))]
