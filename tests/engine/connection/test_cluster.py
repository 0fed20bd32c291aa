"""A machine spread over a real cluster of three nodes."""

import contextlib
import time

import pytest
import redis

from machines.engine import Engine, EngineUnavailable, Fire, Refused, UnknownInstance, UnknownMachine
from machines.engine.connection import library
from machines.engine.connection.library_loader import read_held
from machines.engine.keys import choose_partition
from machines.engine.messages.emitted import read_entry
from machines.engine.pattern_keys import PatternKeys
from machines.patterns import (
    Blocks,
    Bus,
    Cardinality,
    Changed,
    Full,
    Gap,
    Gone,
    Locks,
    Records,
    Scoreboard,
    Sessions,
    Snowflakes,
    Stream,
    Taken,
    Throttle,
    Write,
    WriteBuffer,
    decode,
)
from machines.patterns.bus import AttachedStream
from machines.patterns.cas import update
from tests.engine.builders import NOW, counter, door, errand, machine, publish

from . import clusters
from .proxies import Relay

PARTITIONS = 12
IDS = [f"i{number:02}" for number in range(30)]


@pytest.fixture
def url(nodes):
    return clusters.url_of(nodes)


@pytest.fixture
def engine(nodes, prefix):
    with clusters.engine_on(nodes, prefix, PARTITIONS) as engine:
        yield engine


def homes(nodes, prefix):
    """How many of the keys each node holds."""
    found = []
    for node in nodes:
        with node.client() as client:
            found.append(sum(1 for _ in client.scan_iter(match=f"{prefix}*", count=1000)))
    return found


def test_partitions_spread_over_all_nodes(engine, nodes, prefix):
    publish(engine, door(), *IDS)
    assert all(count > 5 for count in homes(nodes, prefix))


def test_the_whole_life_of_an_instance(engine):
    publish(engine, counter(), "x")
    assert engine.explain("counter", "x", "add").taken
    assert engine.fire("counter", "x", "add", key="k", expect=1).data == {"n": 1}
    assert engine.fire("counter", "x", "add", key="k").outcome.replayed
    assert engine.force("counter", "x", "On", actor="a", reason="r", data={"n": 3}).revision == 3
    with pytest.raises(Refused, match="n < 3 is false"):
        engine.fire("counter", "x", "add")
    assert [step.revision for step in engine.history("counter", "x")] == [3, 2, 1]
    assert (engine.machines(), engine.versions("counter")) == ({"counter": 1}, [1])
    assert engine.definition("counter") == counter()
    assert engine.delete("counter", "x").revision == 3
    with pytest.raises(UnknownInstance):
        engine.get("counter", "x")
    with pytest.raises(UnknownMachine):
        engine.get("gate", "x")


def test_a_roll_out_is_the_same_on_every_node(engine):
    engine.publish(door())
    engine.publish(door(description="two"), rollout=40)
    made = {id: engine.create("door", id, now=NOW).version for id in (f"a{n}" for n in range(60))}
    assert set(made.values()) == {1, 2}
    figures = {each.version: each.instances for each in engine.version_figures("door")}
    assert figures == {n: list(made.values()).count(n) for n in (1, 2)}
    assert engine.unsettled_machines() == []
    engine.set_rollout("door", 80)
    later = {id: engine.create("door", f"{id}-later", now=NOW).version for id in made}
    assert set(later.values()) == {1, 2}
    engine.stop_rollout("door")
    assert {engine.create("door", f"b{n}", now=NOW).version for n in range(40)} == {1}
    engine.finish_rollout("door")
    assert {engine.create("door", f"c{n}", now=NOW).version for n in range(40)} == {2}


