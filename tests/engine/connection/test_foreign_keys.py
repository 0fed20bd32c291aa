"""Something else stands where the engine keeps a key: the call fails, and what it had written is taken back."""

import pytest
import redis

from machines.engine import Engine, EngineFault, LeaseLost, LookupFailed
from tests.cases import for_each
from tests.engine.builders import NOW, machine, publish
from tests.engine.dumps import dump, keys_left, restored, silence, unchanged
from tests.engine.jobs.stored_jobs import spread_job

STATES = {
    "Idle": {
        "on": {
            "go": {
                "target": "Busy",
                "actions": [
                    {"set": {"n": "n + 1"}},
                    {"enqueue": {"src": "mail"}},
                    {"emit": {"type": "went"}},
                    {"enqueue": {"src": "audit"}},
                    {"log": "n"},
                ],
            },
        },
    },
    "Busy": {
        "invoke": {"src": "work", "onDone": "Done", "onError": "Failed"},
        "always": {"guard": "n > 99", "target": "Idle"},
    },
    "Done": {"always": "Settled"},
    "Settled": {},
    "Failed": {},
}  # fmt: skip
LATER = NOW + 1  # a step that is taken back must leave the time at which the instance entered its state
FOREIGN = ["string", "list", "hash", "zset", "set", "stream"]


@pytest.fixture
def box(engine):
    """Instances in every situation: ``a`` idle, ``b`` with a held job, ``c`` with a ready one, ``d`` with a delayed,
    ``e`` with a dead one."""
    publish(engine, machine("m", STATES, context={"n": 0}, history=2), *"abcde")
    job = None
    for id in "bdec":
        engine.fire("m", id, "go", now=NOW)
        if id != "c":
            (job,) = engine.take("m", "work", "w", now=NOW)
            engine.job_of = {**getattr(engine, "job_of", {}), id: job}
    engine.fail(engine.job_of["d"], "no", now=NOW)
    engine.fail(engine.job_of["e"], "no", retry=False, now=NOW)
    return engine


def plant(engine, key, kind):
    """Something of another type under ``key``."""
    engine.client.delete(key)
    {
        "string": lambda: engine.client.set(key, "foreign"),
        "list": lambda: engine.client.rpush(key, "foreign"),
        "hash": lambda: engine.client.hset(key, "foreign", "x"),
        "zset": lambda: engine.client.zadd(key, {"foreign": 1}),
        "set": lambda: engine.client.sadd(key, "foreign"),
        "stream": lambda: engine.client.xadd(key, {"foreign": "x"}),
    }[kind]()


CALLS = {
    "fire": lambda e: e.fire("m", "a", "go", key="k", now=LATER),
    "create": lambda e: e.create("m", "new", key="k", now=NOW),
    "force": lambda e: e.force("m", "a", "Busy", actor="a", reason="r", now=LATER),
    "delete": lambda e: e.delete("m", "b"),
    "take": lambda e: e.take("m", "work", "w", now=NOW),
    "complete": lambda e: e.complete(e.job_of["b"], {"ok": 1}, now=NOW),
    "fail": lambda e: e.fail(e.job_of["b"], "no", now=NOW),
    "bury": lambda e: e.fail(e.job_of["b"], "no", retry=False, now=NOW),
    "hand back": lambda e: e.hand_back(e.job_of["b"], now=NOW),
    "extend": lambda e: e.extend(e.job_of["b"], 5000, now=NOW),
    "progress": lambda e: e.progress(e.job_of["b"], 1, now=NOW),
    "enqueue": lambda e: e.enqueue("m", "work", unique="u", now=NOW),
    "enqueue later": lambda e: e.enqueue("m", "mail", delay=5, unique="v", now=NOW),
    "withdraw": lambda e: e.withdraw("m", e.job_of["b"], actor="a", reason="r", now=NOW),
    "purge": lambda e: e.purge("m", "work", place="dead", actor="a", reason="r", now=NOW),
    "redrive": lambda e: e.redrive("m", "work", e.job_of["e"], actor="a", reason="r", now=NOW, force=True),
    "move now": lambda e: e.move_now("m", "work", e.job_of["d"], actor="a", reason="r", now=NOW),
    "delay": lambda e: e.reschedule("m", e.job_of["d"], until=LATER, actor="a", reason="r", now=NOW),
    "move to a queue": lambda e: e.reschedule("m", e.job_of["d"], queue="mail", actor="a", reason="r", now=NOW),
    "pause": lambda e: e.pause("m", "work", actor="a", reason="r", now=NOW),
    "limit": lambda e: e.limit("m", "work", concurrency=5, rate="5/s"),
}
ROOT = "{m:0}"
KEYS = {
    "versions": f"{ROOT}:versions",
    "index left": f"{ROOT}:in:Idle",
    "index entered": f"{ROOT}:in:Busy",
    "index after the work": f"{ROOT}:in:Settled",
    "index after a failure": f"{ROOT}:in:Failed",
    "history": f"{ROOT}:h:a",
    "history of the one with work": f"{ROOT}:h:b",
    "history of the new one": f"{ROOT}:h:new",
    "flow": f"{ROOT}:flow",
    "log": f"{ROOT}:log",
    "meta": f"{ROOT}:meta",
    "instance": f"{ROOT}:i:a",
    "instance with work": f"{ROOT}:i:b",
    "ready": f"{ROOT}:q:work",
    "ready mail": f"{ROOT}:q:mail",
    "ready audit": f"{ROOT}:q:audit",
    "leased": f"{ROOT}:q:work:leased",
    "delayed": f"{ROOT}:q:work:delayed",
    "dead": f"{ROOT}:q:work:dead",
    "bell": f"{ROOT}:q:work:bell",
    "next job": f"{ROOT}:job:0-13",
    "the job after": f"{ROOT}:job:0-14",
    "the third job": f"{ROOT}:job:0-15",
    "the held job": f"{ROOT}:job:0-1",
    "dead job": f"{ROOT}:job:0-7",
    "delayed job": f"{ROOT}:job:0-4",
    "history of the one that died": f"{ROOT}:h:e",
    "instance that died": f"{ROOT}:i:e",
    "queues": f"{ROOT}:queues",
    "rules": f"{ROOT}:q:work:rules",
    "statistics": f"{ROOT}:qs:work",
    "unique key": f"{ROOT}:u:work:u",
    "unique key of mail": f"{ROOT}:u:mail:v",
    "withdrawn": f"{ROOT}:w:0-1",
    "outcome": f"{ROOT}:k:1:a:k",
    "creation": f"{ROOT}:c:3:new:k",
    "definition": f"{ROOT}:def:1",
}
# What the engine itself keeps there, so that a foreign key is of another type.
OWN = {"in": "zset", "h": "list", "flow": "hash", "log": "stream", "meta": "hash", "i": "hash", "q": "zset",
       "job": "hash", "k": "string", "c": "string", "def": "hash",
       "queues": "set", "qs": "hash", "versions": "hash", "u": "string", "w": "string"}  # fmt: skip


