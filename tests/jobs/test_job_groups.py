"""The groups of a queue, as a page and an alarm read them."""

import time

import pytest

from machines.alarms import queries
from machines.alarms.queries import detect_alarms
from machines.engine import Engine, EngineUnavailable, WorkerInfo
from machines.jobs import groups
from machines.people.errors import Forbidden
from machines.people.permissions import EVERYTHING
from tests.engine.builders import door, publish

HOUR = 3_600_000
SECRET = {"type": "object", "properties": {"pin": {"type": "string", "sensitive": True}}}


@pytest.fixture
def now():
    return int(time.time() * 1000)


@pytest.fixture
def yard(engine, prefix, db, request):
    if partitions := getattr(request, "param", None):
        engine = Engine(engine.client, prefix=prefix, partitions=partitions)
    publish(engine, door())
    return engine


def put(engine, group, count, at, **options):
    engine.enqueue_many({"machine": "door", "src": "work", "now": at, "group": group} | options for _ in range(count))


def read(engine, **more):
    return {one.name: one for one in groups.read_groups(engine, "door", "work", **more).items}


def list_names(actor, order):
    return [one.name for one in groups.list_groups(actor, "door", "work", order=order).items]


def test_each_group_has_its_figures_and_limits(yard, now):
    yard.limit("door", "work", group="a", concurrency=2, rate="5/s burst 20")
    yard.pause("door", "work", group="idle", actor="ann", reason="a wrong bill")
    put(yard, "a", 5, now - HOUR, weight=2)
    put(yard, None, 3, now)
    yard.take("door", "work", "w", count=2)
    found = read(yard)
    assert set(found) == {"a", "", "idle"}
    one = found["a"]
    assert (one.waiting + one.running, one.oldest, one.recent, one.weight) == (5, now - HOUR, 0, 2)
    assert (one.concurrency, one.rate, one.limits) == (2, "5/s burst 20", "2 at a time and 5/s burst 20")
    assert (found[""].recent, found[""].limits) == (found[""].waiting, "")
    assert (found["idle"].paused.reason, found["idle"].is_own, found["idle"].waiting) == ("a wrong bill", True, 0)


def test_jobs_without_a_group_count_as_running(yard, now):
    put(yard, None, 5, now - HOUR)
    yard.take("door", "work", "a worker", count=2)
    found = read(yard)[""]
    assert (found.waiting, found.running, found.oldest) == (3, 2, now - HOUR)


def test_a_sample_finds_the_deep_groups_of_a_queue(yard, now):
    put(yard, "flood", 900, now)
    for number in range(100):
        put(yard, f"g{number}", 1, now)
    found = groups.read_groups(yard, "door", "work", most=500)
    deepest = max(found.items, key=lambda one: one.waiting)
    assert (found.looked, found.ready, found.is_sample) == (500, 1000, True)
    assert deepest.name == "flood"
    assert 700 <= deepest.waiting <= 1000


def test_a_sample_finds_what_limits_hold_behind_a_flood(yard, now):
    put(yard, "flood", 900, now)
    yard.pause("door", "work", group="a", actor="ann", reason="a wrong bill")
    put(yard, "a", 2, now - HOUR)
    found = groups.read_groups(yard, "door", "work", most=500)
    assert [one.name for one in groups.find_stalled(found.items, now)] == ["a"]


@pytest.mark.parametrize(("order", "names"), [("depth", "abc"), ("age", "cba"), ("rate", "bac")])
def test_groups_are_sorted(yard, now, actor, order, names):
    put(yard, "a", 3, now - 2 * 60_000)
    put(yard, "b", 2, now)
    put(yard, "b", 1, now - 3 * 60_000)
    yard.withdraw("door", yard.jobs("door", "work")[0], actor="x", reason="one less")
    put(yard, "c", 1, now - 9 * 60_000)
    put(yard, "a", 2, now - 60_001)
    assert list_names(actor("sue", "view"), order) == list(names)


def test_names_of_groups_are_data(engine, actor, now):
    publish(engine, door(context=SECRET))
    put(engine, "ann@example.com", 2, now)
    put(engine, "bob@example.com", 1, now)
    (one,) = groups.list_groups(actor("sue", "view"), "door", "work").items
    assert (one.waiting, "example" in one.name) == (3, False)
    assert list_names(actor("eve", "view", "reveal"), "depth") == ["ann@example.com", "bob@example.com"]
    with pytest.raises(Forbidden):
        groups.list_groups(actor("kim", "publish"), "door", "work")