def test_what_was_emitted_is_read_from_every_partition_and_limits_hold(engine, prefix):
    emits = machine("bell", {"Ready": {"entry": {"emit": {"type": "begun", "data": {"a": 1}}}}})
    publish(engine, emits, *IDS)
    emitted = engine.emitted_logs()
    ends = emitted.ends()
    assert set(emitted.find_new(dict.fromkeys(ends, "0-0"))) == {place for place, end in ends.items() if end.added}
    logs = {place: AttachedStream(engine.client, emitted.root(place), prefix=prefix, most=100) for place in ends}
    assert all(log.begin("g", "0") for log in logs.values())
    taken = {place: log.take("g", "r", count=500, idle=60) for place, log in logs.items()}
    found = [read_entry(*one) for page in taken.values() for one in page.entries]
    assert emitted.find_new({place: page.last for place, page in taken.items()}) == []
    assert sorted(entry.instance for entry in found) == IDS
    assert {(entry.kind, entry.name, entry.revision) for entry in found} == {("emit", "begun", 1)}
    assert found[0].data == {"a": 1}
    assert sum(end.added for end in ends.values()) == len(IDS)
    assert abs(emitted.now() - time.time() * 1000) < 60_000
    throttle = Throttle(engine.client, prefix)
    assert [throttle.take("api", f"{{{n}}}", limit=1, per=60).allowed for n in range(20)] == [True] * 20
    assert not throttle.take("api", "{3}", limit=1, per=60).allowed


def test_ids_and_numbers_of_many_names_are_each_on_one_node(engine, nodes, prefix):
    for number in range(12):
        ids = [Snowflakes(engine.client, f"n{number}", prefix=prefix).next() for _ in range(2)]
        assert [decode(id).node for id in ids] == [0, 1]
        assert [Blocks(engine.client, f"n{number}", size=2, prefix=prefix).next() for _ in range(2)] == [1, 3]
    assert all(homes(nodes, prefix))


def test_topics_and_streams_are_each_on_one_node(engine, prefix):
    bus, topics = Bus(engine.client, prefix), [f"t{n}" for n in range(6)]
    with bus.subscribe(*topics) as heard:
        assert [bus.publish(topic, topic) for topic in topics] == [1] * 6
        assert {heard.get(60).body for _ in topics} == set(topics)
        assert heard.get(0) is None
        node = engine.client.get_node_from_key(PatternKeys(prefix).topic("t0").channel)
        engine.client.get_redis_connection(node).execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        gap = heard.get(20)
        assert (type(gap), gap.topics) == (Gap, tuple(topics))
        assert bus.publish("t0", "again") == 1
        assert heard.get(60).body == "again"
    for n in range(4):
        stream = Stream(engine.client, f"s{n}", prefix=prefix, most=2)
        stream.group("g")
        ids = [stream.append(n), stream.append(n)]
        with pytest.raises(Full):
            stream.append(n)
        assert [message.id for message in stream.read("g", "r", block=0.1)] == ids
        assert stream.read("g", "r", block=0.01) == []
        assert stream.ack("g", *ids) == 2
        stream.append(n)


def test_a_write_buffer_lies_on_all_nodes_with_each_of_its_parts_on_one(engine, nodes, prefix):
    buffer = WriteBuffer(engine.client, "box", prefix=prefix, partitions=PARTITIONS)
    buffer.add_many([Write(id, {"n": 1}) for id in IDS])
    buffer.add_many([Write(id, {"n": 1}) for id in IDS], marks={"m": (None, "1")}, part=3)
    assert (buffer.size(), buffer.marks(part=3), all(homes(nodes, prefix))) == (
        2 * len(IDS) - sum(choose_partition(id, PARTITIONS) == 3 for id in IDS),
        {"m": "1"},
        True,
    )
    found = []
    while buffer.flush(lambda batch: found.extend(batch.entries), limit=7):
        pass
    assert sum(entry.counters["n"] for entry in found) == 2 * len(IDS)
    assert buffer.size() == 0


def test_locks_records_counts_and_boards_are_each_on_one_node(engine, nodes, prefix):
    locks, day = Locks(engine.client, prefix), 86_400_000
    for n in range(12):
        name = f"n{n}"
        with locks.lock(name, ttl=30) as held, pytest.raises(Taken):
            locks.lock(name).acquire()
        assert locks.lock(name).acquire().fence > held.fence
        records = Records(engine.client, name, prefix=prefix, ttl=60)
        first = records.update("{odd}:key", lambda value: (value or 0) + 1)
        with pytest.raises(Changed):
            records.put("{odd}:key", 5, expect=first.generation - 1)
        assert update(engine.client, f"{prefix.rstrip(':')}-other:{name}", lambda value: "1", prefix=prefix) == "1"
        visits = Cardinality(engine.client, name, prefix=prefix, exact=2)
        for days, part in ((0, "{a}"), (1, "{b}"), (8, "")):
            visits.add("x", f"y{days}", "z", part=part, now=NOW + days * day)
        assert visits.count("month", parts=("{a}", "{b}", ""), at=NOW + 8 * day).number == 5
        board = Scoreboard(engine.client, name, prefix=prefix, period="day", keep=7)
        for days in range(3):
            board.add_many({"a": 1, "{b}": 2}, now=NOW + days * day)
        assert [place.score for place in board.top(span=3, at=NOW + 2 * day)] == [6, 3]
        assert board.remove("a", now=NOW + 2 * day) == 1
    assert len(locks.peeks([f"n{n}" for n in range(12)])) == 12
    assert all(homes(nodes, prefix))


