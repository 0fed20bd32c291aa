"""A slot moves from node to node while its partition is busy: nothing is lost, doubled or begun anew."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from tests.installation.processes import ROOT

from . import clusters, slots

LOAD = Path(__file__).parents[1] / "releases" / "load.py"
SIZE = 300  # instances of the partition that moves: some 900 keys


@pytest.fixture
def engine(nodes, prefix):
    with clusters.engine_on(nodes, prefix, 1) as engine:
        yield engine


@pytest.fixture
def slot(engine):
    return engine.client.keyslot(engine.keys.partition("tally").root)


class Traffic:
    """Processes that fire and do jobs on the machine ``tally``."""

    def __init__(self, url, prefix):
        self.names = [f"p{number}" for number in range(2)]
        self.processes = [
            subprocess.Popen([sys.executable, LOAD, url, name, "", prefix], cwd=ROOT, env=None, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for name in self.names
        ]  # fmt: skip
        for process in self.processes:
            assert process.stdout.readline() == "ready\n"

    def finish(self):
        for process in self.processes:
            process.stdin.close()
            process.stdin = None
        return [json.loads(process.communicate(timeout=60)[0].splitlines()[-1]) for process in self.processes]


@pytest.fixture
def traffic(engine, nodes, prefix, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    running = Traffic(clusters.url_of(nodes), prefix)
    yield running
    for process in running.processes:
        process.kill()
        process.wait()


def check(engine, done):
    """Every answered step happened once, no call failed, and no job's id came twice."""
    assert [row["failed"] for row in done] == [[], []]
    assert all(row["done"] == row["n"] >= 50 for row in done)
    ids = [id for row in done for id in row["jobs"]]
    assert len(ids) == len(set(ids)) == sum(row["done"] // 20 for row in done)
    numbers = sorted(int(id.partition("-")[2]) for id in ids)
    assert numbers == list(range(1, len(ids) + 1))
    assert engine.queues("tally") == {"count": {"ready": 0, "leased": 0, "delayed": 0, "dead": 0}}


def fill(engine):
    for number in range(SIZE):
        engine.create("tally", f"idle{number}")


def count_keys(nodes, slot):
    found = []
    for node in nodes:
        with node.client() as client:
            found.append(client.execute_command("CLUSTER", "COUNTKEYSINSLOT", slot))
    return found


def test_a_busy_partition_is_resharded_key_by_key(engine, nodes, slot, traffic):
    fill(engine)
    moved = [slots.reshard(nodes, slot) for _ in nodes]  # all the way round
    check(engine, traffic.finish())
    assert min(moved) > 2 * SIZE
    assert sorted(map(bool, count_keys(nodes, slot))) == [False, False, True]


def test_a_busy_partition_is_moved_at_once(engine, nodes, slot, traffic):
    with nodes[0].client() as client, contextlib.suppress(redis.ResponseError):
        client.execute_command("CLUSTER", "GETSLOTMIGRATIONS")
        fill(engine)
        for _ in nodes:
            slots.migrate(nodes, slot)
        check(engine, traffic.finish())
        assert sorted(map(bool, count_keys(nodes, slot))) == [False, False, True]
        return
    pytest.skip("this server moves slots key by key only")
