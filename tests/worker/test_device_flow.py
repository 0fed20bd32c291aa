"""A new device walks through its queues, step by step: start, todo, provision, entitlement, end."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from dashboard.demo.examples import handlers
from machines.worker.job import Job
from machines.worker.registry import discover
from tests.configuration import configure

from .builders import drain

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
QUEUES = ("start", "todo", "provision", "entitlement", "end")


@pytest.fixture
def flow(engine):
    """Both machines published; calling it records a request for a new device."""
    for name in ("activation", "new_device"):
        engine.publish(json.loads((EXAMPLES / f"{name}.json").read_text()))

    def request(id="ea498100", device="MYTV-678", service="CNN", token="MTOB1J"):
        return engine.create("new_device", id, {"device": device, "service": service, "token": token})

    return request


def depths(engine):
    """How many jobs wait on each queue, in the order of the flow."""
    found = engine.queues("new_device")
    return [found[queue]["ready"] for queue in QUEUES]


def step(engine, queue):
    """One worker's round on one queue: take, run the handler, complete."""
    (taken,) = engine.take("new_device", queue, "w1")
    result = discover().get(taken.src).function(Job(taken))
    return engine.complete(taken, result)


def test_each_step_moves_the_device_one_queue_on(engine, flow):
    assert flow().state == "start"
    assert depths(engine) == [1, 0, 0, 0, 0]
    assert step(engine, "start").state == "todo"
    assert depths(engine) == [0, 1, 0, 0, 0]
    assert step(engine, "todo").state == "provision"
    assert depths(engine) == [0, 0, 1, 0, 0]
    assert step(engine, "provision").state == "entitlement"
    assert depths(engine) == [0, 0, 0, 1, 0]
    assert step(engine, "entitlement").state == "end"
    assert depths(engine) == [0, 0, 0, 0, 1], "the list of those at the end is a queue, too"
    assert engine.get("new_device", "ea498100").done
    assert step(engine, "end") is None, "nobody waits for the books to be closed"
    assert depths(engine) == [0, 0, 0, 0, 0]
    assert engine.counts("new_device")["end"] == 1


def test_a_request_carries_its_fields_and_the_last_step_it_came_through(engine, flow):
    """What the lists of events and the hash of each event would say, one instance says: it is never in two lists."""
    request = flow()
    assert request.data == {"service": "CNN", "device": "MYTV-678", "token": "MTOB1J", "ts": 0}
    for queue, last in zip(QUEUES, ("start", "todo", "provision", "entitlement"), strict=False):
        assert engine.get("new_device", "ea498100").state == last
        step(engine, queue)
    walked = [entry.configuration for entry in reversed(engine.history("new_device", "ea498100"))]
    assert walked == [[queue] for queue in QUEUES]


def test_while_a_handler_runs_its_request_is_still_on_the_queue_it_came_from(engine, flow):
    """There is no first pass that does the work and second that moves the request: both happen as the job completes."""
    flow()
    (taken,) = engine.take("new_device", "start", "w1")
    assert engine.take("new_device", "start", "w2") == [], "nobody else gets it meanwhile"
    handlers.do_start(Job(taken))
    assert depths(engine) == [0, 0, 0, 0, 0]
    assert engine.queues("new_device")["start"]["leased"] == 1
    assert engine.get("new_device", "ea498100").state == "start"
    engine.complete(taken)
    assert engine.queues("new_device")["start"]["leased"] == 0
    assert depths(engine) == [0, 1, 0, 0, 0]


def test_the_books_are_closed_of_a_request_that_is_not_there_any_more(engine, flow):
    flow()
    for queue in QUEUES[:-1]:
        step(engine, queue)
    engine.delete("new_device", "ea498100")
    (taken,) = engine.take("new_device", "end", "w1")
    assert {**taken.input, "ts": 0} == {"request": "ea498100", "device": "MYTV-678", "service": "CNN", "ts": 0}
    handlers.do_close(Job(taken))
    assert engine.complete(taken) is None


