"""Jobs of invokes that workers of Celery and Dramatiq run."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import pytest

from machines.engine import Job as EngineJob
from machines.integrations.tasks import handover
from machines.testing.job_runner import JobRunner
from machines.worker.intake.poll_loop import Reclaim
from machines.worker.intake.served_queues import ServedQueue
from machines.worker.registry import discover, handlers
from tests.installation.processes import ROOT, eventually

ORDER = {
    "id": "order",
    "initial": "Charging",
    "context": {"amount": 0, "later": False, "paid": None, "error": None},
    "states": {
        "Charging": {
            "invoke": {
                "src": "charge",
                "input": {"amount": "amount"},
                "retry": {"attempts": 1},
                "onDone": {"target": "Paid", "actions": {"set": {"paid": "event.result.paid"}}},
                "onError": {"target": "Failed", "actions": {"set": {"error": "event.error"}}},
            }
        },
        "Paid": {"type": "final"},
        "Failed": {"type": "final"},
    },
}
PEERS = {
    "celery": (
        "machines.integrations.tasks.celery",
        "tests.integrations.tasks.brokers.celery_app",
        ("-A", "{}", "worker", "-P", "solo", "-c", "1"),
    ),
    "dramatiq": (
        "machines.integrations.tasks.dramatiq",
        "tests.integrations.tasks.brokers.dramatiq_broker",
        ("{}", "-p", "1", "-t", "1"),
    ),
}


@pytest.fixture
def settle(monkeypatch):
    """Keeps the handlers of this process as they were."""
    names = set(discover())
    yield
    for name in set(handlers) - names:
        del handlers._handlers[name]


@pytest.fixture(params=PEERS)
def peer(request, redis_url, prefix, engine, monkeypatch, tmp_path, settle):
    """Starts a worker of the peer; adds handlers for its tasks."""
    package, module, arguments = PEERS[request.param]
    variables = {"REDIS_URL": redis_url, "SIGNALBOX_PREFIX": prefix, "SIGNALBOX_HOME": str(tmp_path)}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    sys.modules.pop(module, None)
    tasks = importlib.import_module(module)
    add_handler = importlib.import_module(package).add_handler
    add_handler("charge", tasks.charge)
    add_handler("charge_later", tasks.charge_later)
    words = [sys.executable, "-m", request.param, *(word.format(module) for word in arguments)]
    worker = subprocess.Popen(
        words, cwd=ROOT, env=os.environ | {"DJANGO_SETTINGS_MODULE": "tests.integrations.tasks.settings"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    yield request.param
    worker.terminate()
    sys.stderr.write(worker.communicate(timeout=60)[0])


@pytest.mark.faults
def test_the_worker_of_a_peer_ends_the_invoke(engine, peer):
    engine.publish(ORDER)
    charging = {"invoke": ORDER["states"]["Charging"]["invoke"] | {"src": "charge_later"}}
    engine.publish(ORDER | {"id": "later", "states": ORDER["states"] | {"Charging": charging}})
    for id, amount in (("paid", 5), ("failed", -5), ("odd", 0)):
        engine.create("order", id, {"amount": amount})
    engine.create("later", "retried", {"amount": 7})
    runs = JobRunner(engine, None).run(["order", "later"], None, 10, False)
    assert [run.outcome for run in runs] == ["lost"] * 4
    states = {"paid": "Paid", "failed": "Failed", "odd": "Failed"}
    eventually(lambda: {id: engine.get("order", id).state for id in states} == states, "the peer has run them", 60)
    eventually(lambda: engine.get("later", "retried").state == "Paid", "the peer has tried it twice", 60)
    assert engine.get("order", "paid").data["paid"] == 5
    assert engine.get("order", "failed").data["error"] == "less than nothing"
    assert "JSON" in engine.get("order", "odd").data["error"]
    assert engine.get("later", "retried").data["paid"] == 7


@pytest.fixture
def handed(engine, settle):
    """Hands the job of an order over; the message that was sent, and the job as it is now."""
    sent = []

    @handlers.handler("charge")
    def handle(job):
        handover.hand_over(job, sent.append, 60, "a test")

    def hand(order: dict = ORDER) -> tuple[dict, EngineJob]:
        engine.publish(order)
        engine.create("order", "o-1", {"amount": 5})
        JobRunner(engine, None).run(["order"], None, 10, False)
        return sent[-1], engine.job("order", sent[-1]["job"])

    return hand


def test_a_job_that_was_handed_over_stays_leased(engine, handed):
    _, job = handed()
    assert job.place == "leased"
    assert job.lease_until - job.taken > 50_000
    reclaim = Reclaim(engine, job.worker, lambda machine, id: False)  # as after an outage
    assert reclaim.hand_back([ServedQueue("order", "charge")]) == 0
    assert engine.job("order", job.id).token == job.token


def test_an_end_counts_once_and_only_under_its_token(engine, handed, caplog):
    ticket, _ = handed()
    for wrong in (None, {}, "ticket", ticket | {"token": 1}, ticket | {"token": "1-0"}, ticket | {"machine": "none"}):
        handover.report_done(wrong, {"paid": 1})
    assert engine.get("order", "o-1").state == "Charging"
    handover.report_done(ticket, {"paid": 5})
    handover.report_failed(ticket, ValueError("late"))
    handover.report_done(ticket, {"paid": 6})
    assert (engine.get("order", "o-1").state, engine.get("order", "o-1").data["paid"]) == ("Paid", 5)


def test_its_end_frees_its_place_in_the_limits_of_its_group(engine, handed):
    invoke = ORDER["states"]["Charging"]["invoke"] | {"group": "'a'"}
    queues = {"charge": {"concurrency": 1, "groups": {"concurrency": 1}}}
    states = ORDER["states"] | {"Charging": {"invoke": invoke}}
    ticket, job = handed(ORDER | {"partitions": 8, "queues": queues, "states": states})
    assert {home for _, home in ticket["homes"]} - {job.root}
    place = f"{ticket['homes'][-1][1]}:q:charge:members"
    assert engine.client.exists(place)
    handover.report_done(ticket, {"paid": 5})
    assert not engine.client.exists(*(f"{home}:q:charge:members" for _, home in ticket["homes"]))


def test_a_broker_that_is_away_is_a_failed_attempt(engine, settle):
    @handlers.handler("charge")
    def handle(job):
        def send(ticket):
            raise ConnectionError("no broker")

        handover.hand_over(job, send, 60, "a test")

    engine.publish(ORDER)
    engine.create("order", "o-1", {"amount": 5})
    (run,) = JobRunner(engine, None).run(["order"], None, 10, False)
    assert (run.outcome, engine.get("order", "o-1").state) == ("dead", "Failed")
