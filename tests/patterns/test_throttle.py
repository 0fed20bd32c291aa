"""Limits that every process shares: exact under a race, whole figures, clear words for what makes no sense."""

import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from machines.connections import get_pattern
from machines.engine import BadInput, EngineFault, EngineUnavailable
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Throttle, Verdict
from machines.patterns.throttle import REMEMBERED, AdvanceCache
from tests import wire
from tests.cases import for_each
from tests.configuration import configure
from tests.engine.instances.racing import in_threads
from tests.installation.processes import eventually

NOW = 1_800_000_000_000
ROOT = Path(__file__).resolve().parents[2]
RACER = """
import sys
from machines.engine import Engine
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import Throttle
url, prefix = sys.argv[1:3]
throttle = Throttle(Engine.from_url(url, prefix=prefix).client, prefix)
throttle.take("warm", "up", limit=1, per=1)
print("ready", flush=True)
sys.stdin.readline()
for take in (throttle.take, throttle.count):
    print(sum(take("race", "k", limit=50, per=60, now=1800000000000).allowed for _ in range(60)), flush=True)
"""


@pytest.fixture
def throttle(engine, prefix):
    return Throttle(engine.client, prefix)


def test_a_pace_lets_the_limit_through_at_once_and_then_one_each_part_of_the_time(throttle):
    def take(at, **more):
        return throttle.take("api", "k", limit=3, per=9, now=NOW + at, **more)

    assert take(0) == Verdict(True, 2, 3.0, 0.0)
    assert [take(0).allowed, take(0).allowed] == [True, True]
    assert take(0) == Verdict(False, 0, 9.0, 3.0)
    assert take(2999) == Verdict(False, 0, 6.001, 0.001)  # what was refused has prolonged nothing
    assert take(3000) == Verdict(True, 0, 9.0, 0.0)
    assert take(3000, cost=2).retry_after == 6.0
    assert take(9000, cost=2).allowed
    assert take(1_000_000) == Verdict(True, 2, 3.0, 0.0)


@pytest.mark.parametrize("limit", [1, 3, 7, 1000, 999_983])
def test_every_limit_is_met_to_the_one_whatever_a_part_of_the_time_is(throttle, limit):
    assert throttle.take("odd", "k", limit=limit, per=1, cost=limit - 1 or 1, now=NOW).allowed
    assert [throttle.take("odd", "k", limit=limit, per=1, now=NOW).allowed for _ in range(2)] == [limit > 1, False]


def test_a_window_opens_with_the_first_and_ends_for_all(throttle, engine):
    def count(at, **more):
        return throttle.count("login", "k", limit=2, per=10, now=NOW + at, **more)

    assert count(0) == Verdict(True, 1, 10.0, 0.0)
    assert count(9000) == Verdict(True, 0, 1.0, 0.0)
    assert count(9999) == Verdict(False, 0, 0.001, 0.001)
    assert count(10_000) == Verdict(True, 1, 10.0, 0.0)
    throttle.forget("login", "k")
    assert count(10_001, cost=2).allowed


@pytest.mark.parametrize("how", ["take", "count"])
def test_no_key_is_ever_without_its_expiry_and_a_refusal_writes_nothing(throttle, engine, prefix, how):
    for attempt in range(4):
        verdict = getattr(throttle, how)("x", "k", limit=2, per=30)
        (key,) = engine.client.scan_iter(match=f"{prefix}*x:k*")
        assert 0 < engine.client.pttl(key) <= 30_000
        assert verdict.allowed == (attempt < 2)
    assert engine.client.get(key).split(" ")[2] == "2"


@pytest.mark.faults
def test_threads_and_processes_that_race_get_the_limit_and_not_one_more(throttle, redis_url, prefix):
    command = [sys.executable, "-c", RACER, redis_url, prefix]
    racers = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    here = [
        sum(verdict.allowed for verdict in in_threads([partial(how, "race", "k", limit=50, per=60, now=NOW)] * 20))
        for how in (throttle.take, throttle.count)
    ]
    there = [[int(count) for count in racer.communicate(timeout=90)[0].split()] for racer in racers]
    assert [sum(counts) for counts in zip(here, *there, strict=True)] == [50, 50]


