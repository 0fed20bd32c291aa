"""Distinct members: exact while they are few, sketches that merge without error, days and weeks and months in UTC."""

import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from machines.engine import BadInput, Engine, EngineFault
from machines.patterns import Cardinality, Count
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_threads

DAY = 86_400_000
NOW = 1_800_000_000_000  # 2027-01-15, a Friday
TODAY = NOW - NOW % DAY
ROOT = Path(__file__).resolve().parents[2]
RACER = """
import sys
from machines.engine import Engine
from machines.patterns import Cardinality
url, prefix, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
few = Cardinality(Engine.from_url(url, prefix=prefix).client, "race", prefix=prefix, exact=10_000)
turned = Cardinality(Engine.from_url(url, prefix=prefix).client, "turned", prefix=prefix, exact=100)
few.count(), turned.count()
print("ready", flush=True)
sys.stdin.readline()
new = 0
for i in range(60):
    members = [f"m{i * 7 + j}" for j in range(10)] + [f"own-{number}-{i}"]
    new += few.add(*members, now=1800000000000)
    turned.add(*members, now=1800000000000)
print(new)
"""


@pytest.fixture
def make(engine, prefix):
    return partial(Cardinality, engine.client, prefix=prefix)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_members_count_once_a_day_and_exactly_while_they_are_few(make):
    visitors = make("visitors", exact=3)
    assert visitors.count(at=NOW) == Count(0, True, 0.0, TODAY)
    assert [visitors.add(*them, now=NOW) for them in (["a", "b"], ["b", "c"], ["a", "a"])] == [2, 1, 0]
    assert visitors.count(at=NOW) == Count(3, True, 0.0, TODAY)
    assert visitors.add("c", "d", now=NOW) == 1
    assert visitors.count(at=NOW) == Count(4, False, 0.0081, TODAY)  # of so few a sketch is right to the one
    assert [visitors.add("d", now=NOW), visitors.add("e", now=NOW)] == [0, 1]
    assert visitors.count(at=NOW + DAY) == Count(0, True, 0.0, TODAY + DAY)


def test_a_day_that_never_keeps_a_set_says_by_how_much_its_estimate_grew(make, engine, prefix):
    visitors = make("visitors", exact=0)
    grown = sum(visitors.add(f"m{i}", f"n{i}", now=NOW) for i in range(500))
    assert grown == visitors.count(at=NOW).number
    assert grown == pytest.approx(1000, rel=3 * 0.0081)
    assert [engine.client.type(key) for key in engine.client.scan_iter(f"{prefix}[^l]*")] == ["string"]


@pytest.mark.parametrize(
    ("period", "inside", "outside"),
    [
        ("day", ["2027-01-15T00:00:00", "2027-01-15T23:59:59.999"], ["2027-01-14T23:59:59.999", "2027-01-16T00:00"]),
        ("week", ["2027-01-11T00:00:00", "2027-01-17T23:59:59.999"], ["2027-01-10T23:59:59.999", "2027-01-18T00:00"]),
        ("month", ["2027-01-01T00:00:00", "2027-01-31T23:59:59.999"], ["2026-12-31T23:59:59.999", "2027-02-01T00:00"]),
    ],
)
def test_a_period_begins_and_ends_in_utc(make, period, inside, outside):
    visitors = make("visitors")
    for moment in [*inside, *outside]:
        visitors.add(moment, now=at(moment))
    assert visitors.count(period, at=NOW).number == len(inside)
    assert visitors.count(period, at=NOW).begin == at(inside[0])


def test_every_month_of_four_centuries_begins_on_its_first(make):
    visitors = make("visitors")
    for year in (1970, 1999, 2000, 2023, 2024, 2100, 2399, 2400):
        for month in range(1, 13):
            first = at(f"{year}-{month:02}-01T00:00:00")
            last = at(f"{year + month // 12}-{month % 12 + 1:02}-01T00:00:00") - 1
            assert {visitors.count("month", at=moment).begin for moment in (first, last)} == {first}


