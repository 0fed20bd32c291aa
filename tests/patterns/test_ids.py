"""Ids that sort by time: no two are the same, whatever clocks, processes and servers do."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines.engine import BadInput, Engine, EngineFault, EngineUnavailable
from machines.engine.ids import ALPHABET, END, EPOCH, encode, encode_local, is_id
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Decoded, Snowflakes, decode
from machines.patterns.base import Taken
from tests.cases import for_each
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_a_child, in_threads

NOW = 1_800_000_000_000
AHEAD = 20_000  # ms: where the first range of a server begins, with a lease of ten seconds
ROOT = Path(__file__).resolve().parents[2]
RACER = """
import sys
from machines.engine import Engine
from machines.patterns import Snowflakes
url, prefix = sys.argv[1:3]
ids = Snowflakes(Engine.from_url(url, prefix=prefix).client, "race", prefix=prefix, lease=float(sys.argv[3]))
print(ids.next(), flush=True)
for line in sys.stdin:
    print(" ".join(ids.many(int(line))), flush=True)
"""


class Hands:
    """A clock that is set by hand: ``server`` in ms, ``here`` in seconds."""

    def __init__(self) -> None:
        self.server, self.here = NOW, 1000.0

    def make(self, engine, prefix, name="own", **more) -> Snowflakes:
        return Snowflakes(
            engine.client, name, prefix=prefix, now=lambda: self.server, clock=lambda: self.here, **more
        )  # fmt: skip

    def go(self, seconds: float) -> None:
        self.server, self.here = self.server + round(seconds * 1000), self.here + seconds


@pytest.fixture
def hands():
    return Hands()


@pytest.fixture
def racer(redis_url, prefix):
    """Starts a process that makes as many ids as it is told; the process, and what it has made to begin with."""
    running = []

    def start(lease=10.0):
        command = [sys.executable, "-c", RACER, redis_url, prefix, str(lease)]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process, process.stdout.readline().split()

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.fixture
def own_engine(own_server):
    """An engine on a server of this test's own."""
    engine = Engine.from_url(own_server.url)
    yield engine
    engine.client.close()


def ask(process, count):
    process.stdin.write(f"{count}\n")
    process.stdin.flush()


@for_each(
    "parts, text",
    [
        ((EPOCH, 0, 0), "0000000000000"),
        ((EPOCH, 0, 1), "0000000000001"),
        ((EPOCH, 1, 0), "0000000000400"),
        ((EPOCH + 1, 0, 0), "0000000040000"),
        ((NOW, 3, 7), "0b5c2jw000c07"),
        ((END - 1, 1023, 4095), "7zzzzzzzzzzzz"),
    ],
)
def test_the_text_of_an_id_is_what_it_was(parts, text):
    assert encode(*parts) == text
    assert decode(text) == Decoded(*parts)


PARTS = st.tuples(st.integers(EPOCH, END - 1), st.integers(0, 1023), st.integers(0, 4095))


@given(PARTS, PARTS)
def test_texts_read_back_and_sort_as_time_node_and_sequence_do(one, other):
    assert decode(encode(*one)) == Decoded(*one)
    assert (encode(*one) < encode(*other)) == (one < other)


@given(st.integers(EPOCH, END - 1), st.integers(0, 2**19 - 1))
def test_an_id_made_without_redis_says_so_and_is_none_of_a_node(at, noise):
    text = encode_local(at, noise)
    assert decode(text) == Decoded(at, None, noise)
    assert text > encode(END - 1, 1023, 4095)
    assert is_id(text)


@for_each(
    "text",
    [
        "",
        "0",
        "000000000000",
        "00000000000000",
        "8000000000000",
        "000000000000A",
        "000000000000l",
        "0b5c2jw000c0\n",
        "0b5c2jw000c0é",
        "٠000000000000",
        None,
        7,
        b"0000000000000",
        True,
    ],
)
def test_what_is_no_id_is_told_so(text):
    with pytest.raises(BadInput, match="13 characters") as caught:
        decode(text)
    assert caught.value.code == "SB401"
    assert not is_id(text)


def test_the_alphabet_is_in_the_order_of_ascii_and_without_lookalikes():
    assert list(ALPHABET) == sorted(set(ALPHABET))
    assert len(ALPHABET) == 32
    assert not set("ilou") & set(ALPHABET)


def test_ids_of_one_range_tell_node_and_time_and_cost_one_call(own_engine, hands):
    ids = hands.make(own_engine, "sb:")
    assert decode(ids.next()) == Decoded(NOW + AHEAD, 0, 0)
    assert decode(ids.next()) == Decoded(NOW + AHEAD, 0, 1)
    hands.go(21)
    assert decode(ids.next()).at == NOW + 21_000
    assert len(set(ids.many(10_000))) == 10_000  # more than a ms holds: they borrow from the next
    assert decode(ids.next()) == Decoded(NOW + 21_002, 0, 10_001 - 2 * 4096)
    assert own_engine.client.info("commandstats")["cmdstat_fcall"]["calls"] == 1


