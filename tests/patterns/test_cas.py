"""Compare and set: exact under a race, every conflict to be seen, nothing half-done."""

import gc
import itertools
import json
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from machines.engine import BadInput, EngineFault
from machines.engine.connection.client import connect
from machines.patterns import Changed, Overflow, Record, Records, cas
from machines.patterns.cas import DELETE, update
from tests.cases import for_each
from tests.engine.instances.racing import in_threads

NOW = 1_800_000_000_000
ROOT = Path(__file__).resolve().parents[2]
RACER = """
import sys
from machines.engine import Engine
from machines.patterns import Records
from machines.patterns.cas import update
url, prefix = sys.argv[1:3]
client = Engine.from_url(url, prefix=prefix).client
records = Records(client, "race", prefix=prefix)
records.get("warm")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(40):
    records.update("count", lambda count: (count or 0) + 1, 1000)
    update(client, f"x{prefix}text", lambda text: str(int(text or 0) + 1), 1000)
    update(client, f"x{prefix}hash", lambda cart: {"a": "x", "n": str(int((cart or {}).get("n", 0)) + 1)}, 1000)
"""


@pytest.fixture
def records(engine, prefix):
    return Records(engine.client, "notes", prefix=prefix)


@pytest.fixture
def foreign(engine, prefix):
    """A name for keys of another program, which go with the test."""
    yield f"x{prefix}"
    for key in engine.client.scan_iter(match=f"x{prefix}*"):
        engine.client.delete(key)