def stalls(engine):
    found = detect_alarms(EVERYTHING, engine.survey())
    return [alarm for alarm in found if alarm.kind == "stalled"]


@pytest.fixture
def served(yard, now):
    yard.beat(WorkerInfo("w1", "box", 7, ["door/work"], in_hand=0, started=now, seen=now))
    return yard


@pytest.mark.parametrize("yard", [1, 4], indirect=True, ids=["one partition", "four"])
@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ({"group": "a"}, "group a is paused"),
        ({"group": "a", "concurrency": 1}, "group a is limited to 1 at a time"),
        ({"group": "a", "rate": "1/d"}, "group a is limited to 1/d"),
        ({"concurrency": 1}, "the queue is limited to 1 at a time, and as many run"),
        ({"rate": "1/d"}, "the queue is limited to 1/d"),
    ],
)
def test_a_queue_that_stands_still_raises_an_alarm_that_says_why(served, now, limit, why):
    if len(limit) == 1 and "group" in limit:
        served.pause("door", "work", **limit, actor="ann", reason="a wrong bill")
    else:
        served.limit("door", "work", **limit)
    put(served, "a", 3, now - 2 * HOUR)
    put(served, "b", 1, now)
    served.take("door", "work", "w1", count=1)
    served.take("door", "work", "w1", count=5)
    (alarm,) = stalls(served)
    assert alarm.text.endswith(f"ready on door/work, the first for 2 h: {why}")
    assert (alarm.key, alarm.subject, alarm.severity) == ("stalled:door/work", "work", "warning")


def test_jobs_that_no_worker_takes_raise_one_and_jobs_that_wait_for_their_turn_none(served, now):
    put(served, "a", 2, now - 2 * HOUR)
    assert stalls(served)[0].text.endswith("workers serve the queue, but take none of its jobs")
    served.take("door", "work", "w1", count=1)
    assert stalls(served) == []


def test_a_callback_of_a_batch_that_fails_raises_the_alarm_of_dead_jobs(served, now):
    after = {"machine": "door", "src": "close", "attempts": 1}
    served.batch([{"machine": "door", "src": "work"}], on_end=after)
    served.complete(*served.take("door", "work", "w1"))
    served.fail(*served.take("door", "close", "w1"), "the till is shut")
    (alarm,) = (one for one in detect_alarms(EVERYTHING, served.survey()) if one.kind == "dead")
    assert (alarm.key, alarm.count) == ("dead:door/close", 1)


@pytest.fixture
def held(served, now):
    served.pause("door", "work", group="a", actor="ann", reason="a wrong bill")
    put(served, "a", 3, now - 2 * HOUR)
    served.take("door", "work", "w1", count=1)
    put(served, "b", 1, now)
    served.take("door", "work", "w1", count=1)
    return served


def test_of_further_queues_and_when_a_partition_goes_away_the_alarm_counts_what_groups_hold(held, monkeypatch):
    def go_away(*_, **__):
        raise EngineUnavailable("the node is away")

    assert stalls(held)[0].text.endswith("group a is paused")
    monkeypatch.setattr(queries, "MAX_STALLS", 0)
    assert stalls(held)[0].text.endswith("for 2 h: its groups hold 3 jobs back")
    monkeypatch.undo()
    monkeypatch.setattr(queries, "read_groups", go_away)
    assert stalls(held)[0].text.endswith("for 2 h: its groups hold 3 jobs back")


def test_groups_are_read_of_queues_that_workers_serve(held, now, monkeypatch):
    monkeypatch.setattr(queries, "MAX_STALLS", 1)
    publish(held, door() | {"id": "alley"})
    held.pause("alley", "work", group="a", actor="ann", reason="a wrong bill")
    held.enqueue("alley", "work", group="a", now=now - 2 * HOUR)
    held.take("alley", "work", "w1", count=1)
    assert held.stats("alley")["work"].held == 1
    (alarm,) = stalls(held)
    assert (alarm.machine, alarm.text[-17:]) == ("door", "group a is paused")


def test_an_alarm_does_not_name_groups_that_are_data(engine, now, db):
    publish(engine, door(context=SECRET))
    engine.beat(WorkerInfo("w1", "box", 7, ["door/work"], in_hand=0, started=now, seen=now))
    engine.pause("door", "work", group="ann@example.com", actor="ann", reason="a wrong bill")
    put(engine, "ann@example.com", 3, now - 2 * HOUR)
    assert stalls(engine)[0].text.endswith("for 2 h: 1 group is paused")