@pytest.mark.hostile
@pytest.mark.parametrize("place", KEYS)
@for_each("call", CALLS)
def test_a_call_that_meets_a_foreign_key_succeeds_without_it_or_changes_nothing(box, place, call):
    key = box.keys.prefix + KEYS[place]
    own = {"bell": "list", "rules": "hash"}.get(place) or OWN[KEYS[place].split(":")[2]]
    kind = "string" if own != "string" else "list"
    with restored(box):
        plant(box, key, kind)
        silence(box)
        before = dump(box)
        try:
            CALLS[call](box)
        except (EngineFault, LeaseLost, LookupFailed):
            silence(box)
            assert {k: v for k, v in dump(box).items() if before.get(k) != v} == {}
            assert set(dump(box)) == set(before)
        else:
            assert box.client.type(key) in (kind, "none"), "nobody wrote over it"


@pytest.mark.parametrize("content", [b"foreign", b"\x01", b"", b"\x94\xa2OK\xa0\x01\xc0"])
def test_an_outcome_that_the_engine_did_not_keep_is_told_as_a_fault(box, content):
    box.client.set(box.keys.prefix + KEYS["outcome"], content)
    with unchanged(box), pytest.raises(EngineFault, match="was not written by the engine"):
        box.fire("m", "a", "go", key="k", now=NOW)


WAY = ["index left", "index entered", "history", "flow", "ready", "next job", "log"]
STRANGERS = [(place, kind) for place in WAY for kind in FOREIGN if OWN[KEYS[place].split(":")[2]] != kind]


@for_each("place, kind", STRANGERS)
def test_whatever_its_type_a_step_is_taken_back_whole(box, place, kind):
    with restored(box):
        plant(box, box.keys.prefix + KEYS[place], kind)
        with unchanged(box), pytest.raises(EngineFault, match="WRONGTYPE"):
            box.fire("m", "a", "go", now=LATER)


def test_the_history_keeps_its_oldest_steps_when_a_step_that_would_cut_it_is_taken_back(box):
    for _ in range(18 - box.client.llen(box.keys.partition("m").history("a"))):
        box.force("m", "a", "Idle", actor="a", reason="fill", now=NOW)
    plant(box, box.keys.prefix + KEYS["log"], "string")
    with unchanged(box), pytest.raises(EngineFault):
        box.fire("m", "a", "go", now=NOW)


def test_a_counter_that_is_no_number_stops_the_step(box):
    box.client.hset(box.keys.partition("m").flow, "1:t1", "many")
    with unchanged(box), pytest.raises(EngineFault, match="not an integer"):
        box.fire("m", "a", "go", now=NOW)


