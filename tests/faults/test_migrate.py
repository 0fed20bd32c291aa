"""Instances move to another version under load, while the command that moves them and the server are killed."""

from __future__ import annotations

import json
import os
import re
from collections import Counter

import pytest

from machines.engine import Engine
from tests.engine.versions.storage_audit import StorageAudit
from tests.installation.processes import eventually

from .audit import audit
from .builders import begin
from .load import JOBS, KNOWN, MACHINE, RENAMED, spread
from .processes import LONG, Worker, Workers, kill

INSTANCES = max(KNOWN, int(os.environ.get("MOVED_INSTANCES", "3000")))
"""MOVED_INSTANCES=100000 is the full run: two minutes on two idle processors, 15 on busy ones."""
KILLS = 3
PATIENCE = LONG + INSTANCES / 50

pytestmark = [pytest.mark.redis, pytest.mark.timeout(300 + INSTANCES / 10)]

HUB = {
    "id": "hub",
    "initial": "On",
    "history": 1,
    "context": {"pings": 0},
    "accepts": {"from": [MACHINE]},
    "states": {"On": {"on": {"ping": {"actions": {"set": {"pings": "pings + 1"}}}}}},
}


def first():
    """Each instance does two jobs, waits for a timer, and then sends a message; meanwhile it counts ticks."""
    definition = spread() | {"history": 10_000}
    states = definition["states"]["Both"]["states"]["Work"]["states"]
    states["timed"] = {"entry": {"send": {"event": "ping", "to": {"machine": "hub", "id": "'h'"}}}}
    return definition


def second():
    """The same with other names, another field, and a state around the work."""
    text = json.dumps(first())
    for old, new in RENAMED.items():
        text = re.sub(rf'"{old}"', f'"{new}"', text)
    definition = json.loads(text)
    regions = definition["states"]["Both"]["states"]
    work = regions["Work"]
    regions["Work"] = {"initial": "Inner", "states": {"Inner": work}}
    definition["context"]["note"] = "moved"
    return definition


def start(server, tmp_path, what: str, number: int = 0) -> Worker:
    file = tmp_path / f"{what}{number}.json"
    return Worker(["-m", "tests.faults.load", what, server.url, str(file)], tmp_path / f"{what}{number}.log")


def count_moved(engine: Engine) -> int:
    return sum(one.instances for one in engine.version_figures(MACHINE) if one.version == 2)


def test_nothing_is_lost_or_doubled_while_instances_move(lasting_server, lasting_engine, tmp_path) -> None:
    engine, server = lasting_engine, lasting_server
    engine.client.config_set("appendfsync", "always")
    engine.publish(HUB)
    engine.create("hub", "h")
    engine.publish(first())
    begin(engine, [f"i{n}" for n in range(INSTANCES)], MACHINE)
    engine.publish(second())
    with Workers(server.url, tmp_path) as workers:
        others = [start(server, tmp_path, "tick"), start(server, tmp_path, "tick_many")]
        for _ in range(2):
            workers.start()
        for number in range(KILLS):
            mover = start(server, tmp_path, "migrate", number)
            wanted = INSTANCES * (number + 1) // (KILLS + 2)
            eventually(lambda wanted=wanted: count_moved(engine) >= wanted, "some have moved", PATIENCE)
            if number == 1:
                kill(server, engine)
                server.revive()
                eventually(lambda: engine.client.ping(), "the server is back", LONG)
                engine.client.config_set("appendfsync", "always")
            mover.close()  # by SIGKILL
        mover = start(server, tmp_path, "migrate", KILLS)
        mover.process.wait(PATIENCE)
        assert mover.process.returncode == 0, mover.log.read_text()
        mover.close()
        for other in others:
            other.process.stdin.close()
        for other in others:
            other.process.wait(LONG)
        eventually(lambda: engine.counts(MACHINE)["timed"] >= INSTANCES, "all jobs and timers are done", PATIENCE)
        eventually(lambda: engine.tick() == 0 and engine.live(MACHINE).mail == 0, "all messages are delivered", LONG)
        for worker in workers.all:
            worker.finish()
    report = json.loads((tmp_path / f"migrate{KILLS}.json").read_text())
    assert report["moved"] + report["already"] == INSTANCES
    assert (report["kept"], report["refused"]) == (0, 0)
    compare(engine, tmp_path)


def compare(engine: Engine, tmp_path) -> None:
    acknowledged: Counter[str] = Counter()
    unsure = 0  # calls in flight when the server was killed: they happened or not
    for file in tmp_path.glob("tick*.json"):
        said = json.loads(file.read_text())
        unsure += sum(count for what, count in said["problems"].items() if "again" not in what) * 10
        assert not [what for what in said["problems"] if "twice" in what or "SB4" in what]
        acknowledged.update(said["acknowledged"])
    assert acknowledged.total() > 0
    found = audit(engine, MACHINE)
    StorageAudit(engine, MACHINE, {1: first(), 2: second()}).check()
    assert len(found.instances) == INSTANCES
    wrong, more = [], 0
    for id, row in found.instances.items():
        ticks = int(row["n"])
        more += ticks - acknowledged[id]
        expected = (str(1 + ticks + JOBS + 1 + 1), str(JOBS), "1", "2", "moved")
        values = (row["_version"], row["jobs"], row["timers"], row["_def"].partition(":")[0], row["note"])
        if values != expected or ticks < acknowledged[id]:
            wrong.append((id, expected, row))
    assert wrong == []
    assert 0 <= more <= unsure
    assert engine.get("hub", "h").data == {"pings": INSTANCES}
