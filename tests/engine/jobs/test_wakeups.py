"""What waiting workers are told: bells of queues, the server's memory, shares of partitions."""

from __future__ import annotations

import time

import pytest
import redis

from machines.engine import Engine, EngineFault
from machines.engine.connection import library, routing
from machines.engine.jobs import wakeups
from machines.engine.jobs.wakeups import LIVE_MS, SKEW_MS, Bell, Shares, Wakeups
from machines.engine.search import survey
from tests.engine.bells import Bells, wait_on_lists
from tests.engine.builders import door, publish


@pytest.fixture
def yard(engine):
    publish(engine, door(), "x")
    return engine


@pytest.fixture
def bells(yard):
    bells = Bells(yard, "door")
    yield bells
    bells.close()


def rung(engine: Engine) -> dict:
    return engine.wakeups.rung(engine.wakeups.roots(["door", "never_was"]))


# Bells


def test_a_queue_rings_once_until_a_take_finds_less_than_it_asked_for(yard, bells):
    yard.enqueue("door", "work")
    yard.enqueue("door", "work")
    yard.enqueue("door", "other")
    assert bells.heard() == ["job work", "job other"]
    assert len(yard.take("door", "work", "w", count=2)) == 2, "as many as were asked for"
    assert yard.take("door", "work", "w") == []
    yard.enqueue("door", "work")
    assert bells.heard() == ["job work"]


def test_where_nobody_takes_it_rings_again_after_a_moment(yard, bells):
    deadline = time.monotonic() + 60
    heard: list[str] = []
    while len(heard) < 2:
        yard.enqueue("door", "work")
        heard += bells.heard()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert heard == ["job work", "job work"]


def test_a_list_is_rung_for_a_taker_that_does_not_hear_the_channel_until_one_comes_that_does(yard):
    bell = yard.keys.partition("door").bell("work")
    yard.enqueue("door", "work")
    assert yard.client.llen(bell) == 0
    yard.take("door", "work", "w", count=5)
    wait_on_lists(yard, "door")
    yard.enqueue("door", "work")
    assert yard.client.llen(bell) == 1
    yard.client.delete(bell)
    yard.take("door", "work", "w", count=5)
    yard.enqueue("door", "work")
    assert yard.client.llen(bell) == 0


@pytest.mark.parametrize(
    ("text", "bell"),
    [
        ("job work", Bell("sb:{m:3}", queue="work")),
        ("due 1700", Bell("sb:{m:3}", due=1700)),
        ("due soon", Bell("sb:{m:3}")),
        ("", Bell("sb:{m:3}")),
    ],
)
def test_messages_of_another_kind_are_no_bells(text, bell):
    assert Wakeups.read(Wakeups.channel("sb:{m:3}"), text) == bell


# Memory


def test_the_server_remembers_which_queues_rang_and_were_not_emptied(yard):
    assert rung(yard) == {}
    yard.enqueue("door", "work")
    yard.enqueue("door", "other")
    assert rung(yard) == {("door", "work"): {0}, ("door", "other"): {0}}
    yard.take("door", "work", "w", count=5)
    assert rung(yard) == {("door", "other"): {0}}


def test_the_memory_of_many_partitions_costs_one_command(yard):
    roots = yard.wakeups.roots(["door"])
    extra = {f"{next(iter(roots))}{n}": ("door", 0) for n in range(400)}
    before = yard.client.info("commandstats")
    yard.wakeups.rung(roots | extra)
    after = yard.client.info("commandstats")
    spent = {name for name in after if after[name]["calls"] != before.get(name, {"calls": 0})["calls"]}
    assert spent <= {"cmdstat_fcall_ro", "cmdstat_time", "cmdstat_info"}


def test_it_says_what_is_due_soon_and_where_only_the_keys_tell(yard):
    (root,) = yard.wakeups.roots(["door"])
    assert yard.wakeups.memory.find_due([root], 1000)[1] == {root: None}, "nobody has ticked yet"
    yard.tick("door")
    assert yard.wakeups.memory.find_due([root], 1000)[1] == {}
    yard.enqueue("door", "work", delay=3000)
    now, found = yard.wakeups.memory.find_due([root], 60_000)
    assert 0 < found[root] - now <= 3000
    assert yard.wakeups.memory.find_due([root], 0)[1] == {}


def count_calls(engine, work):
    def read():
        return engine.client.info("commandstats").get("cmdstat_fcall_ro", {"calls": 0})["calls"]

    before = read()
    work()
    return read() - before


def test_a_server_that_remembers_all_its_partitions_is_asked_once(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=1200)
    engine.publish({"id": "door", "initial": "Shut", "states": {"Shut": {}}})
    memory, roots = engine.wakeups.memory, list(engine.wakeups.roots(["door"]))
    assert memory.find_due(roots, 1000)[1] == dict.fromkeys(roots)
    engine.tick("door")
    assert count_calls(engine, lambda: memory.find_due(roots, 1000)) == 1 + 3, "500 names in a call"
    assert count_calls(engine, lambda: memory.find_due(roots, 1000)) == 1
    engine.publish({"id": "gate", "initial": "Shut", "states": {"Shut": {}}})
    more = roots + list(engine.wakeups.roots(["gate"]))
    assert set(memory.find_due(more, 1000)[1]) == set(more) - set(roots), "these it has not seen"


