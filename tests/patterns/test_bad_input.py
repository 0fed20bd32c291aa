"""What makes no sense is refused by every call of every pattern, before anything is sent: by name, with a code, and
with the keys as they were. And without Redis each says so."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
from itertools import product

import pytest
import redis

from machines import patterns
from machines.engine import BadInput, EngineUnavailable
from machines.engine.connection.client import connect
from machines.engine.connection.replies import Status
from machines.engine.errors import LookupFailed
from machines.patterns.base import Pattern, PatternError
from tests.cases import for_each
from tests.docs import engine_reference
from tests.engine.dumps import unchanged

from .battery import KEY, ODD_KEYS, Row
from .stages import STAGES
from .table import BEYOND, ROWS

CALLED = {
    "at": "now",
    "but": "handle",
    "counter": "counter|^n ",
    "field": "field|^f ",
    "function": "function|value of",
    "half_life": "half_life|period",  # which exclude each other
    "message": "message|written by its owner",
    "name": "name|a mark",
    "point": "score|member|point",
    "score": "score|member",
    "start": "start|an id",
    "write": "Write|write|entity|counter|^n |^f ",
}
"""What a message says of an argument, where that is not its name."""
READ_FIRST = {("Records.update", "now"), ("Records.update", "function"), ("Values.update", "function")}
CODES = {"SB401", "SB402", "SB403", "SB408", "SB411"}
FUNCTIONS = [header.name for header in engine_reference.read_headers() if engine_reference.is_pattern_function(header)]
NOWHERE = "unix:///nonexistent/none.sock"
WRONG_PREFIXES = ["", "sb", "a b:", "{a}:", "sb:{", "a:b:", "é:", "x" * 65 + ":", None, 7, b"sb:"]


@pytest.fixture
def stage_of(engine, prefix):
    """The stage of a class: the pattern with something in it, and what its rows ask for."""

    def made(of: type):
        stage = STAGES[of](engine.client, prefix)
        stage.redis, stage.prefix = engine.client, prefix
        return stage

    return made


@pytest.mark.parametrize("row", [row for row in ROWS if row.takes], ids=str)
def test_a_call_refuses_each_argument_that_makes_no_sense_and_changes_nothing(engine, stage_of, row: Row):
    stage = stage_of(row.of)
    wrong = [(name, value) for name, (kind, _) in row.takes.items() for value in kind]
    wrong += [(name, value) for name, values in BEYOND.get(str(row), {}).items() for value in values]
    with unchanged(engine), connect(NOWHERE) as nowhere:
        here, found = stage.made._caller.client, []
        for name, value in wrong:
            stage.made._caller.client = stage.redis = here if (str(row), name) in READ_FIRST else nowhere
            if told := _told(row, stage, name, value):
                found.append((name, value, told))
        assert found == []


@pytest.mark.parametrize("row", [row for row in ROWS if (KEY, "k") in row.takes.values()], ids=str)
def test_a_key_may_hold_whatever_a_text_can(stage_of, row: Row):
    stage = stage_of(row.of)
    (name,) = [name for name, takes in row.takes.items() if takes == (KEY, "k")]
    for odd in ODD_KEYS:
        with contextlib.suppress(PatternError, LookupFailed):  # there is no such thing, and it says so
            row.call(stage, {name: odd})


@pytest.mark.parametrize("row", [row for row in ROWS if not row.silent], ids=str)
def test_without_redis_each_call_says_so(stage_of, row: Row):
    stage = stage_of(row.of)
    with connect(NOWHERE) as nowhere:
        stage.made._caller.client = nowhere
        with pytest.raises(EngineUnavailable):
            row.call(stage, {})


@pytest.mark.parametrize("word", ["", "\0", "{a}", "-1", "1.5", "9" * 30, "nan", "é" * 600])
def test_a_function_that_is_called_with_rubbish_answers_and_changes_nothing(engine, prefix, word):
    """By any client, past all that Python asks. A status is an answer; a fault inside the function would raise."""
    engine.load_library()
    with unchanged(engine):
        for function, count in product(FUNCTIONS, range(9)):
            reply = engine.client.fcall(function, 1, f"{prefix}rubbish:{{a}}", *[word] * count)
            assert reply[0] in set(Status), (function, count, reply)


@for_each("of", [of for of in STAGES if issubclass(of, Pattern)])
def test_a_pattern_is_made_on_a_client_that_decodes_and_below_a_prefix_without_braces(of, engine, redis_url):
    needed = [one for one in inspect.signature(of).parameters.values() if one.default is one.empty][1:]
    options = {one.name: 9 if one.name == "most" else "x" for one in needed}
    with redis.Redis.from_url(redis_url) as raw:
        for wrong in (raw, None, redis_url, 7):
            with pytest.raises(BadInput) as caught:
                of(wrong, **options)
            assert caught.value.code == "SB408"
    for prefix in WRONG_PREFIXES:
        with pytest.raises(BadInput) as caught:
            of(engine.client, prefix=prefix, **options)
        assert caught.value.code == "SB401"


def test_every_public_call_of_every_pattern_is_in_the_table():
    exported = [member for member in map(patterns.__dict__.get, patterns.__all__) if inspect.isclass(member)]
    acting = {one for one in exported if not (issubclass(one, Exception) or dataclasses.is_dataclass(one))}
    found = {*acting, *_below(Pattern)}
    assert found == set(STAGES)
    public = {
        (one, name)
        for one in found
        for name, method in vars(one).items()
        if inspect.isfunction(method) and (name[0] != "_" or (name == "__init__" and issubclass(one, Pattern)))
    }
    assert public | {(of, "__init__") for of in _below(Pattern)} == {(row.of, row.method) for row in ROWS}


@for_each("row", ROWS)
def test_the_table_names_every_argument(row: Row):
    given = list(inspect.signature(getattr(row.of, row.method)).parameters.values())[1:]
    names = {f"*{one.name}" if one.kind is one.VAR_POSITIONAL else one.name for one in given}
    assert set(row.takes) == names - {"redis", "prefix", "clock"}


def _below(of: type) -> set[type]:
    """Every class of the patterns that derives from it."""
    ours = [child for child in of.__subclasses__() if child.__module__.startswith("machines.patterns.")]
    return {one for child in ours for one in {child, *_below(child)}}


def _told(row: Row, stage, name: str, value) -> str:
    """What is wrong with the refusal; "" where it is as it should be."""
    try:
        row.call(stage, {name: value})
    except BadInput as error:
        noun = name.removeprefix("*").removesuffix("s")
        named = re.search(CALLED.get(noun, noun), str(error).removeprefix(f"{error.code} "))
        return "" if named and error.code in CODES and 10 < len(str(error)) < 300 else f"{error.code} {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "it was taken"
