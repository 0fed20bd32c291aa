"""A slot moves from node to node while its partition is busy: nothing is lost, doubled or begun anew."""

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

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def finish(self):
        for process in self.processes:
            process.stdin.close()
            process.stdin = None
        return [json.loads(process.communicate(timeout=60)[0].splitlines()[-1]) for process in self.processes]


@pytest.fixture
def traffic(engine, nodes, prefix, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with Traffic(clusters.url_of(nodes), prefix) as running:
        yield running


def check(engine, done):
    """Every answered step happened once, no call failed, and no job's id came twice."""
    assert [row["failed"] for row in done] == [[], []]
    assert all(row["done"] == row["n"] >= 50 for row in done)
    ids = [id for row in done for id in row["jobs"]]
    assert len(ids) == len(set(ids)) == sum(row["done"] // 20 for row in done)
    numbers = sorted(int(id.partition("-")[2]) for id in ids)
    assert numbers == list(range(1, len(ids) + 1))
    assert engine.queues("tally") == {"count": {"ready": 0, "leased": 0, "delayed": 0, "dead": 0, "handled": 0}}


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
    skip_unless_it_moves_at_once(nodes)
    fill(engine)
    for _ in nodes:
        slots.migrate(nodes, slot)
    check(engine, traffic.finish())
    assert sorted(map(bool, count_keys(nodes, slot))) == [False, False, True]


def skip_unless_it_moves_at_once(nodes):
    with nodes[0].client() as client:
        try:
            client.execute_command("CLUSTER", "GETSLOTMIGRATIONS")
        except redis.ResponseError:
            pytest.skip("this server moves slots key by key only")


@pytest.mark.parametrize("move", [slots.reshard, slots.migrate])
def test_a_node_that_joins_gets_the_library_with_its_first_slot(tmp_path, program_of_this_run, monkeypatch, move):
    """A new node has no functions: calls that are sent there are refused for lack of them, and load them."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with clusters.running(tmp_path / "cluster", program_of_this_run) as nodes:
        if move is slots.migrate:
            skip_unless_it_moves_at_once(nodes)
        ((port, bus),) = zip(*[iter(clusters.free_ports(2))] * 2, strict=True)
        new = clusters.Node(tmp_path / "new", port, bus, program=program_of_this_run, options=nodes[0].options)
        new.start()
        new.wait()
        try:
            with (
                clusters.engine_on(nodes, "t:", 1) as engine,
                new.client() as joining,
                Traffic(clusters.url_of(nodes), "t:") as running,
            ):
                fill(engine)
                joining.execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, nodes[0].bus)
                clusters.eventually(lambda: joining.cluster("INFO")["cluster_state"] == "ok")
                clusters.eventually(lambda: all(knows(node, 4) for node in nodes))
                slot = engine.client.keyslot(engine.keys.partition("tally").root)
                move([*nodes, new], slot, new)
                check(engine, running.finish())
                assert joining.execute_command("FCALL_RO", "sb_library", 0, "release")
        finally:
            new.stop()


def knows(node, count):
    with node.client() as client:
        return int(client.cluster("INFO")["cluster_known_nodes"]) == count
