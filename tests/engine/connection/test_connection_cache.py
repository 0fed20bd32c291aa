"""Connections kept at hand: found again, never shared, and gone with the pool they came from."""

import gc
import threading
import weakref

import pytest
from redis import BlockingConnectionPool, Redis, exceptions
from redis.connection import PythonRespSerializer

from machines.engine.connection.client import connect
from machines.engine.connection.connection_cache import KEPT, get_cache
from tests.engine.instances.racing import in_a_child

from .clusters import eventually

ID = ("CLIENT", "ID")


@pytest.fixture
def client(redis_url):
    client = connect(redis_url)
    yield client
    client.close()


@pytest.fixture
def lines(client):
    return get_cache(client.connection_pool)


def test_one_call_after_the_other_takes_the_same_connection(client, lines):
    first = lines.exchange(ID)
    assert [lines.exchange(ID) for _ in range(3)] == [first] * 3
    assert get_cache(client.connection_pool) is lines
    with pytest.raises(exceptions.ResponseError):
        lines.exchange(("GET",))
    assert lines.exchange(ID) == first  # an answer that is an error was read to its end
    for wrong in (None, True, object()):
        with pytest.raises(exceptions.DataError):
            lines.exchange(("GET", wrong))


def test_one_that_the_server_closed_is_replaced_before_anything_is_sent(client, lines, redis_url):
    first = lines.exchange(ID)
    with connect(redis_url) as other:
        other.execute_command("CLIENT", "KILL", "ID", first)
    assert lines.exchange(ID) != first
    client.close()
    assert lines.exchange(("PING",)) in ("PONG", True)


def test_an_answer_that_was_not_awaited_is_nobodys(lines):
    first = lines.exchange(ID)
    (connection,) = lines._idle
    connection.send_command("PING")
    assert connection.can_read(timeout=30)  # an answer that somebody left lying there
    assert lines.exchange(ID) != first


def test_one_whose_answer_never_came_goes_back_to_the_pool(redis_url):
    """At hand it would be tried twice where the server is away, and each time cost what a connection may take."""
    with connect(redis_url, socket_timeout=0.2) as client:
        lines = get_cache(client.connection_pool)
        first = lines.exchange(ID)
        with pytest.raises(exceptions.TimeoutError):
            lines.exchange(("BLPOP", "nobody:puts:anything:here", 30))
        assert (len(lines._idle), len(client.connection_pool._available_connections)) == (0, 1)
        assert lines.exchange(ID) != first


def test_threads_have_one_each_and_a_few_stay(client, lines):
    gate, seen = threading.Barrier(KEPT + 4), []

    def call():
        connection = lines._acquire()
        gate.wait(60)
        seen.append(connection)
        gate.wait(60)
        lines._give_back(connection, True)

    threads = [threading.Thread(target=call) for _ in range(KEPT + 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, seen))) == KEPT + 4
    assert len(lines._idle) == KEPT
    assert len(client.connection_pool._available_connections) == 4


def test_a_forked_process_begins_with_none(lines):
    mine = lines.exchange(ID)
    theirs, still_mine = in_a_child(lambda: lines.exchange(ID), lambda: lines.exchange(ID))
    assert theirs
    assert int(theirs) != mine
    assert still_mine == mine


def test_words_arrive_as_they_were_sent_whoever_packs_them(client, redis_url, prefix):
    theirs = connect(redis_url, command_packer=PythonRespSerializer(6000, client.get_encoder().encode))
    with theirs, Redis.from_url(redis_url) as plain:
        for word in ("é\0\r\n", "", "x" * 100_000, 2**63, b"\xff\0"):
            for sender in (client, theirs):
                get_cache(sender.connection_pool).exchange(("SET", f"{prefix}word", word))
                assert plain.get(f"{prefix}word") == (word if isinstance(word, bytes) else str(word).encode())


def test_a_pool_that_wants_each_of_them_back_gets_it(redis_url):
    small = connect(redis_url, max_connections=4)
    waiting = Redis(connection_pool=BlockingConnectionPool.from_url(redis_url, max_connections=1, timeout=5))
    for client in (small, waiting):
        get_cache(client.connection_pool).exchange(("PING",))
        assert client.ping()
        assert not get_cache(client.connection_pool)._idle
        client.connection_pool.disconnect()


def test_lines_are_gone_with_their_pool(redis_url):
    client = connect(redis_url)
    get_cache(client.connection_pool).exchange(("PING",))
    kept = weakref.ref(get_cache(client.connection_pool))
    client.close()
    del client
    eventually(lambda: gc.collect() >= 0 and kept() is None)


def test_portions_of_commands_are_answered_in_order(lines):
    portions = ([("ECHO", f"{portion}-{number}") for number in range(3)] for portion in range(4))
    found = list(lines.stream(portions))
    assert found == [f"{portion}-{number}" for portion in range(4) for number in range(3)]
    first = lines.exchange(ID)
    wrong, _ = lines.stream([[("GET",)], [("PING",)]])
    assert isinstance(wrong, exceptions.ResponseError)
    assert lines.exchange(ID) == first, "read to its end"


def test_answers_that_nobody_read_to_the_end_close_the_connection(lines):
    first = lines.exchange(ID)
    begun = lines.stream([[("PING",)] * 5])
    next(begun)
    begun.close()
    assert lines.exchange(ID) != first


def test_a_connection_that_is_closed_between_two_portions_is_not_opened_anew(client, lines):
    def portions():
        yield [("INCR", "stream-test")]
        client.connection_pool.disconnect()
        yield [("INCR", "stream-test")]

    with pytest.raises(exceptions.ConnectionError):
        list(lines.stream(portions()))
    assert lines.exchange(("DEL", "stream-test")) in (0, 1)
