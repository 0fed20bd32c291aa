"""The process that renews leases while its worker cannot."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from machines.worker import standin
from machines.worker.hand import Hand
from machines.worker.job import Job
from machines.worker.relay import MOST_ADDED, RESTART, Relay
from machines.worker.standin import SILENCE, Lines, StandIn
from tests.stage.processes import alive, descendants, eventually, python
from tests.worker import builders
from tests.worker.builders import START, take_one

ROOT = "sb:{errand:0}"
LEASE = 3000  # ms
LATE = LEASE / 3000 + LEASE / 6000  # seconds after which a beat is overdue

pytestmark = pytest.mark.skipif(not standin.possible(), reason="needs /proc")


def word(*ids, lease=LEASE, whole=True, beat=True, root=ROOT):
    return {
        "held": [[root, lease, [[id, f"token of {id}"] for id in ids]]] if ids else [],
        "whole": whole,
        "beat": beat,
    }


class Stage:
    """A stand-in whose clock stands still until it is set, and what it renews."""

    def __init__(self):
        self.now = 0.0
        self.letter = "S"
        self.renewed = []
        self.answers = {}
        self.failing = False
        self.standin = StandIn(self.renew, lambda: self.letter, lambda: self.now)

    def renew(self, root, lease, pairs):
        if self.failing:
            raise OSError("away")
        self.renewed += [(self.now, id) for id, token in pairs if token == f"token of {id}"]
        return [self.answers.get(id, "") for id, _ in pairs]

    def run(self, until):
        """Lets the time pass, and says whether it would go on."""
        while (wait := self.standin.wait()) is not None and self.now + wait <= until:
            self.now += wait
            if not self.standin.act():
                return False
        self.now = until
        return True


@pytest.fixture
def stage():
    return Stage()


def test_while_beats_come_it_does_nothing(stage):
    for number in range(30):
        stage.standin.hear(word("1"))
        assert stage.run(number + 1.0)
    assert stage.renewed == []


def test_with_nothing_in_hand_it_waits_for_a_word_alone(stage):
    assert stage.standin.wait() is None
    stage.standin.hear(word("1"))
    assert stage.standin.wait() == pytest.approx(LATE)
    stage.standin.hear(word())
    assert stage.standin.wait() is None


def test_a_late_beat_is_stood_in_for_every_third_of_a_lease_until_one_comes(stage):
    stage.standin.hear(word("1", "2"))
    stage.run(4.0)
    assert stage.renewed == [(at, id) for at in (LATE, LATE + 1, LATE + 2) for id in ("1", "2")]
    stage.standin.hear(word("2"))
    stage.renewed.clear()
    stage.run(4.0 + LATE)
    assert [id for _, id in stage.renewed] == ["2"]


def test_a_batch_that_was_taken_is_added_and_puts_nothing_off(stage):
    stage.standin.hear(word("1"))
    stage.run(1.0)
    stage.standin.hear(word("2", whole=False, beat=False))
    stage.run(LATE)
    assert stage.renewed == [(LATE, "1"), (LATE, "2")]


def test_all_in_hand_told_without_a_beat_puts_nothing_off(stage):
    stage.standin.hear(word("1"))
    stage.run(1.0)
    stage.standin.hear(word("2", beat=False))
    stage.run(LATE)
    assert stage.renewed == [(LATE, "2")]


def test_what_is_gone_is_forgotten(stage):
    stage.answers["1"] = "gone"
    stage.standin.hear(word("1"))
    stage.run(10.0)
    assert len(stage.renewed) == 1
    assert stage.standin.wait() is None


def test_each_lease_has_a_time_of_its_own(stage):
    stage.standin.hear(word("1", lease=600))
    stage.standin.hear(word("2", whole=False, lease=60_000))
    stage.run(5.0)
    assert {id for _, id in stage.renewed} == {"1"}
    stage.run(21.0)
    assert [at for at, id in stage.renewed if id == "2"] == [21.0]


@pytest.mark.parametrize("letter", ["T", "t"])
def test_a_worker_that_is_stopped_loses_its_leases(stage, letter):
    stage.standin.hear(word("1"))
    stage.letter = letter
    assert stage.run(20.0)
    assert stage.renewed == []
    stage.letter = "R"
    stage.run(21.0)
    assert stage.renewed


@pytest.mark.parametrize("letter", ["", "Z", "X"])
def test_without_a_worker_it_ends(stage, letter):
    stage.standin.hear(word("1"))
    stage.letter = letter
    assert not stage.run(20.0)
    assert stage.renewed == []


def test_a_worker_that_is_silent_for_long_counts_as_dead(stage):
    stage.standin.hear(word("1"))
    assert stage.run(2 * SILENCE)
    assert SILENCE - LEASE / 1000 < stage.renewed[-1][0] < SILENCE
    stage.standin.hear(word("1"))
    assert stage.standin.wait() == pytest.approx(LATE)


def test_while_redis_is_away_it_tries_on(stage):
    stage.standin.hear(word("1"))
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
    monkeypatch.setattr(standin, "MOST_LINE", 10)
    read, write = os.pipe()
    os.write(write, b"x" * 11)
    assert Lines(read).read() is None
    os.close(read)
    os.close(write)


# Both processes


@pytest.fixture
def hand():
    return Hand(4)


@pytest.fixture
def relay(engine, hand):
    """In this process, whose beats are the test's to give."""
    relay = Relay(engine, hand, lambda: relay.now)
    relay.now = 0.0
    relay.start()
    yield relay
    relay.stop()


