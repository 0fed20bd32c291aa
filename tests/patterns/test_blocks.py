"""Numbers in blocks: each handed out once, in one call for as many as a block has."""

import itertools
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from machines.engine import Engine, EngineFault, EngineUnavailable
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Blocks
from machines.patterns.base import Overflow
from tests.cases import for_each
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_a_child, in_threads

ROOT = Path(__file__).resolve().parents[2]
RACER = """
import json, sys
from machines.engine import Engine
from machines.patterns import Blocks
url, prefix = sys.argv[1:3]
numbers = Blocks(Engine.from_url(url, prefix=prefix).client, "race", size=7, prefix=prefix)
print("ready", flush=True)
sys.stdin.readline()
print(json.dumps([numbers.next() for _ in range(2000)] + numbers.many(1500)), flush=True)
"""


@pytest.fixture
def numbers(engine, prefix):
    return Blocks(engine.client, "invoices", size=10, prefix=prefix)


def key(prefix, name="invoices"):
    return PatternKeys(prefix).block(name).next


def test_they_count_from_one_without_a_gap_while_the_process_lives(numbers, engine, prefix):
    assert [numbers.next() for _ in range(25)] == list(range(1, 26))
    assert numbers.next_text() == "0000000000000026"
    assert numbers.many(3) == [27, 28, 29]
    assert numbers.many(21) == list(range(30, 51))
    assert numbers.many(1) == [51]
    assert engine.client.get(key(prefix)) == "61"


def test_another_process_gets_the_block_behind_and_what_was_at_hand_is_a_gap(numbers, engine, prefix):
    numbers.next()
    other = Blocks(engine.client, "invoices", size=100, prefix=prefix)
    assert other.many(2) == [11, 12]
    assert Blocks(engine.client, "others", prefix=prefix).next() == 1
    assert numbers.many(11) == [*range(2, 11), 111, 112]


def test_a_block_costs_one_call_and_many_one_too(own_server):
    client = Engine.from_url(own_server.url).client
    numbers = Blocks(client, "invoices", size=1000)
    for _ in range(1000):
        numbers.next()
    numbers.many(50_000)
    assert client.info("commandstats")["cmdstat_fcall"]["calls"] == 2
    client.close()


def test_without_redis_a_block_goes_on_to_its_end_and_loses_nothing_then(own_server):
    client = Engine.from_url(own_server.url).client
    numbers = Blocks(client, "invoices", size=5)
    assert numbers.next() == 1
    own_server.stop()
    with pytest.raises(EngineUnavailable):
        numbers.many(6)
    assert numbers.many(4) == [2, 3, 4, 5]
    for ask in (numbers.next, numbers.next_text):
        with pytest.raises(EngineUnavailable):
            ask()
    own_server.start()
    client.delete(key("sb:"))
    assert numbers.next() == 6  # even where the server has lost what it handed out
    client.close()


@pytest.mark.faults
def test_threads_and_processes_that_race_get_each_number_once_and_each_in_order(engine, prefix, redis_url):
    command = [sys.executable, "-c", RACER, redis_url, prefix]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen(command, cwd=ROOT, **pipes) for _ in range(2)]
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 2
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    numbers = Blocks(engine.client, "race", size=7, prefix=prefix)
    here = in_threads([lambda: [numbers.next() for _ in range(700)] + numbers.many(300)] * 6)
    there = [json.loads(racer.communicate(timeout=90)[0]) for racer in racers]
    for made in (*here, *there):
        assert made == sorted(made)
    everything = list(itertools.chain(*here, *there))
    assert len(set(everything)) == len(everything) == 13_000


def test_a_child_takes_blocks_of_its_own(numbers):
    numbers.next()
    theirs, mine = in_a_child(partial(numbers.many, 15), partial(numbers.many, 9))
    assert mine == list(range(2, 11))
    assert theirs == list(range(11, 26))


def test_past_2_53_there_are_none_and_nothing_is_taken(engine, prefix, numbers):
    engine.client.set(key(prefix), str(2**53 - 10))
    assert numbers.many(10)[-1] == 2**53 - 1
    engine.client.set(key(prefix), str(2**53 - 9))
    for ask in (Blocks(engine.client, "invoices", size=10, prefix=prefix).next, partial(numbers.many, 1)):
        with unchanged(engine), pytest.raises(Overflow, match="numbers left below"):
            ask()
    assert Blocks(engine.client, "invoices", size=9, prefix=prefix).next_text() == str(2**53 - 9)


@pytest.mark.parametrize("value", ["x", "", "-1", "0", "1.5", "1e3", "nan", str(2**53 + 2), str(2**64)])
def test_what_another_program_wrote_there_is_an_error_and_stays_as_it_is(engine, prefix, numbers, value):
    engine.client.set(key(prefix), value)
    engine.load_library()
    with unchanged(engine), pytest.raises(EngineFault, match="no number"):
        numbers.next()


def test_a_foreign_key_in_the_way_is_an_error_and_stays_as_it_is(engine, prefix, numbers):
    engine.client.lpush(key(prefix), "x")
    engine.load_library()
    with unchanged(engine), pytest.raises(EngineFault):
        numbers.many(2)


def test_the_function_itself_refuses_the_same_and_writes_nothing(engine, prefix):
    engine.load_library()

    @for_each(
        "words",
        [
            [],
            ["0", "1"],
            ["-1", "1"],
            ["x", "1"],
            ["1.5", "1"],
            ["1e7", "1"],
            ["nan", "1"],
            ["inf", "1"],
            ["1"],
            ["1", "0"],
            ["1", "1e16"],
            ["1", "x"],
        ],
    )
    def check(words):
        with unchanged(engine):
            assert engine.client.fcall("sb_ids_block", 1, PatternKeys(prefix).block("x").root, *words)[0] == "BADARG"

    check()