def test_of_several_edges_each_is_taken_back(box):
    box.client.hset(box.keys.partition("m").flow, "1:t5", "many")
    with unchanged(box), pytest.raises(EngineFault, match="not an integer"):
        box.complete(box.job_of["b"], now=NOW)


def test_a_foreign_bell_is_no_reason_to_fail(box):
    plant(box, box.keys.partition("m").bell("work"), "string")
    assert box.fire("m", "a", "go", now=NOW).state == "Busy"
    assert len(box.take("m", "work", "w", count=5, now=NOW)) == 2


def test_a_job_of_a_foreign_instance_is_taken_without_data_and_loses_no_other(box):
    box.fire("m", "a", "go", now=NOW)
    plant(box, box.keys.partition("m").instance("c"), "string")
    taken = box.take("m", "work", "w", count=5, now=NOW)
    assert [(job.instance, job.data) for job in taken] == [("c", {}), ("a", {"n": 1})]


def test_what_is_wrong_with_one_machine_keeps_no_other_waiting(box):
    publish(box, machine("zoo", {"A": {"invoke": {"src": "work"}}}), "x", now=NOW)
    (job,) = box.take("zoo", "work", "w", now=NOW)
    plant(box, box.keys.partition("m").leased("work"), "string")
    with pytest.raises(EngineFault):
        box.tick(now=job.lease_until)
    assert box.queues("zoo")["work"]["ready"] == 1


def test_a_job_whose_hash_is_foreign_is_no_job(box):
    (ready,) = box.jobs("m", "work")
    plant(box, box.keys.partition("m").job(ready.id), "string")
    assert box.take("m", "work", "w", now=NOW) == []


@pytest.mark.parametrize("place", ["meta", "definition", "states", "queues"])
def test_publishing_over_a_foreign_key_changes_nothing(engine, place):
    partition = engine.keys.partition("m")
    plant(engine, {"meta": partition.meta, "definition": partition.definition(1), "states": partition.states,
                   "queues": partition.queues}[place], "string")  # fmt: skip
    with unchanged(engine), pytest.raises(EngineFault):
        engine.publish(machine("m", STATES, context={"n": 0}))


def test_a_sweep_that_cannot_bury_leaves_the_job_where_it_is(box):
    job = box.job_of["b"]
    spread_job(box.client, box.keys.partition("m").job(job.id), attempts="1")
    plant(box, box.keys.partition("m").dead("work"), "string")
    box.sweep("m", now=job.lease_until)
    assert box.jobs("m", "work", place="leased")[0].id == job.id
    assert box.get("m", "b").state == "Busy"


def test_an_instance_hash_that_the_engine_did_not_write_is_told_as_a_fault(box):
    key = box.keys.partition("m").instance("a")
    for field in ("_state", "_def", "_version"):
        held = box.client.hgetall(key)
        box.client.hdel(key, field)
        with unchanged(box), pytest.raises(EngineFault, match="was not written by the engine"):
            box.fire("m", "a", "go")
        box.client.hset(key, mapping=held)
    for field, value, why in [
        ("_state", "Nowhere", "which its definition does not have"),
        ("_def", "1:abc", "has the digest"),
        ("_def", "7:abc", "version 7 is not published here"),
        ("_def", "x", "a definition is named"),
    ]:
        held = box.client.hget(key, field)
        box.client.hset(key, field, value)
        with unchanged(box), pytest.raises(EngineFault, match=why):
            box.fire("m", "a", "go")
        box.client.hset(key, field, held)


def test_the_check_itself_sees_a_change(box):
    with pytest.raises(AssertionError, match="keys that differ"), unchanged(box):
        box.client.hset(box.keys.partition("m").flow, "1:t1", 99)
    with pytest.raises(AssertionError, match="keys that are new"), unchanged(box):
        box.client.set(box.keys.prefix + "new", 1)
    with pytest.raises(AssertionError, match="keys that differ"), unchanged(box):
        box.client.pexpire(box.keys.partition("m").flow, 100_000)
    assert keys_left(box)


def test_a_pulse_that_may_not_be_rung_is_no_reason_to_fail(box):
    """The step is written by then: an error would say that it was not."""
    client = box.client
    client.execute_command("ACL", "SETUSER", "mute", "reset", "on", "nopass", "~*", "&*", "+@all", "-set")
    pool = client.connection_pool
    kwargs = pool.connection_kwargs | {"username": "mute", "password": "x"}
    mute = redis.Redis(connection_pool=redis.ConnectionPool(connection_class=pool.connection_class, **kwargs))
    try:
        outcome = Engine(mute, prefix=box.keys.prefix).complete(box.job_of["b"], now=NOW)
        assert outcome.state == "Settled"
    finally:
        mute.close()
        client.execute_command("ACL", "DELUSER", "mute")
