"""Groups of a queue: each has its share by its weight, however many jobs another has, within one priority."""

import pytest

from machines.engine import BadInput
from machines.engine.connection import library
from machines.engine.errors import DefinitionError, SignalboxError
from tests.cases import for_each
from tests.engine.builders import NOW, door, machine, publish

from .queueing import busy, places

AGED = 20


@pytest.fixture
def yard(engine):
    publish(engine, door())
    return engine


def put(engine, group, count, **options):
    engine.enqueue_many(
        {"machine": "door", "src": "work", "input": n, "now": NOW, "group": group} | options for n in range(count)
    )


def take(engine, count=10, **options):
    return engine.take("door", "work", "w", count=count, now=NOW, **options)


def read_groups(jobs):
    return "".join(job.group or "-" for job in jobs)


def count_turns(engine):
    return engine.client.zcard(engine.keys.partition("door").turns("work"))


def test_a_group_does_not_wait_for_the_jobs_of_another(yard):
    put(yard, "a", 300)
    assert read_groups(take(yard, 10)) == "a" * 10
    put(yard, "b", 3)
    found = take(yard, 8)
    assert read_groups(found).count("b") == 3
    assert [job.input for job in found if job.group == "a"] == [10, 11, 12, 13, 14], "its own jobs keep their order"


def test_of_groups_with_one_job_each_the_newest_does_not_go_first(yard):
    for number in range(40):
        put(yard, f"g{number}", 1)
    order = []
    for number in range(40, 240):
        order += [int(job.group[1:]) for job in take(yard, 1)]
        put(yard, f"g{number}", 1)
    late = [place - number for place, number in enumerate(order)]
    assert max(map(abs, late)) < 40, "none waits for more than those that were there before it"


def test_a_group_of_many_jobs_keeps_its_share_among_many_groups_of_one(yard):
    put(yard, "many", 60)
    for number in range(20):
        put(yard, f"g{number}", 1)
    found = []
    for number in range(20, 420):
        found += [job.group for job in take(yard, 1)]
        put(yard, f"g{number}", 1)
    assert found.count("many") > 8, "of about twenty each"


def test_groups_share_by_their_weights(yard):
    put(yard, "g", 300, weight=3)
    put(yard, "s", 300)
    found = read_groups(take(yard, 80))
    assert 59 <= found.count("g") <= 61
    assert found[:40].count("g") in (29, 30, 31), "also on the way"


def test_jobs_without_a_group_are_one_group(yard):
    put(yard, "a", 1)
    put(yard, None, 100)
    put(yard, "b", 10)
    assert read_groups(take(yard, 12)).count("b") in (5, 6)


def test_a_queue_without_groups_keeps_the_order_of_arrival(yard):
    put(yard, None, 30)
    assert [job.input for job in take(yard, 30)] == list(range(30))
    assert count_turns(yard) == 0


def test_a_group_with_nothing_ready_takes_no_memory(yard):
    for group in range(50):
        put(yard, f"g{group}", 2)
    assert count_turns(yard) == 50
    assert len(take(yard, 100)) == 100
    take(yard)
    assert count_turns(yard) == 0


@pytest.mark.parametrize("group", [None, "a"])
def test_a_low_priority_does_not_starve_though_the_server_restarted_since_its_jobs_came(yard, group):
    yard.limit("door", "work", group="a", concurrency=1)
    put(yard, group, 1, priority=0)
    yard.client.function_load(library.text(), replace=True)
    put(yard, None, 2 * AGED)
    assert 0 in [take(yard, 1)[0].priority for _ in range(2 * AGED)]


def test_turns_of_groups_whose_jobs_went_are_forgotten_though_the_server_restarted_meanwhile(yard):
    put(yard, "a", 3)
    yard.client.function_load(library.text(), replace=True)
    yard.purge("door", "work", place="ready", actor="ann", reason="because")
    assert take(yard) == []
    assert count_turns(yard) == 0


def test_a_group_that_others_overtook_is_forgotten(yard):
    put(yard, "a", 60)
    for group in "bcd":
        put(yard, group, 1)
    take(yard, 50)
    assert count_turns(yard) == 1


