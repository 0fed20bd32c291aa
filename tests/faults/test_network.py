"""Requests and replies lost, torn and silenced, at each command a worker's jobs depend on.

The worker runs in this process, so that its waits can be short; the test itself goes straight to the server.
"""

import pytest

from machines.engine import Engine
from machines.engine.connection import subscription
from tests.installation.processes import eventually
from tests.worker.builders import Running

from .audit import audit
from .builders import begin, line
from .handlers import registry
from .processes import LONG, wait_for
from .proxy import Fault

pytestmark = pytest.mark.redis

COMMANDS = {
    "take": b"sb_take",
    "complete": b"sb_complete",
    "renew": b"sb_extend",
    "fail": b"sb_fail",
    "tick": b"sb_tick",
    "bell": b"PING",  # by which a connection that hears bells shows that it lives
    "memory": b"sb_wakeups",
}
TIMEOUT = 0.4  # seconds until a silent connection is given up
EACH = 4  # instances for each fault


@pytest.fixture
def through(proxy, monkeypatch):
    """An engine behind the proxy that soon notices when nothing comes."""
    monkeypatch.setattr(subscription, "PROBE", TIMEOUT)
    monkeypatch.setattr(subscription, "DEADLINE", TIMEOUT)
    engine = Engine.from_url(proxy.url, socket_timeout=TIMEOUT, health_check_interval=0)
    yield engine
    engine.client.close()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_fault_at_this_command_in_turn_moves_each_machine_once(own_engine, proxy, through, command):
    own_engine.publish(line("fragile", "quick", lease=300, unique=True))
    started = 0
    with Running(through, registry(through), concurrency=3, beat=0.05, block=0.1, rescan=0.5, tick=0.5, grace=LONG):
        for fault in Fault:
            struck = proxy.struck
            proxy.arm(COMMANDS[command], fault)
            begin(own_engine, (f"i{started + number}" for number in range(EACH)))
            started += EACH
            eventually(lambda before=struck: proxy.struck > before, f"{fault.value} at {command}", LONG)
            wait_for(own_engine, started)
    found = audit(own_engine, "line")
    assert (found.states, found.places) == ({"done": started}, {})
    assert {row["moved"] for row in found.instances.values()} == {"2"}
    assert own_engine.live("line").flow == {"1:t1": started, "1:t3": started}


def test_jobs_of_a_take_whose_answer_was_lost_are_not_left_to_their_leases(own_engine, proxy, through):
    """The worker finds what is leased to it and is not in its hand, and gives it back: no attempt is counted."""
    own_engine.publish(line("quick", lease=600_000, attempts=1))
    begin(own_engine, (f"i{number}" for number in range(EACH)))
    proxy.arm(COMMANDS["take"], Fault.LOST_REPLY)
    with Running(through, registry(through), concurrency=EACH):
        wait_for(own_engine, EACH)
    assert proxy.struck == 1
    assert audit(own_engine, "line").states == {"done": EACH}


def test_a_worker_whose_connections_all_fell_silent_takes_work_again(own_engine, proxy, workers):
    """The real command with all its defaults: nobody restarts it, and nobody tells it."""
    own_engine.publish(line("quick"))
    workers.url = proxy.url
    worker = workers.command()
    begin(own_engine, ["before"])
    wait_for(own_engine, 1)
    proxy.freeze()
    begin(own_engine, ["after"])
    wait_for(own_engine, 2)
    assert "2 completed" in worker.finish()
    audit(own_engine, "line")


def test_workers_cut_off_again_and_again_do_every_job_once(own_server, proxy, workers):
    jobs = 400
    own_engine = Engine.from_url(own_server.url, partitions=3)
    own_engine.publish(line("quick", "sleepy", lease=400))
    workers.url = proxy.url
    running = [workers.start(concurrency=8) for _ in range(2)]
    begin(own_engine, (f"i{number}" for number in range(jobs)))
    for share in range(1, 10):
        wait_for(own_engine, share * jobs // 10)
        proxy.cut()
    wait_for(own_engine, jobs)
    for worker in running:
        worker.finish()
    assert audit(own_engine, "line").states == {"done": jobs}
    own_engine.client.close()
