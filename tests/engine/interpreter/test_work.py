"""The work of a step is counted: what is dear for the server is charged by its size, and a step that needs too much is
refused. Each case is a guard or an action that held the server for seconds before it was counted."""

import pytest

from machines.engine import DefinitionError, Refused, TooMuchWork
from machines.engine.limits import MAX_STATE_PARTS
from tests.engine.builders import NOW, fields, machine, publish, started
from tests.engine.dumps import unchanged

LONG = "x" * 60_000
ACCENTS = "é" * 30_000
WORDS = [""] * 300
NUMBERS = [0] * 30_000
PAIRS = {f"k{n}": n for n in range(5_000)}
WHOLE = 250_000


def many(part, count):
    """The part in one list, ``count`` times."""
    return "[" + ", ".join([part] * count) + "]"


def different(count):
    return "[" + ", ".join(f"s + '{n}'" for n in range(count)) + "]"


def either(part, count):
    return " or ".join([part] * count)


GUARDS = {
    "sorting long texts": (f"len(sorted({different(100)})) == 0", {"s": LONG}),
    "the largest of long texts": (either(f"max({different(39)}) == ''", 4), {"s": LONG}),
    "reading a long list again and again": (f"len({many('l', 200)}) == 0", {"l": NUMBERS}),
    "texts that nearly match": (
        either("index_of(repeated('a', 65000), repeated('a', 32000) + 'b') == 0", 30),
        {},
    ),
    "the last of many matches": (either("last_index_of(s, repeated('x', 30000)) == 0", 30), {"s": LONG}),
    "characters of a long text": (either("slice(s, 1, 29999) == ''", 60), {"s": ACCENTS}),
    "ranges": (either("sum(range(0, 9999)) < 0", 60), {}),
    "upper and lower case": (either("lower(upper(s)) == ''", 90), {"s": LONG}),
    "lists as text": (f"joined({many('l', 200)}) == '-'", {"l": WORDS}),
    "replacing in a long text": (either("replace(s, 'x', 'y') == ''", 20), {"s": LONG}),
    "splitting a long text": (either("len(split(s, 'x')) == 0", 20), {"s": LONG}),
    "objects as text": (either("str(o) == ''", 20), {"o": PAIRS}),
    "spaces at the end": (either("strip(s) == ''", 60), {"s": "x" + " " * 59_000}),
}


def context():
    return fields(
        s={"type": "string", "default": ""},
        l={"type": "array", "default": []},
        o={"type": "object", "default": {}},
        n={"type": "integer", "default": 0},
    )


def guarded(guard, copies=1):
    go = {"guard": guard, "actions": {"set": {"n": "n + 1"}}}
    on = {"go": [go] * copies, "ok": {"actions": {"set": {"n": "n + 1"}}}}
    return machine("dear", {"A": {"on": on}}, context=context())


@pytest.mark.parametrize("what", GUARDS)
def test_a_guard_of_too_much_work_refuses_the_step_and_the_instance_goes_on(engine, what):
    guard, data = GUARDS[what]
    started(engine, guarded(guard), data=data)
    with unchanged(engine):
        with pytest.raises(TooMuchWork) as caught:
            engine.fire("dear", "x", "go", now=NOW)
        explained = engine.explain("dear", "x", "go", now=NOW)
    assert caught.value.code == "SB442"
    assert explained.exhausted
    assert explained.work >= WHOLE
    assert engine.fire("dear", "x", "ok", now=NOW).data["n"] == 1


def test_many_guards_share_the_work_of_one_step(engine):
    """Each of them alone is fine: a step of one evaluates it and says no."""
    guard = "max(" + different(20) + ") == ''"
    started(engine, guarded(guard), data={"s": LONG})
    with pytest.raises(Refused) as caught:
        engine.fire("dear", "x", "go", now=NOW)
    assert caught.value.code == "SB430"
    started(engine, guarded(guard, 30) | {"id": "dearer"}, data={"s": LONG})
    with unchanged(engine), pytest.raises(TooMuchWork):
        engine.fire("dearer", "x", "go", now=NOW)


def test_no_block_of_actions_and_no_error_event_catches_it(engine):
    dear = {"if": [{"guard": GUARDS["sorting long texts"][0], "do": {"set": {"n": 1}}}]}
    on = {"go": {"actions": [dear]}, "error.execution": {"actions": {"set": {"n": 2}}}}
    started(engine, machine("raising", {"A": {"on": on}}, context=context(), errors="raise"), data={"s": LONG})
    with unchanged(engine), pytest.raises(TooMuchWork):
        engine.fire("raising", "x", "go", now=NOW)


def test_the_same_step_takes_the_same_work_every_time(engine):
    started(engine, guarded("len(sorted(l)) == 0"), data={"l": list(range(500))})
    works = [engine.explain("dear", "x", "go", now=NOW).work for _ in range(3)]
    assert len(set(works[1:])) == 1
    assert 0 < works[-1] < WHOLE