def test_many_events_go_to_many_nodes_and_come_back_in_order(engine):
    publish(engine, door(), *IDS)
    calls = [Fire("door", id, "open") for id in IDS] + [Fire("door", "nobody", "open"), Fire("door", IDS[0], "open")]
    *opened, unknown, refused = engine.fire_many(calls)
    assert [instance.id for instance in opened] == IDS
    assert {instance.state for instance in opened} == {"Open"}
    assert (type(unknown), type(refused)) == (UnknownInstance, Refused)
    assert engine.counts("door") == {"Shut": 0, "Open": 30}
    assert engine.live("door").flow == {"1:t1": 30}


def test_find_keeps_one_order_over_all_nodes(engine):
    publish(engine, door())
    for number, id in enumerate(IDS):
        engine.create("door", id, now=NOW + number)
    found, cursor = [], None
    while True:
        page = engine.find("door", limit=7, cursor=cursor)
        found += [instance.id for instance in page]
        if (cursor := page.cursor) is None:
            break
    assert found == IDS
    assert [instance.id for instance in engine.find("door", newest=True, limit=3)] == IDS[:-4:-1]


def test_work_is_taken_from_every_node_and_finished_there(engine):
    publish(engine, errand(), *IDS)
    engine.fire_many([("errand", id, "start") for id in IDS])
    jobs = engine.take("errand", "work", "w", count=100)
    assert len(jobs) == 30
    assert engine.extend(jobs, 60_000) == [True] * 30
    assert {engine.complete(job).state for job in jobs[:20]} == {"Done"}
    assert {engine.fail(job, "no", retry=False) for job in jobs[20:]} == {"dead"}
    assert engine.counts("errand") == {"Idle": 0, "Busy": 0, "Done": 20, "Failed": 10}
    assert engine.queues("errand") == {"work": {"ready": 0, "leased": 0, "delayed": 0, "dead": 0, "handled": 10}}
    assert len(engine.jobs("errand", "work", place="handled")) == 10
    assert engine.tick() == 0


def test_jobs_are_mended_on_every_node(engine):
    publish(engine, errand(), *IDS)
    for id in IDS:
        engine.fire("errand", id, "start", now=NOW)
    for number in range(PARTITIONS):
        engine.client.delete(engine.keys.partition("errand", number).ready("work"))
    assert engine.queues("errand")["work"]["ready"] == 0
    assert engine.mend("errand", now=NOW).ready == len(IDS)
    assert len(engine.take("errand", "work", "w", count=100, now=NOW)) == len(IDS)


def test_a_node_that_lost_the_library_gets_it_again(engine, nodes):
    publish(engine, door(), *IDS)
    for node in nodes:
        with node.client() as client:
            client.function_flush()
    results = engine.fire_many([("door", id, "open") for id in IDS])
    assert {result.state for result in results} == {"Open"}
    with nodes[1].client() as client:
        client.function_flush()
    assert {engine.fire("door", id, "close").state for id in IDS} == {"Shut"}


def test_a_node_with_another_library_gets_this_one(engine, nodes, url):
    engine.load_library()
    other = library.text().replace(library.fingerprint(), "0123456789ab")
    with nodes[2].client() as client:
        client.function_load(other, replace=True)
        fresh = Engine.from_url(url, prefix=engine.keys.prefix)
        fresh._caller.ensure()
        assert read_held(client).is_ours
        fresh.client.close()


def test_a_slot_that_moved_is_followed(engine, nodes):
    """A partition is handed from node to node; the next calls find it."""
    publish(engine, door(), *IDS)
    root = engine.keys.partition("door").root
    slot = engine.client.keyslot(root)
    owner = next(i for i, n in enumerate(nodes) if n.port == engine.client.get_node_from_key(root).port)
    target = (owner + 1) % len(nodes)
    try:
        move(nodes, slot, owner, target)
        results = engine.fire_many([("door", id, "open") for id in IDS])
        assert {getattr(result, "state", result) for result in results} == {"Open"}
        assert {engine.fire("door", id, "close").state for id in IDS} == {"Shut"}
    finally:
        move(nodes, slot, target, owner)