def test_a_job_that_comes_back_goes_before_its_group(yard):
    put(yard, "a", 30)
    (first,) = take(yard, 1)
    yard.fail(first, "later", kind="Broken", delay=0, now=NOW)
    put(yard, "b", 1)
    found = take(yard, 3)
    assert first.id in [job.id for job in found], "the first of thirty does not wait for them again"


def test_a_withdrawn_job_gives_its_turn_back(engine):
    ids = [f"i{n}" for n in range(40)]
    busy(engine, *ids, group="'a'")
    for id in ids[1:]:
        engine.fire("errand", id, "abandon", now=NOW)
    items = [{"machine": "errand", "src": "work", "now": NOW, "group": group} for group in "b" * 20 + "a" * 5]
    engine.enqueue_many(items)
    found = read_groups(engine.take("errand", "work", "w", count=12, now=NOW))
    assert found.count("a") in (5, 6)


def test_priority_goes_before_fairness(yard):
    put(yard, "a", 5)
    put(yard, "b", 5, priority=9)
    assert read_groups(take(yard, 10)) == "bbbbbaaaaa"


def test_a_lower_priority_never_waits_for_ever(yard):
    put(yard, None, 200, priority=9)
    put(yard, None, 2, priority=5)
    put(yard, None, 2, priority=0)
    found = [job.priority for _ in range(100) for job in take(yard, 1)]
    assert found.count(5) + found.count(0) == 100 // AGED - 1
    assert {5, 0} <= set(found), "each lower priority has its turn"
    assert found[: AGED - 1] == [9] * (AGED - 1)


def test_no_job_is_lost_or_taken_twice_in_any_mixture(yard):
    for n in range(40):
        put(yard, [None, "a", "b"][n % 3], n % 5, priority=n % 10, weight=[1, 0.1, 10][n % 3])
    total = len(places(yard, "work", "door"))
    found = [job.id for size in (1, 7, 50, 3, 50) for job in take(yard, size)]
    assert len(found) == len(set(found)) == total


def test_a_definition_names_the_group_of_a_job(engine):
    definition = machine(
        "errands",
        {
            "idle": {"on": {"go": "work"}},
            "work": {
                "invoke": {"src": "work", "group": "tenant", "weight": "4 if gold else 1"},
                "on": {"stop": "idle"},
            },
        },
        context={"tenant": "acme", "gold": True},
    )
    publish(engine, definition)
    name = definition["id"]
    engine.create(name, "one", now=NOW)
    engine.fire(name, "one", "go", now=NOW)
    (job,) = engine.take(name, "work", "w", now=NOW)
    assert (job.group, job.weight) == ("acme", 4)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"weight": 10**9}, "a weight is a number from 0.1 to 10, not 1000000000"),
        ({"weight": 0}, "a weight is a number from 0.1 to 10, not 0"),
        ({"tenant": "g" * 201}, "a group has 1 to 200 bytes, not 201"),
    ],
)
def test_a_step_whose_data_are_no_group_or_weight_is_refused(engine, facts, why):
    work = {"invoke": {"src": "work", "group": "tenant", "weight": "weight"}}
    context = {"tenant": "acme", "weight": 1}
    publish(engine, machine("errands", {"idle": {"on": {"go": "work"}}, "work": work}, context=context))
    engine.create("errands", "one", facts, now=NOW)
    with pytest.raises(SignalboxError, match=why):
        engine.fire("errands", "one", "go", now=NOW)
    assert engine.get("errands", "one").state == "idle"


@for_each(
    "options, why",
    [
        ({"weight": 0}, "weight is a number from 0.1 to 10, not 0"),
        ({"weight": 10**9}, "weight is a number from 0.1 to 10, not 1000000000"),
        ({"weight": "heavy"}, "weight is a number from 0.1 to 10"),
        ({"group": ""}, "group"),
        ({"group": "g" * 201}, "group"),
        ({"group": "g" * 10_000}, "group"),
    ],
)
def test_what_is_no_group_is_refused(yard, options, why):
    with pytest.raises(BadInput, match=why):
        yard.enqueue("door", "work", **options)


def test_a_definition_with_a_weight_out_of_range_is_refused(engine):
    wrong = machine("wrong", {"work": {"invoke": {"src": "work", "group": "'a'", "weight": 11}}})
    with pytest.raises(DefinitionError, match=r"a weight is a number from 0\.1 to 10"):
        publish(engine, wrong)
