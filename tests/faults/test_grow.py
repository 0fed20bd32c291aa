"""A machine grows from one partition to eight under load, and the command that moves it is killed on the way."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from machines.conf.server import Server
from machines.engine import Engine, EngineUnavailable
from machines.engine.keys import choose_partition
from machines.engine.transfer import repartitioning
from machines.engine.transfer.repartitioning import Repartition
from tests.engine.builders import door, publish
from tests.installation.processes import eventually

from .audit import audit
from .builders import begin
from .load import JOBS, KNOWN, MACHINE, spread
from .processes import LONG, Worker, Workers
from .proxy import Proxy

pytestmark = pytest.mark.redis

KILLS = 3


def sizes(engine):
    return [int(engine.client.hget(engine.keys.partition(MACHINE, n).meta, "instances") or 0) for n in range(8)]


def load(own_server, tmp_path, what: str, number: int = 0) -> Worker:
    file = tmp_path / f"{what}{number}.json"
    return Worker(["-m", "tests.faults.load", what, own_server.url, str(file)], tmp_path / f"{what}{number}.log")


def test_nothing_is_lost_or_doubled_while_a_machine_grows(own_server, own_engine, workers: Workers, tmp_path) -> None:
    engine = own_engine
    engine.publish(spread())
    begin(engine, [f"i{n}" for n in range(KNOWN)], MACHINE)
    others = [load(own_server, tmp_path, "tick", n) for n in range(2)]
    others += [load(own_server, tmp_path, "tick_many"), load(own_server, tmp_path, "create")]
    for _ in range(2):
        workers.start()
    try:
        for number in range(KILLS):
            grow = load(own_server, tmp_path, "grow", number)
            wanted = KNOWN * (number + 1) / (KILLS + 2) + random.randrange(50)
            eventually(lambda wanted=wanted: sum(sizes(engine)[1:]) >= wanted, "some have moved", LONG)
            grow.close()  # by SIGKILL
        grow = load(own_server, tmp_path, "grow", KILLS)
        grow.process.wait(2 * LONG)
        assert grow.process.returncode == 0, grow.log.read_text()
        grow.close()
    finally:
        for other in others:
            other.process.stdin.close()
    for other in others:
        other.process.wait(LONG)
    acknowledged: Counter[str] = Counter()
    for file in sorted(tmp_path.glob("*.json")):
        said = json.loads(file.read_text())
        if "acknowledged" in said:
            assert said["problems"] == {}, file.name
            acknowledged.update(said["acknowledged"])
    assert json.loads((tmp_path / f"grow{KILLS}.json").read_text())["finished"]
    total = KNOWN + sum(id.startswith("c") for id in acknowledged)
    eventually(lambda: engine.counts(MACHINE)["timed"] >= total, "all jobs and timers are done", 2 * LONG)
    for worker in workers.all:
        worker.finish()
    _compare(engine, acknowledged, total)


def _compare(engine, acknowledged: Counter[str], total: int) -> None:
    assert engine.client.hget(engine.keys.machines, MACHINE) == "8"
    found = audit(engine, MACHINE)
    assert len(found.instances) == total == sum(sizes(engine))
    wrong = []
    for id, row in found.instances.items():
        ticks = acknowledged[id] if id.startswith("i") else 0
        expected = (str(1 + ticks + JOBS + 1), str(ticks), str(JOBS), "1")
        if (row["_version"], row["n"], row["jobs"], row["timers"]) != expected:
            wrong.append((id, expected, row))
    assert wrong == []
    for number in range(8):
        held = engine.client.scan_iter(match=f"{engine.keys.partition(MACHINE, number).root}:i:*", count=1000)
        ids = [key.partition(":i:")[2] for key in held]
        assert {choose_partition(id, 8) for id in ids} == {number}


def test_no_instance_departs_before_a_replica_has_it(
    own_server, own_engine, tmp_path, program_of_this_run, monkeypatch
) -> None:
    monkeypatch.setattr(repartitioning, "REPLICA_MS", 200)
    publish(own_engine, door(), *(f"d{n}" for n in range(60)))
    with (
        Server(tmp_path / "replica", program=program_of_this_run, persistent=False) as server,
        Proxy(own_server.url) as line,
    ):
        replica = Engine.from_url(server.url)
        own_engine.client.config_set("repl-diskless-sync-delay", 0)
        replica.client.replicaof("127.0.0.1", line.port)
        follows = lambda: replica.client.info("replication").get("master_link_status") == "up"  # noqa: E731
        eventually(follows, "it follows", LONG)
        half = Repartition(own_engine.client, own_engine.keys, "door", 2, settle=0)
        move = half._move_some

        def cut(found, with_leased):
            line.freeze()
            return move(found, with_leased)

        monkeypatch.setattr(half, "_move_some", cut)
        with pytest.raises(EngineUnavailable, match="no replica has written"):
            half.run()
        assert own_engine.counts("door")["Shut"] == 60
        assert own_engine.client.hget(own_engine.keys.partition("door", 1).meta, "instances") is None
        replica.client.close()
