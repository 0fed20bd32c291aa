"""Timers fire and messages arrive by themselves, as long as one worker lives."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import time
from pathlib import Path

import pytest

from machines.conf.server import Server
from machines.engine import Engine, errors
from machines.worker.duties.due_work import DueWork, LeaseRecovery, TimerWaiter
from machines.worker.registry import Registry
from tests.engine.messages.mailing import corrupt, noter, post, teller, told
from tests.installation.processes import eventually
from tests.worker import builders
from tests.worker.builders import START, Running, registry_of


def lamp(id="lamp", after="10s"):
    return {"id": id, "initial": "On", "states": {"On": {"after": {after: "Off"}}, "Off": {}}}


@pytest.fixture
def lit(engine):
    """Publishes a lamp; calling it lights one."""
    engine.publish(lamp())
    return lambda id="l1", **options: engine.create("lamp", id, **options)


def state(engine, id="l1", machine="lamp"):
    return engine.get(machine, id).state


# One pass


def test_a_pass_with_nothing_to_do_says_so_and_waits_its_pause(engine, lit):
    due_work = DueWork(engine, pause=0.3)
    assert (due_work.run_once(), due_work.pause()) == (False, 0.3)
    lit()
    assert (due_work.run_once(), due_work.pause()) == (False, 0.3), "ten seconds are further away"


def test_a_pass_fires_what_is_due_and_says_that_it_found_work(engine, lit):
    lit(now=START)
    due_work = DueWork(engine)
    assert (due_work.run_once(), state(engine)) == (True, "Off")
    assert due_work.run_once() is False


def test_it_waits_no_longer_than_to_the_next_deadline(engine):
    engine.publish(lamp(after="2s"))
    engine.create("lamp", "l1")
    due_work = DueWork(engine, pause=5)
    due_work.run_once()
    assert 0 < due_work.pause() <= 2
    time.sleep(due_work.pause())
    assert (due_work.run_once(), state(engine)) == (True, "Off")


def test_a_deadline_is_counted_by_the_servers_clock(engine, monkeypatch):
    """A worker whose own clock is wrong fires nothing late for that."""
    engine.publish(lamp(after="2s"))
    engine.create("lamp", "l1")
    monkeypatch.setattr(time, "time", lambda: 0.0)
    due_work = DueWork(engine, pause=60)
    due_work.run_once()
    assert 1 < due_work.pause() <= 2


def test_a_pass_delivers_what_was_sent(engine):
    engine.publish(noter())
    engine.publish(teller())
    engine.create("noter", "x")
    engine.create("teller", "t")
    post(engine, "x", 7)
    assert DueWork(engine).run_once() is True
    assert told(engine) == [7]


def test_all_machines_together_cost_one_call_and_one_look_at_the_memory(engine, monkeypatch):
    for number in range(20):
        engine.publish(lamp(f"lamp{number}"))
    sent = []
    many = engine._caller.many
    monkeypatch.setattr(engine._caller, "many", lambda calls: sent.append(len(calls)) or many(calls))
    machines = sorted(engine.machines())
    due_work = DueWork(engine, lambda: machines)
    due_work.run_once()
    assert [count for count in sent if count] == [1, 1, 1], "what the server remembers, also by name, and the tick"
    due_work.run_once()  # now the server knows what is due in each
    sent.clear()
    due_work.run_once()
    assert [count for count in sent if count] == [1]


def test_a_machine_that_went_away_does_not_stop_the_others(engine, lit):
    lit(now=START)
    assert DueWork(engine, lambda: ["never_was", "lamp"]).run_once() is True


def test_a_machine_with_a_fault_keeps_no_other_waiting_and_is_told_once(engine, lit, caplog):
    engine.publish(lamp("broken"))
    key = engine.keys.partition("broken").timers
    engine.client.set(key, "foreign")
    lit(now=START)
    due_work = DueWork(engine, lambda: ["broken", "lamp"])
    with caplog.at_level(logging.WARNING, "machines.worker.duties.due_work"):
        assert (due_work.run_once(), state(engine)) == (True, "Off")
        assert due_work.run_once() is False
        assert caplog.text.count("not all that is due can be worked off") == 1
        assert 0 < due_work.pause() <= 1.0, "the next try comes soon"
        engine.client.delete(key)
        due_work.run_once()
        due_work.run_once()
    assert caplog.text.count("can be worked off again") == 1
    assert due_work.pause() == 5.0


def test_a_message_that_cannot_be_delivered_is_no_work_found(engine):
    """Else the loop would not rest while it waits."""
    engine.publish(noter())
    engine.publish(teller())
    engine.create("noter", "x")
    engine.create("teller", "t")
    corrupt(engine, "x")
    post(engine, "x", 7)
    due_work = DueWork(engine)
    assert [due_work.run_once() for _ in range(3)] == [False, False, False]


def test_without_redis_a_pass_fails_and_the_loop_tries_on():
    engine = Engine.from_url("unix:///nonexistent/nobody.sock")
    with pytest.raises(errors.EngineUnavailable):
        DueWork(engine, lambda: ["lamp"]).run_once()


def test_a_pass_takes_back_what_a_dead_worker_held_and_wakes_what_is_due(engine, lit):
    engine.enqueue_many([{"machine": "lamp", "src": "run", "now": START, "delay": delay} for delay in (0, 1000)])
    engine.take("lamp", "run", "gone", now=START)
    assert DueWork(engine).run_once() is True
    assert builders.places(engine, "lamp", "run") == {"ready": 2}


def test_the_first_pass_and_the_one_after_an_outage_trust_no_memory(engine, lit, monkeypatch):
    """Another server may have come up meanwhile, or one that was away for a while."""
    looks = []
    drive = engine.drive_roots

    def seen(roots, *, look, clock):
        looks.append(look)
        if len(looks) == 3:
            raise errors.EngineUnavailable("away")
        return drive(roots, look=look, clock=clock)

    monkeypatch.setattr(engine, "drive_roots", seen)
    due_work = DueWork(engine)
    root = engine.keys.partition("lamp").root
    for _ in range(6):
        due_work._dues[root] = 0
        with contextlib.suppress(errors.EngineUnavailable):
            due_work.run_once()
    due_work.doubt()
    due_work.run_once()
    assert looks == [True, False, False, True, False, False, True]


# A worker at work


def test_a_running_worker_fires_timers_and_none_too_early(engine):
    engine.publish(lamp(after="400ms"))
    with Running(engine, registry_of(run=print)) as worker:
        eventually(lambda: worker.served_queues.machines, "the worker knows the machine")
        for number in range(5):
            engine.create("lamp", f"l{number}")
            time.sleep(0.03)
        eventually(lambda: engine.counts("lamp")["Off"] == 5, "the lamps are off")
    for number in range(5):
        lit, off = reversed(engine.history("lamp", f"l{number}"))
        assert off.at - lit.at >= 400


def test_a_worker_without_any_handler_fires_timers_too(engine, lit):
    lit(now=START)
    with Running(engine, Registry()):
        eventually(lambda: state(engine) == "Off", "the lamp is off")


def test_a_worker_that_serves_one_queue_only_ticks_for_all_machines(engine, lit):
    lit(now=START)
    with Running(engine, registry_of(run=print), queues=("errands",)):
        eventually(lambda: state(engine) == "Off", "the lamp is off")


def test_a_jobs_end_that_sends_something_is_heard_at_once(engine):
    """Also without anybody who ticks."""
    engine.publish(noter())
    engine.create("noter", "x")
    send = {"send": {"event": "note", "to": {"machine": "noter", "id": "'x'"}, "data": {"n": "event.result"}}}
    work = {"src": "run", "queue": "errands", "onDone": {"target": "done", "actions": send}}
    engine.publish(
        {"id": "errand", "initial": "doing", "states": {"doing": {"invoke": work}, "done": {"type": "final"}}}
    )
    engine.create("errand", "e1")
    with Running(engine, registry_of(run=lambda job: 7), tick=60):
        eventually(lambda: state(engine, "e1", "errand") == "done", "the job is done")
        eventually(lambda: told(engine) == [7], "it is noted")


def test_a_timer_that_is_armed_wakes_an_idle_worker_at_once(engine):
    """It would look again in a minute."""
    engine.publish(lamp(after="300ms"))
    with Running(engine, Registry(), tick=60, sweep=60) as worker:
        eventually(lambda: worker.served_queues.machines, "the worker knows the machine")
        for number in range(3):
            engine.create("lamp", f"l{number}")
            eventually(lambda id=f"l{number}": state(engine, id) == "Off", "the lamp is off")


def test_what_is_sent_and_not_delivered_by_its_sender_wakes_an_idle_worker(engine):
    engine.publish(noter())
    engine.publish(teller())
    engine.create("noter", "x")
    engine.create("teller", "t")
    with Running(engine, Registry(), tick=60, sweep=60) as worker:
        eventually(lambda: worker.served_queues.machines, "the worker knows the machines")
        for number in (1, 2):
            post(engine, "x", number)
            eventually(lambda n=number: told(engine)[-1:] == [n], "it is told")


def test_of_several_idle_workers_one_is_enough(engine):
    """Whoever takes the ring does the work; the others need not."""
    engine.publish(lamp(after="200ms"))
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            worker = stack.enter_context(Running(engine, Registry(), tick=60, sweep=60))
            eventually(lambda worker=worker: worker.served_queues.machines, "the worker knows the machine")
        for number in range(4):
            engine.create("lamp", f"l{number}")
            eventually(lambda id=f"l{number}": state(engine, id) == "Off", "the lamp is off")


def test_a_ring_that_was_lost_delays_what_is_due_to_the_next_look(engine, monkeypatch):
    monkeypatch.setattr(TimerWaiter, "hear", lambda waiter, bell: None)
    engine.publish(lamp(after="100ms"))
    engine.tick()
    with Running(engine, Registry(), tick=0.5, sweep=60) as worker:
        eventually(lambda: worker.served_queues.machines, "the worker knows the machine")
        engine.create("lamp", "l1")
        eventually(lambda: state(engine) == "Off", "the lamp is off")


def test_a_worker_with_nothing_to_do_costs_the_server_little(own_server):
    """A count of commands, those inside functions included: two looks at five machines, and a sweep of them."""
    engine = Engine.from_url(own_server.url)
    names = [engine.publish(lamp(f"lamp{number}")).name for number in range(5)]
    timer_waiter = TimerWaiter()
    due_work = DueWork(engine, lambda: names, waiter=timer_waiter)
    recovery = LeaseRecovery(engine, lambda: names)
    due_work.run_once()
    before = engine.client.info("stats")["total_commands_processed"]
    for _ in range(2):
        due_work.run_once()
        timer_waiter.wait(0.01)
    recovery.run_once()
    spent = engine.client.info("stats")["total_commands_processed"] - before
    engine.client.close()
    assert spent < 45
    assert 4.0 < due_work.pause() <= 5.0, "seconds, in which the bells say what comes"
    assert recovery.pause() >= 12


@pytest.mark.redis
def test_it_goes_on_after_an_outage_and_fires_what_came_due():
    with tempfile.TemporaryDirectory(prefix="sb-") as folder:
        server = Server(Path(folder)).start()
        engine = Engine.from_url(server.url)
        try:
            engine.publish(lamp(after="300ms"))
            with Running(engine, registry_of(run=print)) as worker:
                eventually(lambda: worker.served_queues.machines, "the worker knows the machine")
                engine.create("lamp", "l1")
                server.stop()
                time.sleep(0.5)
                server.start()
                eventually(lambda: state(engine) == "Off", "the lamp is off")
            assert len(engine.history("lamp", "l1")) == 2
        finally:
            engine.client.close()
            server.stop()
