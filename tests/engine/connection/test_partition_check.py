"""Split, moving and incomplete partitions are found, and named with what to do."""

import pytest

from machines.engine import Engine
from tests.configuration import configure
from tests.engine.builders import door, publish

from . import clusters, slots


@pytest.fixture
def engine(nodes, prefix):
    with clusters.engine_on(nodes, prefix, 4) as engine:
        yield engine


def place(engine):
    """Root, slot of the partition that holds the instance x."""
    root = engine._root("door", "x")
    return root, engine.client.keyslot(root)


def kinds(engine):
    return {(fault.root, fault.kind, fault.slot) for fault in engine.check_partitions()}


def test_whole_partitions_have_no_faults_on_a_cluster_or_without(engine, nodes, redis_url, prefix):
    publish(engine, door(), "x", "y", "z")
    assert engine.check_partitions() == []
    single = Engine.from_url(redis_url, prefix=prefix)
    publish(single, door(), "x")
    assert single.check_partitions() == []
    single.client.close()


def test_a_slot_on_its_way_is_found_on_both_nodes(engine, nodes):
    publish(engine, door(), "x")
    root, slot = place(engine)
    with slots.moving(nodes, slot) as (source, target):
        slots.move_keys(slot, source, target, most=1)
        (fault,) = engine.check_partitions()
        assert (fault.root, fault.kind, fault.slot) == (root, "moving", slot)
        assert {str(source.port), str(target.port)} == {name.rpartition(":")[2] for name in fault.node.split(" and ")}
        assert "redis-cli --cluster fix" in str(fault)
    assert engine.check_partitions() == []


def test_a_split_partition_is_found_and_joined_as_the_page_says(engine, nodes):
    publish(engine, door(), "x")
    root, slot = place(engine)
    owner = nodes[slots.find_owner(nodes, slot)]
    other = next(node for node in nodes if node is not owner)
    with owner.client() as whole, other.client() as part:
        owner_id = whole.execute_command("CLUSTER", "MYID")
        part.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", owner_id)
        slots.ask(other, "HSET", f"{root}:i:y", "_version", "1")
        part.execute_command("CLUSTER", "SETSLOT", slot, "STABLE")
        (fault,) = engine.check_partitions()
        assert (fault.root, fault.kind, fault.slot, fault.keys) == (root, "split", slot, 1)
        assert fault.node.endswith(f":{other.port}")
        assert f":{owner.port}" in fault.advice
        part.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", owner_id)
        keys = part.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100)
        part.execute_command("MIGRATE", "127.0.0.1", owner.port, "", 0, 5000, "KEYS", *keys)
        part.execute_command("CLUSTER", "SETSLOT", slot, "STABLE")
        assert engine.check_partitions() == []
        assert whole.hget(f"{root}:i:y", "_version") == "1"


def test_a_partition_that_lost_its_versions_is_found(engine):
    publish(engine, door(), "x")
    root, slot = place(engine)
    engine.client.delete(f"{root}:meta")
    assert kinds(engine) == {(root, "incomplete", slot)}


def test_the_command_prints_what_it_finds_and_fails(engine, prefix, settings):
    from io import StringIO

    from django.core.management import CommandError, call_command

    from machines import connections

    seeds = ",".join(f"127.0.0.1:{node.port}" for node in engine.client.get_primaries())
    configure(settings, REDIS_URL=f"redis+cluster://{seeds}")
    publish(engine, door(), "x")
    said = StringIO()
    call_command("machine", "check", stdout=said)
    assert said.getvalue() == "all partitions are whole\n"
    root, _ = place(engine)
    engine.client.delete(f"{root}:meta")
    with pytest.raises(CommandError, match="1 faults were found; nothing was changed"):
        call_command("machine", "check", stdout=said)
    assert f"{root}: incomplete" in said.getvalue()
    connections.get_engine().client.close()
