"""The process that renews leases while the heartbeat of its worker cannot run."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from machines.worker import lease_helper
from machines.worker.execution.in_flight import InFlightJobs
from machines.worker.helper_process import MOST_ADDED, RESTART, HelperProcess
from machines.worker.job import Job
from machines.worker.lease_helper import LOOK, LeaseHelper, Lines
from tests.installation.processes import alive, descendants, eventually, python
from tests.worker import builders
from tests.worker.builders import START, take_one

LIMIT = 60.0  # seconds
ROOT = "sb:{errand:0}"
LEASE = 3000  # ms
LATE = LEASE / 3000 + LEASE / 6000  # seconds after which a beat is overdue

pytestmark = pytest.mark.skipif(not lease_helper.is_possible(), reason="needs /proc")


def word(*ids, lease=LEASE, whole=True, beat=True, root=ROOT):
    return {
        "held": [[root, lease, [[id, f"token of {id}"] for id in ids]]] if ids else [],
        "whole": whole,
        "beat": beat,
    }


class Stage:
    """A helper whose clock stands still until it is set, and what it renews."""

    def __init__(self):
        self.now = 0.0
        self.letter = "S"
        self.renewed = []
        self.answers = {}
        self.failing = False
        self.helper = LeaseHelper(self.renew, lambda: self.letter, LIMIT, lambda: self.now)

    def renew(self, root, lease, pairs):
        if self.failing:
            raise OSError("away")
        self.renewed += [(self.now, id) for id, token in pairs if token == f"token of {id}"]
        return [self.answers.get(id, "") for id, _ in pairs]

    def run(self, until):
        """Lets the time pass, and says whether it would go on."""
        while self.now + (pause := self.helper.pause()) <= until:
            self.now += pause
            if not self.helper.act():
                return False
        self.now = until
        return True


@pytest.fixture
def stage():
    return Stage()


def test_while_beats_come_it_does_nothing(stage):
    for number in range(30):
        stage.helper.hear(word("1"))
        assert stage.run(number + 1.0)
    assert stage.renewed == []


def test_with_nothing_in_flight_it_only_looks_after_its_parent(stage):
    assert stage.helper.pause() == LOOK
    stage.helper.hear(word("1", lease=600))
    assert stage.helper.pause() == pytest.approx(0.3)
    stage.helper.hear(word())
    assert stage.helper.pause() == LOOK


def test_a_late_beat_is_renewed_every_third_of_a_lease_until_one_comes(stage):
    stage.helper.hear(word("1", "2"))
    stage.run(4.0)
    assert stage.renewed == [(at, id) for at in (LATE, LATE + 1, LATE + 2) for id in ("1", "2")]
    stage.helper.hear(word("2"))
    stage.renewed.clear()
    stage.run(4.0 + LATE)
    assert [id for _, id in stage.renewed] == ["2"]


def test_a_batch_that_was_taken_is_added_and_puts_nothing_off(stage):
    stage.helper.hear(word("1"))
    stage.run(1.0)
    stage.helper.hear(word("2", whole=False, beat=False))
    stage.run(LATE)
    assert stage.renewed == [(LATE, "1"), (LATE, "2")]


def test_all_in_flight_told_without_a_beat_puts_nothing_off(stage):
    stage.helper.hear(word("1"))
    stage.run(1.0)
    stage.helper.hear(word("2", beat=False))
    stage.run(LATE)
    assert stage.renewed == [(LATE, "2")]


def test_what_is_gone_is_forgotten(stage):
    stage.answers["1"] = "gone"
    stage.helper.hear(word("1"))
    stage.run(10.0)
    assert len(stage.renewed) == 1


def test_each_lease_has_a_time_of_its_own(stage):
    stage.helper.hear(word("1", lease=600))
    stage.helper.hear(word("2", whole=False, lease=60_000))
    stage.run(5.0)
    assert {id for _, id in stage.renewed} == {"1"}
    stage.run(21.0)
    assert [at for at, id in stage.renewed if id == "2"] == [21.0]


@pytest.mark.parametrize("letter", ["T", "t"])
def test_a_worker_that_is_stopped_loses_its_leases(stage, letter):
    stage.helper.hear(word("1"))
    stage.letter = letter
    assert stage.run(20.0)
    assert stage.renewed == []
    stage.letter = "R"
    stage.run(21.0)
    assert stage.renewed


@pytest.mark.parametrize("letter", ["", "Z", "X"])
def test_without_a_worker_it_ends(stage, letter):
    stage.helper.hear(word("1"))
    stage.letter = letter
    assert not stage.run(20.0)
    assert stage.renewed == []


def test_a_worker_that_is_silent_for_long_counts_as_dead(stage):
    stage.helper.hear(word("1"))
    assert stage.run(2 * LIMIT)
    assert LIMIT - LEASE / 1000 < stage.renewed[-1][0] < LIMIT
    count = len(stage.renewed)
    stage.helper.hear(word("1"))
    stage.run(stage.now + 2.0)
    assert len(stage.renewed) > count


def test_while_redis_is_away_it_tries_on(stage):
    stage.helper.hear(word("1"))
    stage.failing = True
    assert stage.run(10.0)
    stage.failing = False
    stage.run(11.0)
    assert stage.renewed


def test_lines_may_come_in_pieces():
    read, write = os.pipe()
    lines = Lines(read)
    os.write(write, b'{"a"')
    assert lines.read() == []
    os.write(write, b":1}\n{}\n{")
    assert lines.read() == [b'{"a":1}', b"{}"]
    os.close(write)
    assert lines.read() is None
    os.close(read)


def test_a_line_without_an_end_is_the_end(monkeypatch):
    monkeypatch.setattr(lease_helper, "MOST_LINE", 10)
    read, write = os.pipe()
    os.write(write, b"x" * 11)
    assert Lines(read).read() is None
    os.close(read)
    os.close(write)


# Both processes


@pytest.fixture
def in_flight():
    return InFlightJobs(4)


@pytest.fixture
def process(engine, redis_url, in_flight):
    """The worker's side in this process, whose beats are the test's to give."""
    process = HelperProcess(redis_url, engine.keys.prefix, in_flight, LIMIT, lambda: process.now)
    process.now = 0.0
    yield process
    process.stop()


def hold(engine, in_flight, process, lease=LEASE):
    """Take the only job, with this lease in ms, as the worker does."""
    job = Job(take_one(engine, now=START))  # its lease would be over for years
    object.__setattr__(job.taken, "lease", lease)
    in_flight.pick_up([job])
    process.add([job])
    return job


def test_leases_that_nobody_renews_are_renewed(engine, errand, in_flight, process):
    errand("e1")
    job = hold(engine, in_flight, process, lease=300)
    eventually(lambda: engine.job("errand", job.id).lease_until > START + builders.LEASE, "it is renewed")
    first = engine.job("errand", job.id).lease_until
    eventually(lambda: engine.job("errand", job.id).lease_until > first, "it is renewed again")
    in_flight.lay_down([job])
    process.beat()


def test_it_starts_with_the_first_job_and_connects_when_it_has_to(engine, errand, in_flight, process):
    assert process.pid is None
    errand("e1")
    hold(engine, in_flight, process, lease=60_000)
    process.beat()
    eventually(lambda: lease_helper.read_state(process.pid) == "S", "it waits")
    ends = [os.readlink(end) for end in Path(f"/proc/{process.pid}/fd").iterdir()]
    assert sorted(end.partition(":")[0] for end in ends if not end.startswith("anon_inode")) == [
        "/dev/null", "/dev/null", "pipe"
    ], "and it holds nothing of the worker open"  # fmt: skip


def test_nothing_in_flight_is_said_once(engine, errand, in_flight, process, monkeypatch):
    errand("e1")
    job = hold(engine, in_flight, process)
    in_flight.lay_down([job])
    said = []
    monkeypatch.setattr(process, "_put", lambda word: said.append(word) or True)
    for _ in range(3):
        process.beat()
    assert said == [{"held": [], "whole": True, "beat": True}]


def test_one_that_dies_is_replaced_at_a_later_beat(engine, errand, in_flight, process):
    errand("e1")
    hold(engine, in_flight, process)
    first = process.pid
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not alive(first), "it is dead")
    process.beat()
    assert process.pid is None, "not at once: it may be one that cannot live"
    process.now = RESTART
    process.beat()
    assert process.pid not in (None, first)


def test_one_that_does_not_read_holds_nobody_up(engine, errand, in_flight, process):
    errand("e1")
    job = hold(engine, in_flight, process)
    os.kill(process.pid, signal.SIGSTOP)
    for _ in range(2 * MOST_ADDED):
        process.add([job])
    os.kill(process.pid, signal.SIGCONT)
    process.beat()
    assert alive(process.pid)


def test_it_ends_with_its_worker_though_a_fork_of_that_lives_and_the_thread_that_started_it_has_ended(redis_url):
    code = """
