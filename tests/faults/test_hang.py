"""A Redis that stands still for a while: what it was asked meanwhile it may still do, late, for nobody."""

import os
import signal
import threading
import time

import pytest
import redis

from machines.engine import Engine
from machines.engine.connection import subscription
from tests.installation.processes import eventually
from tests.worker.builders import Running

from .audit import audit
from .builders import begin, line
from .handlers import registry
from .processes import LONG, wait_for

pytestmark = pytest.mark.redis

JOBS = 60
TIMEOUT = 0.3  # seconds until a call is given up
STILL = 3 * TIMEOUT


@pytest.fixture
def hasty(own_server, monkeypatch):
    """An engine that soon gives a call up."""
    monkeypatch.setattr(subscription, "DEADLINE", TIMEOUT)
    engine = Engine.from_url(own_server.url, socket_timeout=TIMEOUT)
    yield engine
    engine.client.close()


def test_calls_that_are_carried_out_late_move_each_machine_once(own_engine, hasty):
    own_engine.publish(line("quick", "sleepy", lease=500))
    server = own_engine.client.info("server")["process_id"]
    begin(own_engine, (f"i{number}" for number in range(JOBS)))
    with Running(hasty, registry(hasty), grace=LONG):
        for share in (1, 2, 3):
            wait_for(own_engine, share * JOBS // 4)
            os.kill(server, signal.SIGSTOP)
            time.sleep(STILL)
            os.kill(server, signal.SIGCONT)
        wait_for(own_engine, JOBS)
    assert audit(own_engine, "line").states == {"done": JOBS}


def test_while_somebody_s_script_keeps_it_busy_nothing_is_lost(own_server, own_engine, hasty):
    own_engine.publish(line("quick", "sleepy", lease=500))
    own_engine.client.config_set("busy-reply-threshold", 50)
    begin(own_engine, (f"i{number}" for number in range(JOBS)))
    with Running(hasty, registry(hasty), grace=LONG):
        wait_for(own_engine, JOBS // 4)
        script = threading.Thread(target=_never_ends, args=(own_server.url,))
        script.start()
        eventually(lambda: _busy(own_engine), "the server says that it is busy", LONG)
        time.sleep(STILL)
        own_engine.client.script_kill()
        script.join(LONG)
        wait_for(own_engine, JOBS)
    assert audit(own_engine, "line").states == {"done": JOBS}


def _never_ends(url):
    with redis.Redis.from_url(url) as client, pytest.raises(redis.ResponseError, match="Script killed|interrupted"):
        client.eval("while true do end", 0)


def _busy(engine):
    try:
        engine.client.ping()
    except redis.RedisError as error:
        return "BUSY" in str(error) or "busy" in str(error)
    return False