def test_a_limit_that_was_changed_keeps_what_has_run_up(throttle):
    throttle.take("api", "k", limit=10, per=10, cost=10, now=NOW)
    assert throttle.take("api", "k", limit=20, per=10, now=NOW).allowed is False
    assert throttle.take("api", "k", limit=20, per=10, cost=10, now=NOW + 5000).allowed
    assert throttle.take("api", "k", limit=1, per=1, now=NOW + 5000).retry_after == 1.0  # no longer than its own time


def test_a_clock_that_is_set_back_gives_nothing_away_and_locks_nobody_out(throttle):
    for how in (throttle.take, throttle.count):
        assert how("back", "k", limit=1, per=10, now=NOW).allowed
        verdict = how("back", "k", limit=1, per=10, now=NOW - 3_600_000)
        assert verdict.retry_after <= 10.0


@pytest.mark.parametrize(
    ("name", "key"), [("api", "a}b"), ("api", "{}"), ("api", "a:b"), ("api", " "), ("api.b", "é\u202e"), ("api", "{:")]
)
def test_any_key_is_its_own(throttle, name, key):
    assert throttle.take(name, key, limit=1, per=1, now=NOW).allowed
    assert not throttle.take(name, key, limit=1, per=1, now=NOW).allowed
    assert throttle.take(name, f"{key}x", limit=1, per=1, now=NOW).allowed


def test_the_function_itself_refuses_the_same_and_writes_nothing(throttle, engine, prefix):
    throttle.take("warm", "up", limit=1, per=60)

    @for_each(
        "words",
        [
            ["drip", "1", "1", "1"],
            ["pace", "0", "1", "1"],
            ["pace", "1e9", "1", "1"],
            ["pace", "1", "0", "1"],
            ["pace", "2", "1", "3"],
            ["pace", "2", "1", "-1"],
            ["pace", "2", "1", "0", "", "0"],
            ["window", "x", "1", "1"],
            ["pace", "1", "1", "1", "soon"],
            [],
        ],
    )
    def check(words):
        assert engine.client.fcall("sb_throttle", 1, f"{prefix}raw", *words)[0] == "BADARG"
        assert engine.client.exists(f"{prefix}raw") == 0

    check()


def test_a_foreign_key_in_the_way_is_an_error_and_stays_as_it_is(throttle, engine, prefix):
    engine.client.lpush(PatternKeys(prefix).pace("api", "k").run, "x")
    with pytest.raises(EngineFault):
        throttle.take("api", "k", limit=1, per=1)
    engine.client.set(PatternKeys(prefix).window("api", "k").count, "nonsense")
    assert throttle.count("api", "k", limit=1, per=1).allowed


def test_without_redis_it_says_so_and_allows_nothing_by_itself(prefix, settings):
    configure(settings, REDIS_URL="unix:///nonexistent/none.sock")
    with pytest.raises(EngineUnavailable):
        get_pattern(Throttle).take("api", "k", limit=1, per=1)


def test_a_refusal_is_final_so_that_redis_is_asked_once_and_forget_lifts_it(throttle, engine, prefix):
    elsewhere, key = Throttle(engine.client, prefix), PatternKeys(prefix).window("login", "k").count
    for how, kind in ((throttle.take, "pace"), (throttle.count, "window")):
        assert how("login", "k", limit=1, per=600).allowed
        first = how("login", "k", limit=1, per=600)
        engine.client.delete(getattr(PatternKeys(prefix), kind)("login", "k").root)
        second = how("login", "k", limit=1, per=600)
        assert (second.allowed, second.remaining) == (False, 0)
        assert 0 < second.retry_after <= first.retry_after <= 600
        assert how("login", "k", limit=2, per=600).allowed  # another rule is another question
    throttle.forget("login", "k")
    assert throttle.count("login", "k", limit=1, per=600).allowed
    assert not throttle.count("login", "k", limit=1, per=600).allowed
    elsewhere.forget("login", "k")
    engine.client.delete(key)
    eventually(lambda: throttle.count("login", "k", limit=1, per=600).allowed, "the refusal is over")


