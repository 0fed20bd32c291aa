"""find by the transitions that led instances to where they are, for machines that index ``instance.transition``."""

import pytest

from machines.engine import BadInput
from tests.engine.builders import NOW, door, machine, publish
from tests.engine.dumps import dump

from .indexed import every

INDEX = ["instance.transition"]
#: t1 and t2 lead to B, t3 back, t4 stays, t5 enters B again
ROUTE = machine(
    "route",
    {
        "A": {"on": {"go": [{"target": "B", "guard": "event.way == 1"}, {"target": "B"}]}},
        "B": {"on": {"back": "A", "note": {"actions": {"log": "'noted'"}}, "again": {"target": "B", "reenter": True}}},
    },
    index=INDEX,
)
#: t1 to L2, t2 slips on to L3, t3 back to L1; t4 to R2, t5 back
LEFT = {
    "initial": "L1",
    "states": {"L1": {"on": {"left": "L2"}}, "L2": {"always": "L3"}, "L3": {"on": {"left": "L1"}}},
}
RIGHT = {"initial": "R1", "states": {"R1": {"on": {"right": "R2"}}, "R2": {"on": {"right": "R1"}}}}
REGIONS = machine("regions", {"Both": {"type": "parallel", "states": {"Left": LEFT, "Right": RIGHT}}}, index=INDEX)


def entries(engine, name):
    keys = [partition.lookup("instance.transition") for partition in engine._catalog.partitions(name)]
    return sorted(
        entry.decode() if isinstance(entry, bytes) else entry
        for key in keys
        for entry in engine.client.zrange(key, 0, -1)
    )


def came(engine, name, transition, **terms):
    return sorted(every(engine, name, transition=transition, **terms))


def test_an_instance_is_found_by_the_transition_that_led_to_its_state(many):
    publish(many, ROUTE, "a", "b", "c", "d", now=NOW)
    for id, way in (("a", 1), ("b", 2), ("c", 2)):
        many.fire("route", id, "go", {"way": way}, now=NOW + 1)
    assert (came(many, "route", "1:t1"), came(many, "route", "1:t2", limit=1)) == (["a"], ["b", "c"])
    many.fire("route", "a", "note")
    assert came(many, "route", "1:t1") == ["a"], "a step that entered nothing leaves it"
    many.fire("route", "a", "again")
    assert (came(many, "route", "1:t1"), came(many, "route", "1:t5")) == ([], ["a"])
    many.fire("route", "b", "back")
    assert (came(many, "route", "1:t2"), came(many, "route", "1:t3", state="A")) == (["c"], ["b"])
    assert came(many, "route", "1:t3", state="B") == []
    assert many.tally("route", transition="1:t2").total == 1
    many.force("route", "c", "A", actor="o", reason="r")
    assert came(many, "route", "1:t2") == [], "a repair is no transition"
    many.delete("route", "a")
    assert entries(many, "route") == ["s1:t3\0b"]


def test_a_reset_and_a_refused_step_leave_no_entry_behind(many):
    publish(many, ROUTE, "a", now=NOW)
    many.fire("route", "a", "go", {"way": 1})
    before = entries(many, "route")
    with pytest.raises(Exception, match="go"):
        many.fire("route", "a", "go", {"way": 1})
    assert entries(many, "route") == before == ["s1:t1\0a"]
    many.reset("route", "a", actor="o", reason="r")
    assert entries(many, "route") == []
    assert not many.client.hexists(many._catalog.partition("route", "a").instance("a"), "_came")


def test_regions_keep_their_own(many):
    publish(many, REGIONS, "i", now=NOW)
    assert entries(many, "regions") == []
    many.fire("regions", "i", "left")
    assert entries(many, "regions") == ["s1:t1\0i", "s1:t2\0i"], "both transitions of the step"
    many.fire("regions", "i", "right")
    assert came(many, "regions", "1:t1") == came(many, "regions", "1:t4") == ["i"]
    many.fire("regions", "i", "left")
    assert entries(many, "regions") == ["s1:t3\0i", "s1:t4\0i"]


def test_a_move_to_another_version_keeps_the_transition_of_the_version_it_was(many):
    publish(many, ROUTE, "a", now=NOW)
    many.fire("route", "a", "go", {"way": 1})
    before = many.client.hgetall(many._catalog.partition("route", "a").instance("a"))
    many.publish(ROUTE | {"description": "second"})
    plan = many.plan("route", 2)
    assert many.migrate(plan).moved == 1
    assert came(many, "route", "1:t1", version=2) == ["a"]
    assert many.migrate(plan.inverse()).moved == 1
    after = many.client.hgetall(many._catalog.partition("route", "a").instance("a"))
    assert {**after, "_version": ""} == {**before, "_version": ""}
    assert (came(many, "route", "1:t1"), entries(many, "route")) == (["a"], ["s1:t1\0a"])


def test_many_fires_at_once_and_archived_ones(many):
    publish(many, ROUTE, *(f"i{n}" for n in range(20)), now=NOW)
    many.fire_many([("route", f"i{n}", "go", {"way": n % 2}) for n in range(20)])
    assert len(came(many, "route", "1:t1")) == len(came(many, "route", "1:t2")) == 10


def test_instances_of_before_the_index_are_found_from_their_next_step_on(many):
    publish(many, ROUTE | {"index": []}, "a", "b", now=NOW)
    many.fire("route", "a", "go", {"way": 1})
    many.publish(ROUTE)
    with pytest.raises(BadInput, match="does not hold all"):
        many.find("route", transition="1:t1")
    many.reindex("route")
    assert came(many, "route", "1:t1") == [], "what was not kept is not known"
    many.fire("route", "a", "back")
    assert came(many, "route", "1:t3") == ["a"]


def test_a_machine_without_the_index_keeps_nothing_and_says_so(engine):
    publish(engine, door(), "a", now=NOW)
    engine.fire("door", "a", "open")
    assert "_came" not in engine.client.hgetall(engine.keys.partition("door").instance("a"))
    assert not any(b":by:" in key for key in dump(engine))
    for terms in ({}, {"state": "Open"}):
        with pytest.raises(BadInput, match="instance.transition") as caught:
            engine.find("door", transition="1:t1", **terms)
        assert caught.value.code == "SB416"


@pytest.mark.parametrize("wrong", ["t1", ":t1", "1:", "x:t", 7, "1:" + "t" * 400, "1:\0"])
def test_what_is_no_transition_is_refused(engine, wrong):
    publish(engine, ROUTE, now=NOW)
    with pytest.raises(BadInput) as caught:
        engine.find("route", transition=wrong)
    assert caught.value.code == "SB418"
