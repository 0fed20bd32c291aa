"""A server that is killed and comes back: whatever an instance was in, it goes on as if nothing had happened."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from machines.conf.server import Server
from machines.engine import Engine, Suspended, UnknownInstance
from tests.conftest import program
from tests.engine.builders import NOW, machine, publish
from tests.engine.dumps import silence
from tests.engine.families import WHO, child, only, parent, tell
from tests.engine.messages.mailing import noter, post, teller, told, waiting

BACK = {"type": "history", "history": "deep"}


class Frail:
    """An engine on a server that keeps its data in an append-only file, and may be killed."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.engine = Engine.from_url(server.url)

    def crash(self) -> None:
        """With no farewell; what comes back holds the very same."""
        silence(self.engine)
        before = picture(self.engine)
        with redis.Redis.from_url(self.server.url) as client:
            assert client.config_get("appendonly") == {"appendonly": "yes"}
            client.config_set("appendfsync", "always")  # else what was written last may still wait for a slow disk
            client.ping()
            os.kill(client.info("server")["process_id"], signal.SIGKILL)
        while self.server.running:
            time.sleep(0.01)
        self.server.revive()
        assert picture(self.engine) == before


READERS = {
    "string": lambda client, key: client.get(key),
    "hash": lambda client, key: client.hgetall(key),
    "set": lambda client, key: client.smembers(key),
    "zset": lambda client, key: client.zrange(key, 0, -1, withscores=True),
    "list": lambda client, key: client.lrange(key, 0, -1),
    "stream": lambda client, key: client.xrange(key),
}


def picture(engine: Engine) -> dict[str, Any]:
    """Every key with its content and its expiry. Not as DUMP has it: a new process may keep fields in another order."""
    client = engine.client
    keys = client.scan_iter(match=f"{engine.keys.prefix}*", count=1000)
    return {key: (READERS[client.type(key)](client, key), client.pexpiretime(key)) for key in keys}


@pytest.fixture
def frail(program_of_this_run) -> Iterator[Frail]:
    with tempfile.TemporaryDirectory(prefix="sb-") as folder:
        server = Server(Path(folder), program=program_of_this_run).start()
        frail = Frail(server)
        yield frail
        frail.engine.client.close()
        server.stop()


@pytest.fixture
def program_of_this_run() -> str | None:
    return program(os.environ.get("SIGNALBOX_TEST_SERVER", ""))


def audit(engine: Engine, name: str) -> None:
    """Counts, indexes and timers are those of a scan over all instances."""
    keys = engine.keys.partition(name)
    found = engine.client.scan_iter(match=keys.instance("*").replace("{", "[{]"), count=1000)
    held = [engine.get(name, key.removeprefix(keys.instance(""))) for key in found]
    leaves = Counter(leaf for instance in held for leaf in instance.configuration)
    live = engine.live(name)
    assert live.total == len(held)
    assert {leaf: n for leaf, n in live.counts.items() if n} == leaves
    assert live.timers == sum(len(instance.timers) for instance in held if instance.suspended is None)
    for leaf, n in leaves.items():
        assert len(engine.find(name, state=leaf)) == n


def regions():
    """Two regions, a way out, and the way back to where they were."""
    one = {"initial": "r", "states": {"r": {"on": {"one": "r2"}}, "r2": {"on": {"one": "r"}}}}
    two = {"initial": "s", "states": {"s": {"on": {"two": "s2"}}, "s2": {"type": "final"}}}
    states = {"R": one, "S": two, "h": BACK}
    return machine(
        "regions",
        {"P": {"type": "parallel", "states": states, "on": {"out": "Z"}}, "Z": {"on": {"back": "h", "in": "P"}}},
    )


def test_regions_and_what_a_history_state_remembers(frail):
    engine = frail.engine
    publish(engine, regions(), "inside", "away", "new")
    for id in ("inside", "away"):
        engine.fire("regions", id, "two", now=NOW)
    engine.fire("regions", "inside", "one", now=NOW)
    engine.fire("regions", "away", "out", now=NOW)
    before = engine.get("regions", "inside")
    frail.crash()
    assert engine.get("regions", "inside") == before
    assert engine.fire("regions", "away", "back", now=NOW).configuration == ["r", "s2"]
    assert engine.fire("regions", "inside", "one", now=NOW).configuration == ["r", "s2"]
    assert engine.fire("regions", "new", "two", now=NOW).configuration == ["r", "s2"]
    steps = engine.history("regions", "away")
    assert [(step.revision, step.event, step.configuration) for step in steps] == [
        (4, "back", ["r", "s2"]),
        (3, "out", ["Z"]),
        (2, "two", ["r", "s2"]),
        (1, "(create)", ["r", "s"]),
    ]
    audit(engine, "regions")


def test_a_region_remembered_in_the_middle_of_many_is_found_again_after_several_crashes(frail):
    engine = frail.engine
    publish(engine, regions(), "x")
    for event, configuration in [("one", "r2 s"), ("out", "Z"), ("back", "r2 s"), ("two", "r2 s2"), ("out", "Z")]:
        assert " ".join(engine.fire("regions", "x", event, now=NOW).configuration) == configuration
        frail.crash()
    assert engine.fire("regions", "x", "back", now=NOW).configuration == ["r2", "s2"]
    audit(engine, "regions")


