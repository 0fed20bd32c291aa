"""Instances that move to another version while the mover, the server and clients are killed and interrupted."""

import random
import subprocess
import sys
import threading

import pytest

from machines.engine import Engine, EngineUnavailable
from machines.engine.errors import Refused, UnknownEvent
from tests.engine.builders import ROOT, machine
from tests.installation.processes import eventually

from .audit import audit
from .builders import begin
from .processes import LONG, kill
from .test_restart import came_back

pytestmark = pytest.mark.redis

INSTANCES = 2000
KILLS = 6

OLD = machine(
    "order",
    {
        "Open": {"on": {"go": "Packing"}, "after": {"30d": "Sent"}},
        "Packing": {"invoke": {"src": "pack", "queue": "jobs", "onDone": "Sent"}, "on": {"stop": "Open"}},
        "Sent": {},
    },
    context={"count": 0},
)
NEW = machine(
    "order",
    {
        "Open": {"on": {"go": "Packing"}, "after": {"30d": "Sent", "40d": "Packing"}},
        "Work": {
            "type": "parallel",
            "states": {
                "Hands": {
                    "initial": "Packing",
                    "states": {
                        "Packing": {"invoke": {"src": "pack", "queue": "jobs", "onDone": "Wrapped"}},
                        "Wrapped": {},
                    },
                },
                "Papers": {"initial": "Unpaid", "states": {"Unpaid": {"after": {"9d": "Paid"}}, "Paid": {}}},
            },
            "on": {"stop": "Open"},
        },
        "Sent": {},
    },
    context={"count": "0", "more": 1},
)
MOVER = """
import sys
from machines.engine import Engine
engine = Engine.from_url(sys.argv[1])
engine.migrate(engine.plan("order", 2), actor="mover")
"""


class Steps(threading.Thread):
    """Clients that go on firing; a server that is away is no end of them."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._engine, self._over = Engine.from_url(url), threading.Event()
        self.taken = 0

    def run(self) -> None:
        chance = random.Random(7)
        while not self._over.is_set():
            try:
                self._engine.fire("order", f"i{chance.randrange(INSTANCES)}", chance.choice(["go", "stop"]))
                self.taken += 1
            except (Refused, UnknownEvent):
                continue
            except EngineUnavailable:
                self._over.wait(0.05)

    def end(self) -> None:
        self._over.set()
        self.join(LONG)
        self._engine.client.close()


def start(url: str) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", MOVER, url], cwd=ROOT, stderr=subprocess.DEVNULL)


def test_nothing_is_half_moved_when_mover_and_server_are_killed(lasting_server, lasting_engine):
    engine = lasting_engine
    engine.publish(OLD)
    begin(engine, (f"i{number}" for number in range(INSTANCES)), "order")
    for number in range(0, INSTANCES, 3):
        engine.fire("order", f"i{number}", "go")
    engine.publish(NEW)
    steps = Steps(lasting_server.url)
    steps.start()
    keys = engine.keys.partition("order")

    def moved() -> int:
        return int(engine.client.hget(keys.versions, "2:instances") or 0)

    for number in range(KILLS):
        process, target = start(lasting_server.url), (number + 1) * INSTANCES // (KILLS + 2)
        eventually(lambda: moved() >= target or process.poll() is not None, "some have moved", LONG)  # noqa: B023
        if number == KILLS // 2:
            kill(lasting_server, engine)
            came_back(lasting_server, engine)
        process.kill()
        process.wait()
    steps.end()
    done = engine.migrate(engine.plan("order", 2), actor="mover")
    assert done.refused == []
    found = audit(engine, "order")
    assert {row["_def"].partition(":")[0] for row in found.instances.values()} == {"2"}
    assert moved() == len(found.instances) == INSTANCES
    for id in found.instances:
        moves = [step for step in engine.history("order", id) if step.event == "(migrate)"]
        assert len(moves) == 1
        instance = engine.get("order", id)
        packing = "Packing" in instance.configuration
        assert len(instance.jobs) == packing
        assert len(instance.timers) == (2 if instance.configuration == ["Open"] else "Unpaid" in instance.configuration)
    back = engine.migrate(engine.plan("order", 2).inverse())
    assert back.moved > 0
    audit(engine, "order")
