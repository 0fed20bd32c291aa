"""Ranks with ties, boards that fade or begin anew, the lowest go, and nobody's points are lost in a race."""

import math
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from machines.engine import BadInput, Engine, EngineFault
from machines.engine.connection.client import connect
from machines.patterns import Place, Scoreboard
from machines.patterns.base import Overflow
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_threads

HOUR, DAY = 3_600_000, 86_400_000
NOW = 1_800_000_000_000  # 2027-01-15, a Friday, 08:00 UTC
YEAR = 365 * DAY
ROOT = Path(__file__).resolve().parents[2]
RACER = """
import sys
from machines.engine import Engine
from machines.patterns import Scoreboard
url, prefix = sys.argv[1:3]
board = Scoreboard(Engine.from_url(url, prefix=prefix).client, "race", prefix=prefix)
board.top()
print("ready", flush=True)
sys.stdin.readline()
for i in range(100):
    board.add("ann", 1)
    board.add_many({"bob": 2, f"m{i % 7}": 0.5})
"""


@pytest.fixture
def make(engine, prefix):
    return partial(Scoreboard, engine.client, prefix=prefix)


def ranks(places) -> list[tuple[int, str]]:
    return [(place.rank, place.member) for place in places]


def test_equal_scores_share_a_rank_and_the_next_one_is_as_much_lower(make):
    board = make("points")
    assert board.add_many({"ann": 9, "bob": 5, "cid": 5, "dan": 5, "eve": 1}) == 5
    assert board.top() == [
        Place(1, "ann", 9.0, False),
        Place(2, "dan", 5.0, True),
        Place(2, "cid", 5.0, True),
        Place(2, "bob", 5.0, True),
        Place(5, "eve", 1.0, False),
    ]
    assert board.top(2) == board.top()[:2]  # the last one shown is tied with one that is not
    assert board.add("eve", 4) == Place(2, "eve", 5.0, True)
    assert board.add("eve", -6.5) == Place(5, "eve", -1.5, False)
    assert board.set("eve", 9) == Place(1, "eve", 9.0, True)
    assert board.set_many({"eve": 0, "fay": 0}) == 2
    assert (board.place("fay"), board.place("nobody")) == (Place(5, "fay", 0.0, True), None)


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_first_places_are_the_same_by_either_protocol_and_as_the_function_has_them(
    make, redis_url, prefix, protocol
):
    make("points").add_many({"ann": 0.1, "bob": 0.1, "cid": -2.5, "dan": 2**53 - 1, "eve": 1e-300, "é\n": 1e-300})
    with connect(redis_url, protocol=protocol) as client:
        board = Scoreboard(client, "points", prefix=prefix)
        for count in range(1, 8):
            assert board.top(count) == board._read("top", count, "", 1, None) == make("points").top(7)[:count]


def test_the_places_around_a_member_are_those_of_the_whole_board(make):
    board, chance = make("points"), random.Random(7)
    board.add_many({f"m{i}": chance.randrange(12) for i in range(60)})
    every = board.top(1000)
    assert [place.rank for place in every] == [1 + sum(b.score > a.score for b in every) for a in every]
    assert [place.tied for place in every] == [sum(b.score == a.score for b in every) > 1 for a in every]
    for index, place in enumerate(every):
        assert board.place(place.member) == place
        assert board.around(place.member, 3) == every[max(0, index - 3) : index + 4]
    assert board.around("nobody", 3) == []


def test_the_lowest_go_when_there_are_more_than_the_board_may_have(make):
    board = make("points", most=3)
    assert board.add_many({"a": 5, "b": 4, "c": 3, "d": 2}) == 3
    assert board.add("e", 1) is None
    assert [board.add("f", 3.5), board.place("c")] == [Place(3, "f", 3.5, False), None]
    assert board.add("c", 3.25) is None  # what it had is forgotten
    assert ranks(board.top()) == [(1, "a"), (2, "b"), (3, "f")]
    assert make("points", most=2).add("g", 4.5) == Place(2, "g", 4.5, False)  # a newcomer to a board with less room
    assert ranks(board.top()) == [(1, "a"), (2, "g")]


def test_what_fades_is_worth_half_after_its_half_life(make, engine, prefix):
    board = make("hot", half_life=60)
    board.add("ann", 8, now=NOW)
    assert board.add("bob", 5, now=NOW + 60_000) == Place(1, "bob", 5.0, False)
    assert [(p.member, p.score) for p in board.top(at=NOW + 120_000)] == [("bob", 2.5), ("ann", 2.0)]
    assert board.add("ann", 0.5, now=NOW + 120_000) == Place(1, "ann", 2.5, True)
    assert board.set("cid", 3, now=NOW + 150_000).score == pytest.approx(3)
    assert board.add("late", 8, now=NOW + 60_000).score == 8.0  # what comes late is worth what it would be by now
    assert board.place("late", at=NOW + 120_000).score == 4.0
    for key in engine.client.scan_iter(f"{prefix}[^l]*"):
        assert engine.client.pttl(key) > 100 * 60_000