def test_timers_fire_once_when_they_are_due(frail):
    engine = frail.engine
    late = {"send": {"event": "late", "delay": "20s", "id": "s1"}}
    count = {"actions": {"set": {"n": "n + 1"}}}
    inner = {"initial": "a", "states": {"a": {"after": {"10s": "b"}}, "b": {}}, "entry": late, "on": {"late": count}}
    publish(engine, machine("timed", {"A": inner}, context={"n": 0}), "x", "y")
    frail.crash()
    assert engine.live("timed").timers == 4
    assert engine.tick("timed", now=NOW + 9_999) == 0
    assert engine.tick("timed", now=NOW + 10_000) == 2
    frail.crash()
    assert engine.tick("timed", now=NOW + 10_000) == 0
    assert engine.tick("timed", now=NOW + 20_000) == 2
    assert engine.tick("timed", now=NOW + 90_000) == 0
    for id in "xy":
        after = engine.get("timed", id)
        assert (after.configuration, after.data["n"], after.timers) == (["b"], 1, [])
        assert [step.event for step in engine.history("timed", id)] == ["late", "after.t2", "(create)"]
    audit(engine, "timed")


def test_a_timer_of_a_state_that_was_left_stays_disarmed(frail):
    engine = frail.engine
    publish(engine, machine("timed", {"A": {"after": {"10s": "B"}, "on": {"go": "C"}}, "B": {}, "C": {}}), "x")
    engine.fire("timed", "x", "go", now=NOW)
    frail.crash()
    assert engine.tick("timed", now=NOW + 10_000) == 0
    assert engine.get("timed", "x").state == "C"
    audit(engine, "timed")


def test_messages_under_way_arrive_once_and_in_order(frail):
    engine = frail.engine
    publish(engine, noter(), "x")
    publish(engine, teller(), "t")
    for n in range(3):
        post(engine, "x", n)
    post(engine, "nobody", 9)
    frail.crash()
    assert (told(engine), waiting(engine)) == ([], 4)
    engine.tick()
    assert (told(engine), waiting(engine)) == ([0, 1, 2], 0)
    assert engine.get("teller", "t").data["ids"] == ["s1"]
    frail.crash()
    engine.tick()
    assert told(engine) == [0, 1, 2]
    assert len(engine.get("teller", "t").data["lost"]) == 1
    for name in ("noter", "teller"):
        audit(engine, name)


@pytest.fixture
def family(frail) -> Frail:
    """Two parents, each with a running child."""
    publish(frail.engine, child())
    publish(frail.engine, parent(input={"n": "start"}), "p", "q")
    for id in "pq":
        frail.engine.fire("parent", id, "start")
    return frail


def test_a_child_goes_on_and_tells_its_parent_how_it_ended(family):
    engine = family.engine
    tell(engine, "hit")
    before = {one.id: one for one in engine.find("child")}
    family.crash()
    assert {one.id: one for one in engine.find("child")} == before
    tell(engine, "hit")
    tell(engine, "say")
    tell(engine, "end")
    after = engine.get("parent", "p")
    assert (after.state, after.data["heard"], after.data["got"], after.children) == ("Done", [7], 14, {})
    assert engine.fire("parent", "q", "quit").state == "Idle"
    assert (only(engine).done, engine.counts("child")) == (True, {"A": 0, "Z": 1})
    for name in ("child", "parent"):
        audit(engine, name)


def test_a_child_that_is_stopped_just_before_is_stopped_all_the_same(family):
    engine = family.engine
    orphan = engine.get("parent", "q").children["k"]["id"]
    root = engine.keys.partition("parent").root
    assert engine.client.fcall("sb_fire", 1, root, "q", "quit", "", "", "", "", "", "")[0] == "OK"
    family.crash()
    assert engine.get("child", orphan).state == "A"
    engine.tick()
    with pytest.raises(UnknownInstance):
        engine.get("child", orphan)
    assert only(engine).id == engine.get("parent", "p").children["k"]["id"]
    for name in ("child", "parent"):
        audit(engine, name)


def test_what_is_suspended_stays_so_and_gets_what_was_held_when_it_is_resumed(frail):
    engine = frail.engine
    publish(engine, noter(), "x", "y")
    publish(engine, teller(), "t")
    held = engine.suspend("noter", "x", now=NOW, **WHO)
    for n in range(3):
        engine.fire("teller", "t", "tell", {"id": "x", "n": n})
    engine.fire("teller", "t", "tell", {"id": "y", "n": 7})
    frail.crash()
    assert (engine.get("noter", "x").suspended, told(engine), told(engine, "y")) == (held.suspended, [], [7])
    with pytest.raises(Suspended):
        engine.fire("noter", "x", "note", {"n": 8})
    engine.resume("noter", "x", now=NOW, **WHO)
    engine.tick()
    assert (engine.get("noter", "x").suspended, told(engine), told(engine, "y")) == (None, [0, 1, 2], [7])
    frail.crash()
    engine.tick()
    assert told(engine) == [0, 1, 2]
    for name in ("noter", "teller"):
        audit(engine, name)


def test_timers_that_are_held_stay_so_until_it_is_resumed(frail):
    engine = frail.engine
    publish(engine, machine("timed", {"A": {"after": {"10s": "B"}}, "B": {}}), "x")
    engine.suspend("timed", "x", now=NOW + 4_000, **WHO)
    frail.crash()
    assert engine.tick("timed", now=NOW + 60_000) == 0
    audit(engine, "timed")
    after = engine.resume("timed", "x", overdue="shift", now=NOW + 60_000, **WHO)
    assert [timer.due for timer in after.timers] == [NOW + 66_000]
    frail.crash()
    assert engine.tick("timed", now=NOW + 65_999) == 0
    assert engine.tick("timed", now=NOW + 66_000) == 1
    assert engine.get("timed", "x").state == "B"
    audit(engine, "timed")