def test_the_next_range_is_taken_when_half_of_one_is_over_and_prolongs_it(engine, prefix, hands):
    ids = hands.make(engine, prefix)
    ids.next()
    until = ids.held.until
    hands.go(24)
    ids.next()
    assert ids.held.until == until
    hands.go(1)
    ids.next()
    assert (ids.held.until, ids.held.start) == (until + 10_000, NOW + AHEAD)
    hands.go(3600)
    assert decode(ids.next()) == Decoded(NOW + 3_625_000, 0, 0)


@pytest.mark.parametrize("back", [1, 3600, 400_000])
def test_a_clock_that_steps_back_makes_no_id_twice_and_none_out_of_order(engine, prefix, hands, back):
    ids, made = hands.make(engine, prefix), []
    for turn in range(6):
        made += ids.many(500)
        hands.go(7)
        if turn == 2:
            hands.server -= back * 1000
        if turn == 4:
            hands.here -= back
    made += hands.make(engine, prefix).many(500)
    made += hands.make(engine, prefix).many(500)
    assert len(set(made)) == len(made) == 4000
    assert made[:3000] == sorted(made[:3000])


def test_a_node_that_was_taken_over_and_its_old_holder_never_meet(engine, prefix, hands):
    old = hands.make(engine, prefix)
    made = old.many(100)
    hands.server += 31_000  # the server's time goes on; the old holder stands still
    new = hands.make(engine, prefix)
    made += new.many(100)
    assert old.held.node == new.held.node == 0
    made += old.many(3 * 4096)  # of its own range, which is over for everybody else
    assert old.held.until <= new.held.start
    hands.go(60)
    made += old.many(100) + new.many(100)
    assert old.held.node != new.held.node
    assert len(set(made)) == len(made)


def test_all_nodes_held_is_an_error_that_says_when_one_is_free(engine, prefix, hands):
    first = hands.make(engine, prefix)
    first.next()
    root = engine_root(prefix)
    engine.client.zadd(f"{root}:nodes", {str(node): NOW + 50_000 + node for node in range(1, 1024)})
    with unchanged(engine), pytest.raises(Taken, match="all 1024 nodes of own are held") as caught:
        hands.make(engine, prefix).next()
    assert caught.value.retry_after == 30.0
    hands.server += 30_000
    late = hands.make(engine, prefix)
    assert decode(late.next()) == Decoded(NOW + 30_000, 0, 0)
    assert first.next() < late.next()


def test_a_node_that_was_given_back_is_taken_where_its_ranges_ended(engine, prefix, hands):
    ids = hands.make(engine, prefix)
    made = ids.many(10)
    until = ids.held.until
    ids.close()
    assert engine.client.hlen(f"{engine_root(prefix)}:holders") == 0
    ids.close()  # twice does no harm
    hands.server = until
    other = hands.make(engine, prefix)
    made += other.many(10)
    assert (other.held.node, other.held.start) == (0, until)
    assert ids.held is None
    made += ids.many(10)
    assert ids.held.node == 1
    assert len(set(made)) == 30


def test_a_server_that_lacks_its_last_writes_keeps_clear_of_all_it_can_have_given(own_server, own_engine, hands):
    root = engine_root("sb:")
    old = hands.make(own_engine, "sb:")
    hands.go(40)
    made = old.many(10)
    known = own_engine.client.zrange(f"{root}:nodes", 0, -1, withscores=True)
    hands.go(26)
    made += old.many(10)  # and with it a further range was taken
    until = old.held.until
    assert until > known[0][1]
    hands.go(5)
    own_server.stop()
    own_server.start()
    own_engine.client.zadd(f"{root}:nodes", dict(known))
    own_engine.client.delete(f"{root}:holders")
    new = hands.make(own_engine, "sb:")
    made += new.many(10) + old.many(10)
    assert new.held.node == 0
    assert until <= new.held.start <= hands.server + 2 * 10_000
    hands.go(11)
    until = new.held.until
    for part in ("nodes", "holders", "guard"):  # all that it knew
        own_engine.client.delete(f"{root}:{part}")
    bare = hands.make(own_engine, "sb:")
    made += bare.many(10) + new.many(10) + old.many(10)
    assert bare.held.node == 0
    assert until <= bare.held.start
    assert len(set(made)) == len(made)


@pytest.mark.faults
def test_threads_and_processes_that_race_make_each_id_once_and_each_in_order(engine, prefix, racer):
    ids = Snowflakes(engine.client, "race", prefix=prefix, lease=0.1)
    racers = [racer(0.1) for _ in range(2)]
    for process, _ in racers:
        ask(process, 200_000)
    here = in_threads([lambda: [ids.next() for _ in range(3000)]] * 4)
    there = [first + process.stdout.readline().split() for process, first in racers]
    for made in (*here, *there):
        assert made == sorted(made)
    everything = [id for made in (*here, *there) for id in made]
    assert len(set(everything)) == len(everything) == 412_002