def test_the_account_is_created_then_waits_then_is_active(engine, flow):
    flow()
    step(engine, "start")
    step(engine, "todo")
    account = engine.get("activation", "MYTV-678:CNN")
    assert (account.state, account.data["token"], account.data["failed"]) == ("Waiting", "MTOB1J", 0)
    step(engine, "provision")
    account = engine.get("activation", "MYTV-678:CNN")
    assert (account.state, account.data["token"], account.data["failed"]) == ("Active", "MTOB1J", 0)
    assert account.data["expires"] > account.entered / 1000


def test_a_request_without_a_code_gets_the_one_the_account_drew(engine, flow):
    flow(token="")
    step(engine, "start")
    moved = step(engine, "todo")
    assert len(moved.data["token"]) == 6
    assert moved.data["token"] == engine.get("activation", "MYTV-678:CNN").data["token"]
    step(engine, "provision")
    assert engine.get("activation", "MYTV-678:CNN").state == "Active"


def test_each_step_leaves_its_time(engine, flow):
    flow()
    step(engine, "start")
    assert step(engine, "todo").data["ts"] > 1_700_000_000


def test_a_step_that_is_run_again_moves_the_account_once(engine, flow):
    """The worker died after the work and before saying so: the next one runs the same handler again."""
    flow(token="")
    step(engine, "start")
    step(engine, "todo")
    (taken,) = engine.take("new_device", "provision", "dies")
    handlers.do_entitlement(Job(taken))
    before = engine.get("activation", "MYTV-678:CNN")
    engine.sweep("new_device", now=taken.lease_until)
    step(engine, "provision")
    assert engine.get("activation", "MYTV-678:CNN") == before


def test_activating_again_after_a_crash_gives_the_code_of_the_first_time(engine, flow):
    flow(token="")
    step(engine, "start")
    (taken,) = engine.take("new_device", "todo", "dies")
    first = handlers.do_activate(Job(taken))
    engine.sweep("new_device", now=taken.lease_until)
    assert step(engine, "todo").data["token"] == first["token"]


def test_a_service_that_was_activated_before_keeps_its_code(engine, flow):
    flow("first")
    drain(engine, discover())
    flow("second", token="OTHER1")
    drain(engine, discover())
    again = engine.get("new_device", "second")
    assert (again.state, again.data["token"]) == ("end", "MTOB1J")


def test_a_request_that_names_no_device_fails_and_can_be_put_right(engine, flow):
    flow(device="")
    for _ in range(3):
        (taken,) = engine.take("new_device", "start", "w1")
        with pytest.raises(ValueError, match="needs a device"):
            handlers.do_start(Job(taken))
        engine.fail(taken, "a new device needs a device and a service", kind="ValueError")
        engine.sweep("new_device", now=taken.created + 3_600_000)
    failed = engine.get("new_device", "ea498100")
    assert (failed.state, failed.data["error"]) == ("failed", "a new device needs a device and a service")
    engine.force("new_device", failed.id, "start", actor="op", reason="told by the shop", data={"device": "MYTV-678"})
    drain(engine, discover())
    assert engine.get("new_device", failed.id).state == "end"


def test_two_workers_at_once_move_two_devices_each_once(engine, flow):
    flow("one", device="MYTV-678")
    flow("two", device="ATV-123")
    workers = [threading.Thread(target=drain, args=(engine, discover())) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    for id, account in (("one", "MYTV-678:CNN"), ("two", "ATV-123:CNN")):
        assert engine.get("new_device", id).revision == 5, "created, and four steps"
        assert engine.get("activation", account).state == "Active"
        assert [entry.event for entry in engine.history("activation", account)] == ["entitle", "activate", "(create)"]
    assert sum(stats.completed for stats in engine.stats("new_device").values()) == 10


def test_many_devices_at_once_all_reach_the_end(engine, flow):
    for number in range(25):
        flow(f"request-{number}", device=f"TV-{number}")
    drain(engine, discover(), concurrency=8)
    assert engine.counts("new_device")["end"] == 25
    assert engine.counts("activation")["Active"] == 25


def test_with_a_pace_set_the_work_takes_its_time_and_ends_when_the_job_is_withdrawn(engine, flow, settings):
    configure(settings, DEMO_PACE=60_000)
    flow()
    (taken,) = engine.take("new_device", "start", "w1")
    job = Job(taken)
    job.abandon("it was withdrawn")
    with pytest.raises(Exception, match="no longer yours"):
        handlers.do_start(job)