def move(nodes, slot, source, target):
    """Hand one slot with its keys over, as the cluster specification says."""
    with nodes[source].client() as old, nodes[target].client() as new:
        from_id, to_id = old.execute_command("CLUSTER", "MYID"), new.execute_command("CLUSTER", "MYID")
        new.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", from_id)
        old.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", to_id)
        while keys := old.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            for key in keys:
                old.execute_command("MIGRATE", "127.0.0.1", nodes[target].port, key, 0, 5000)
        for node in nodes:
            with node.client() as client:
                client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", to_id)


def test_calls_whose_answers_are_lost_are_sent_once(engine, nodes, monkeypatch):
    publish(engine, counter())
    for id in IDS:
        engine.create("counter", id)
    relay = Relay(f"redis://127.0.0.1:{nodes[1].port}")

    def remap(address):
        return ("127.0.0.1", int(relay.url.rpartition(":")[2])) if address[1] == nodes[1].port else address

    far = Engine.from_url(
        f"redis+cluster://127.0.0.1:{nodes[0].port}",
        prefix=engine.keys.prefix,
        address_remap=remap,
        socket_timeout=0.5,
    )
    far.fire_many([("counter", id, "add") for id in IDS])
    relay.break_next()
    results = far.fire_many([("counter", id, "add") for id in IDS])
    lost = [id for id, result in zip(IDS, results, strict=True) if isinstance(result, EngineUnavailable)]
    assert 0 < len(lost) < len(IDS)
    assert {engine.get("counter", id).data["n"] for id in IDS} == {2}, "each happened, and once"
    relay.mend()
    assert far.get("counter", lost[0]).data["n"] == 2, "found again without a new engine"
    relay.break_next()
    with pytest.raises(EngineUnavailable):
        far.fire("counter", lost[0], "add")
    assert relay.sent(b"sb_fire") == 1
    assert engine.get("counter", lost[0]).data["n"] == 3
    relay.mend()
    assert far.fire("counter", lost[1], "add").data["n"] == 3
    relay.close()
    far.client.close()


def test_a_cluster_that_is_down_is_unavailable_at_once():
    (port,) = clusters.free_ports(1)
    with pytest.raises(EngineUnavailable, match="the cluster cannot be reached"):
        Engine.from_url(f"redis+cluster://127.0.0.1:{port}")


def test_slots_nobody_serves_make_it_unavailable(engine, nodes):
    publish(engine, door(), *IDS)
    root = engine.keys.partition("door").root
    slot = engine.client.keyslot(root)
    owner = next(n for n in nodes if n.port == engine.client.get_node_from_key(root).port)
    with owner.client() as client:
        client.execute_command("CLUSTER", "DELSLOTS", slot)
        try:
            with contextlib.suppress(EngineUnavailable):  # nodes that ask for full coverage refuse all slots soon
                assert root in engine.counts("door").missing
            with pytest.raises(EngineUnavailable):
                engine.get("door", next(id for id in map(str, range(999)) if choose_partition(id, PARTITIONS) == 0))
        finally:
            client.execute_command("CLUSTER", "ADDSLOTS", slot)
            clusters.eventually(lambda: clusters.settled(client))
    assert isinstance(engine.client, redis.RedisCluster)


def test_sessions_of_one_subject_lie_together_and_subjects_spread(engine, nodes, prefix):
    sessions = Sessions(engine.client, "s", prefix=prefix, partitions=16)
    subjects = [f"user-{number}" for number in range(24)]
    tokens = [sessions.create(subject, {"is": subject}).token for subject in subjects for _ in "ab"]
    assert sum(count > 0 for count in homes(nodes, prefix)) > 1
    assert [sessions.get(token).state["is"] for token in tokens[::2]] == subjects
    turned = sessions.rotate(sessions.put(tokens[0], {"is": "changed"}, expect=1).token)
    assert {subject: len(held) for subject, held in sessions.of_each(subjects).items()} == dict.fromkeys(subjects, 2)
    assert [sessions.revoke_all(subject) for subject in subjects] == [2] * 24
    with pytest.raises(Gone):
        sessions.get(turned.token)