@pytest.mark.faults
def test_a_process_that_was_stopped_goes_on_in_a_range_of_its_own(engine, prefix, racer):
    process, made = racer(0.2)
    node = decode(made[0]).node
    os.kill(process.pid, signal.SIGSTOP)
    ids = Snowflakes(engine.client, "race", prefix=prefix, lease=0.2)
    while node not in {decode(id).node for id in made[1:]}:  # until its node is somebody else's
        made += Snowflakes(engine.client, "race", prefix=prefix, lease=0.2).many(10)
    ask(process, 5000)
    os.kill(process.pid, signal.SIGCONT)
    made += process.stdout.readline().split() + ids.many(5000)
    assert len(set(made)) == len(made)


def test_a_child_takes_a_node_of_its_own(engine, prefix):
    ids = Snowflakes(engine.client, "own", prefix=prefix)
    ids.next()
    theirs, mine = in_a_child(partial(ids.many, 50), partial(ids.many, 50))
    assert {decode(id).node for id in mine} == {0}
    assert {decode(id).node for id in theirs} == {1}


@pytest.mark.parametrize("now", [-1, 2**63, "soon", None, 1.5, True])
def test_a_clock_that_tells_no_time_is_told_so(engine, prefix, now):
    with unchanged(engine), pytest.raises(BadInput):
        Snowflakes(engine.client, "own", prefix=prefix, now=lambda: now or "").next()


def test_past_the_end_of_41_bits_there_are_none(engine, prefix):
    with unchanged(engine), pytest.raises(EngineFault, match="2093"):
        Snowflakes(engine.client, "own", prefix=prefix, now=lambda: END - 5).next()


def test_the_function_itself_refuses_the_same_and_writes_nothing(engine, prefix):
    engine.load_library()

    @for_each(
        "words",
        [
            [],
            ["take", "t", "", "1000"],
            ["claim", "", "", "1000"],
            ["claim", "x" * 65, "", "1000"],
            ["claim", "t", "1024", "1000"],
            ["claim", "t", "-1", "1000"],
            ["claim", "t", "x", "1000"],
            ["claim", "t", "nan", "1000"],
            ["claim", "t", "", "0"],
            ["claim", "t", "", "1e9"],
            ["claim", "t", "", "inf"],
            ["claim", "t"],
            ["claim", "t", "", "1000", "soon"],
            ["release"],
            ["release", "t", "1e3x"],
        ],
    )
    def check(words):
        with unchanged(engine):
            assert engine.client.fcall("sb_ids", 1, engine_root(prefix), *words)[0] == "BADARG"

    check()


@pytest.mark.parametrize("part", ["nodes", "holders", "guard"])
def test_a_foreign_key_in_the_way_is_an_error_and_stays_as_it_is(engine, prefix, part):
    engine.client.set(f"{engine_root(prefix)}:{part}", "x")
    engine.load_library()
    with unchanged(engine), pytest.raises(EngineFault):
        Snowflakes(engine.client, "own", prefix=prefix).next()


@pytest.mark.parametrize(("member", "score"), [("x", 1), ("0", "inf"), ("0", -5), ("0", 1.5), ("0", 2**60), ("7", 1)])
def test_what_another_program_wrote_among_the_nodes_is_never_built_on(engine, prefix, hands, member, score):
    engine.client.zadd(f"{engine_root(prefix)}:nodes", {member: score})
    engine.load_library()
    ids = hands.make(engine, prefix)
    if (member, score) == ("7", 1):
        assert decode(ids.next()).node == 7  # any node will do, where it has a time
    else:
        with unchanged(engine), pytest.raises(EngineFault, match="is no time"):
            ids.next()


def test_without_redis_ids_go_on_to_the_end_of_the_range_and_then_say_so(own_server, own_engine, hands):
    ids = hands.make(own_engine, "sb:")
    first = ids.next()
    own_server.stop()
    hands.go(29)
    assert decode(ids.next()).at == NOW + 29_000
    hands.go(2)
    for ask in (ids.next, partial(ids.many, 2), Snowflakes(own_engine.client, "own").next):
        with pytest.raises(EngineUnavailable):
            ask()
    own_server.start()
    assert first < ids.next()


def engine_root(prefix):
    return PatternKeys(prefix).ids("own").root


def test_taking_ahead_is_done_once_and_also_after_a_long_pause(engine, prefix, hands):
    ids = hands.make(engine, prefix)
    ids.next()
    held, taking = ids.held, ids._generator.renew_ahead
    assert [taking() for _ in range(5)] == [True] * 5
    assert ids.held == held  # or a server that forgot would not begin beyond it
    hands.go(AHEAD / 1000 + 60)
    assert (ids._generator.next_local(), taking(), ids.held.start) == (None, True, hands.server)
    assert ids._generator.next_local()
