"""Somebody sets the clock of the server while workers work: real processes, and a real server whose clock is moved."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from machines.conf.server import Server
from machines.conf.server.folder import find_program
from machines.engine import Engine
from tests.installation.processes import eventually

from .audit import audit
from .builders import begin, line
from .processes import LONG, Workers, wait_for

pytestmark = pytest.mark.redis

HOUR = 3600  # seconds
LEASE = 4_000  # ms
LIBRARY = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)
PROGRAM = """#!/bin/sh
export LD_PRELOAD={library} FAKETIME_TIMESTAMP_FILE={file} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1
exec {program} "$@"
"""


class Dial:
    """The clock of a server: set by seconds against the true one."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.turn(0)

    def turn(self, seconds: int) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.rename(self._file)


@pytest.fixture
def dial(tmp_path):
    if LIBRARY is None:
        assert not os.environ.get("CI"), "CI installs faketime"
        pytest.skip("libfaketime is not installed (Debian: apt-get install faketime)")
    return Dial(tmp_path / "shift")


@pytest.fixture
def own_server(tmp_path, dial):
    """Always the Valkey of the wheel: Debian's Redis calls the clock before the library is ready, and ends."""
    program = tmp_path / "program"
    words = {"library": LIBRARY, "file": tmp_path / "shift", "program": find_program(None)}
    program.write_text(PROGRAM.format(**{name: shlex.quote(str(word)) for name, word in words.items()}))
    program.chmod(0o700)
    with Server(tmp_path / "server", program=program, persistent=False) as server:
        yield server


@pytest.fixture
def busy(own_server, own_engine, tmp_path):
    """Two workers, the one with a job that goes on for as long as the test wants. Yields both, the busy one first."""
    own_engine.publish(line("stubborn", lease=LEASE))
    with Workers(own_server.url, tmp_path) as workers:
        both = [workers.start(tick=0.5) for _ in range(2)]
        _wait_for_looks(own_engine, 2)
        begin(own_engine, ["a"])
        first = _wait_for_begin(own_engine)
        yield sorted(both, key=lambda worker: worker.pid != first)


def _wait_for_looks(engine: Engine, count: int) -> None:
    """Wait until so many workers have looked at the clock: each gives a sign of life before, and the next one after."""

    def read_signs() -> dict[str, float]:
        return dict(engine.client.zrange(engine.keys.shares, 0, -1, withscores=True))

    eventually(lambda: len(read_signs()) == count, "all are there", LONG)
    first = read_signs()
    eventually(lambda: all(sign > first[name] for name, sign in read_signs().items()), "all have looked", LONG)


def _wait_for_begin(engine: Engine) -> int:
    """The process that has begun with a job."""
    eventually(lambda: engine.client.llen("begun"), "it has begun", LONG)
    return int(engine.client.lpop("begun").split()[0])


def _jump(engine: Engine, dial: Dial, seconds: int) -> None:
    """Set the clock, and wait until a worker has written that down."""
    dial.turn(seconds)
    eventually(engine.clock_jumps.read, "it is noticed", LONG)
    (jump,) = engine.clock_jumps.read()
    assert abs(jump.by / 1000 - seconds) < 30


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_job_goes_on_through_a_jump_and_is_done_once(own_engine, busy, dial, seconds):
    _jump(own_engine, dial, seconds)
    begin(own_engine, ["b"])  # the clock of the jump counts for what comes after it
    own_engine.client.rpush(f"go:{_wait_for_begin(own_engine)}", 1)
    wait_for(own_engine, 1)
    own_engine.client.rpush(f"go:{busy[0].pid}", 1)
    wait_for(own_engine, 2)
    stats = own_engine.stats("line")["jobs"]
    assert (stats.completed, stats.lost) == (2, 0)
    audit(own_engine, "line")


def test_a_job_of_a_dead_worker_comes_back_though_the_clock_went_back_by_an_hour(own_engine, busy, dial):
    first, second = busy
    first.kill()
    _jump(own_engine, dial, -HOUR)
    assert _wait_for_begin(own_engine) == second.pid
    own_engine.client.rpush(f"go:{second.pid}", 1)
    wait_for(own_engine, 1)
    assert own_engine.stats("line")["jobs"].lost == 1


def test_timers_are_deadlines_of_the_servers_clock(own_engine, workers, dial):
    """What docs/operate.md says of them."""
    states = {"waiting": {"after": {"30m": "rung"}}, "brief": {"after": {"300ms": "rung"}}, "rung": {}}
    own_engine.publish({"id": "egg", "initial": "waiting", "states": states | {"start": {"on": {"go": "brief"}}}})
    workers.start(tick=0.5)
    _wait_for_looks(own_engine, 1)
    own_engine.create("egg", "late")
    _jump(own_engine, dial, -HOUR)
    own_engine.create("egg", "new")
    own_engine.force("egg", "new", "brief", reason="a timer that is set after the jump", actor="ann")
    eventually(lambda: own_engine.counts("egg")["rung"] == 1, "a new timer fires in time", LONG)
    assert own_engine.get("egg", "late").state == "waiting"
    dial.turn(0)
    eventually(lambda: own_engine.clock_jumps.read()[0].undone, "the clock is right again", LONG)
    own_engine.create("egg", "other")
    dial.turn(HOUR)
    eventually(lambda: own_engine.counts("egg")["rung"] == 3, "an hour forward fires what is due by then", LONG)