def test_an_explanation_lists_as_many_candidates_as_it_has_work_for(engine):
    started(engine, guarded("s == '' or n == 1", 1000), data={"s": LONG[:2_000]})
    with pytest.raises(Refused) as caught:
        engine.fire("dear", "x", "go", now=NOW)
    seen = caught.value.explanation
    assert seen.candidates
    assert seen.candidates[0].because
    assert len(seen.candidates) + seen.omitted == 1000
    assert f"and {seen.omitted} more" in str(seen)


def test_what_is_counted_in_one_call_does_not_weigh_on_the_next(engine):
    started(engine, guarded(GUARDS["ranges"][0]))
    for _ in range(5):
        with pytest.raises(TooMuchWork):
            engine.fire("dear", "x", "go", now=NOW)
        publish(engine, guarded("n == 1") | {"description": "larger " * 100})
        engine.client.fcall("sb_enqueue", 1, engine.keys.partition("dear").root, "default", "work", "[1, 2, 3]")


def test_a_range_ends_where_numbers_stop_being_exact(engine):
    """2 ** 60 + 1 is 2 ** 60: what counts up from there never arrives."""
    started(engine, guarded("len(range(2.0 ** 60, 2.0 ** 60 + 512)) > 0"))
    assert engine.fire("dear", "x", "go", now=NOW).data["n"] == 1


def test_a_state_has_a_size_since_one_step_compiles_it_whole(engine):
    guard = " and ".join(f"n != {number}" for number in range(100))
    with pytest.raises(DefinitionError, match=f"parts; {MAX_STATE_PARTS} are allowed") as caught:
        engine.publish(guarded(guard, 200))
    assert [finding.code for finding in caught.value.findings if finding.is_error] == ["SB111"]


def test_states_are_compiled_as_instances_come_to_them(engine):
    """The child's actions `finalize`, a history's default and a timer are there also where nobody was before."""
    deep = {
        "A": {"on": {"go": "P"}},
        "P": {
            "initial": "P1",
            "states": {"P1": {"on": {"next": "P2"}}, "P2": {"after": {"1s": "P1"}}, "H": {"type": "history"}},
            "on": {"out": "B"},
        },
        "B": {"on": {"back": "H"}},
    }
    started(engine, machine("lazy", deep))
    for event, state in [("go", "P1"), ("next", "P2"), ("out", "B"), ("back", "P2")]:
        engine.client.execute_command("FUNCTION", "FLUSH")
        engine.load_library()
        assert engine.fire("lazy", "x", event, now=NOW).state == state
    engine.client.execute_command("FUNCTION", "FLUSH")
    engine.load_library()
    engine.drive(["lazy"], now=NOW + 2_000)
    assert engine.get("lazy", "x").state == "P1"


def test_a_page_of_large_instances_ends_early_and_goes_on(engine):
    publish(engine, guarded("n == 1"))
    for number in range(100):
        engine.create("dear", f"i{number:03}", data={"s": LONG}, now=NOW + number)
    _, score, id, *rows = engine.client.fcall("sb_find", 1, engine.keys.partition("dear").root, "A", 100)
    assert (score, id) != ("", "")
    assert 0 < len(rows) / 3 < 100
    page = engine.find("dear", state="A", limit=100)
    assert [instance.id for instance in page.instances] == [f"i{number:03}" for number in range(100)]


def test_a_search_reads_no_list_to_compare_it_with_a_text(engine):
    publish(engine, guarded("n == 1"))
    engine.create("dear", "list", data={"l": NUMBERS})
    engine.create("dear", "none", data={})
    found = engine.find("dear", state="A", where={"l": "x"})
    assert found.instances == []


@pytest.mark.parametrize("count", range(8_000, 21_001, 1_000))
def test_what_a_job_ended_with_is_taken_or_is_too_much_work_and_nothing_in_between(engine, count):
    """Writing it down for the history takes work, too: a step that has none left for that is not noted, and goes on."""
    kept = {"src": "w", "id": "w", "onDone": {"target": "Idle", "actions": {"set": {"x": "event.result"}}}}
    states = {"Idle": {"on": {"start": "Busy"}}, "Busy": {"invoke": kept}}
    publish(engine, machine("keeper", states, context=fields(x={})), "a", "b")
    for id in "ab":
        engine.fire("keeper", id, "start", now=NOW)
    (job,) = engine.take("keeper", "w", "me", now=NOW)
    result = {"x": [[]] * count}
    ways = (
        lambda: engine.complete(job, result, now=NOW),
        lambda: engine.skip("keeper", "b", "w", result, actor="ann", reason="why", now=NOW),
    )
    for way in ways:
        try:
            assert way().data["x"] == result
        except TooMuchWork:
            assert count > 10_000
