"""One step out of ``todo`` puts a request on ``entitlement`` and on ``devices``; neither waits for the other then."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path

import pytest

from dashboard.demo.examples import handlers
from machines.engine import errors
from machines.worker.job import Job
from machines.worker.registry import discover
from tests.installation.processes import eventually
from tests.worker.builders import Running, drain

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MACHINE = "service_activation"
QUEUES = ("todo", "entitlement", "devices")
DEVICE, TOKEN = "ATV-123", "MTOB1J"
ACCOUNT, OTHER = f"{DEVICE}:NBCSports", f"{DEVICE}:ABC"


@pytest.fixture
def flow(engine, monkeypatch):
    """The device is provisioned for two services, both waiting for their code. Calling it asks for an activation."""
    monkeypatch.setattr(handlers, "OVERRUN", {})
    for name in ("activation", MACHINE):
        engine.publish(json.loads((EXAMPLES / f"{name}.json").read_text()))
    provision(engine, ACCOUNT, TOKEN)
    provision(engine, OTHER, "")

    def request(id="new device", device=DEVICE, service="NBCSports", token=TOKEN):
        return engine.create(MACHINE, id, {"device": device, "service": service, "token": token})

    return request


def provision(engine, account, token):
    engine.create("activation", account)
    return engine.fire("activation", account, "activate", {"token": token})


def depths(engine, place="ready"):
    """How many jobs are in one place of ``todo``, ``entitlement`` and ``devices``."""
    found = engine.queues(MACHINE)
    return [found[queue][place] for queue in QUEUES]


def take(engine, queue, worker="w1"):
    """The only job that is ready."""
    (taken,) = engine.take(MACHINE, queue, worker)
    return taken


def run(taken):
    """What the handler gives back."""
    return discover().get(taken.src).function(Job(taken))


def step(engine, queue):
    """One worker's round on one queue: take, run the handler, complete."""
    taken = take(engine, queue)
    return engine.complete(taken, run(taken))


def test_todo_then_devices_then_entitlement(engine, flow):
    assert flow().configuration == ["todo"]
    assert depths(engine) == [1, 0, 0]
    assert sorted(step(engine, "todo").configuration) == ["adding", "entitling"]
    assert depths(engine) == [0, 1, 1], "off the one list, onto the two others"
    assert sorted(step(engine, "devices").configuration) == ["entitling", "offered"]
    assert engine.get("activation", ACCOUNT).state == "Waiting"
    done = step(engine, "entitlement")
    assert (done.configuration, done.done, done.data["status"]) == (["done"], True, "Active")
    account, other = engine.get("activation", ACCOUNT), engine.get("activation", OTHER)
    assert (account.state, account.data["token"], account.data["failed"]) == ("Active", TOKEN, 0)
    assert account.data["last_logon_ts"] > 1_700_000_000
    assert (other.state, len(other.data["token"])) == ("Waiting", 6), "the other service is where it was"


def test_the_move_is_one_step(engine, flow):
    flow()
    before = engine.get(MACHINE, "new device").revision
    after = step(engine, "todo")
    assert after.revision == before + 1
    assert len(engine.history(MACHINE, "new device")) == 2


def test_nobody_ever_sees_one_queue_without_the_other(engine, flow):
    """A reader looks all the while, each look being one call; workers finish only what is still on `todo`."""
    for number in range(60):
        flow(f"request-{number}")
    uneven, began, over = [], threading.Event(), threading.Event()

    def look():
        while not over.is_set():
            live = engine.live(MACHINE)
            ready = [live.queues[queue]["ready"] for queue in ("entitlement", "devices")]
            states = [live.counts.get(state, 0) for state in ("entitling", "adding")]
            if len({*ready, *states}) > 1:
                uneven.append((ready, states))
            began.set()

    reader = threading.Thread(target=look)
    reader.start()
    try:
        assert began.wait(60)
        drain(engine, discover(), queues=["todo"], concurrency=4)
    finally:
        over.set()
        reader.join(60)
    assert uneven == []
    assert depths(engine) == [0, 60, 60]


@pytest.mark.parametrize("queue", ["entitlement", "devices"])
def test_where_one_queue_cannot_be_written_the_other_gets_nothing(engine, flow, queue):
    flow()
    taken = take(engine, "todo")
    result = run(taken)
    in_the_way = f"{taken.root}:q:{queue}"
    engine.client.set(in_the_way, "no list of jobs")
    with pytest.raises(errors.SignalboxError):
        engine.complete(taken, result)
    engine.client.delete(in_the_way)
    assert depths(engine) == [0, 0, 0]
    assert depths(engine, "leased") == [1, 0, 0], "it is still the worker's"
    assert engine.get(MACHINE, "new device").configuration == ["todo"]
    engine.complete(taken, result)
    assert depths(engine) == [0, 1, 1]


def test_who_lost_the_request_moves_it_no_more(engine, flow):
    """Two took it, one after the other's lease: the two queues get it once."""
    flow()
    slow = take(engine, "todo", "slow")
    engine.sweep(MACHINE, now=slow.lease_until)
    step(engine, "todo")
    with pytest.raises(errors.LeaseLost):
        engine.complete(slow, run(slow))
    assert depths(engine) == [0, 1, 1]


def test_offers_that_wait_do_not_hold_up_the_activation(engine, flow):
    flow()
    step(engine, "todo")
    assert sorted(step(engine, "entitlement").configuration) == ["adding", "entitled"]
    assert engine.get("activation", ACCOUNT).state == "Active"
    assert depths(engine) == [0, 0, 1]


