"""Deliverers and servers that are killed: what a message does happens once all the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import redis

from machines.conf.server import Server
from machines.engine import Engine
from tests.engine.builders import NOW, machine, publish
from tests.engine.instances.racing import ROOT

from .mailing import noter, post, teller, told, waiting

pytestmark = pytest.mark.faults
# Argv: URL, prefix, a function, "before" or "after" it is called for the first time: then it is gone, with no farewell.
VICTIM = """
import os, signal, sys
from machines.engine import Engine
url, prefix, function, moment = sys.argv[1:]
engine = Engine.from_url(url, prefix=prefix)
caller = engine._caller
many = caller.many

def fatal(calls):
    meant = any(call[0] == function for call in calls)
    if meant and moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    replies = many(calls)
    if meant:
        os.kill(os.getpid(), signal.SIGKILL)
    return replies

caller.many = fatal
engine.drive(["teller"])
"""

# Argv: URL, prefix. Delivers until it is killed.
CARRIER = """
import sys
from machines.engine import Engine
engine = Engine.from_url(sys.argv[1], prefix=sys.argv[2])
while True:
    engine.drive(["teller", "noter"])
"""


SENDERS = {"t": 1, "u": 2, "v": 3}


def run(script, *words):
    return subprocess.Popen([sys.executable, "-c", script, *words], cwd=ROOT)


@pytest.fixture
def pair(engine):
    publish(engine, noter(), "x", "y")
    publish(engine, teller(), "t")
    return engine


def settle(engine):
    while engine.tick():
        pass


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("function", ["sb_outbox", "sb_deliver", "sb_settle"])
def test_a_deliverer_killed_at_any_point_leaves_each_message_to_be_applied_once(pair, redis_url, function, moment):
    for n in range(10):
        post(pair, "xy"[n % 2], n)
    post(pair, "nobody", 10)
    process = run(VICTIM, redis_url, pair.keys.prefix, function, moment)
    assert process.wait(90) == -signal.SIGKILL
    settle(pair)
    assert (told(pair, "x"), told(pair, "y")) == ([0, 2, 4, 6, 8], [1, 3, 5, 7, 9])
    assert len(pair.get("teller", "t").data["lost"]) == 1
    assert waiting(pair) == 0


def test_deliverers_that_are_killed_again_and_again_lose_nothing_and_repeat_nothing(pair, redis_url):
    chance = random.Random(7)
    carriers = [run(CARRIER, redis_url, pair.keys.prefix) for _ in range(2)]
    for id in ("u", "v"):
        pair.create("teller", id)
    try:
        for n in range(120):
            for sender, number in SENDERS.items():
                post(pair, "x", number * 1000 + n, sender=sender)
            post(pair, "nobody", n)
            if n % 20 == 19:
                time.sleep(0.3)  # long enough for a carrier to be at work, wherever it is then
                victim = chance.randrange(2)
                carriers[victim].kill()
                carriers[victim].wait()
                carriers[victim] = run(CARRIER, redis_url, pair.keys.prefix)
    finally:
        for carrier in carriers:
            carrier.kill()
            carrier.wait()
    settle(pair)
    for sender in SENDERS.values():
        assert [n for n in told(pair) if n // 1000 == sender] == [sender * 1000 + n for n in range(120)]
    assert len(pair.get("teller", "t").data["lost"]) == 120
    assert waiting(pair) == 0


@pytest.fixture
def server(program_of_this_run):
    """A server that keeps its data, to be killed and revived."""
    with tempfile.TemporaryDirectory(prefix="sb-") as folder:
        server = Server(Path(folder), program=program_of_this_run).start()
        yield server
        server.stop()


@pytest.fixture
def frail(server):
    engine = Engine.from_url(server.url)
    yield engine
    engine.client.close()


def crash(server):
    with redis.Redis.from_url(server.url) as client:
        os.kill(client.info("server")["process_id"], signal.SIGKILL)
    while server.running:
        time.sleep(0.01)
    server.revive()


def test_a_server_that_is_killed_between_delivery_and_settling_repeats_nothing(server, frail):
    publish(frail, noter(), "x")
    publish(frail, teller(), "t")
    for n in range(3):
        post(frail, "x", n)
    process = run(VICTIM, server.url, frail.keys.prefix, "sb_deliver", "after")
    assert process.wait(90) == -signal.SIGKILL
    assert (told(frail), waiting(frail)) == ([0, 1, 2], 3)
    crash(server)
    settle(frail)
    assert (told(frail), waiting(frail)) == ([0, 1, 2], 0)
    post(frail, "x", 3)
    settle(frail)
    assert told(frail) == [0, 1, 2, 3]


def test_timers_suspensions_and_what_waits_for_them_survive_a_server_that_is_killed(server, frail):
    states = {"A": {"after": {"10s": "B"}, "on": {"note": {"actions": {"append": {"got": "event.n"}}}}}, "B": {}}
    publish(frail, machine("noter", states, context={"got": []}, accepts={"from": ["teller"]}), "x", "y")
    publish(frail, teller(), "t")
    frail.suspend("noter", "y", actor="a", reason="r", now=NOW)
    frail.fire("teller", "t", "tell", {"id": "y", "n": 1})
    crash(server)
    assert frail.tick("noter", now=NOW + 9_999) == 0
    assert frail.tick("noter", now=NOW + 10_000) == 1
    assert frail.get("noter", "x").state == "B"
    after = frail.resume("noter", "y", actor="a", reason="r", overdue="shift", now=NOW + 20_000)
    assert (after.state, after.data["got"], after.timers[0].due) == ("A", [1], NOW + 30_000)
