"""A redis-py client that learned the SM commands: sync, asyncio, pipelines, clusters, with and without the library."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import redis
import redis.asyncio
from redis.exceptions import ResponseError

from machines.engine.connection.library_loader import read_held
from machines.engine.sm_commands import COMMANDS, build_fcall, call, shim
from tests.cases import for_each
from tests.conftest import program
from tests.engine.connection import clusters

DOOR = json.dumps({"current": "", "map": {"shut": ["open"], "open": ["shut"]}, "initial": "shut", "reason": ""})
STANDS = '{"current":"shut","map":{"open":["shut"],"shut":["open"]},"initial":"shut","reason":""}'


@pytest.fixture
def client(own_server):
    """A taught client on a server that has never seen the library."""
    with redis.Redis.from_url(own_server.url, decode_responses=True) as client:
        yield shim(client)


@pytest.fixture
async def async_client(own_server):
    async with redis.asyncio.Redis.from_url(own_server.url, decode_responses=True) as client:
        yield shim(client)


def test_the_client_stays_the_client_it_was(own_server):
    with redis.Redis.from_url(own_server.url) as plain:
        assert shim(plain) is plain
        before = plain.execute_command
        assert shim(plain).execute_command == before, "taught once"
        assert plain.set("a", "1")
        assert plain.get("a") == b"1"
        assert plain.execute_command("SM.SET", "door", DOOR) == b"OK"
        assert plain.execute_command("SM.GET", "door") == STANDS.encode()


def test_other_clients_learn_nothing(client, own_server):
    client.execute_command("SM.CREATE", "door")
    with redis.Redis.from_url(own_server.url) as other, pytest.raises(ResponseError, match="unknown command"):
        other.execute_command("SM.GET", "door")


def test_without_teaching_a_client_one_command_can_be_said(own_server):
    with redis.Redis.from_url(own_server.url, decode_responses=True) as plain:
        assert call(plain, "SM.SET", "door", DOOR) == "OK"
        assert call(plain, "GET", "nothing") is None
        with pytest.raises(ResponseError, match="unknown command"):
            plain.execute_command("SM.GET", "door")


@pytest.mark.parametrize("spoken", ["SM.GET", "sm.get", "Sm.Get", b"SM.GET", b"sm.get"])
def test_a_command_is_said_in_any_case(client, spoken):
    client.execute_command("SM.SET", "door", DOOR)
    assert client.execute_command(spoken, "door") == STANDS


def test_a_command_with_its_words_in_one_text_is_taken_apart_as_the_client_does(client):
    client.execute_command("SM.SET", "door", DOOR)
    assert client.execute_command("SM.STATE door", "LIST") == ["open", "shut"]


@for_each("command", [("GET", "a"), ("SM.NOTHING", "a"), ("SM.",), ("",), (), (1,), (b"\xff",), ("FCALL", "sm_get")])
def test_any_other_command_is_left_alone(command):
    assert build_fcall(*command) is None


def test_a_command_the_module_never_had_is_unknown_to_the_server(client):
    with pytest.raises(ResponseError, match="unknown command"):
        client.execute_command("SM.NOTHING", "door")


def test_reading_commands_are_sent_as_such():
    """A replica answers FCALL_RO."""
    read = {"SM.TEMPLATE", "SM.GET", "SM.STATE"}
    assert {name for name in COMMANDS if build_fcall(name, "k")[0] == "FCALL_RO"} == read


def test_the_first_command_loads_the_library_and_so_does_one_after_it_was_lost(client):
    assert client.function_list() == []
    assert client.execute_command("SM.SET", "door", DOOR) == "OK"
    assert read_held(client).is_ours
    client.function_flush()
    assert client.execute_command("SM.MUTATE", "door", "open") == "OK"
    assert client.execute_command("SM.STATE", "door") == ["open"]


def test_an_older_library_without_these_functions_is_replaced(client):
    client.function_load("#!lua name=signalbox\nredis.register_function('sb_library', function() return 'old' end)")
    assert client.execute_command("SM.CREATE", "door") == "OK"


def test_an_error_of_a_command_is_no_reason_to_load(client):
    client.execute_command("SM.SET", "door", DOOR)
    loaded = client.info("commandstats")["cmdstat_function|load"]["calls"]
    with pytest.raises(ResponseError, match="invalid state transition"):
        client.execute_command("SM.MUTATE", "door", "ajar")
    assert client.info("commandstats")["cmdstat_function|load"]["calls"] == loaded == 1


@pytest.mark.parametrize("transaction", [True, False])
def test_a_pipeline_takes_them_among_other_commands(client, transaction):
    with client.pipeline(transaction=transaction) as pipe:
        pipe.execute_command("SM.SET", "door", DOOR)
        pipe.set("a", "1")
        pipe.execute_command("SM.STATE", "door")
        pipe.get("a")
        assert pipe.execute() == ["OK", True, ["shut"], "1"]
        client.function_flush()
        pipe.execute_command("sm.mutate", "door", "open", "a knock")
        assert pipe.execute() == ["OK"]
    assert client.execute_command("SM.GET", "door", "reason") == "a knock"


def test_a_pipeline_without_them_asks_for_no_library(client):
    assert client.pipeline().set("a", "1").execute() == [True]
    assert client.function_list() == []


def test_an_error_in_a_pipeline_is_in_its_place(client):
    client.execute_command("SM.SET", "door", DOOR)
    pipe = client.pipeline(transaction=False)
    pipe.execute_command("SM.MUTATE", "door", "ajar")
    pipe.execute_command("SM.MUTATE", "door", "open")
    refused, moved = pipe.execute(raise_on_error=False)
    assert isinstance(refused, ResponseError)
    assert moved == "OK"


def test_a_watched_machine_is_looked_at_and_moved_in_one(client, own_server):
    def knock(pipe):
        assert pipe.execute_command("SM.STATE", "door") == [stands.pop(0)]
        if meddled.pop():
            call(client, "SM.MUTATE", "door", "open")
        pipe.multi()
        pipe.execute_command("SM.MUTATE", "door", "shut", "a draught", "FORCE")

    client.execute_command("SM.SET", "door", DOOR)
    client.function_flush()
    stands, meddled = ["shut", "open"], [False, True]
    assert client.transaction(knock, "door") == ["OK"]
    assert (stands, meddled) == ([], []), "it ran a second time, since someone had moved the door in between"


async def test_an_asyncio_client_learns_them_too(async_client):
    assert shim(async_client) is async_client
    assert await async_client.execute_command("SM.SET", "door", DOOR) == "OK"
    assert await async_client.set("a", "1")
    await async_client.function_flush()
    assert await async_client.execute_command("SM.MUTATE", "door", "open") == "OK"
    assert await async_client.execute_command("SM.STATE", "door") == ["open"]
    with pytest.raises(ResponseError, match="invalid state transition"):
        await async_client.execute_command("SM.MUTATE", "door", "ajar")


async def test_and_so_do_its_pipelines(async_client):
    async with async_client.pipeline() as pipe:
        pipe.execute_command("SM.SET", "door", DOOR)
        pipe.set("a", "1")
        assert await pipe.execute() == ["OK", True]
        await async_client.function_flush()
        await pipe.watch("door")
        assert await pipe.execute_command("SM.STATE", "door") == ["shut"]
        pipe.multi()
        pipe.execute_command("SM.MUTATE", "door", "open")
        assert await pipe.execute() == ["OK"]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory, redis_url):
    folder = tmp_path_factory.mktemp("cluster")
    with clusters.running(folder, program(os.environ.get("SIGNALBOX_TEST_SERVER", ""))) as nodes:
        yield nodes


KEYS = [f"door:{number}" for number in range(12)]


def address(nodes):
    return f"redis://127.0.0.1:{nodes[0].port}"


def test_a_cluster_learns_them_on_every_node(nodes):
    with redis.RedisCluster.from_url(address(nodes), decode_responses=True) as cluster:
        shim(cluster)
        assert json.loads(cluster.execute_command("SM.TEMPLATE"))["map"] == {}
        assert {cluster.execute_command("SM.SET", key, DOOR) for key in KEYS} == {"OK"}
        with nodes[1].client() as node:
            node.function_flush()
        pipe = cluster.pipeline()
        for key in KEYS:
            pipe.execute_command("SM.MUTATE", key, "open")
        assert pipe.execute() == ["OK"] * len(KEYS)
        assert {cluster.get_node_from_key(key).port for key in KEYS} == {node.port for node in nodes}


async def test_and_so_does_an_asyncio_cluster(nodes):
    async with redis.asyncio.RedisCluster.from_url(address(nodes), decode_responses=True) as cluster:
        shim(cluster)
        with nodes[2].client() as node:
            node.function_flush()
        for key in KEYS:
            assert await cluster.execute_command("SM.SET", key, DOOR) == "OK"
        with nodes[1].client() as node:
            node.function_flush()
        pipe = cluster.pipeline()
        for key in KEYS:
            pipe.execute_command("SM.MUTATE", key, "open")
        assert await pipe.execute() == ["OK"] * len(KEYS)


def test_the_example_in_the_documentation_works(own_server):
    page = (Path(__file__).parents[3] / "docs" / "sm-commands.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    code = code.replace("redis.Redis(decode_responses=True)", f"redis.Redis.from_url({own_server.url!r}, **options)")
    found = {"options": {"decode_responses": True}}
    exec(compile(code, "sm-commands.md", "exec"), found)
    with found["client"] as client:
        assert client.execute_command("SM.STATE", "order:17") == ["paid"]
        assert client.execute_command("SM.GET", "order:17", "REASON") == "by card"