@pytest.mark.faults
def test_threads_and_processes_that_race_lose_no_increment(engine, redis_url, prefix, foreign):
    records = Records(engine.client, "race", prefix=prefix)
    pipe = subprocess.PIPE
    words = [sys.executable, "-c", RACER, redis_url, prefix]
    racers = [subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()

    def count_up():
        for _ in range(20):
            records.update("count", lambda count: (count or 0) + 1, 1000)
            update(engine.client, f"{foreign}text", lambda text: str(int(text or 0) + 1), 1000)

    assert in_threads([count_up] * 2) == [None, None]
    for racer in racers:
        racer.communicate(timeout=90)
        assert racer.returncode == 0
    assert records.get("count").value == 120
    assert engine.client.get(f"{foreign}text") == "120"
    assert engine.client.hgetall(f"{foreign}hash") == {"a": "x", "n": "80"}


def test_a_record_is_written_by_who_saw_it_and_by_nobody_who_saw_an_older_one(records):
    assert records.get("k") == Record(None, 0)
    first = records.put("k", {"text": "ä\n", "n": [1, None]}, expect=0, now=NOW)
    assert records.get("k") == first == Record({"text": "ä\n", "n": [1, None]}, NOW)
    second = records.put("k", None, expect=first.generation, now=NOW)
    assert second == Record(None, NOW + 1)
    assert second.exists
    for expect in (0, first.generation):
        with pytest.raises(Changed, match="someone else wrote it first") as caught:
            records.put("k", "late", expect=expect)
        assert (caught.value.expected, caught.value.actual, caught.value.found) == (expect, NOW + 1, second)
    assert records.put("k", "whatever", expect=None).generation > NOW


def test_a_generation_is_never_used_again_not_even_after_a_deletion(records, engine, prefix):
    seen = [records.put("k", n, expect=None, now=NOW).generation for n in range(3)]
    with pytest.raises(Changed):
        records.delete("k", expect=seen[0])
    records.delete("k", expect=seen[-1], now=NOW)
    records.delete("k", expect=0)
    assert records.get("k").exists is False
    seen.append(records.put("k", "again", expect=0, now=NOW - 9000).generation)  # by a clock that was set back
    assert seen == sorted(set(seen))
    assert records.put("other", 1, expect=0, now=NOW - 9000).generation > seen[-2]
    for key in engine.client.scan_iter(match=f"{prefix}record:*"):
        engine.client.delete(key)
    assert records.put("k", 1, expect=0, now=NOW + 9000).generation == NOW + 9000


def test_each_try_of_an_update_costs_one_call_and_conflicts_can_be_seen(records, engine):
    records.put("k", 0, expect=0)
    calls, seen = [], []
    ask = records._ask
    records._ask = lambda *words, **also: calls.append(words[0]) or ask(*words, **also)

    def disturbed(times):
        left = iter(range(times))

        def function(value):
            seen.append(value)
            if next(left, None) is not None:
                ask("sb_swap_record", records._of.root, "put", "k", "", json.dumps(value + 100), "", "")
            return value + 1

        return function

    assert records.update("k", disturbed(3)).value == 301
    assert seen == [0, 100, 200, 300]  # each refusal brought along what was there
    assert calls == ["sb_swap_record"] * 4
    with pytest.raises(Changed, match="3 times in a row") as caught:
        records.update("k", disturbed(9), 2)
    assert caught.value.tried == 3
    assert caught.value.found == records.get("k") == Record(601, caught.value.actual)
    assert caught.value.expected < caught.value.actual


def test_what_changes_nothing_or_raises_writes_nothing(records, engine, foreign):
    before = records.put("k", {"a": [1]}, expect=0)
    text = f"{foreign}text"
    engine.client.set(text, "7", px=60_000)
    assert records.update("k", lambda value: value) == before
    assert records.update("none", lambda value: DELETE) == Record(None, 0)
    assert update(engine.client, text, lambda value: value) == "7"

    def spoil(value):
        value["a"].append(2)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        records.update("k", spoil)
    for bad in (None, object(), float("nan"), {1, 2}, "x" * 2**20):
        with pytest.raises(BadInput):
            records.update("k", lambda value, bad=bad: bad)
    assert records.get("k") == before
    assert records.update("k", lambda value: value["a"].append(2) or value).value == {"a": [1, 2]}
    assert records.update("k", lambda value: DELETE) == Record(None, 0)
    assert records.get("k").exists is False


def test_a_record_with_a_time_to_live_goes_and_any_other_stays(engine, prefix):
    for name, ttl, least, most in (("short", 60, 30_001, 60_000), ("long", None, -1, -1)):
        records = Records(engine.client, name, prefix=prefix, ttl=ttl)
        records.put("k", 1, expect=0)
        key = f"{prefix}record:{{{name}}}:r:k"
        assert least <= engine.client.pttl(key) <= most
        engine.client.pexpire(key, 30_000)
        records.update("k", lambda value: value + 1)
        assert least <= engine.client.pttl(key) <= most


def test_any_key_is_its_own(records):
    keys = ["a}b", "{}", "a:b", " ", "é 🚦", "nul\0", "two\nlines", "x" * 512]
    for number, key in enumerate(keys):
        records.put(key, number, expect=0)
    assert [records.get(key).value for key in keys] == list(range(len(keys)))


def test_keys_of_other_programs_are_compared_by_contents_and_keep_their_expiry(engine, foreign):
    client, key = engine.client, f"{foreign}cart"
    assert update(client, key, lambda cart: {"tea": "1"}) == {"tea": "1"}
    client.pexpire(key, 60_000)
    assert update(client, key, lambda cart: {"milk": "2"}) == client.hgetall(key) == {"milk": "2"}
    assert 0 < client.pttl(key) <= 60_000
    turn = itertools.count()

    def meanwhile(cart):
        if next(turn) == 0:  # changed, and changed back in part: only the contents count
            client.hset(key, "milk", "9")
            client.hset(key, mapping={"milk": "2", "{a}:b\n🚦\0": ""})
        return {**cart, "milk": "3"}

    assert update(client, key, meanwhile) == client.hgetall(key) == {"milk": "3", "{a}:b\n🚦\0": ""}
    assert next(turn) == 2
    assert update(client, key, lambda cart: DELETE) is None
    assert client.exists(key) == 0
    with pytest.raises(Changed, match="4 times in a row") as caught:
        update(client, key, lambda text: str(client.incr(key)) + "!", 3)
    assert caught.value.found == "4"


def test_no_pattern_writes_a_key_of_a_machine(engine, prefix):
    theirs = [f"{prefix}machines", f"{prefix}{{m:0}}:i:x", "other:{m:0}:i:x", "a:b:{m:0}:i:x"]
    for key in (*theirs, f"{prefix[:-1]}-web:1:session"):
        with pytest.raises(BadInput, match="one of Signalbox's own") as caught:
            update(engine.client, key, lambda value: "x", prefix=prefix)
        assert caught.value.code == "SB401"
        if "{" in key:
            assert engine.client.fcall("sb_swap", 1, key, "none", "string", "0", "x")[0] == "BADARG"
        assert engine.client.exists(key) == 0
    try:
        assert update(engine.client, f"{{user:7}}:{prefix}cart", lambda text: "tea") == "tea"
    finally:
        engine.client.delete(f"{{user:7}}:{prefix}cart")


def test_what_cannot_be_compared_is_an_error_and_stays_as_it_is(records, engine, prefix, foreign):
    client, key, where, last = engine.client, f"{foreign}k", *(f"{prefix}record:{{notes}}:{k}" for k in ("r:k", "last"))
    for spoil in (
        lambda: client.rpush(key, "x"),
        lambda: client.set(key, b"\xff\xfe"),
        lambda: client.hset(key, mapping={str(n): "" for n in range(1001)}),
        lambda: client.setrange(key, 2**20, "x"),
    ):
        spoil()
        _unmoved(
            client,
            key,
            lambda: update(client, key, lambda value: "x" if not isinstance(value, dict) else value | {"0": "y"}),
        )
    for spoil in (
        lambda: client.set(where, "x"),
        lambda: client.hset(where, "value", "1"),
        lambda: client.hset(where, mapping={"value": "1", "generation": "many"}),
        lambda: client.hset(where, mapping={"value": "{", "generation": "1"}),
    ):
        spoil()
        _unmoved(client, where, lambda: records.update("k", lambda value: 2))
    for spoil in (lambda: client.rpush(last, "x"), lambda: client.set(last, "many")):
        spoil()
        _unmoved(client, last, lambda: records.put("k", 1, expect=0))
    assert client.exists(where) == 0


def _unmoved(client, key, ask):
    before = client.dump(key)
    with pytest.raises(EngineFault):
        ask()
    assert client.dump(key) == before
    client.delete(key)


def test_a_generation_past_what_can_be_counted_is_told_and_nothing_is_written(records, engine, prefix):
    where, last = (f"{prefix}record:{{notes}}:{key}" for key in ("r:k", "last"))
    engine.client.set(last, str(2**53 - 2))
    newest = records.put("k", 1, expect=0)
    assert newest.generation == records.get("k").generation == 2**53 - 1
    before = engine.client.dump(where)
    for ask in (lambda: records.put("k", 2, expect=2**53 - 1), lambda: records.delete("k", expect=None)):
        with pytest.raises(Overflow, match="2\\^53"):
            ask()
    assert engine.client.dump(where) == before
    assert engine.client.get(last) == str(2**53 - 1)


def test_one_set_of_connections_is_asked_for_its_library_once(engine, foreign):
    update(engine.client, f"{foreign}a", lambda value: "1")
    before = len(vars(engine.client)[cas.VALUES])
    threads = [threading.Thread(target=update, args=(engine.client, f"{foreign}a", lambda v: "2")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(vars(engine.client)[cas.VALUES]) == before == 1


RECORD = [
    (), ("put",), ("drop", "k", "0", "1", "", ""), ("put", "", "0", "1", "", ""), ("put", "k", "-1", "1", "", ""),
    ("put", "k", "1.5", "1", "", ""), ("put", "k", str(2**53), "1", "", ""), ("put", "k", "0", "", "", ""),
    ("put", "k", "0", "1", "0", ""), ("put", "k", "0", "1", "1e12", ""), ("put", "k", "0", "1", "", "soon"),
    ("put", "x" * 2049, "0", "1", "", ""), ("put", "k", "0", "x" * (2**20 + 1), "", ""), ("delete", "k", "nan"),
]  # fmt: skip
SWAP = [
    (), ("string",), ("list", "none", "0"), ("none", "string", "0"), ("none", "string", "0", "a", "b"),
    ("none", "hash", "0", "a"), ("string", "hash", "1", "a", "b", "c"), ("string", "string", "2", "a"),
    ("string", "string", "-1", "a"), ("none", "string", "0", "x" * (2**20 + 1)), ("hash", "none", "3", "a", "b", "c"),
]  # fmt: skip


def test_the_functions_themselves_refuse_the_same_and_write_nothing(records, engine, prefix):
    records.delete("warm", expect=None)
    key = f"{prefix}record:{{raw}}"

    @for_each(
        "function, words", [("sb_swap_record", words) for words in RECORD] + [("sb_swap", words) for words in SWAP]
    )
    def check(function, words):
        assert engine.client.fcall(function, 1, key, *words)[0] == "BADARG"
        assert list(engine.client.scan_iter(match=f"{prefix}record:*")) == []

    check()


def test_what_is_kept_for_a_client_goes_with_it(redis_url, foreign):
    client = connect(redis_url)
    update(client, foreign, lambda _: "1")
    kept = weakref.ref(client)
    client.close()
    del client
    gc.collect()
    assert kept() is None


def test_an_address_is_no_client():
    with pytest.raises(BadInput, match="client of redis-py"):
        update("redis://localhost", "k", lambda value: "1")
