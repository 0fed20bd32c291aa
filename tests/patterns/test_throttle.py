"""Limits that every process shares: exact under a race, whole figures, clear words for what makes no sense."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from machines.connections import get_throttle
from machines.engine import BadInput, Engine, EngineFault, EngineUnavailable
from machines.patterns import Throttle, Verdict
from tests.engine.racing import in_threads

NOW = 1_800_000_000_000
ROOT = Path(__file__).resolve().parents[2]
RACER = """
import sys
from machines.engine import Engine
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
    there = [[int(count) for count in racer.communicate(timeout=60)[0].split()] for racer in racers]
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


WRONG = {
    "name": ["", "a:b", "{a}", "a b", None, 7, "x" * 65, "1a"],
    "key": ["", None, 7, "x" * 513, b"k"],
    "limit": [0, -1, 1.5, "3", None, True, 1_000_001, 2**64],
    "per": [0, -1, "60", None, True, 2_592_001, float("inf"), float("nan")],
    "cost": [0, -1, 4, 1.0, "1", True],
    "now": [-1, 1.5, "now", 10**14, True],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_what_makes_no_sense_is_told_by_name_and_sends_nothing(field, value):
    call = {"name": "api", "key": "k", "limit": 3, "per": 60} | {field: value}
    nowhere = Throttle(Engine.from_url("unix:///nonexistent/none.sock").client)
    for how in (nowhere.take, nowhere.count):
        with pytest.raises(BadInput, match=field if field != "key" else "key of") as caught:
            how(call.pop("name"), call.pop("key"), **call)
        assert caught.value.code in ("SB401", "SB402")
        call |= {"name": "api", "key": "k", field: value}


@pytest.mark.parametrize(
    "words",
    [
        ["drip", "1", "1", "1"], ["pace", "0", "1", "1"], ["pace", "1e9", "1", "1"], ["pace", "1", "0", "1"],
        ["pace", "2", "1", "3"], ["pace", "2", "1", "-1"], ["window", "x", "1", "1"], ["pace", "1", "1", "1", "soon"],
        [],
    ],
)  # fmt: skip
def test_the_function_itself_refuses_the_same_and_writes_nothing(throttle, engine, prefix, words):
    throttle.take("warm", "up", limit=1, per=60)
    assert engine.client.fcall("sb_throttle", 1, f"{prefix}raw", *words)[0] == "BADARG"
    assert engine.client.exists(f"{prefix}raw") == 0


def test_a_foreign_key_in_the_way_is_an_error_and_stays_as_it_is(throttle, engine, prefix):
    engine.client.lpush(engine.keys.pace("api", "k"), "x")
    with pytest.raises(EngineFault):
        throttle.take("api", "k", limit=1, per=1)
    engine.client.set(engine.keys.window("api", "k"), "nonsense")
    assert throttle.count("api", "k", limit=1, per=1).allowed


def test_without_redis_it_says_so_and_allows_nothing_by_itself(prefix, settings):
    settings.REDIS_URL = "unix:///nonexistent/none.sock"
    with pytest.raises(EngineUnavailable):
        get_throttle().take("api", "k", limit=1, per=1)
