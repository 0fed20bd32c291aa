"""Callers in any language call the functions themselves: what does not fit is told as BADARG and changes nothing."""

import pytest

from machines.engine.connection import library
from tests.cases import for_each
from tests.engine.builders import NOW, errand, publish
from tests.engine.dumps import unchanged

# The sm_ functions answer like the module whose commands they are: with errors, and to keys of the caller's own.
FUNCTIONS = [name for name in library.function_paths() if name.startswith("sb_")]
TAKE = ["work", "w", "1", "", str(NOW), "nonce"]


@pytest.fixture
def call(engine):
    """Calls a function by its name on a machine with a ready job ``0-1`` and a held one ``0-2``."""
    publish(engine, errand(), "a", "b")
    for id in "ab":
        engine.fire("errand", id, "start", now=NOW)
    (engine.held,) = engine.take("errand", "work", "w", now=NOW)
    return lambda name, *args: engine.client.fcall(name, 1, engine.keys.partition("errand").root, *args)


@for_each("name", [name for name in FUNCTIONS if name not in ("sb_live", "sb_stats", "sb_lock_peek")])
def test_a_call_without_arguments_is_told_so(engine, call, name):
    with unchanged(engine):
        assert call(name)[0] == "BADARG"


@for_each("name", FUNCTIONS)
@for_each("word", ["", "x"])
def test_too_few_arguments_never_break_a_function(call, name, word):
    for count in range(9):
        assert call(name, *[word] * count)[0].isupper()


@for_each("name", [name for name in FUNCTIONS if name not in ("sb_permitted", "sb_wakeups")])  # take none
def test_a_call_without_its_key_or_with_two_is_told_so(engine, call, name):
    root = engine.keys.partition("errand").root
    wrong = [[]] if name == "sb_tick" else [[], [root, root]]
    for keys in wrong:
        with unchanged(engine):
            status, why = engine.client.fcall(name, len(keys), *keys, *TAKE)
        assert (status, why.partition(",")[0].removesuffix(" or more")) == ("BADARG", f"{name} takes 1 key")


@for_each(
    "position, word",
    [
        (2, "1.5"),
        (2, "nan"),
        (2, "inf"),
        (2, "0"),
        (3, "nan"),
        (3, "inf"),
        (3, "0.5"),
        (3, "x"),
        (4, "nan"),
        (4, "inf"),
        (4, "soon"),
        (4, "-1"),
        (0, ""),
        (0, "work:leased"),
        (0, "a b"),
        (0, "q" * 65),
    ],
)
def test_a_take_that_makes_no_sense_loses_no_job(engine, call, position, word):
    with unchanged(engine):
        assert call("sb_take", *TAKE[:position], word, *TAKE[position + 1 :])[0] == "BADARG"


@for_each("lease", ["nan", "inf", "0", "1.5", "1e300", "x"])
def test_no_lease_or_delay_lasts_for_ever(engine, call, lease):
    held = engine.held
    with unchanged(engine):
        assert call("sb_extend", "", lease, held.id, held.token)[0] == "BADARG"
        if lease != "0":
            assert call("sb_fail", held.id, held.token, "", "", "", "return", "", lease)[0] == "BADARG"


@for_each(
    "name, args",
    [
        ("sb_history", ["a", "1.5", "2"]),
        ("sb_history", ["a", "0", "nan"]),
        ("sb_find", ["Idle", "5", "soon", "x"]),
        ("sb_find", ["Idle", "5", "", "", "nan"]),
        ("sb_jobs", ["work", "ready", "1.5"]),
        ("sb_jobs", ["", "job"]),
        ("sb_sweep", ["", "1.5"]),
        ("sb_sweep", ["", "nan"]),
    ],
)
def test_numbers_are_whole_and_finite(engine, call, name, args):
    with unchanged(engine):
        assert call(name, *args)[0] == "BADARG"


@for_each(
    "position, word",
    [(0, ""), (0, "xyz"), (0, "a" * 65), (4, ""), (4, "0"), (4, "many"), (5, "1.5"), (5, "x"), (5, "0"), (5, "1e15")],
)
def test_a_version_gets_no_name_that_no_instance_could_use(engine, call, position, word):
    stored = engine.client.hmget(engine.keys.partition("errand").definition(1), "program", "source")
    args = ["abc", *stored, "00", "1", ""]
    args[position] = word
    with unchanged(engine):
        assert call("sb_publish", *args)[0] == "BADARG"
