"""find by what an instance is beside its data: who acted last, which version it follows, what is wrong with it now."""

import json

import pytest

from machines.engine import BadInput
from tests.cases import for_each
from tests.engine.builders import NOW, door, errand, fields, machine, publish, unhandled_errand
from tests.engine.dumps import dump

from .indexed import every

FACTS = ["instance.actor", "instance.version"]
INDEXED = pytest.mark.parametrize("index", [[], FACTS], ids=["compared", "indexed"])


def wrong(engine, name, id):
    """What is kept as wrong with an instance: pairs of kind and text."""
    text = engine.client.hget(engine._catalog.partition(name, id).wrong, id)
    return sorted(map(tuple, json.loads(text or "{}").values()))


def index_of_errors(engine, name):
    keys = [partition.lookup("instance.error") for partition in engine._catalog.partitions(name)]
    return sorted(entry for key in keys for entry in engine.client.zrange(key, 0, -1))


def bury(engine, id, kind="ValueError", text="no such dish"):
    """The instance's job fails for good."""
    engine.fire("errand", id, "start", now=NOW)
    (job,) = engine.take("errand", "work", worker="w", now=NOW)
    engine.fail(job, text, kind=kind, retry=False, now=NOW)
    return job.id


@INDEXED
def test_who_acted_last_is_found_and_the_engine_itself_is_nobody(many, index):
    definition = errand(retry={"attempts": 1}) | {"index": index}
    publish(many, definition)
    for number in range(6):
        many.create("errand", f"i{number}", actor="alice", now=NOW)
    many.create("errand", "nobody", now=NOW)
    many.fire("errand", "i1", "start", actor="bob")
    many.fire("errand", "i2", "start")
    many.force("errand", "i3", "Done", actor="bobby", reason="r")
    many.suspend("errand", "i4", actor="bob", reason="r")
    many.delete("errand", "i5")
    jobs = [job for _ in range(9) for job in many.take("errand", "work", worker="w")]
    many.complete(next(job for job in jobs if job.instance == "i1"), {})
    assert many.get("errand", "i1").state == "Done"
    assert sorted(every(many, "errand", actor="alice")) == ["i0", "i2"]
    assert sorted(every(many, "errand", actor="bob")) == ["i1", "i4"], "a job's end is nobody's step"
    assert sorted(every(many, "errand", actor={"prefix": "bob"}, limit=1)) == ["i1", "i3", "i4"]
    assert every(many, "errand", actor="bob", state="Done") == ["i1"]
    assert every(many, "errand", actor="carol") == []
    assert (many.get("errand", "i1").actor, many.get("errand", "nobody").actor) == ("bob", "")
    if index:
        held = {p.lookup("instance.actor") for p in many._catalog.partitions("errand")}
        entries = sorted(entry for key in held for entry in many.client.zrange(key, 0, -1))
        assert entries == ["salice\0i0", "salice\0i2", "sbob\0i1", "sbob\0i4", "sbobby\0i3"]


@INDEXED
def test_a_version_is_found_in_all_states(engine, index):
    publish(engine, door(index=index), "a", "b", now=NOW)
    publish(engine, door(index=index, description="second"), "c", now=NOW + 1)
    engine.fire("door", "b", "open", now=NOW + 2)
    assert sorted(every(engine, "door", version=1, limit=1)) == ["a", "b"]
    assert every(engine, "door", version=2) == ["c"]
    assert every(engine, "door", version=1, state="Open") == ["b"]
    assert every(engine, "door", version=3) == []


def test_nothing_is_written_where_nobody_is_named(engine):
    publish(engine, door(), "a")
    engine.fire("door", "a", "open")
    assert "_actor" not in engine.client.hgetall(engine.keys.partition("door").instance("a"))
    assert not any(b":by:" in key or b":wrong" in key for key in dump(engine))


def test_a_dead_job_is_wrong_with_its_instance_until_it_is_dead_no_more(many):
    publish(many, unhandled_errand(), "a", "b", "c", "d")
    died = [("a", "ValueError", "no dish"), ("b", "KeyError", "no table"), ("c", "ValueError", "é" * 150)]
    jobs = {id: bury(many, id, kind, text) for id, kind, text in died}

    def found(**terms):
        return sorted(every(many, "errand", **terms))

    assert found(error="any") == ["a", "b", "c"] == found(error="any", limit=1)
    assert found(error="ValueError", limit=1) == ["a", "c"] == found(error="ValueError", newest=True)
    assert found(error="no ") == ["a", "b"]
    assert found(error="é" * 100) == ["c"], "longer than a mark of the index"
    assert found(error="no t", state="Busy") == ["b"]
    assert found(error="any", state="Idle") == found(error="dish") == []
    assert wrong(many, "errand", "a") == [("ValueError", "no dish")]
    many.redrive("errand", "work", job=jobs["a"], actor="o", reason="r")
    many.delete("errand", "c")
    assert (found(error="any"), wrong(many, "errand", "a")) == (["b"], [])
    many.withdraw("errand", jobs["b"], actor="o", reason="r")
    assert (found(error="any"), index_of_errors(many, "errand")) == ([], [])
    assert not any(many.client.exists(partition.wrong) for partition in many._catalog.partitions("errand"))


