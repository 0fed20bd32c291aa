"""Redis is down, comes back, is full, or loses its answers: a clear error, quickly, and nothing half-written."""

import contextlib
import os
import signal
import traceback

import pytest
import redis

from machines.engine import BadInput, Engine, EngineUnavailable, NotPermitted
from tests.cases import for_each
from tests.engine.builders import NOW, counter, door, errand, machine, publish
from tests.engine.dumps import dump, silence

from .proxies import Relay

CALLS = {
    "ping": lambda e: e.ping(),
    "load_library": lambda e: e.load_library(),
    "publish": lambda e: e.publish(door(history=3)),
    "machines": lambda e: e.machines(),
    "versions": lambda e: e.versions("door"),
    "definition": lambda e: e.definition("door"),
    "create": lambda e: e.create("door", "y"),
    "fire": lambda e: e.fire("door", "x", "open"),
    "fire_many": lambda e: e.fire_many([("door", "x", "open")]),
    "explain": lambda e: e.explain("door", "x", "open"),
    "get": lambda e: e.get("door", "x"),
    "history": lambda e: e.history("door", "x"),
    "find": lambda e: e.find("door"),
    "find in a state": lambda e: e.find("door", state="Shut"),
    "counts": lambda e: e.counts("door"),
    "live": lambda e: e.live("door"),
    "force": lambda e: e.force("door", "x", "Open", actor="a", reason="r"),
    "delete": lambda e: e.delete("door", "x"),
    "take": lambda e: e.take("door", "work", "w"),
    "sweep": lambda e: e.sweep("door"),
    "tick": lambda e: e.tick(),
    "queues": lambda e: e.queues("door"),
    "jobs": lambda e: e.jobs("door", "work"),
    "workers": lambda e: e.workers(),
    "leave": lambda e: e.leave("w"),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_on_a_server_that_is_down_says_so_without_waiting(tmp_path, call, monkeypatch):
    waits = []
    for place in ("time.sleep", "redis.retry.sleep"):
        monkeypatch.setattr(place, waits.append)
    engine = Engine.from_url(f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(EngineUnavailable, match="Redis cannot be used now"):
        CALLS[call](engine)
    assert waits == []


@pytest.mark.parametrize("call", CALLS)
def test_and_so_does_every_call_on_one_that_goes_down_later(own_engine, own_server, call):
    publish(own_engine, door(), "x")
    own_engine.live("door")
    own_server.stop()
    with pytest.raises(EngineUnavailable):
        CALLS[call](own_engine)


def test_when_the_server_comes_back_everything_works_again_without_a_new_engine(tmp_path, program_of_this_run):
    from machines.conf.server import Server

    with Server(tmp_path / "s", program=program_of_this_run) as server:
        engine = Engine.from_url(server.url)
        publish(engine, door(), "x")
        with redis.Redis.from_url(server.url) as client, contextlib.suppress(redis.ConnectionError):
            client.shutdown(nosave=False)
        with pytest.raises(EngineUnavailable):
            engine.fire("door", "x", "open")
        server.revive()
        assert engine.fire("door", "x", "open").revision == 2
        assert [i.state for i in engine.fire_many([("door", "x", "close")])] == ["Shut"]
        engine.client.close()


def test_a_server_restarted_without_a_trace_is_no_error_for_what_is_done_next(own_engine, own_server):
    """Connections that broke in the meantime are noticed before anything is sent on them."""
    publish(own_engine, door(), "x")
    own_engine.client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    for connection in range(3):
        other = redis.Redis.from_url(own_server.url)
        other.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        other.close()
        assert own_engine.fire("door", "x", "close" if connection % 2 else "open").revision == connection + 2


def full(engine):
    """No memory left for writes."""
    engine.client.config_set("maxmemory", "1mb")
    engine.client.config_set("maxmemory-policy", "noeviction")


@pytest.mark.parametrize("call", ["create", "fire", "force", "take", "complete", "fail", "publish", "sweep", "delete"])
def test_a_server_that_is_full_takes_no_step_and_writes_no_half_of_one(own_engine, call):
    publish(own_engine, errand(), "x", "y")
    own_engine.fire("errand", "y", "start", now=NOW)
    (job,) = own_engine.take("errand", "work", "w", now=NOW)
    calls = {
        "create": lambda: own_engine.create("errand", "z"),
        "fire": lambda: own_engine.fire("errand", "x", "start", key="k"),
        "force": lambda: own_engine.force("errand", "x", "Busy", actor="a", reason="r"),
        "take": lambda: own_engine.take("errand", "work", "w"),
        "complete": lambda: own_engine.complete(job),
        "fail": lambda: own_engine.fail(job, "no"),
        "publish": lambda: own_engine.publish(door()),
        "sweep": lambda: own_engine.sweep("errand", now=NOW * 2),
        "delete": lambda: own_engine.delete("errand", "x"),
    }
    silence(own_engine)
    full(own_engine)
    before = dump(own_engine)
    with pytest.raises(EngineUnavailable, match="out of memory and takes no writes; nothing was changed"):
        calls[call]()
    assert dump(own_engine) == before
    assert own_engine.get("errand", "x").state == "Idle", "reading goes on"
    assert own_engine.live("errand").counts["Busy"] == 1
    own_engine.client.config_set("maxmemory", "0")
    calls[call]()


def test_each_call_of_many_is_told_when_the_server_is_full(own_engine):
    publish(own_engine, door(), "x")
    full(own_engine)
    results = own_engine.fire_many([("door", "x", "open")] * 3)
    assert [type(result) for result in results] == [EngineUnavailable] * 3


def test_a_replica_takes_no_steps(own_engine):
    publish(own_engine, door(), "x")
    own_engine.client.execute_command("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(EngineUnavailable, match="read only"):
        own_engine.fire("door", "x", "open")
    assert isinstance(own_engine.fire_many([("door", "x", "open")])[0], EngineUnavailable)
    own_engine.client.execute_command("REPLICAOF", "NO", "ONE")
    assert own_engine.fire("door", "x", "open").revision == 2


def test_a_server_that_may_not_be_used_says_why(own_engine, own_server):
    own_engine.client.execute_command("ACL", "SETUSER", "eve", "on", ">secret", "~*", "+@all", "-@scripting")
    own_engine.client.execute_command("CONFIG", "SET", "requirepass", "x")
    nobody = Engine.from_url(own_server.url)
    with pytest.raises(EngineUnavailable, match="(?i)auth"):
        nobody.machines()
    eve = Engine.from_url(f"{own_server.url}?username=eve&password=secret")
    with pytest.raises(NotPermitted, match="lacks fcall_ro"):
        eve.publish(door())
    for engine in (nobody, eve):
        engine.client.close()


@pytest.fixture
def relay(own_server):
    relay = Relay(own_server.url)
    yield relay
    relay.close()


@pytest.mark.parametrize("mute", [False, True], ids=["the connection breaks", "the connection says nothing"])
def test_a_call_whose_answer_is_lost_is_sent_once(own_engine, relay, mute):
    publish(own_engine, counter(), "x")
    far = Engine.from_url(relay.url, socket_timeout=0.3)
    far.get("counter", "x")
    relay.break_next(mute=mute)
    with pytest.raises(EngineUnavailable):
        far.fire("counter", "x", "add", key="k")
    assert relay.sent(b"sb_fire") == 1
    assert own_engine.get("counter", "x").data == {"n": 1}, "it had happened"
    relay.mend()
    assert far.fire("counter", "x", "add", key="k").outcome.replayed, "the same key finds out"
    assert own_engine.get("counter", "x").data == {"n": 1}
    far.client.close()


def test_many_calls_whose_answers_are_lost_are_sent_once_each(own_engine, relay):
    publish(own_engine, counter(), "x")
    far = Engine.from_url(relay.url, socket_timeout=0.3)
    far.get("counter", "x")
    relay.break_next()
    with pytest.raises(EngineUnavailable):
        far.fire_many([("counter", "x", "add")] * 2)
    assert relay.sent(b"sb_fire") == 2
    assert own_engine.get("counter", "x").data == {"n": 2}
    far.client.close()


def test_a_timeout_says_that_nobody_knows(own_engine, relay):
    publish(own_engine, door(), "x")
    far = Engine.from_url(relay.url, socket_timeout=0.2)
    far.get("door", "x")
    relay.break_next(mute=True)
    with pytest.raises(EngineUnavailable, match="the call may or may not have happened"):
        far.fire("door", "x", "open")
    far.client.close()


@for_each("url", ["http://x", "localhost", "", "redis+sentinel://x", "ftp://", "redis://x:port", "redis://[x"])
def test_a_url_that_is_none_is_bad_input(url):
    with pytest.raises(BadInput, match="Redis URL"):
        Engine.from_url(url).ping()


@pytest.mark.parametrize(
    "url", ["//:hunter2@host", ":hunter2@host", "redis://:hunter2/x@host", "redis://u:hunter2#@h:1"]
)
def test_a_url_that_cannot_be_read_is_not_repeated_with_its_password(url):
    with pytest.raises(BadInput) as caught:
        Engine.from_url(url).ping()
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_a_busy_server_is_waited_for_no_longer_than_the_timeout(own_engine, own_server):
    publish(own_engine, machine("m", {"A": {}}))
    hasty = Engine.from_url(own_server.url, socket_timeout=0.2)
    server = own_engine.client.info("server")["process_id"]
    os.kill(server, signal.SIGSTOP)  # until it is told to go on, which nobody does before the call has ended
    try:
        with pytest.raises(EngineUnavailable):
            hasty.machines()
    finally:
        os.kill(server, signal.SIGCONT)
    hasty.client.close()


def test_an_answer_that_comes_too_late_is_never_read_as_that_of_the_next_call(own_engine, own_server):
    """The connection of a call that gave up is not used again: its answer may still be on the way."""
    publish(own_engine, door())
    for id in ("early", "late"):
        own_engine.create("door", id)
    hasty = Engine.from_url(own_server.url, prefix=own_engine.keys.prefix, socket_timeout=0.2)
    assert hasty.get("door", "early").id == "early"
    server = own_engine.client.info("server")["process_id"]
    os.kill(server, signal.SIGSTOP)
    try:
        with pytest.raises(EngineUnavailable, match="in time"):
            hasty.fire("door", "late", "open")
    finally:
        os.kill(server, signal.SIGCONT)
    own_engine.ping()
    patient = Engine(hasty.client, prefix=own_engine.keys.prefix)
    while True:  # until a call comes through in the little time it has
        with contextlib.suppress(EngineUnavailable):
            assert patient.get("door", "early").state == "Shut", "not the late answer, which is Open"
            break