import os, sys, threading, time
from machines.worker.execution.in_flight import InFlightJobs
from machines.worker.helper_process import HelperProcess
process = HelperProcess(sys.argv[1], "sb:", InFlightJobs(1), 60.0)
thread = threading.Thread(target=process._start)
thread.start()
thread.join()
fork = os.fork()
if not fork:
    os.close(1)
    os.close(2)
    time.sleep(300)
print(process.pid, fork, flush=True)
time.sleep(300)
"""
    with python(code, redis_url) as worker:
        pid, fork = map(int, worker.stdout.readline().split())
        assert alive(pid)
        worker.kill()
        worker.communicate(timeout=60)  # nobody else holds its output open
        eventually(lambda: not alive(pid), "it has ended")
        assert alive(fork)
        os.kill(fork, signal.SIGKILL)


# A real worker whose handler keeps the interpreter lock


@pytest.fixture
def grip(engine, prefix, start):
    """Starts a worker with a short lease and, once its job has begun, returns both."""

    def grip(milliseconds, lease):
        engine.publish(builders.errand(src="gripping", lease=f"{lease}ms", backoff="10ms"))
        worker = start()
        engine.create("errand", "1")
        eventually(lambda: engine.get("errand", "1").state == "done", "it works")
        engine.create("errand", str(milliseconds))
        eventually(lambda: engine.client.llen(f"{prefix}begun") == 2, "it has begun")
        (job,) = engine.jobs("errand", "errands", place="leased")
        return worker, job

    return grip


def test_a_handler_that_keeps_the_interpreter_lock_for_several_leases_runs_once(engine, prefix, grip):
    worker, _ = grip(24_000, lease=10_000)  # half of a lease is what a busy machine may keep the helper waiting
    own = descendants(worker.pid)
    while engine.get("errand", "24000").state == "doing":
        assert engine.sweep("errand") == 0, "its lease ran out"
        time.sleep(0.05)
    assert engine.get("errand", "24000").state == "done"
    assert engine.client.llen(f"{prefix}begun") == 2
    assert len(own) == 1
    worker.terminate()
    worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert not any(map(alive, own))


def test_stopped_meanwhile_it_loses_the_job(engine, grip):
    worker, job = grip(60_000, lease=1000)
    eventually(lambda: engine.job("errand", job.id).lease_until > job.lease_until, "it is renewed")
    worker.send_signal(signal.SIGSTOP)
    eventually(lambda: engine.sweep("errand") == 1, "the lease runs out")


def test_killed_meanwhile_it_loses_the_job_in_time(engine, grip):
    worker, job = grip(60_000, lease=1000)
    eventually(lambda: engine.job("errand", job.id).lease_until > job.lease_until, "it is renewed")
    own = descendants(worker.pid)
    worker.kill()
    worker.communicate(timeout=60)
    eventually(lambda: not any(map(alive, own)), "its helper is gone")
    eventually(lambda: engine.sweep("errand") == 1, "the lease runs out")
