"""publish: a definition becomes a numbered version that never changes."""

import json

import pytest

from machines.engine import BadInput, DefinitionError, Engine, EngineFault, UnknownMachine
from tests.cases import for_each

from .builders import counter, door, machine, publish
from .dumps import dump, unchanged
from .instances.racing import in_threads


def test_the_first_content_is_version_one(engine):
    made = engine.publish(door())
    assert (made.name, made.version, made.created) == ("door", 1, True)
    assert engine.machines() == {"door": 1}
    assert (engine.versions("door"), engine.definition("door")) == ([1], door())


def test_the_same_content_again_is_the_same_version_and_changes_nothing(engine):
    first = engine.publish(door())
    with unchanged(engine):
        again = engine.publish(json.loads(json.dumps(door())))
    assert (again.version, again.digest, again.created) == (1, first.digest, False)


def test_another_content_is_the_next_version_and_the_first_stays(engine):
    engine.publish(door())
    second = engine.publish(door(history=7))
    assert (second.version, second.created, engine.machines()) == (2, True, {"door": 2})
    assert engine.definition("door", 1) == door()
    assert engine.definition("door") == engine.definition("door", 2) == door(history=7)
    assert engine.publish(door()).version == 3, "an older content comes back under a new number"


def test_what_is_only_description_makes_no_new_program_but_errors_make_none_at_all(engine):
    with unchanged(engine), pytest.raises(DefinitionError) as caught:
        engine.publish(machine("door", {"Shut": {"on": {"open": "Opne"}}, "Open": {}}))
    assert [finding.code for finding in caught.value.findings if finding.is_error]


@for_each(
    "definition", [None, [], "door", 7, {}, {"id": "door"}, {"id": "a b", "initial": "A", "states": {"A": {}}}, {1: 2}]
)
def test_what_is_no_definition_has_findings(engine, definition):
    with unchanged(engine), pytest.raises(DefinitionError):
        engine.publish(definition)


def test_a_definition_of_ten_megabytes_is_refused(engine):
    with unchanged(engine), pytest.raises(DefinitionError, match="SB"):
        engine.publish(door(description="x" * 10_000_000))
    with unchanged(engine), pytest.raises(DefinitionError, match="SB"):
        engine.publish(machine("m", {"A": {"meta": ["x" * 100] * 100_000}}))


@for_each("value", [float("nan"), float("inf"), "\x00", "\ud800", object(), {1: 2}, 2**80])
def test_values_that_are_not_json_are_refused(engine, value):
    with unchanged(engine), pytest.raises(DefinitionError):
        engine.publish(machine("m", {"A": {"meta": {"x": value}}}, context={"x": value}))


def test_a_known_number_can_be_published_again_and_no_other_content_under_it(engine):
    engine.publish(door())
    engine.publish(door(history=7))
    with unchanged(engine), pytest.raises(BadInput, match="version 1 of 'door' is published with other content"):
        engine.publish(door(history=8), version=1)
    assert engine.publish(door(), version=1).created is False
    assert engine.machines() == {"door": 1}, "an older version is current again"


def test_numbers_can_be_given_to_restore_what_was(engine):
    for number in (1, 3, 7):
        assert engine.publish(door(history=number), version=number).version == number
    assert (engine.versions("door"), engine.machines()) == ([1, 3, 7], {"door": 7})
    assert engine.publish(door(history=9)).version == 8


@for_each("version", [0, -1, "1", 1.5, True, 10**9 + 1, 2**60])
def test_a_version_that_is_no_number_is_bad_input(engine, version):
    with unchanged(engine), pytest.raises(BadInput, match="version is a whole number"):
        engine.publish(door(), version=version)


def test_of_racing_publishers_each_content_gets_a_number_of_its_own(engine, redis_url, prefix):
    engine.load_library()
    results = in_threads([lambda n=n: engine.publish(door(history=n)) for n in range(1, 7)])
    assert sorted(made.version for made in results) == [1, 2, 3, 4, 5, 6]
    same = in_threads([lambda: engine.publish(counter())] * 6)
    assert [made.version for made in same] == [1] * 6
    assert sum(made.created for made in same) == 1


def test_running_instances_keep_the_version_they_were_made_with(engine):
    publish(engine, door(), "old")
    publish(engine, machine("door", {"Shut": {"on": {"open": "Wide"}}, "Wide": {}}), "new")
    assert (engine.fire("door", "old", "open").state, engine.fire("door", "new", "open").state) == ("Open", "Wide")


def test_another_process_sees_it_at_once(engine, redis_url, prefix):
    other = Engine.from_url(redis_url, prefix=prefix)
    with pytest.raises(UnknownMachine):
        other.create("door", "x")
    publish(engine, door())
    assert other.create("door", "x").state == "Shut"
    publish(engine, machine("door", {"Gone": {}}))
    assert other.create("door", "y").state == "Gone"
    other.client.close()


def test_a_machine_wiped_and_published_anew_has_nothing_of_the_old_one(engine):
    """Programs are kept between calls inside the server: a version number alone must not find the old one."""
    publish(engine, door(), "x")
    engine.fire("door", "x", "open")
    for key in dump(engine):
        engine.client.delete(key)
    publish(engine, machine("door", {"A": {"on": {"open": "B"}}, "B": {}}), "x")
    assert engine.fire("door", "x", "open").state == "B"
    assert engine.counts("door") == {"A": 0, "B": 1}


@pytest.mark.parametrize("call", ["versions", "definition", "counts"])
def test_an_unknown_machine_is_named(engine, call):
    with pytest.raises(UnknownMachine, match="no machine 'gate' is published"):
        getattr(engine, call)("gate")


def test_an_unknown_version_is_named(engine):
    publish(engine, door())
    with pytest.raises(UnknownMachine, match="no version 4 of machine 'door' is published"):
        engine.definition("door", 4)
    with pytest.raises(BadInput):
        engine.definition("door", "1")


def test_a_program_of_a_later_format_is_refused_by_the_server(engine):
    root = engine.keys.partition("door").root
    engine.load_library()
    program = json.dumps({"format": 2, "machine": "door", "initial": 1, "history": 1, "states": [{"name": "A"}]})
    reply = engine.client.fcall("sb_publish", 1, root, "abc", program, "{}", "00", 1, "")
    assert reply[0] == "BADARG"
    assert "program format 2" in reply[1]
    assert engine.client.fcall("sb_publish", 1, root, "abc", "{", "{}", "00", 1, "")[0] == "BADARG"
    assert dump(engine) == {}


def test_publishers_that_race_leave_one_current_version_on_every_partition(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=8)
    for turn in range(5):
        in_threads([lambda n=n: engine.publish(door(history=n)) for n in range(turn * 4 + 1, turn * 4 + 5)])
        partitions = [engine.keys.partition("door", number) for number in range(8)]
        assert len({engine.client.hget(partition.meta, "current") for partition in partitions}) == 1
    engine.client.close()


def test_a_version_that_reached_only_some_partitions_is_completed_by_publishing_again(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    engine.publish(door())
    last = engine.keys.partition("door", 2)
    engine.client.set(last.definition(2), "in the way")
    with pytest.raises(EngineFault):
        engine.publish(door(history=7))
    engine.client.delete(last.definition(2))
    assert engine.publish(door(history=7)).version == 2
    assert engine.client.hget(last.meta, "current").startswith("2:")
    engine.client.close()