def test_a_series_has_each_period_with_the_present_one_last(make):
    visitors = make("visitors", keep=400)
    for ago, count in enumerate([3, 1, 4, 1, 5]):
        visitors.add(*(f"{ago}-{i}" for i in range(count)), now=NOW - ago * 30 * DAY)
    assert [each.number for each in visitors.series("month", 5, at=NOW)] == [5, 1, 4, 1, 3]
    assert [each.number for each in visitors.series("day", 3, at=NOW)] == [0, 0, 3]


def test_whoever_came_on_several_days_or_in_several_parts_counts_once_in_the_union(make):
    visitors = make("visitors")
    for day in range(5):
        visitors.add("always", f"on {day}", now=TODAY - day * DAY)
    visitors.add("always", "in the app", part="app:{7}", now=NOW)
    assert visitors.count("week", at=NOW) == Count(6, True, 0.0, TODAY - 4 * DAY)
    assert visitors.count("week", parts=["", "app:{7}"], at=NOW).number == 7
    assert visitors.count(parts=["app:{7}"], at=NOW).number == 2


def test_one_day_of_sketches_makes_the_union_an_estimate(make):
    visitors = make("visitors", exact=2)
    visitors.add("a", "b", now=NOW)
    visitors.add("a", "b", "c", now=NOW - DAY)
    assert visitors.count("week", at=NOW) == Count(3, False, 0.0081, TODAY - 4 * DAY)
    assert visitors.count(at=NOW).exact


def test_sets_that_are_too_many_to_compare_are_counted_by_their_sketches(make):
    visitors = make("visitors", exact=10_000)
    for day in range(3):
        for thousand in range(4):
            visitors.add(*(f"{day}-{thousand}-{i}" for i in range(1000)), now=TODAY + day * DAY)
    assert [each.exact for each in visitors.series("day", 3, at=TODAY + 2 * DAY)] == [True] * 3
    of_week = visitors.count("week", at=NOW)
    assert (of_week.exact, of_week.number) == (False, pytest.approx(12_000, rel=3 * 0.0081))


def test_one_call_compares_so_many_members_that_no_other_waits_long_and_the_latest_ones_first(make):
    visitors = make("visitors", exact=10_000)
    for day in range(5):
        for thousand in range(9):
            visitors.add(
                *(f"{day}-{thousand}-{i}" for i in range(1000)), part="ab"[thousand % 2], now=TODAY + day * DAY
            )
    found = visitors.series("day", 5, parts=("a", "b"), at=TODAY + 4 * DAY)
    assert [each.exact for each in found] == [False, True, True, True, True]
    assert [each.number for each in found] == [pytest.approx(9000, rel=3 * 0.0081), 9000, 9000, 9000, 9000]


def test_a_union_of_31_days_says_to_the_one_what_one_sketch_of_a_million_says(make, engine, prefix):
    """Every member comes on one day, every tenth on another one, too."""
    visitors, single = make("visitors"), f"{prefix}single"
    with engine.client.pipeline(transaction=False) as pipe:
        for first in range(0, 1_000_000, 1000):
            members = [f"m{i}" for i in range(first, first + 1000)]
            day = at("2027-01-01T12:00") + first // 1000 % 31 * DAY
            pipe.fcall("sb_distinct", 1, f"{prefix}distinct:{{visitors}}", "", 1000, 40, day, *members)
            pipe.fcall("sb_distinct", 1, f"{prefix}distinct:{{visitors}}", "", 1000, 40, NOW, *members[::10])
            pipe.pfadd(single, *members)
            if first % 50_000 == 0:
                pipe.execute()
        pipe.execute()
    found = visitors.count("month", at=NOW)
    assert found.number == engine.client.pfcount(single)
    assert (found.exact, found.number) == (False, pytest.approx(1_000_000, rel=3 * 0.0081))
    days = visitors.series("day", 31, at=at("2027-01-31T12:00"))
    assert sum(each.number for each in days) == pytest.approx(1_100_000, rel=3 * 0.0081)