def sockets(pid):
    return [end for end in map(os.readlink, Path(f"/proc/{pid}/fd").iterdir()) if end.startswith("socket:")]


def test_leases_that_nobody_renews_are_renewed(engine, errand, hand, relay):
    errand("e1")
    job = Job(take_one(engine, now=START))  # its lease would be over for years
    object.__setattr__(job.taken, "lease", 300)
    hand.pick_up([job])
    relay.taken([job])
    eventually(lambda: engine.job("errand", job.id).lease_until > START + builders.LEASE, "it is renewed", 30)
    first = engine.job("errand", job.id).lease_until
    eventually(lambda: engine.job("errand", job.id).lease_until > first, "it is renewed again", 30)
    hand.lay_down([job])
    relay.beat()


def test_it_is_not_connected_before_it_has_to_be(engine, errand, hand, relay):
    errand("e1")
    job = Job(take_one(engine))
    hand.pick_up([job])
    relay.taken([job])
    relay.beat()
    eventually(lambda: standin.state_of(relay.pid) == "S", "it waits")
    assert sockets(relay.pid) == []


def test_nothing_in_hand_is_said_once(engine, relay, monkeypatch):
    said = []
    monkeypatch.setattr(relay, "_put", lambda word: said.append(word) or True)
    for _ in range(3):
        relay.beat()
    assert said == [{"held": [], "whole": True, "beat": True}]


def test_one_that_dies_is_replaced_at_a_later_beat(relay):
    first = relay.pid
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not alive(first), "it is dead")
    relay.beat()
    assert relay.pid is None, "not at once: it may be one that cannot live"
    relay.now = RESTART
    relay.beat()
    assert relay.pid not in (None, first)


def test_one_that_does_not_read_holds_nobody_up(engine, errand, hand, relay):
    errand("e1")
    job = Job(take_one(engine))
    hand.pick_up([job])
    os.kill(relay.pid, signal.SIGSTOP)
    for _ in range(3 * MOST_ADDED):
        relay.taken([job])
    os.kill(relay.pid, signal.SIGCONT)
    relay.beat()
    assert alive(relay.pid)


def test_it_ends_with_its_worker_though_a_fork_of_that_lives(redis_url):
    code = """
import os, sys, time
from machines.engine import Engine
from machines.worker.hand import Hand
from machines.worker.relay import Relay
relay = Relay(Engine.from_url(sys.argv[1]), Hand(1))
relay.start()
fork = os.fork()
if not fork:
    time.sleep(60)
print(relay.pid, fork, flush=True)
time.sleep(60)
"""
    with python(code, redis_url) as worker:
        pid, fork = map(int, worker.stdout.readline().split())
        eventually(lambda: standin.state_of(pid) == "S" and "SigIgn" in status(pid), "it runs")
        worker.kill()
        worker.wait()
        eventually(lambda: not alive(pid), "it has ended", 30)
        assert alive(fork)
        os.kill(fork, signal.SIGKILL)


def status(pid):
    return Path(f"/proc/{pid}/status").read_text()


# A real worker whose handler keeps the interpreter lock


@pytest.fixture
def grip(engine, prefix, start):
    """Starts a worker with a short lease and, once it has begun, answers with it and its job."""

    def grip(milliseconds, lease):
        engine.publish(builders.errand(src="gripping", lease=f"{lease}ms", backoff="10ms"))
        worker = start()
        engine.create("errand", "1")
        eventually(lambda: engine.get("errand", "1").state == "done", "it works", 30)
        engine.create("errand", str(milliseconds))
        for expected in ("1", str(milliseconds)):
            assert engine.client.blpop([f"{prefix}begun"], timeout=30)[1] == expected
        (job,) = engine.jobs("errand", "errands", place="leased")
        return worker, job

    return grip


def test_a_handler_that_keeps_the_interpreter_lock_for_several_leases_runs_once(engine, prefix, grip):
    worker, job = grip(5000, lease=2000)
    while engine.get("errand", "5000").state == "doing":
        assert engine.sweep("errand") == 0, "its lease ran out"
    assert engine.get("errand", "5000").state == "done"
    assert engine.client.llen(f"{prefix}begun") == 0
    own = descendants(worker.pid)
    assert len(own) == 1
    worker.terminate()
    worker.communicate(timeout=30)
    assert worker.returncode == 0
    assert not any(map(alive, own))


def test_stopped_meanwhile_it_loses_the_job(engine, grip):
    worker, job = grip(60_000, lease=1000)
    eventually(lambda: engine.job("errand", job.id).lease_until > job.lease_until, "it is stood in for", 30)
    worker.send_signal(signal.SIGSTOP)
    eventually(lambda: engine.sweep("errand") == 1, "the lease runs out", 30)


def test_killed_meanwhile_it_loses_the_job_in_time(engine, grip):
    worker, job = grip(60_000, lease=1000)
    eventually(lambda: engine.job("errand", job.id).lease_until > job.lease_until, "it is stood in for", 30)
    own = descendants(worker.pid)
    worker.kill()
    worker.wait()
    eventually(lambda: not any(map(alive, own)), "its stand-in is gone", 30)
    until = engine.job("errand", job.id).lease_until
    eventually(lambda: engine.sweep("errand") == 1, "the lease runs out", 30)
    assert engine.jobs("errand", "errands", place="ready")[0].lease_until in (0, until)
