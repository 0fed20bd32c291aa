"""A withdrawn version gets no new instance."""

import pytest

from machines.engine import Engine, UnknownMachine, VersionRefused
from tests.engine.builders import door

ONE, TWO, THREE = (door(description=f"version {n}") for n in (1, 2, 3))


@pytest.fixture
def two(engine):
    engine.publish(ONE)
    engine.publish(TWO)
    return engine


def code_of(call, *args, **options):
    with pytest.raises(VersionRefused) as caught:
        call(*args, **options)
    return caught.value.code


def test_no_new_instance_gets_it_and_those_that_have_it_go_on(two):
    two.create("door", "old", version=1)
    gone = two.withdraw_version("door", 1, actor="ann", reason="a hole")
    assert (gone.version, gone.actor, gone.reason) == (1, "ann", "a hole")
    assert list(two.withdrawn_versions("door")) == [1]
    assert code_of(two.create, "door", "new", version=1) == "SB625"
    assert two.fire("door", "old", "open").version == 1
    assert code_of(two.pin, "door", 1) == "SB625"
    assert code_of(two.start_rollout, "door", 1, 5) == "SB625"
    assert code_of(two.publish, ONE) == "SB629"
    assert code_of(two.publish, ONE, version=1) == "SB625"
    assert two.withdraw_version("door", 1, False) is None
    assert two.create("door", "new", version=1).version == 1


def test_the_current_one_needs_another_in_its_place(two):
    assert code_of(two.withdraw_version, "door", 2) == "SB628"
    assert code_of(two.withdraw_version, "door", 2, instead=2) == "SB628"
    two.withdraw_version("door", 2, instead=1)
    assert two.machines() == {"door": 1}
    assert two.create("door", "a").version == 1
    assert code_of(two.withdraw_version, "door", 1, instead=2) == "SB625"


def test_a_version_that_is_rolled_out_stops(two):
    two.publish(THREE, rollout=99)
    two.withdraw_version("door", 3, actor="ann")
    rollout = two.rollout("door")
    assert not rollout.under_way
    assert rollout.reason == "version 3 was withdrawn"
    assert {two.create("door", f"a{n}").version for n in range(20)} == {2}
    assert code_of(two.set_rollout, "door", 5) == "SB625"
    assert code_of(two.finish_rollout, "door") == "SB625"


def test_the_base_of_a_roll_out_is_replaced(two):
    two.publish(THREE, rollout=5)
    two.withdraw_version("door", 2, instead=1)
    assert two.rollout("door").base == 1
    assert two.machines() == {"door": 1}


def test_a_pinned_version_is_withdrawn_with_its_pin(two):
    two.pin("door", 1)
    two.withdraw_version("door", 1, instead=2)
    assert two.get_pin("door") is None
    assert two.machines() == {"door": 2}


def test_unknown_versions_and_machines(two):
    with pytest.raises(UnknownMachine):
        two.withdraw_version("door", 9)
    with pytest.raises(UnknownMachine):
        two.withdraw_version("gate", 1)
    two.withdraw_version("door", 1)
    assert two.withdraw_version("door", 1, actor="bob").version == 1, "twice is no error"


def test_all_partitions_know_it(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=4)
    engine.publish(ONE)
    engine.publish(TWO)
    engine.withdraw_version("door", 1)
    assert {code_of(engine.create, "door", f"a{n}", version=1) for n in range(20)} == {"SB625"}
    engine.client.close()