def test_a_server_that_lost_its_memory_is_asked_for_each_partition(yard):
    (root,) = yard.wakeups.roots(["door"])
    yard.tick("door")
    assert yard.wakeups.memory.find_due([root], 1000)[1] == {}
    since = yard.wakeups.memory.find_touched([root], 0)[0] + SKEW_MS + 100
    assert yard.wakeups.memory.find_touched([root], since)[1:] == (set(), {root})
    yard.client.function_load(library.text(), replace=True)
    assert yard.wakeups.memory.find_due([root], 1000)[1] == {root: None}
    assert yard.wakeups.memory.find_touched([root], since - 60_000)[1] == {root}


class Outage:
    """Has each partition on a server of its own, and the server of ``away`` not answer."""

    def __init__(self, engine: Engine, monkeypatch) -> None:
        self.away = ""
        self._many = engine._caller.many
        monkeypatch.setattr(routing, "group_by_node", lambda client, roots: [[root] for root in roots])
        monkeypatch.setattr(engine._caller, "many", self._answer)

    def _answer(self, calls):
        named = [self.away and self.away in (call[1], *call[2]) for call in calls]
        found = iter(self._many([call for call, is_away in zip(calls, named, strict=True) if not is_away]))
        return [redis.ConnectionError("away") if is_away else next(found) for is_away in named]


def test_partitions_of_a_server_that_was_away_are_found_when_it_is_back(many, monkeypatch):
    publish(many, door(), "x")
    outage, watch = Outage(many, monkeypatch), many.wakeups.watch_changes(whole=float("inf"))
    monkeypatch.setattr(wakeups, "SKEW_MS", -60_000)  # no server says that anything changed
    roots = set(many.wakeups.roots(["door"]))
    assert watch.find(roots) == roots
    outage.away = away = many._catalog.partition("door", "x").root
    assert watch.find(roots) == set()
    outage.away = ""
    assert [watch.find(roots), watch.find(roots)] == [{away}, set()]


def test_a_survey_names_partitions_that_did_not_answer_and_keeps_the_others(many, monkeypatch):
    publish(many, door(), "x")
    outage = Outage(many, monkeypatch)
    monkeypatch.setattr(survey, "SETTLED_MS", -1)
    monkeypatch.setattr(wakeups, "SKEW_MS", -60_000)
    many.survey()
    assert many.survey(trust=True).missing == ()
    outage.away = many._catalog.partition("door", "x").root
    assert many.survey(trust=True).missing == (outage.away,)


@pytest.mark.parametrize(
    "words", [[], ["jobs"], ["sb:{door:0}", "soon"], ["sb:{door:0}", "-1"], ["sb:{door:0}", "since x"]]
)
def test_words_that_make_no_sense_are_refused(yard, words):
    assert yard.client.fcall_ro("sb_wakeups", 0, *words)[0] == "BADARG"


def test_a_take_from_some_partitions_leaves_the_others(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=3)
    publish(engine, door())
    for number in range(3):
        key = next(
            f"k{n}" for n in range(100) if engine._catalog.partition("door", f"k{n}").root.endswith(f":{number}}}")
        )
        engine.enqueue("door", "work", number, instance_key=key)
    taken = engine.take("door", "work", "w", count=5, partitions=[1])
    assert ([job.input for job in taken], taken.emptied) == ([1], {1})
    assert engine.ready_partitions([("door", "work"), ("door", "other")]) == {("door", "work"): {0, 2}}
    engine.client.close()


# Shares


def test_shares_are_divided_among_those_who_live_and_a_change_moves_only_theirs():
    workers = {name: Shares(name) for name in ("ann", "bob", "cid")}
    roots = [f"sb:{{m:{number}}}" for number in range(3000)]
    for shares in workers.values():
        assert all(map(shares.owns, roots)), "nobody else is known"
        shares.update(workers)
    owned = {name: {root for root in roots if shares.owns(root)} for name, shares in workers.items()}
    assert sorted(root for each in owned.values() for root in each) == sorted(roots)
    assert all(len(each) > 300 for each in owned.values())
    workers["ann"].update(["ann", "bob"])
    kept = {root for root in roots if workers["ann"].owns(root)}
    assert owned["ann"] <= kept
    assert kept - owned["ann"] <= owned["cid"]
    assert not workers["ann"].update(["bob", "ann"]), "nothing has changed"


def test_a_worker_that_gives_no_sign_of_life_is_out_of_the_division(engine):
    assert engine.wakeups.join("ann") == ["ann"]
    assert sorted(engine.wakeups.join("bob")) == ["ann", "bob"]
    engine.client.zincrby(engine.keys.shares, -LIVE_MS - 1000, "ann")
    assert engine.wakeups.join("bob") == ["bob"]
    engine.wakeups.leave("bob")
    assert engine.wakeups.join("ann") == ["ann"]


def test_a_memory_that_cannot_be_asked_is_a_fault(yard, monkeypatch):
    monkeypatch.setattr(yard._caller, "many", lambda calls: [["BADARG", "no"] for _ in calls])
    with pytest.raises(EngineFault):
        rung(yard)