def test_offers_that_fail_for_good_do_not_hold_up_the_activation_and_can_be_driven_again(engine, flow, monkeypatch):
    monkeypatch.setattr(handlers, "OVERRUN", {"NBCSports": 1.0})
    flow()
    step(engine, "todo")
    now = engine.live(MACHINE).now
    for place in ("delayed", "delayed", "dead"):
        engine.sweep(MACHINE, now=now)
        (taken,) = engine.take(MACHINE, "devices", "w1", now=now)
        with pytest.raises(ConnectionError) as caught:
            run(taken)
        assert engine.fail(taken, str(caught.value), kind="ConnectionError", now=now) == place
        now += 60_000
    assert sorted(step(engine, "entitlement").configuration) == ["adding", "entitled"]
    assert engine.get("activation", ACCOUNT).state == "Active"
    monkeypatch.setattr(handlers, "OVERRUN", {})
    assert engine.redrive(MACHINE, "devices", actor="op", reason="marketing has more machines now") == 1
    assert step(engine, "devices").configuration == ["done"]


def test_an_activation_that_fails_does_not_hold_up_the_offers(engine, flow):
    flow(token="WRONG1")
    step(engine, "todo")
    assert sorted(step(engine, "entitlement").configuration) == ["adding", "refused"]
    account = engine.get("activation", ACCOUNT)
    assert (account.state, account.data["failed"]) == ("Waiting", 1)
    assert sorted(step(engine, "devices").configuration) == ["offered", "refused"]
    engine.fire(MACHINE, "new device", "correct", {"token": TOKEN})
    assert step(engine, "entitlement").configuration == ["done"]
    assert engine.get("activation", ACCOUNT).state == "Active"


@pytest.mark.parametrize("queue", ["entitlement", "devices"])
def test_what_was_taken_and_never_finished_comes_unstuck(engine, flow, queue):
    """Marked as taken, and then nothing: its lease is over, any worker's sweep puts it back, and it is done once."""
    flow()
    step(engine, "todo")
    stuck = take(engine, queue, "dies")
    engine.sweep(MACHINE, now=stuck.lease_until - 1)
    assert engine.take(MACHINE, queue, "w2") == [], "it may still be at it"
    engine.sweep(MACHINE, now=stuck.lease_until)
    again = take(engine, queue, "w2")
    assert (again.id, again.key, again.attempt, again.worker) == (stuck.id, stuck.key, 2, "w2")
    engine.complete(again, run(again))
    with pytest.raises(errors.LeaseLost):
        engine.complete(stuck, run(stuck))
    step(engine, "entitlement" if queue == "devices" else "devices")
    events = Counter(entry.event for entry in engine.history(MACHINE, "new device"))
    assert events == {"(create)": 1, "done.invoke.todo": 1, "done.invoke.entitling": 1, "done.invoke.adding": 1}
    assert [entry.event for entry in engine.history("activation", ACCOUNT)] == ["entitle", "activate", "(create)"]
    assert engine.get(MACHINE, "new device").configuration == ["done"]


def test_work_done_before_the_worker_died_moves_the_account_once(engine, flow):
    flow()
    step(engine, "todo")
    stuck = take(engine, "entitlement", "dies")
    run(stuck)
    active = engine.get("activation", ACCOUNT)
    assert active.state == "Active"
    engine.sweep(MACHINE, now=stuck.lease_until)
    step(engine, "entitlement")
    assert engine.get("activation", ACCOUNT) == active


def test_what_kills_its_worker_every_time_ends_among_the_dead(engine, flow):
    flow()
    step(engine, "todo")
    for _ in range(3):
        stuck = take(engine, "devices", "dies")
        engine.sweep(MACHINE, now=stuck.lease_until)
    assert depths(engine, "dead") == [0, 0, 1]
    assert engine.jobs(MACHINE, "devices", place="dead")[0].kind == "LeaseExpired"


def test_a_request_that_names_no_service_never_gets_to_the_two_queues(engine, flow):
    flow(service="")
    taken = take(engine, "todo")
    with pytest.raises(ValueError, match="needs a device and a service") as caught:
        run(taken)
    engine.fail(taken, str(caught.value), kind="ValueError", retry=False)
    assert engine.get(MACHINE, "new device").configuration == ["rejected"]
    assert depths(engine) == [0, 0, 0]


def test_workers_bring_many_to_the_end(engine, flow):
    for number in range(20):
        provision(engine, f"TV-{number}:ABC", TOKEN)
        flow(f"request-{number}", device=f"TV-{number}", service="ABC")
    drain(engine, discover(), concurrency=8)
    assert engine.counts(MACHINE)["done"] == 20
    assert engine.counts("activation")["Active"] == 20


def test_while_it_runs_the_job_shows_whom_marketing_asks(engine, flow, monkeypatch):
    flow()
    step(engine, "todo")
    answers = threading.Semaphore(2)
    monkeypatch.setattr(handlers, "_work", lambda *_: answers.acquire(timeout=60))
    (waiting,) = engine.jobs(MACHINE, "devices")
    with Running(engine, discover(), queues=["devices"]):
        try:
            shown = {"done": 2, "total": 5, "note": f"asking {handlers.PARTNERS[2]}"}
            eventually(
                lambda: shown.items() <= (engine.job(MACHINE, waiting.id).progress or {}).items(),
                "two partners have answered, the third is asked",
                patience=30,
            )
        finally:
            answers.release(10)
        eventually(lambda: "offered" in engine.get(MACHINE, "new device").configuration, "all are asked")
    assert engine.get(MACHINE, "new device").data["offers"] == 5
