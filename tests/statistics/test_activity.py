"""Instances that moved and people who took an action: each once in a day, a week, a month, and no step pays for it."""

import time

import pytest
from django.contrib.auth import get_user_model

from machines.audit import activity as activities
from machines.audit import entries
from machines.audit.activity import ActivityCounter, activity, add_counts, count_people, kept_activity
from machines.engine import Engine
from machines.engine.keys import Keys
from machines.patterns import Count
from machines.patterns.cardinality import ERROR
from tests.configuration import configure
from tests.engine.builders import publish
from tests.engine.dumps import unchanged
from tests.engine.instances.racing import in_threads

from .conftest import LAMP

DAY = 86_400_000
NOW = 1_800_000_000_000  # 2027-01-15, a Friday
TODAY = NOW - NOW % DAY


@pytest.fixture
def lamps(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    engine.publish(LAMP)
    yield engine
    engine.client.close()


def counted(engine, now=NOW + 2 * DAY) -> None:
    while engine.activity().count(most=7, now=now):
        pass


def numbers(at=NOW, machines=("lamp",)) -> dict[str, int]:
    return {period: count.number for period, count in activity(machines, at=at).moved.items()}


def test_an_instance_counts_once_a_day_however_often_it_moves_and_whoever_looks(lamps):
    for i in range(60):
        lamps.create("lamp", f"l{i}", now=NOW)
    counted(lamps)
    for i in range(20):
        lamps.fire("lamp", f"l{i}", "press", now=NOW + 1000 + i)
    counted(lamps)
    counted(lamps)
    assert numbers() == {"day": 60, "week": 60, "month": 60}
    found = activity(["lamp"], at=NOW)
    assert found.by_machine["lamp"]["day"] == found.moved["day"] == Count(60, True, 0.0, TODAY)


def test_days_are_told_apart_at_midnight_and_a_union_counts_each_instance_once(lamps):
    midnight = TODAY + DAY
    for i in range(30):
        lamps.create("lamp", f"l{i}", now=midnight - 1)
    counted(lamps, midnight + 10)
    for i in range(12):
        lamps.fire("lamp", f"l{i}", "press", now=midnight)
    lamps.create("lamp", "new", now=midnight + 5)
    counted(lamps, midnight + 10)
    assert numbers(midnight - 1) == {"day": 30, "week": 31, "month": 31}
    assert numbers(midnight)["day"] == 13
    assert numbers(TODAY + 3 * DAY) == {"day": 0, "week": 0, "month": 31}  # the Monday after


def test_what_moves_in_the_millisecond_of_a_look_is_not_missed(lamps):
    lamps.create("lamp", "m", now=NOW)
    counted(lamps, NOW)
    lamps.create("lamp", "a", now=NOW)  # stands in front of the other one
    assert numbers()["day"] == 0
    counted(lamps, NOW + 1)
    assert numbers()["day"] == 2
    lamps.create("lamp", "z", now=NOW + 1)
    counted(lamps, NOW + 2)
    assert numbers()["day"] == 3


def test_the_first_look_finds_what_moved_in_the_kept_days_and_nothing_older(lamps):
    lamps.create("lamp", "old", now=NOW - 41 * DAY)
    lamps.create("lamp", "this month", now=NOW - 10 * DAY)
    lamps.create("lamp", "today", now=NOW)
    counted(lamps, NOW + 1)
    assert numbers() == {"day": 1, "week": 1, "month": 2}
    assert numbers(NOW - 41 * DAY)["day"] == 0


def test_looking_in_vain_changes_nothing_and_every_key_has_its_expiry(lamps, prefix):
    lamps.create("lamp", "one", now=NOW)
    counted(lamps)
    with unchanged(lamps):
        counted(lamps)
    kept = list(lamps.client.scan_iter(f"{prefix}*:moved*"))
    assert len(kept) == 3
    assert all(lamps.client.pttl(key) > 0 for key in kept)


def test_several_who_look_at_once_share_the_work(lamps):
    base = int(time.time() * 1000) - 10_000
    for i in range(1500):
        lamps.create("lamp", f"l{i}", now=base)
    duties = [ActivityCounter(lamps, pause=20) for _ in range(3)]
    while any(in_threads([duty.once for duty in duties])):
        pass
    assert all(15 < duty.pause() < 25 for duty in duties)
    assert activity(["lamp"], at=base).moved["day"] == Count(1500, True, 0.0, base - base % DAY)


def test_a_machine_that_cannot_be_read_costs_its_own_figures_alone(lamps, prefix):
    lamps.publish(LAMP | {"id": "torch"})
    for machine in ("lamp", "torch"):
        lamps.create(machine, "one", now=NOW)
    for number in range(3):
        key = Keys(prefix).partition("torch", number).state("off")
        lamps.client.delete(key)
        lamps.client.set(key, "something foreign")
    counted(lamps)
    assert numbers(machines=("lamp", "torch"))["day"] == 1


RAW = [
    [], [0, 1000, 40, ""], [1001, 1000, 40, ""], [10, -1, 40, ""], [10, 1000, 401, ""], [10, 1000, 40, "soon"],
    ["nan", 1, 1, ""],
]  # fmt: skip


def test_the_functions_refuse_rubbish_and_machines_that_are_not_there(lamps, prefix):
    root = Keys(prefix).partition("lamp").root
    with unchanged(lamps):
        for words in RAW:
            assert lamps.client.fcall("sb_moved", 1, root, *words)[0] == "BADARG", words
        assert lamps.client.fcall("sb_moved", 1, f"{prefix}{{none:0}}", 10, 1000, 40, "") == ["NOMACHINE"]


def test_counts_without_a_common_member_add_up_and_their_errors_average_out():
    parts = [Count(10_000, False, ERROR, NOW)] * 4 + [Count(40, True, 0.0, NOW)]
    assert add_counts(parts) == Count(40_040, False, 0.004, NOW)
    assert add_counts([]) == Count(0, True, 0.0, 0)


def test_who_takes_an_action_counts_and_nobody_else(prefix, db):
    ann, bob = (get_user_model().objects.create(username=name) for name in ("ann", "bob"))
    for actor, action, outcome in (
        (ann, "suspend", "done"), (ann, "fire", "done"), (bob, "login", "done"), (bob, "fire", "refused"),
        ("worker", "approval.expire", "done"), (bob, "fire", "failed"),
    ):  # fmt: skip
        assert entries.record(actor, action, outcome=outcome)
    people = count_people()
    assert {period: count.number for period, count in people.items()} == {"day": 1, "week": 1, "month": 1}
    assert entries.record(bob, "retry")
    assert count_people()["day"].number == 2


def test_an_action_is_written_where_nobody_can_be_counted(prefix, db, settings):
    configure(settings, REDIS_URL="unix:///nonexistent/none.sock")
    assert entries.record(get_user_model().objects.create(username="ann"), "suspend")


def test_activity_of_very_many_machines_is_read_beside_the_pages(engine, monkeypatch):
    monkeypatch.setattr(activities, "FEW", 2)
    moment = int(time.time() * 1000) - 1000
    names = [publish(engine, LAMP | {"id": f"lamp{number}"}, "a", "b", now=moment) for number in range(3)]
    engine.activity().count()
    assert kept_activity(names[:2]).moved["day"].number == 4
    deadline = time.monotonic() + 30
    while (found := kept_activity(names)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert found.moved["day"].number == 6
    assert {name: counts["month"].number for name, counts in found.by_machine.items()} == dict.fromkeys(names, 2)
