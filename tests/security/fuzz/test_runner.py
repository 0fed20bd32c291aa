"""The fuzzer itself: what it draws can be drawn again, and what goes wrong is seen."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from machines.engine.expressions.functions import FUNCTIONS
from tests.cases import for_each

from . import __main__, fcalls, finds, results, summary, trees, world
from .cases import Case, deep, expand, joined, many, source, times
from .kinds import NAMES, Kind, kind
from .results import Result
from .runner import Runner
from .stage import Stage

BUSY = """#!lua name=busy
redis.register_function('busy', function(keys, args)
    local sum = 0
    for i = 1, tonumber(args[1]) do sum = sum + i end
    return sum
end)
"""


GROWING = ("sb_arrive", "sb_depart", "sb_stage")  # functions of a machine that grows


class Stub(Kind):
    """Calls of a function that counts to a number, and whatever else a test wants to happen."""

    name = "stub"

    def __init__(self, said: str = "", error: Exception | None = None) -> None:
        self.said, self.error = said, error

    def draw(self, rng: random.Random) -> Case:
        return {"count": rng.randrange(100)}

    def play(self, stage: Stage, case: Case) -> Result:
        result = Result()
        if self.error is not None:
            raise self.error
        if "busy" not in str(stage.raw.function_list()):
            stage.raw.function_load(BUSY)
        stage.raw.fcall("busy", 0, case["count"])
        result.record("stub", "OK", self.said)
        return result


@for_each("name", NAMES)
def test_an_input_can_be_drawn_again_and_written_down(name):
    made = kind(name)
    drawn = [made.draw(source(name, 7, index)) for index in range(100)]
    assert drawn == [made.draw(source(name, 7, index)) for index in range(100)]
    assert drawn == json.loads(json.dumps(drawn))
    assert drawn != [made.draw(source(name, 8, index)) for index in range(100)]


def test_what_is_large_is_written_as_how_it_is_made():
    made = {"a": times("ab", 2), "b": [times([0], 3)], "c": many("k", 2, []), "d": deep(2, 1), "e": joined("x", "y")}
    assert expand(made) == {"a": "abab", "b": [[0, 0, 0]], "c": {"k0": [], "k1": []}, "d": [[1]], "e": "xy"}


def test_every_function_of_expressions_is_called():
    assert set(trees.SIGNATURES) == set(FUNCTIONS)


def test_every_function_of_the_library_is_called_and_its_plain_call_is_sound(server):
    assert set(world.CALLS) == set(fcalls.FUNCTIONS)
    played = fcalls.Fcalls()
    for name in world.CALLS:
        before = [fcalls.plain("sb_grow")] if name in GROWING else []
        result = played.play(server, {"calls": [*before, fcalls.plain(name)], "damage": []})
        assert result.wrong == []
        assert f"{name}: BADARG" not in result.answers


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("user_function:12: attempt to index a nil value", True),
        ("FAULT internal: something", True),
        ("WRONGTYPE Operation against a key script: sb_get, on @user_function:812.", False),
        ("the guard needs more than the 250000 units of work", False),
    ],
)
def test_words_of_the_runtime_are_known(text, raw):
    assert bool(results.raw(text)) is raw


def test_what_goes_wrong_is_told_with_how_to_make_it_again(server, tmp_path):
    runner = Runner(server, Stub(said="user_function:1: attempt to call a nil value"))
    report = runner.run(7, [3])
    assert len(report.wrong) == 1
    assert any("--kind stub --seed 7 --only 3" in line for line in summary.lines(report, "stub", 7))
    finds.save(tmp_path, "stub", 7, report)
    (saved,) = finds.saved(tmp_path)
    assert (saved.kind, saved.case) == ("stub", report.wrong[0].case)


def test_an_exception_is_a_find(server):
    assert "ZeroDivisionError" in Runner(server, Stub(error=ZeroDivisionError())).one(0, {"count": 1}).wrong[0]


@pytest.mark.redis
def test_a_call_that_holds_the_server_is_a_find(server):
    runner = Runner(server, Stub(), limit=1.0)
    assert runner.one(0, {"count": 1_000_000}).wrong != []
    assert runner.one(1, {"count": 1}).wrong == []
    assert [slow.index for slow in runner.report.slow] == [0]


@pytest.mark.redis
def test_a_call_without_end_is_ended(server, monkeypatch):
    monkeypatch.setattr("tests.security.fuzz.stage.PATIENCE", 0.1)
    server.raw.connection_pool.connection_kwargs["socket_timeout"] = 2
    runner = Runner(server, Stub())
    assert "the server does not come back" in runner.one(0, {"count": 1e300}).wrong
    assert runner.one(1, {"count": 1}).wrong == []


def test_the_command_ends_with_an_error_when_something_was_wrong(monkeypatch, capsys):
    monkeypatch.setattr(__main__, "kind", lambda name: Stub())
    assert __main__.main(["--kind", "expressions", "--count", "2"]) == 0
    assert "2 inputs of seed 7, 0 wrong" in capsys.readouterr().out
    monkeypatch.setattr(__main__, "kind", lambda name: Stub(error=ValueError("no")))
    assert __main__.main(["--kind", "expressions", "--only", "5"]) == 1
    assert "--only 5" in capsys.readouterr().out


def test_finds_are_small_enough_to_be_read():
    for path in Path(finds.FOLDER).glob("*.json"):
        assert path.stat().st_size < 20_000, path.name
