"""Duties of the house: each in one worker at a time, taken over when that one dies, leaves or does not get on."""

import os
import signal
import subprocess
import sys
from itertools import groupby

import pytest

from machines import duties as maintenance
from machines.connections import get_pattern
from machines.engine import EngineFault, EngineUnavailable
from machines.patterns import Locks
from machines.worker.duties.exclusive_duties import LONGEST, LOOK, Scheduler, read_lock_holders
from machines.worker.options import Options
from tests.installation.processes import ROOT, eventually

WORKER = """
import os, sys
from machines.engine import Engine
from machines.patterns import Locks
from machines.worker.launcher import Launcher
from machines.worker.options import Options
from machines.worker.registry import Registry
from machines.worker.duties.exclusive_duties import Scheduler
import signal

class Sweep:
    def run_once(self):
        engine.client.rpush(prefix + "swept", os.getpid())
        return False
    def pause(self):
        return 0.02

url, prefix = sys.argv[1:3]
engine = Engine.from_url(url, prefix=prefix)
options = Options(id=f"w-{os.getpid()}")
scheduler = Scheduler(Locks(engine.client, prefix), {"sweep": Sweep()}, options.id, ttl=2.0)
launcher = Launcher(engine, Registry(), options, duties=scheduler.duties)
signal.signal(signal.SIGTERM, lambda *_: launcher.stop())
launcher.run()
scheduler.leave()
"""


class Doing:
    """A duty that counts its passes, or fails."""

    def __init__(self):
        self.passes, self.fails, self.inside = 0, False, lambda: None

    def run_once(self):
        self.inside()
        if self.fails:
            raise ZeroDivisionError
        self.passes += 1
        return True

    def pause(self):
        return 42.0


class Two:
    """Two workers' schedulers of one duty, on a clock of their own."""

    def __init__(self, engine, prefix):
        self.at = 0.0
        self.locks = Locks(engine.client, prefix)
        self.duties = {name: Doing() for name in "ab"}
        self.schedulers = {
            name: Scheduler(self.locks, {"webhook prune": duty}, name, ttl=30, clock=lambda: self.at)
            for name, duty in self.duties.items()
        }

    def keep(self):
        for scheduler in self.schedulers.values():
            scheduler.run_once()
        holder = read_lock_holders(self.locks, ["webhook prune"])["webhook prune"]
        return holder and (holder.owner, holder.fence)

    def turn(self, name):
        return self.schedulers[name].duties["webhook prune"]


@pytest.fixture
def two(engine, prefix):
    return Two(engine, prefix)


def test_of_two_workers_one_does_it_and_the_other_waits_for_its_turn(two):
    assert two.keep()[0] == "a"
    assert [two.turn(name).run_once() for name in "ab"] == [True, False]
    assert [two.duties[name].passes for name in "ab"] == [1, 0]
    assert two.turn("a").pause() == 42.0
    woken = []
    two.turn("b").on_call(lambda: woken.append("b"))
    assert two.turn("b").pause() == LOOK, "it is woken when its turn comes"
    assert 5 < two.schedulers["b"].pause() <= 10.01
    two.schedulers["a"].leave()
    two.schedulers["b"].run_once()
    assert woken == ["b"]


def test_who_leaves_is_followed_at_once_and_by_a_larger_fence(two):
    _, fence = two.keep()
    two.schedulers["a"].leave()
    two.schedulers["a"].leave()
    assert two.turn("a").run_once() is False
    two.schedulers["b"].run_once()
    owner, following = two.keep()
    assert owner == "b"
    assert following > fence


def test_a_duty_that_fails_here_is_tried_by_another_for_a_while(two):
    two.keep()
    two.duties["a"].fails = True
    with pytest.raises(ZeroDivisionError):
        two.turn("a").run_once()
    assert two.keep()[0] == "b"
    assert two.turn("b").run_once() is True
    two.schedulers["b"].leave()
    two.at = 29.9
    two.schedulers["a"].run_once()
    assert two.turn("a").run_once() is False
    two.at = 30.0
    two.schedulers["a"].run_once()
    two.duties["a"].fails = False
    assert two.turn("a").run_once() is True


def test_a_pass_that_never_ends_does_not_keep_the_duty_from_others(two, caplog):
    two.keep()

    def hang():
        two.at += LONGEST + 1
        assert two.keep()[0] == "b"

    two.duties["a"].inside = hang
    two.turn("a").run_once()
    assert "has been at one pass for 600 s" in caplog.text


def test_a_lock_that_is_damaged_costs_the_others_nothing(engine, prefix):
    locks, broken, fine = Locks(engine.client, prefix), Doing(), Doing()
    engine.client.lpush(f"{prefix}lock:{{house.broken}}:holder", "x")
    scheduler = Scheduler(locks, {"broken": broken, "fine": fine}, "w")
    with pytest.raises(EngineFault):
        scheduler.run_once()
    assert [duty.run_once() for name, duty in scheduler.duties.items() if name != "scheduler"] == [False, True]
    scheduler.leave()
    assert locks.peek("house.fine") is None


def test_without_redis_nobody_has_a_turn_and_leaving_ends(own_server, prefix, caplog):
    from machines.engine import Engine

    scheduler = Scheduler(Locks(Engine.from_url(own_server.url, prefix=prefix).client, prefix), {"x": Doing()}, "w")
    scheduler.run_once()
    own_server.stop()
    with pytest.raises(EngineUnavailable):
        scheduler.run_once()
    scheduler.leave()
    assert "could not be given up" in caplog.text


def test_the_scheduler_has_the_duties_that_the_docs_list(engine):
    assert set(maintenance.make_exclusive_duties(engine, Options())) == set(maintenance.DUTIES)
    assert set(read_lock_holders(get_pattern(Locks), maintenance.DUTIES)) == set(maintenance.DUTIES)


@pytest.mark.faults
def test_when_the_worker_that_has_a_duty_is_killed_or_stops_another_goes_on_with_a_larger_fence(
    engine, redis_url, prefix
):
    command = [sys.executable, "-c", WORKER, redis_url, prefix]
    workers = [subprocess.Popen(command, cwd=ROOT) for _ in range(2)]
    locks, swept = Locks(engine.client, prefix), f"{prefix}swept"
    seen = []

    def taken_over():
        holder = locks.peek("house.sweep")
        by = holder and int(holder.owner.removeprefix("w-"))
        if holder and holder.fence not in [fence for fence, _ in seen] and engine.client.lindex(swept, -1) == str(by):
            seen.append((holder.fence, by))
            return True
        return False

    try:
        eventually(taken_over, "one of them has it")
        os.kill(seen[0][1], signal.SIGKILL)
        eventually(taken_over, "the other has it")
        next(worker for worker in workers if worker.pid == seen[0][1]).wait()
        workers.append(subprocess.Popen(command, cwd=ROOT))
        eventually(lambda: len(engine.workers()) == 3, "a third is there")
        os.kill(seen[1][1], signal.SIGTERM)
        eventually(taken_over, "the third has it")
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert [fence for fence, _ in seen] == sorted({fence for fence, _ in seen})
    runs = [pid for pid, _ in groupby(engine.client.lrange(swept, 0, -1))]
    assert runs == [str(by) for _, by in seen]  # never two at once: no pass of one among those of another