def test_of_several_things_that_are_wrong_each_leads_to_the_instance_once(engine):
    work = {"invoke": {"src": "work"}}
    sides = {name: {"initial": f"{name}1", "states": {f"{name}1": work}} for name in ("Left", "Right")}
    states = {"Idle": {"on": {"start": "Both"}}, "Both": {"type": "parallel", "states": sides}}
    publish(engine, machine("errand", states), "a")
    engine.fire("errand", "a", "start", now=NOW)
    first, second = engine.take("errand", "work", worker="w", count=2, now=NOW)
    for job, text in ((first, "one"), (second, "two")):
        engine.fail(job, text, kind="ValueError", retry=False, now=NOW)
    assert every(engine, "errand", error="any", limit=1) == every(engine, "errand", error="ValueError") == ["a"]
    engine.withdraw("errand", first.id, actor="o", reason="r")
    assert (every(engine, "errand", error="one"), every(engine, "errand", error="ValueError")) == ([], ["a"])
    engine.purge("errand", "work", actor="o", reason="r", place="dead")
    assert every(engine, "errand", error="any") == index_of_errors(engine, "errand") == []


def test_a_timer_that_was_put_off_is_wrong_until_it_is_over(engine):
    publish(engine, fragile(), "carried", "left", "held", "gone")
    engine.tick("fragile", now=NOW + 1_000)
    assert sorted(every(engine, "fragile", error="timer")) == ["carried", "gone", "held", "left"]
    assert "division by zero" in wrong(engine, "fragile", "left")[0][1]
    engine.fire("fragile", "carried", "mend", now=NOW + 2_000)
    engine.tick("fragile", now=NOW + 61_000)
    engine.fire("fragile", "left", "leave", now=NOW + 62_000)
    engine.suspend("fragile", "held", actor="a", reason="r", now=NOW + 62_000)
    assert every(engine, "fragile", error="any") == ["gone"]
    engine.delete("fragile", "gone")
    assert index_of_errors(engine, "fragile") == []


def fragile():
    """Its timer fails until ``mend``."""
    after = {"1s": {"target": "B", "actions": {"set": {"n": "1 / n"}}}}
    states = {"A": {"after": after, "on": {"mend": {"actions": {"set": {"n": "1"}}}, "leave": "B"}}, "B": {}}
    return machine("fragile", states, context=fields(n={"type": "number", "default": 0}))


def test_jobs_that_died_before_there_was_an_index_are_found_after_a_worker_looked_them_over(engine):
    publish(engine, unhandled_errand(), "a")
    bury(engine, "a")
    partition = engine.keys.partition("errand")
    engine.client.delete(partition.wrong, partition.lookup("instance.error"))
    assert every(engine, "errand", error="any") == []
    engine.mend("errand")
    assert every(engine, "errand", error="any") == ["a"]


@INDEXED
def test_what_was_made_before_it_was_declared_is_indexed_by_reindex(many, index):
    publish(many, door(), *(f"i{n}" for n in range(9)))
    many.fire("door", "i1", "open", actor="alice")
    publish(many, door(index=index, description="second"))
    many.fire("door", "i2", "open", actor="alice")
    assert sorted(every(many, "door", actor="alice")) == ["i1", "i2"]
    assert (many.index_progress("door") is None) == (not index)
    assert many.fill_indexes("door") == (9 if index else None)
    assert many.fill_indexes("door") is many.index_progress("door") is None
    assert sorted(every(many, "door", actor="alice")) == ["i1", "i2"]
    assert len(every(many, "door", version=1)) == 9


def test_terms_that_are_none_are_refused(engine):
    publish(engine, door(), "a")

    @for_each(
        "terms",
        [
            {"actor": ""},
            {"actor": 5},
            {"actor": {"ge": 5}},
            {"actor": "a\0"},
            {"error": ""},
            {"error": 7},
            {"error": "x" * 201},
            {"error": "\ud800"},
            {"version": 0},
            {"version": True},
            {"id_prefix": ""},
        ],
    )
    def check(terms):
        for search in (engine.find, engine.tally):
            with pytest.raises(BadInput) as caught:
                search("door", **terms)
            assert caught.value.code in ("SB418", "SB402")

    check()