def test_over_years_and_through_every_scaling_back_the_order_stays_exactly_what_it_was(make):
    """Forty years with a half-life of a day are 14,600 half-lives; a double holds some two thousand."""
    board, chance = make("hot", half_life=86_400), random.Random(11)
    names = [f"m{i}" for i in range(40)]
    worth: dict[str, list[tuple[float, int]]] = {}
    moment = NOW
    while moment < NOW + 40 * YEAR:
        given = {name: chance.choice([1, 3, 2**50, 1e-9, 0.1]) for name in chance.sample(names, 12)}
        board.add_many(given, now=moment)
        for name, points in given.items():
            worth.setdefault(name, []).append((points, moment))
        found = board.top(100, at=moment)
        for place in found:
            true = sum(
                points * 2 ** ((at - moment) / DAY) for points, at in worth[place.member] if moment - at < 1000 * DAY
            )
            assert place.score == pytest.approx(true, rel=1e-9, abs=1e-25)
        before = ranks(found)
        assert ranks(board.top(100, at=moment + 90 * DAY)) == before
        moment += int(chance.uniform(5, 700) * DAY)
    assert board.add("new", 1, now=moment + 100 * YEAR) == Place(1, "new", pytest.approx(1, rel=1e-15), False)
    assert [place.member for place in board.top(at=moment + 100 * YEAR)] == ["new"]


def test_scaling_back_keeps_every_digit(make):
    board = make("hot", half_life=60)
    points = {f"m{i}": 1 / (i + 3) for i in range(200)}
    board.add_many(points, now=NOW)
    before = board.top(1000, at=NOW)
    board.add("m0", 0, now=NOW + 513 * 60_000)  # nobody is left: all had faded
    assert [place.member for place in board.top(at=NOW + 513 * 60_000)] == ["m0"]
    board.reset()
    board.add("first", 1, now=NOW - 480 * 60_000)
    board.add_many(points, now=NOW)
    board.add("next", 1, now=NOW + 60 * 60_000)  # 540 half-lives after the first
    kept = [place for place in board.top(1000, at=NOW + 60 * 60_000) if place.member in points]
    assert [(place.member, place.score * 2.0**60) for place in kept] == [
        (place.member, place.score) for place in before
    ]


def test_a_clock_that_is_set_back_breaks_nothing(make):
    board = make("hot", half_life=1)
    board.add("ann", 4, now=NOW)
    assert board.add("bob", 2**53 - 1, now=NOW - YEAR).rank in (1, 2)
    assert math.isfinite(board.place("ann", at=NOW - YEAR).score)
    assert board.place("ann", at=NOW).score == 4.0


@pytest.mark.parametrize(("period", "length", "next_one"), [
    ("hour", HOUR, NOW + HOUR), ("day", DAY, NOW + 16 * HOUR), ("week", 7 * DAY, NOW + 2 * DAY + 16 * HOUR),
])  # fmt: skip
def test_a_board_of_each_period_and_several_of_them_together(make, engine, prefix, period, length, next_one):
    board = make("points", period=period, keep=2)
    board.add_many({"ann": 5, "bob": 3}, now=next_one - 1)
    board.add_many({"bob": 4, "cid": 1}, now=next_one)
    assert ranks(board.top(at=next_one - 1)) == [(1, "ann"), (2, "bob")]
    assert ranks(board.top(at=next_one + length - 1)) == [(1, "bob"), (2, "cid")]
    assert ranks(board.top(span=2, at=next_one)) == [(1, "bob"), (2, "ann"), (3, "cid")]
    assert board.place("bob", span=3, at=next_one) == Place(1, "bob", 7.0, False)
    assert ranks(board.around("ann", 1, span=2, at=next_one)) == [(1, "bob"), (2, "ann"), (3, "cid")]
    keys = list(engine.client.scan_iter(f"{prefix}[^l]*"))
    assert len(keys) == 2
    assert all(2 * length - 60_000 < engine.client.pttl(key) <= 3 * length for key in keys)
    assert board.remove("bob", "ann", "nobody", now=next_one) == 2
    assert ranks(board.top(span=3, at=next_one)) == [(1, "cid")]
    assert board.reset(now=next_one) == 1
    assert list(engine.client.scan_iter(f"{prefix}[^l]*")) == []


def test_a_score_never_leaves_what_is_exact_and_a_refusal_changes_nothing(make, engine):
    board, fading = make("points"), make("hot", half_life=60)
    most = 2**53 - 1
    assert board.add("ann", most) == Place(1, "ann", float(most), False)
    assert board.add("bob", -most).score == -most
    fading.add("ann", most, now=NOW)
    with unchanged(engine):
        for call in (
            partial(board.add, "ann", 1), partial(board.add, "bob", -2), partial(board.add_many, {"cid": 1, "ann": 1}),
            partial(fading.add, "ann", most, now=NOW + 1000),
        ):  # fmt: skip
            with pytest.raises(Overflow) as caught:
                call()
            assert caught.value.code == "SB483"
    assert fading.add("ann", 2**52 - 1, now=NOW + 60_000).score == pytest.approx(2.0**53)