def test_what_is_taken_ahead_waits_here_and_never_makes_more_of_the_limit(throttle, engine, prefix):
    key = PatternKeys(prefix).window("ahead", "k").count
    told = [throttle.count("ahead", "k", limit=10, per=600, ahead=4) for _ in range(4)]
    assert [verdict.remaining for verdict in told] == [9, 8, 7, 6]
    assert engine.client.get(key).split(" ")[1] == "4"
    elsewhere = Throttle(engine.client, prefix)
    assert elsewhere.count("ahead", "k", limit=10, per=600, cost=4).allowed
    rest = [throttle.count("ahead", "k", limit=10, per=600, ahead=4).allowed for _ in range(4)]
    assert rest == [True, True, False, False]  # two were left, and those are given


def test_what_was_taken_ahead_is_lost_after_a_moment_and_with_its_window():
    rule, taken = (10, 5000), Verdict(True, 6, 5.0, 0.0)
    for reset_after, until in ((5.0, REMEMBERED), (0.5, 0.5)):
        advances = AdvanceCache()
        told = advances.keep("k", rule, 100.0, replace(taken, reset_after=reset_after), 3)
        assert told.remaining == 9
        assert advances.spend("k", (11, 5000), 100.1) is None
        advances.keep("k", rule, 100.0, replace(taken, reset_after=reset_after), 3)
        advances.keep("k", rule, 100.1, replace(taken, reset_after=reset_after, remaining=2), 3)  # two asked at once
        spent = advances.spend("k", rule, 100.2)
        assert (spent.allowed, spent.remaining) == (True, 7)
        assert advances.spend("k", rule, 100.0 + until) is None


def test_threads_that_take_ahead_get_the_limit_and_not_one_more(engine, prefix):
    several = [Throttle(engine.client, prefix) for _ in range(3)]
    take = [partial(each.count, "race", "k", limit=60, per=600, ahead=5) for each in several]
    told = in_threads(take * 40)
    assert sum(verdict.allowed for verdict in told) <= 60
    assert int(engine.client.get(PatternKeys(prefix).window("race", "k").count).split(" ")[1]) == 60


def test_the_function_gives_what_is_left_where_less_will_do(engine, prefix):
    for kind in ("pace", "window"):
        words = [f"{prefix}{kind}", kind, 10, 10_000, 8, NOW]
        told = [engine.client.fcall("sb_throttle", 1, *words, 1) for _ in range(3)]
        assert [(each[1], each[2], each[5]) for each in told] == [(1, 2, 8), (1, 0, 2), (0, 0, 0)]
        assert told[2][4] == (1000 if kind == "pace" else 10_000)
        for least in ("0", "9", "1.5", "x", ""):
            assert engine.client.fcall("sb_throttle", 1, *words, least)[0] == "BADARG"


def test_a_look_tells_what_is_there_and_takes_nothing(throttle, engine, prefix):
    def look(at, window):
        return throttle.look("x", "k", limit=2, per=10, window=window, now=NOW + at)

    for take, window in ((throttle.take, False), (throttle.count, True)):
        assert look(0, window) == Verdict(True, 2, 0.0, 0.0)
        assert list(engine.client.scan_iter(match=f"{prefix}{'window' if window else 'pace'}*")) == []
        take("x", "k", limit=2, per=10, now=NOW)
        assert look(0, window) == Verdict(True, 1, 10.0 if window else 5.0, 0.0)
        take("x", "k", limit=2, per=10, now=NOW)
        assert [look(0, window) for _ in range(3)] == [Verdict(False, 0, 10.0, 10.0 if window else 5.0)] * 3
        assert look(10_000, window) == Verdict(True, 2, 0.0, 0.0)
    for wrong in ({"limit": 0}, {"per": -1}, {"now": "x"}):
        with pytest.raises(BadInput):
            throttle.look("x", "k", **({"limit": 2, "per": 10} | wrong))


def test_several_limits_are_asked_in_one_round_trip(throttle):
    with wire.recorded() as traffic:
        first, second = throttle.take_all([("mine", "a", 1), ("ours", "b", 5)], per=60)
    assert (first.allowed, second.allowed, second.remaining) == (True, True, 4)
    assert [len(trip) for trip in traffic.trips if trip[0][1] == "sb_throttle"] == [2]
    first, second = throttle.take_all([("mine", "a", 1), ("ours", "b", 5)], per=60)
    assert (first.allowed, first.retry_after > 0, second.allowed) == (False, True, True)
    with wire.recorded() as traffic:
        again, _ = throttle.take_all([("mine", "a", 1), ("ours", "b", 5)], per=60)
    assert (again.allowed, len(traffic.commands)) == (False, 1)
