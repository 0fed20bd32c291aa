"""What a write buffer does with arguments that make no sense, and with what others put in its place."""

from functools import partial

import pytest

from machines.engine import BadInput, Engine, EngineFault
from machines.patterns import Batch, Write, WriteBuffer
from tests.engine.dumps import unchanged

from .test_write_buffer import NOW, STRANGE, contents


@pytest.fixture
def buffer(engine, prefix):
    return WriteBuffer(engine.client, "box", prefix=prefix)


@pytest.mark.parametrize("entity", STRANGE)
def test_any_entity_counter_and_field_is_its_own(buffer, entity):
    buffer.add(entity, counters={entity: 2}, fields={entity: entity})
    buffer.add(entity[:-1] or "other", counters={"n": 1})
    assert contents(buffer.claim())[entity] == ({entity: 2}, {entity: entity})


RAW = [
    ("sb_buffer_add", words)
    for words in (
        [], ["x"], ["", "0"], ["", "1e99", "p", "0"], ["", "9", "", "0"], ["", "9", "p", "-1"], ["", "9", "p", "0"],
        ["", "9", "p", "1", "m"], ["", "9", "p", "1", "m", "short", "new"], ["", "9", "p", "1", "m", "", ""],
        ["", "9", "p", "0", "e"], ["", "9", "p", "0", "e", "0", "0"], ["", "9", "p", "0", "e", "1", "0", "n"],
        ["", "9", "p", "0", "e", "1", "0", "n", "1.5"], ["", "9", "p", "0", "e", "1", "0", "n", "9007199254740993"],
        ["", "9", "p", "0", "e", "1", "0", "n", "inf"], ["", "9", "p", "0", "e", "0", "1", "f"],
        ["", "9", "p", "0", b"\xff", "1", "0", "n", "1"], ["", "9", "p", "0", "e", "1", "0", "n", "1", "left"],
        ["", "9", "p", "0", "e", "20001", "0", "n", "1"],
    )
] + [
    ("sb_buffer_claim", words)
    for words in (
        [], ["x"], ["", "0"], ["", "1", "0"], ["", "1", "1", "-1"], ["", "1", "1", "0", ""], ["", "1", "1", "0", "a b"],
    )
] + [
    ("sb_buffer_settle", words)
    for words in (
        [], ["end", "1-1", "1-a"], ["settle", "x", "1-a"], ["settle", "1-1", ""], ["back", "1-1", "1-a", "soon"],
    )
] + [("sb_buffer_look", ["soon"])]  # fmt: skip


def test_the_functions_themselves_refuse_the_same_and_write_nothing(buffer, engine, prefix):
    buffer.add("e", counters={"n": 1})
    with unchanged(engine):
        for function, words in RAW:
            reply = engine.client.fcall(function, 1, f"{prefix}buffer:{{box:0}}", *words)
            assert reply[0] == "BADARG", (function, words)
            assert reply[1]


def test_something_foreign_in_the_way_stays_as_it_is_and_holds_up_nothing_else(buffer, engine, prefix):
    client, root = engine.client, f"{prefix}buffer:{{box:0}}"
    buffer.add_many([Write(entity, {"n": 1}) for entity in ("list", "hash", "word", "good")], now=NOW)
    client.delete(f"{root}:e:list", f"{root}:e:hash")
    client.rpush(f"{root}:e:list", "x")
    client.hset(f"{root}:e:hash", "x", "y")
    client.hset(f"{root}:e:word", "c:n", "many")
    for entity in ("list", "hash", "word"):
        with unchanged(engine), pytest.raises(EngineFault):
            buffer.add_many([Write("new", {"n": 1}), Write(entity, {"n": 1})], now=NOW)
    client.hset(f"{root}:e:word", "c:n", "5")
    assert set(contents(buffer.claim(now=NOW))) == {"good", "word"}
    assert (client.lrange(f"{root}:e:list", 0, -1), client.hgetall(f"{root}:e:hash")) == (["x"], {"x": "y"})
    add = partial(buffer.add, "other", counters={"n": 1}, now=NOW)
    mark = partial(buffer.add_many, [Write("other", {"n": 1})], marks={"m": (None, "x")})
    claim = partial(buffer.claim, now=NOW + 1)
    for key, call in [
        ("pending", add),
        ("held", add),
        ("seq", add),
        ("marks", mark),
        ("claims", claim),
        ("held", claim),
    ]:
        client.delete(f"{root}:{key}")
        client.rpush(f"{root}:{key}", "x")
        with unchanged(engine), pytest.raises(EngineFault):
            call()
        client.delete(f"{root}:{key}")
    add()
    for text in ("1.5", "1e3", " 1", "007", "inf", "x"):  # numbers to Lua, and none to INCRBY
        client.set(f"{root}:held", text)
        with unchanged(engine), pytest.raises(EngineFault):
            claim()
    client.set(f"{root}:held", "-3")
    assert set(contents(claim())) == {"other"}


def test_a_batch_ends_before_it_is_too_much_for_one_answer(buffer):
    buffer.add_many([Write(f"e{number:02}", fields={str(n): "x" * 50_000 for n in range(5)}) for number in range(20)])
    sizes = []
    while batch := buffer.claim(limit=1000):
        sizes.append(len(batch.entries))
        assert isinstance(batch, Batch)
        buffer.settle(batch)
    assert (sum(sizes), max(sizes) < 20) == (20, True)


def test_a_write_of_nothing_is_refused_before_it_is_sent():
    with pytest.raises(BadInput, match="1 to 20000 counters and fields"):
        WriteBuffer(Engine.from_url("unix:///nonexistent/none.sock").client, "box").add("a")
