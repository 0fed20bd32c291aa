"""While a slot moves key by key between two nodes, functions refuse on both, before they touch a key."""

import operator

import pytest
import redis

from machines.engine import Engine, EngineUnavailable
from machines.engine.connection import library
from machines.engine.sm_commands import call
from tests.engine.builders import door, publish

from . import clusters, slots

WITH_KEYS = [
    name
    for name, path in library.function_paths().items()
    if name.startswith("sb_") and library.Source.read(path).keys[0]
]


@pytest.fixture
def engine(nodes, prefix):
    with clusters.engine_on(nodes, prefix, 1) as engine:
        yield engine


@pytest.fixture
def slot(engine):
    return engine.client.keyslot(engine.keys.partition("tally").root)


def count_keys(nodes, slot):
    found = []
    for node in nodes:
        with node.client() as client:
            found.append(client.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot))
    return found


def test_on_both_nodes_every_function_refuses_while_the_slot_moves(engine, nodes, slot):
    root = engine.keys.partition("tally").root
    publish(engine, door() | {"id": "tally"}, *"abcdef")
    with slots.moving(nodes, slot) as (source, target):
        slots.move_keys(slot, source, target, most=slots.BATCH)
        before = count_keys(nodes, slot)
        for name in WITH_KEYS:
            words = ("FCALL_RO" if name in library.read_only() else "FCALL", name, 1, root, "a", "1", "1", "1")
            assert isinstance(slots.ask(source, *words), redis.exceptions.AskError), name
            assert isinstance(slots.ask(target, *words), redis.exceptions.TryAgainError), name
        assert all(map(operator.le, count_keys(nodes, slot), before))  # the pulse expires meanwhile
    assert engine.fire("tally", "a", "open").state == "Open"


def test_a_function_whose_own_key_is_still_at_the_source_refuses_too(engine, nodes, prefix):
    key = f"{prefix}throttle:{{api}}"
    slot = engine.client.keyslot(key)
    words = ("FCALL", "sb_throttle", 1, key, "pace", "5", "60000", "1", "")
    engine._caller.ensure()
    with slots.moving(nodes, slot) as (source, _):
        assert isinstance(slots.ask(source, *words), redis.exceptions.AskError)  # there is no such key yet
    engine.client.execute_command(*words)
    assert engine.client.exists(key)
    with slots.moving(nodes, slot) as (source, _):
        assert isinstance(slots.ask(source, *words), redis.exceptions.TryAgainError)


def test_a_call_that_is_refused_to_the_end_says_that_nothing_changed(engine, nodes, slot):
    publish(engine, door() | {"id": "tally"}, "x")
    with slots.moving(nodes, slot), pytest.raises(EngineUnavailable, match="nothing was changed") as caught:
        engine.fire("tally", "x", "open")
    assert caught.value.retry_safe
    assert (engine.get("tally", "x").state, engine.get("tally", "x").revision) == ("Shut", 1)


def test_the_commands_of_state_machines_on_keys_of_ones_own_go_on(engine, nodes, prefix):
    """They touch the one key, which Redis itself redirects."""
    key = f"{prefix}own".replace("{", "")
    assert call(engine.client, "SM.CREATE", key) == "OK"
    with slots.moving(nodes, engine.client.keyslot(key)) as (source, target):
        assert call(engine.client, "SM.GET", key)
        slots.move_keys(engine.client.keyslot(key), source, target)
        assert call(engine.client, "SM.GET", key)
    assert call(engine.client, "SM.GET", key)


def test_a_single_server_is_asked_for_nothing_more(own_server):
    engine = Engine.from_url(own_server.url)
    publish(engine, door(), "x")
    engine.fire("door", "x", "open")
    engine.client.config_resetstat()
    engine.fire("door", "x", "close")
    found = engine.client.info("commandstats")
    assert not {"cmdstat_exists", "cmdstat_info"} & (set(found) - {"cmdstat_info"})
    engine.client.close()
