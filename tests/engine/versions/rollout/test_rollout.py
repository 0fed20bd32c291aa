"""A version is rolled out to a share of the new instances, chosen by their ids."""

import hashlib
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from machines.engine import BadInput, Engine, UnknownMachine, VersionRefused
from tests.engine.builders import NOW, door, machine

ONE, TWO, THREE = (door(description=f"version {n}") for n in (1, 2, 3))
IDS = [f"order-{n}" for n in range(2000)]


def place(version: int, id: str) -> int:
    """The place of an id in the roll-out of a version, as any language computes it."""
    return int(hashlib.sha1(f"{version}:{id}".encode()).hexdigest()[:8], 16) % 10_000


def born(engine: Engine, ids=IDS, name="door") -> set[str]:
    """Create and delete instances; return the ids of those that had version 2."""
    found = {id for id in ids if engine.create(name, id, now=NOW).version == 2}
    for id in ids:
        engine.delete(name, id)
    return found


@pytest.fixture
def rolled(engine):
    engine.publish(ONE)
    engine.publish(TWO, rollout=5, actor="ann", reason="try it")
    return engine


def test_a_share_of_the_new_instances_gets_the_version_and_the_current_one_stays(rolled):
    assert rolled.machines() == {"door": 1}
    assert born(rolled) == {id for id in IDS if place(2, id) < 500}
    assert rolled.create("door", "named", version=2).version == 2
    rollout = rolled.rollout("door")
    assert (rollout.version, rollout.base, rollout.percent, rollout.actor) == (2, 1, 5.0, "ann")
    assert rollout.under_way
    assert rollout.guard.factor == 3


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40).filter(str.strip)


@settings(max_examples=60)
@given(WORDS, st.integers(1, 9999), st.integers(1, 9999))
def test_an_id_that_has_the_version_at_a_share_has_it_at_every_higher_one(rolled, id, low, high):
    found = []
    for share in sorted((low, high)):
        rolled.set_rollout("door", share / 100)
        assert rolled.rollout("door").percent == share / 100
        found.append(bool(born(rolled, [id])))
        assert found[-1] == (place(2, id) < share)
    assert found in ([False, False], [False, True], [True, True])


def test_the_share_is_within_statistical_bounds():
    ids = [f"x{n}" for n in range(40_000)]
    for percent in (1, 5, 20, 50):
        share, expected = sum(place(7, id) < percent * 100 for id in ids), len(ids) * percent / 100
        assert abs(share - expected) < 5 * expected**0.5, percent


def test_the_percentage_is_raised_and_lowered_and_ids_keep_their_side(rolled):
    at5 = born(rolled)
    rolled.set_rollout("door", 20.25)
    at20 = born(rolled)
    assert at5 < at20 == {id for id in IDS if place(2, id) < 2025}
    rolled.set_rollout("door", 5)
    assert born(rolled) == at5
    assert rolled.set_rollout("door", 0).stopped
    assert born(rolled) == set()
    assert rolled.set_rollout("door", 5).under_way
    assert born(rolled) == at5


def test_a_hundred_percent_makes_it_current(rolled):
    assert rolled.set_rollout("door", 100) is None
    assert rolled.machines() == {"door": 2}
    assert rolled.rollout("door") is None
    assert rolled.create("door", "a").version == 2


def test_finish_and_stop(rolled):
    stopped = rolled.stop_rollout("door", actor="ann", reason="it is slow")
    assert not stopped.under_way
    assert stopped.stopped
    assert (stopped.actor, stopped.reason, stopped.by_guard) == ("ann", "it is slow", False)
    assert rolled.create("door", "a", version=2).version == 2, "a stopped version may still be named"
    rolled.finish_rollout("door")
    assert rolled.machines() == {"door": 2}
    with pytest.raises(VersionRefused) as caught:
        rolled.stop_rollout("door")
    assert caught.value.code == "SB626"


def test_the_same_content_again_changes_nothing(rolled):
    rolled.set_rollout("door", 30)
    assert rolled.publish(TWO, rollout=5).version == 2
    assert rolled.publish(TWO).version == 2
    assert rolled.publish(ONE).version == 1
    assert rolled.rollout("door").percent == 30
    assert rolled.machines() == {"door": 1}
    rolled.stop_rollout("door")
    assert rolled.publish(TWO, rollout=5).version == 2
    assert rolled.rollout("door").stopped, "a program that publishes at its start does not restart it"