@pytest.mark.faults
def test_threads_and_processes_that_race_count_each_member_once(make, redis_url, prefix):
    few, turned = make("race", exact=10_000), make("turned", exact=100)
    few.count()  # the library is there before anyone begins
    command = [sys.executable, "-c", RACER, redis_url, prefix]
    racers = [
        subprocess.Popen([*command, str(i)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for i in range(2)
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    here = in_threads([partial(each.add, f"m{i}", "t", now=NOW) for i in range(30) for each in (few, turned)])
    there = [int(racer.communicate(timeout=90)[0]) for racer in racers]
    all_of_them = 59 * 7 + 10 + 1 + 2 * 60
    assert sum(here[::2]) + sum(there) == few.count(at=NOW).number == all_of_them
    assert turned.count(at=NOW) == Count(pytest.approx(all_of_them, rel=3 * 0.0081), False, 0.0081, TODAY)


def test_no_key_is_without_its_expiry_which_is_kept_days_after_the_day(make, engine, prefix):
    visitors = make("visitors", exact=2, keep=7)
    for number in range(4):
        visitors.add(f"m{number}", now=NOW)
        for key in engine.client.scan_iter(f"{prefix}[^l]*"):
            assert abs(engine.client.pttl(key) - (TODAY + 8 * DAY - NOW)) < 60_000, key


@pytest.mark.parametrize("member", ["a}b", "{}", "a:b", " ", "line\nbreak", "\0", "🚦", "x" * 512])
def test_any_text_is_a_member_of_its_own(make, member):
    visitors = make("visitors")
    assert [visitors.add(each, now=NOW) for each in (member, member, f"{member[:-1]}.")] == [1, 0, 1]
    assert visitors.add("p", part=member, now=NOW) == 1


RAW = {
    "sb_distinct": [
        [], ["", 10, 40, ""], ["", 10, 40, "soon", "a"], ["", -1, 40, "", "a"], ["", 1e9, 40, "", "a"],
        ["", "nan", 40, "", "a"], ["", 10, 0, "", "a"], ["", 10, "inf", "", "a"], ["", 10, 40, "", "a", ""],
        ["", 10, 40, "", *["a"] * 1001], ["x" * 2049, 10, 40, "", "a"],
    ],
    "sb_distinct_count": [
        [], ["year", 1, "", ""], ["day", 0, "", ""], ["day", 373, "", ""], ["month", 13, "", ""],
        ["day", "x", "", ""], ["day", 1, "soon", ""], ["day", 1, ""], ["day", 1, "", *[""] * 9],
    ],
}  # fmt: skip


def test_the_functions_themselves_refuse_the_same_and_write_nothing(make, engine, prefix):
    make("visitors").add("a", now=NOW)
    with unchanged(engine):
        for function, words in [(function, words) for function, every in RAW.items() for words in every]:
            reply = engine.client.fcall(function, 1, f"{prefix}distinct:{{visitors}}", *words)
            assert reply[0] == "BADARG", (function, words)


@pytest.mark.parametrize("kind", ["set", "sketch", "text"])
def test_a_foreign_key_in_the_way_is_an_error_and_stays_as_it_is(make, engine, prefix, kind):
    visitors, below = make("visitors"), f"{prefix}distinct:{{visitors}}"
    if kind == "text":
        engine.client.set(f"{below}:sketch:{TODAY // DAY}:", "no sketch")
    else:
        engine.client.lpush(f"{below}:{kind}:{TODAY // DAY}:", "x")
    if kind != "set":
        engine.client.sadd(f"{below}:set:{TODAY // DAY}:", "a")
    with unchanged(engine), pytest.raises(EngineFault):
        visitors.add("b", now=NOW)


def test_more_than_one_call_may_ask_is_refused_before_anything_is_sent():
    nowhere = partial(Cardinality, Engine.from_url("unix:///nonexistent/none.sock").client, "visitors")
    for call, why in (
        (nowhere().add, "1 to 1000 members"),
        (partial(nowhere().add, *"x" * 1001), "1 to 1000 members"),
        (partial(nowhere().series, "week", 6), "whole number from 1 to 5"),
        (partial(nowhere(keep=7).count, "month"), "a month needs 31"),
    ):
        with pytest.raises(BadInput, match=why):
            call()
