"""A move happens in whole or not at all: refusals, keys of another type, lost replies, two movers, large fleets."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from machines.engine import Engine
from machines.engine.errors import BadInput, EngineFault, EngineUnavailable, PlanError
from machines.engine.transfer.exporting import Export
from machines.engine.transfer.importing import Import
from machines.engine.versions import migration
from tests.engine.builders import NOW, fields, machine

from ..instance_dump import audit, dump_all

STATES = {
    "A": {"on": {"go": "Busy"}},
    "Busy": {"invoke": {"src": "pack", "queue": "pack"}, "after": {"1h": "A"}},
    "Sent": {},
}
OTHER = {
    "A": {},
    "Work": {"initial": "Busy", "states": {"Busy": {"invoke": {"src": "wrap", "queue": "wrap"}, "after": {"2h": "A"}}}},
    "Sent": {},
}


@pytest.fixture
def thing(engine):
    engine.publish(machine("thing", STATES, context=fields(n="string", t="integer"), index=["n"]))
    engine.create("thing", "i", {"n": "12", "t": 1}, now=NOW)
    engine.fire("thing", "i", "go", now=NOW)
    engine.publish(machine("thing", OTHER, context=fields(n="integer", u="integer"), index=["n"]))
    return engine


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("12", True),
        (" 7 ", True),
        ("1e2", True),
        ("1.5", False),
        ("x", False),
        ("", False),
        ("0x10", False),
        ("inf", False),
    ],
)
def test_conversions_lose_nothing(thing, value, fits):
    thing.edit("thing", "i", {"n": value}, actor="ann", reason="try")
    before = dump_all(thing, "thing", "i")
    done = thing.migrate(thing.plan("thing", 2))
    if fits:
        assert thing.get("thing", "i").data["n"] == float(value)
        audit(thing, "thing")
    else:
        assert [(one.id, one.code) for one in done.refused] == [("i", "SB613")]
        assert dump_all(thing, "thing", "i") == before


def test_an_expression_computes_from_the_old_data_or_refuses(thing):
    plan = thing.plan("thing", 2, data={"u": "t * 100", "n": "t + 1"})
    assert thing.migrate(plan).moved == 1
    assert thing.get("thing", "i").data == {"n": 2, "u": 100}


def test_an_expression_that_fails_for_one_refuses_only_that(thing):
    thing.create("thing", "j", {"n": "1", "t": 0}, version=1)
    before = dump_all(thing, "thing", "j")
    done = thing.migrate(thing.plan("thing", 2, data={"u": "10 // t"}))
    assert done.moved == 1
    assert [(one.id, one.code) for one in done.refused] == [("j", "SB614")]
    assert dump_all(thing, "thing", "j") | {"outbox": 0} == before | {"outbox": 0}


def test_removed_fields_are_dropped_or_kept(thing):
    plan = thing.plan("thing", 2, removed="keep")
    thing.migrate(plan)
    assert thing.get("thing", "i").data == {"n": 12}
    key = thing.keys.partition("thing").instance("i")
    assert thing.client.hget(key, "_k:t") == "1"


BROKEN = ["state", "history", "timers", "ready", "lookup", "versions", "log"]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_key_of_another_type_leaves_everything_as_it_was(thing, broken):
    keys, redis = thing.keys.partition("thing"), thing.client
    wrong = {
        "state": keys.state("Sent"), "history": keys.history("i"), "timers": keys.timers, "ready": keys.ready("wrap"),
        "lookup": keys.lookup("n"), "versions": keys.versions, "log": keys.log,
    }[broken]  # fmt: skip
    if broken == "log":
        thing._caller.call("sb_log_steps", keys.root, 60_000)
    kept = redis.dump(wrong)
    redis.delete(wrong)
    redis.set(wrong, "another type")
    ids = {key: redis.dump(key) for key in redis.scan_iter(match="*") if "pulse" not in key}
    states = {"Busy": "Sent"} if broken == "state" else {}
    plan = thing.plan("thing", 2, states=states)
    try:
        moved = thing.migrate(plan).moved
    except EngineFault:  # of a key that is read before the first write of a call
        moved = 0
    after = {key: redis.dump(key) for key in redis.scan_iter(match="*") if "pulse" not in key}
    assert moved == 0
    changed = {key for key in ids.keys() | after.keys() if ids.get(key) != after.get(key)}
    assert {key for key in changed if not key.endswith(":meta")} == set()
    redis.delete(wrong)
    if kept:
        redis.restore(wrong, 0, kept)
    assert thing.migrate(plan).moved == 1
    audit(thing, "thing")


def test_two_movers_at_once_move_each_instance_once(engine, redis_url, prefix):
    engine.publish(machine("thing", {"A": {}, "B": {}}))
    for number in range(600):
        engine.create("thing", f"i{number}")
    engine.publish(machine("thing", {"A": {}, "C": {}}))
    plan = engine.plan("thing", 2, states={"B": "A"})
    results = []

    def run():
        other = Engine.from_url(redis_url, prefix=prefix)
        results.append(other.migrate(plan, actor="ann"))
        other.client.close()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done.moved for done in results) == 600
    assert all(done.refused == [] for done in results)
    assert all(engine.get("thing", f"i{number}").revision == 2 for number in range(0, 600, 50))
    audit(engine, "thing")


class Forgetful(migration.Caller):
    """Loses the reply of every second call that moves instances."""

    calls = 0

    def call(self, function, root, *args):
        reply = super().call(function, root, *args)
        if function == "sb_migrate":
            Forgetful.calls += 1
            if Forgetful.calls % 2:
                raise EngineUnavailable("the reply was lost")
        return reply


def test_an_instance_whose_reply_was_lost_counts_as_moved(engine, monkeypatch):
    monkeypatch.setattr(migration, "FIRST_PAUSE", 0.001)
    engine.publish(machine("thing", {"A": {}, "B": {}}))
    for number in range(250):
        engine.create("thing", f"i{number}")
    engine.publish(machine("thing", {"A": {}, "C": {}}))
    plan = engine.plan("thing", 2, states={"B": "A"})
    first = migration.Mover(engine._caller, engine._catalog, plan).move(["i0", "i1"])
    assert [one.outcome for one in first] == ["moves", "moves"]
    monkeypatch.setattr(engine, "_caller", Forgetful(engine.client, engine.keys.prefix))
    done = engine.migrate(plan)
    assert (done.moved + done.already, done.refused) == (250, [])
    assert done.moved >= 248
    assert engine.migrate(plan).already == 250


def test_a_fleet_of_several_partitions(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=4)
    engine.publish(machine("thing", {"A": {}, "B": {}}))
    for number in range(900):
        engine.create("thing", f"i{number}", now=NOW)
    engine.publish(machine("thing", {"A": {}, "C": {}}))
    done = engine.migrate(engine.plan("thing", 2, states={"B": "A"}))
    assert (done.moved, done.kept, done.already, done.refused) == (900, 0, 0, [])


def test_a_withdrawn_version_gets_no_instances(thing):
    plan = thing.plan("thing", 2)
    thing.withdraw_version("thing", 2, actor="ann", reason="bad", instead=1)
    before = dump_all(thing, "thing", "i")
    with pytest.raises(PlanError) as caught:
        thing.migrate(plan)
    assert caught.value.code == "SB612"
    assert [one.code for one in thing.mover(plan).move(["i"])] == ["SB612"]  # withdrawn while the plan runs
    assert dump_all(thing, "thing", "i") == before


@pytest.mark.parametrize(
    "words",
    [
        ("{}", "move", "", "", "", "i"),
        ("no json", "move", "", "", "", "i"),
        ('{"format":1,"to":"2:0","from":[]}', "move", "", "", "", "i"),
        ('{"format":1,"to":"2:0","from":{"1:0":{"states":7}}}', "move", "", "", "", "i"),
        ("{}", "jump", "", "", "", "i"),
        ("{}", "move", "", "", "soon", "i"),
        ("{}", "move"),
    ],
)
def test_malformed_calls_are_refused(thing, words):
    before = dump_all(thing, "thing", "i")
    reply = thing._caller.call("sb_migrate", thing.keys.partition("thing").root, *words)
    assert reply[0] in ("BADARG", "STALE")
    assert dump_all(thing, "thing", "i") == before


def test_readers_of_steps_hear_of_the_move(thing):
    keys = thing.keys.partition("thing")
    thing._caller.call("sb_log_steps", keys.root, 60_000)
    thing.create("thing", "j", {"n": "1", "t": 0}, version=1)  # plain: nothing but its version changes
    thing.migrate(thing.plan("thing", 2))
    rows = [row for _, row in thing.client.xrange(keys.log) if row["kind"] == "step" and row["name"] == "(migrate)"]
    assert {(row["instance"], row["data"]) for row in rows} == {("i", '"Busy"'), ("j", '"A"')}


def test_an_export_carries_a_moved_instance_without_its_undo_record(thing, redis_url, prefix, tmp_path):
    thing.migrate(thing.plan("thing", 2, removed="keep"), actor="ann")
    assert thing.client.exists(thing.keys.partition("thing").undo("i"))
    Export(thing.client, thing.keys, "thing", tmp_path / "things").run()
    other = Engine.from_url(redis_url, prefix=f"{prefix}b")
    Import(other.client, other.keys, tmp_path / "things").run()
    assert other.get("thing", "i").data == thing.get("thing", "i").data
    assert [step.event for step in other.history("thing", "i")] == ["(migrate)", "go", "(create)"]
    keys = other.keys.partition("thing")
    assert (other.client.hget(keys.instance("i"), "_k:t"), other.client.exists(keys.undo("i"))) == ("1", 0)
    other.client.close()


def test_a_rate_splits_pages_and_waits_between_the_parts(monkeypatch):
    waits: list[float] = []
    monkeypatch.setattr(migration.waiting, "pause", waits.append)
    monkeypatch.setattr(migration, "time", SimpleNamespace(monotonic=lambda: 0.0))
    assert list(migration.Mover._pace([["a", "b", "c"], [], ["d"]], 2)) == [["a", "b"], ["c"], ["d"]]
    assert waits == [0.0, 1.0, 1.5]
    waits.clear()
    assert list(migration.Mover._pace([["a", "b", "c"], ["d"]], 0)) == [["a", "b", "c"], ["d"]]
    assert waits == []


@pytest.mark.parametrize("rate", [-3, 0.5, True, "9", 1_000_001])
def test_a_rate_that_is_none_is_refused(thing, rate):
    with pytest.raises(BadInput, match="rate is a whole number from 0 to 1000000"):
        thing.migrate(thing.plan("thing", 2, removed="keep"), rate=rate)
    assert thing.get("thing", "i").version == 1