def test_another_version_ends_the_roll_out(rolled):
    assert rolled.publish(THREE).version == 3
    assert rolled.rollout("door") is None
    assert rolled.machines() == {"door": 3}


def test_another_roll_out_takes_its_place(rolled):
    assert rolled.publish(THREE, rollout=50).version == 3
    assert rolled.rollout("door").version == 3
    assert rolled.machines() == {"door": 1}
    assert rolled.start_rollout("door", 2, 10).version == 2


def test_the_first_version_of_a_machine_is_current_at_once(engine):
    assert engine.publish(ONE, rollout=5).version == 1
    assert engine.rollout("door") is None
    assert engine.create("door", "a").version == 1


@pytest.mark.parametrize("percent", [-1, 101, float("nan"), "5", True, None])
def test_a_percentage_is_a_number_from_0_to_100(rolled, percent):
    with pytest.raises(BadInput) as caught:
        rolled.set_rollout("door", percent)
    assert caught.value.code == "SB633"


@pytest.mark.parametrize("guard", [{"factor": 0}, {"minimum": 0.5}, {"dead": 1}, {"speed": 2}, 7])
def test_settings_of_the_guard_are_checked(rolled, guard):
    with pytest.raises(BadInput) as caught:
        rolled.set_rollout("door", 7, guard=guard)
    assert caught.value.code == "SB632"
    assert rolled.rollout("door").percent == 5


def test_unknown_machines_and_versions(rolled):
    with pytest.raises(UnknownMachine):
        rolled.rollout("gate")
    with pytest.raises(UnknownMachine):
        rolled.stop_rollout("gate")
    with pytest.raises(UnknownMachine):
        rolled.start_rollout("door", 9, 5)


def test_a_change_since_the_caller_looked_is_refused(rolled):
    seen = rolled.rollout("door")
    rolled.set_rollout("door", 10)
    with pytest.raises(VersionRefused) as caught:
        rolled.stop_rollout("door", expect=seen.turn)
    assert caught.value.code == "SB630"
    assert rolled.rollout("door").percent == 10


def test_children_get_it_by_their_ids_too(engine):
    engine.publish(ONE | {"accepts": {"from": ["yard"]}})
    engine.publish(TWO | {"accepts": {"from": ["yard"]}}, rollout=40)
    yard = machine("yard", {"On": {"invoke": {"src": "machine:door", "id": "child"}}})
    engine.publish(yard)
    for n in range(30):
        engine.create("yard", f"y{n}", now=NOW)
    engine.tick(now=NOW)
    children = [engine.get("yard", f"y{n}").children["child"]["id"] for n in range(30)]
    found = {id: engine.get("door", id).version for id in children}
    assert found == {id: 2 if place(2, id) < 4000 else 1 for id in children}
    assert set(found.values()) == {1, 2}


def test_all_partitions_follow_the_first(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=4)
    engine.publish(ONE)
    engine.publish(TWO, rollout=25)
    assert born(engine, IDS[:300]) == {id for id in IDS[:300] if place(2, id) < 2500}
    engine.set_rollout("door", 60)
    assert born(engine, IDS[:300]) == {id for id in IDS[:300] if place(2, id) < 6000}
    engine.finish_rollout("door")
    assert born(engine, IDS[:50]) == set(IDS[:50])
    engine.client.close()


def test_publishers_that_race_leave_all_partitions_alike(redis_url, prefix):
    engines = [Engine.from_url(redis_url, prefix=prefix, partitions=4) for _ in range(4)]
    engines[0].publish(ONE)

    def work(n):
        for k in range(4):
            definition = door(description=f"version {n} {k}")
            engines[n].publish(definition, rollout=10 * n) if n % 2 else engines[n].publish(definition)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine = engines[0]
    engine.align_versions("door")
    metas = [engine.client.hgetall(p.meta) for p in (engine.keys.partition("door", n) for n in range(4))]
    texts = [{f: m.get(f) for f in ("turn", "current", "rollout", "pin", "withdrawn")} for m in metas]
    assert all(text == texts[0] for text in texts)
    for each in engines:
        each.client.close()