@pytest.mark.faults
def test_threads_and_processes_that_race_lose_no_point(make, redis_url, prefix):
    board = make("race")
    board.top()  # the library is there before anyone begins
    command = [sys.executable, "-c", RACER, redis_url, prefix]
    pipe = subprocess.PIPE
    racers = [subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    in_threads([partial(board.add, name, 3) for name in ("ann", "bob") for _ in range(40)])
    for racer in racers:
        racer.communicate(timeout=90)
        assert racer.returncode == 0
    assert [(p.member, p.score) for p in board.top(2)] == [("bob", 520.0), ("ann", 320.0)]
    assert sum(place.score for place in board.top(100)) == 520 + 320 + 100


@pytest.mark.parametrize("member", ["a}b", "{}", "a:b", " ", "line\nbreak", "\0", "🚦", "x" * 512, "nan", "WITHSCORES"])
def test_any_text_is_a_member_of_its_own(make, member):
    board = make("points")
    board.add_many({member: 2, f"{member[:-1]}.": 2})
    assert board.add(member, 1) == Place(1, member, 3.0, False)
    assert board.around(member, 1)[0].member == member
    assert board.remove(member) == 1


RAW = [
    [], ["some", 0, 0, "", "add", 9, "m", 1], ["fade", 0, 0, "", "add", 9, "m", 1],
    ["fade", "nan", 0, "", "add", 9, "m", 1], ["day", 0, 401, "", "add", 9, "m", 1],
    ["all", 0, 0, "soon", "add", 9, "m", 1], ["all", 0, 0, "", "give", 9, "m", 1], ["all", 0, 0, "", "add", 0, "m", 1],
    ["all", 0, 0, "", "add", 10_001, "m", 1], ["all", 0, 0, "", "add", 9, "", 1], ["all", 0, 0, "", "add", 9, "m"],
    ["all", 0, 0, "", "add", 9], ["all", 0, 0, "", "add", 9, "m", "nan"], ["all", 0, 0, "", "add", 9, "m", "inf"],
    ["all", 0, 0, "", "add", 9, "m", 2**53], ["all", 0, 0, "", "set", 9, "a", 1, "m", "x"],
    ["all", 0, 0, "", "remove", 9], ["all", 0, 0, "", "remove", 9, ""],
]  # fmt: skip
RAW_READS = [
    [], ["all", 0, 0, "", "first", 9, 1], ["all", 0, 0, "", "top", 0, 1], ["all", 0, 0, "", "top", 1001, 1],
    ["all", 0, 0, "", "top", 9, 0], ["all", 0, 0, "", "around", 501, 1, "m"], ["all", 0, 0, "", "around", 5, 1],
    ["day", 0, 0, "x", "top", 9, 1], ["day", 0, 0, "", "top", 9, 401], ["fade", -1, 0, "", "top", 9, 1],
]  # fmt: skip


def test_the_functions_themselves_refuse_the_same_and_write_nothing(make, engine, prefix):
    make("points").add("a", 1)
    with unchanged(engine):
        for function, every in (("sb_board", RAW), ("sb_ranks", RAW_READS)):
            for words in every:
                reply = engine.client.fcall(function, 1, f"{prefix}board:{{points}}", *words)
                assert reply[0] == "BADARG", (function, words)


@pytest.mark.parametrize("part", ["scores:all", "epoch", "scores:20833", "span"])
@pytest.mark.parametrize("kind", ["list", "text"])
def test_a_foreign_key_in_the_way_is_an_error_and_stays_as_it_is(make, engine, prefix, part, kind):
    key = f"{prefix}board:{{points}}:{part}"
    engine.client.lpush(key, "x") if kind == "list" else engine.client.set(key, "soon")
    if part == "epoch" or part == "scores:all":
        board, options = make("points", half_life=60), {"now": NOW}
    else:
        board, options = make("points", period="day", keep=2), {"now": NOW}
    with unchanged(engine):
        calls = [partial(board.top, 3, at=NOW)] if part != "span" else [partial(board.top, 3, span=2, at=NOW)]
        if part != "span":
            calls += [partial(board.add, "m", 1, **options), partial(board.reset, **options)]
        for call in calls:
            with pytest.raises(EngineFault):
                call()


def test_what_does_not_go_together_or_is_too_much_is_refused_before_anything_is_sent():
    made = partial(Scoreboard, Engine.from_url("unix:///nonexistent/none.sock").client, "points")
    for options in [{"half_life": wrong} for wrong in (0, -1, 1e10, math.nan, math.inf, "60", True)] + [
        {"period": "day", "half_life": 60}, {"keep": 3},
    ]:  # fmt: skip
        with pytest.raises(BadInput) as caught:
            made(**options)
        assert caught.value.code in ("SB401", "SB402"), options
    for call, why in (
        (made().remove, "1 to 1000 members"),
        (partial(made().remove, *"m" * 1001), "1 to 1000 members"),
        (partial(made().top, 3, span=2), "span"),
        (partial(made(period="hour", keep=24, most=1000).top, span=21), "20000 that are added up"),
    ):
        with pytest.raises(BadInput, match=why):
            call()
