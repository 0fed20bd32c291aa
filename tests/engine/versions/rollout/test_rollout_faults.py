"""Publishers that are killed between two partitions, and publishers of an earlier release."""

import json
import os
import signal

import pytest

from machines.engine import Engine
from machines.engine.connection.calls import Caller
from machines.engine.definitions import compile_definition
from machines.worker.duties.engine_duties import RolloutGuard
from tests.engine.builders import door

PARTITIONS = 4
ONE, TWO, THREE = (door(description=f"version {n}") for n in (1, 2, 3))
FIELDS = ("turn", "current", "rollout", "pin", "withdrawn")


@pytest.fixture
def spread(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=PARTITIONS)
    engine.publish(ONE)
    yield engine
    engine.client.close()


def policies(engine):
    metas = [engine.keys.partition("door", n).meta for n in range(PARTITIONS)]
    return [dict(zip(FIELDS, engine.client.hmget(meta, FIELDS), strict=True)) for meta in metas]


def run_killed(redis_url, prefix, calls, work):
    """Run ``work`` in a process that is killed before its function call number ``calls``."""
    child = os.fork()
    if child == 0:
        made = 0
        call = Caller.call

        def count(self, function, root, *args):
            nonlocal made
            if function in ("sb_publish", "sb_rollout", "sb_rollout_copy"):
                made += 1
                if made == calls:
                    os.kill(os.getpid(), signal.SIGKILL)
            return call(self, function, root, *args)

        Caller.call = count
        try:
            work(Engine.from_url(redis_url, prefix=prefix, partitions=PARTITIONS))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def check_settled(engine, version):
    """Any process finishes what the killed one began: all partitions then hold the same, and serve every id."""
    made = {engine.create("door", f"early-{n}").version for n in range(40)}
    assert made <= {1, version}, "each partition has one of both versions meanwhile"
    RolloutGuard(engine).run_once()
    found = policies(engine)
    assert found == [found[0]] * PARTITIONS
    assert engine.unsettled_machines() == []
    for number in engine.versions("door"):
        for n in range(8):
            engine.create("door", f"late-{number}-{n}", version=number)
    return found[0]


@pytest.mark.parametrize("calls", range(2, 2 * PARTITIONS))
def test_a_killed_roll_out_is_the_same_everywhere_afterwards(spread, redis_url, prefix, calls):
    assert run_killed(redis_url, prefix, calls, lambda engine: engine.publish(TWO, rollout=30))
    assert check_settled(spread, 2)["rollout"].startswith("3000 2:")
    assert spread.rollout("door").percent == 30


@pytest.mark.parametrize("calls", range(2, PARTITIONS + 1))
def test_a_killed_change_of_the_share_too(spread, redis_url, prefix, calls):
    spread.publish(TWO, rollout=30)
    assert run_killed(redis_url, prefix, calls, lambda engine: engine.set_rollout("door", 60))
    assert check_settled(spread, 2)["rollout"].startswith("6000 2:")


@pytest.mark.parametrize("calls", range(2, 2 * PARTITIONS, 2))
def test_a_killed_publication_during_a_roll_out_too(spread, redis_url, prefix, calls):
    spread.publish(TWO, rollout=0)
    assert run_killed(redis_url, prefix, calls, lambda engine: engine.publish(THREE))
    assert check_settled(spread, 3)["rollout"] is None
    assert spread.machines() == {"door": 3}


def test_a_publisher_of_an_earlier_release_ends_the_roll_out_as_any_other(spread):
    spread.publish(TWO, rollout=50)
    program = compile_definition(THREE).program
    row = ("abc123", json.dumps(program), json.dumps(THREE), "00", PARTITIONS)
    number = ""
    for n in range(PARTITIONS):  # six arguments, the number for all partitions but the first
        reply = spread.client.fcall("sb_publish", 1, spread.keys.partition("door", n).root, *row, number)
        assert reply[0] == "OK"
        number = reply[1]
    assert number == "3"
    assert {policy["current"] for policy in policies(spread)} == {"3:abc123"}
    assert {policy["rollout"] for policy in policies(spread)} == {None}
    spread.align_versions("door")
    found = policies(spread)
    assert found == [found[0]] * PARTITIONS
    assert {spread.create("door", f"a{n}").version for n in range(20)} == {3}


def test_a_publisher_of_an_earlier_release_respects_a_pin(spread):
    spread.pin("door", 1)
    program = compile_definition(TWO).program
    row = ("abc123", json.dumps(program), json.dumps(TWO), "00", PARTITIONS)
    number = ""
    for n in range(PARTITIONS):
        number = spread.client.fcall("sb_publish", 1, spread.keys.partition("door", n).root, *row, number)[1]
    assert spread.machines() == {"door": 1}
    assert {spread.create("door", f"a{n}").version for n in range(20)} == {1}
    spread.pin("door", None)
    assert {spread.create("door", f"b{n}").version for n in range(20)} == {2}
