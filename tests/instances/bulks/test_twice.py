"""Instances that are processed twice are moved once: after a death, by two workers at a time, by hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tracemalloc

import pytest

from machines.catalog import builtin_machines
from machines.instances.bulks import BULK, Bulk, execution, handlers
from machines.instances.bulks.execution import key_of
from machines.instances.bulks.store import Store
from machines.worker.job import Job
from machines.worker.registry import discover
from tests.installation.processes import ROOT, eventually
from tests.worker.builders import Running

from .builders import order, parcels, previewed, sent, states, step, words, work_off

ACTS = [
    {"event": "label"},
    {"event": "label", "unchanged": True},
    {"action": "force", "states": ("lost",)},
    {"action": "force", "states": ("lost",), "unchanged": True},
    {"action": "reset"},
    {"action": "suspend"},
    {"action": "delete"},
]


def run_once(taken):
    """What a worker does with a job, up to the moment before it says so."""
    return discover().get(taken.src).function(Job(taken))


@pytest.mark.parametrize("given", ACTS, ids=str)
def test_a_job_that_is_run_twice_moves_each_instance_once(engine, monkeypatch, given):
    ids = parcels(engine, 30)
    bulk = previewed(engine, **given)
    versions = [found.revision for found in engine.get_many("parcel", ids)]
    bulk.run("ann")
    (taken,) = engine.take(BULK, "act", "w")
    with monkeypatch.context() as patched:
        # It dies after everything is moved, and before any outcome is kept.
        patched.setattr(Store, "put_outcomes", lambda *_: None)
        run_once(taken)
    result = run_once(taken)
    assert result["outcomes"]["done"] == 30
    if given.get("action") == "delete":
        assert states(engine) == {}
    else:
        assert [found.revision for found in engine.get_many("parcel", ids)] == [version + 1 for version in versions]
    engine.complete(taken, result)
    assert bulk.get().state == "done"


def test_a_repair_is_made_once_by_two_who_are_at_it_at_a_time(engine, monkeypatch):
    """Between the look of the first and its step, a second one makes the whole of it."""
    ids = parcels(engine, 3)
    bulk = previewed(engine, action="suspend")
    bulk.run("ann")
    (taken,) = engine.take(BULK, "act", "w")
    plain, calls = execution._repair, []

    def overtaken(*arguments):
        if not calls:
            calls.append(arguments)
            run_once(taken)
        plain(*arguments)

    monkeypatch.setattr(execution, "_repair", overtaken)
    assert run_once(taken)["outcomes"]["done"] == 3
    assert len(calls) == 1
    assert [len(engine.history("parcel", id)) for id in ids] == [2, 2, 2]


def test_a_repair_is_tried_again_on_what_others_move_meanwhile(engine, monkeypatch):
    parcels(engine, 1)
    bulk = previewed(engine, action="suspend")
    bulk.run("ann")
    plain, calls = execution._repair, []

    def late(*arguments):
        if not calls:
            calls.append(arguments)
            engine.fire("parcel", "p0", "label")
        plain(*arguments)

    monkeypatch.setattr(execution, "_repair", late)
    work_off(engine)
    assert bulk.get().data["outcomes"]["done"] == len(calls) == 1
    assert engine.get("parcel", "p0").suspended


def test_who_paused_is_heard_between_two_handfuls(engine, monkeypatch):
    parcels(engine, 100)
    bulk = previewed(engine)
    bulk.run("ann")
    plain = execution.act

    def pausing(*arguments):
        plain(*arguments)
        bulk.pause("bob")

    monkeypatch.setattr(handlers.execution, "act", pausing)
    work_off(engine)
    assert words(bulk, "outcome") == {"done": execution.TOGETHER, "none": 100 - execution.TOGETHER}
    monkeypatch.undo()
    bulk.resume("bob")
    work_off(engine)
    assert bulk.get().data["outcomes"]["done"] == 100
    assert states(engine) == {"sent": 100}


def test_the_longest_id_still_has_a_key_of_its_own():
    keys = {key_of("f" * 16, "x" * 199 + last) for last in "ab"}
    assert len(keys) == 2
    assert max(map(len, keys)) <= 200


@pytest.fixture
def start(redis_url, prefix, tmp_path):
    """Starts worker processes on this test's keys, and never on the database of whoever runs it."""
    started = []

    def start(*arguments):
        database = f"sqlite:///{tmp_path}/worker.sqlite3"
        environment = os.environ | {"REDIS_URL": redis_url, "SIGNALBOX_PREFIX": prefix, "DATABASE_URL": database}
        command = [sys.executable, "manage.py", "worker", *arguments]
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_worker_that_is_killed_in_the_middle_costs_nothing_but_time(engine, start):
    definition = builtin_machines.definition(BULK)
    definition["states"]["running"]["invoke"] |= {"lease": "1s", "retry": {"attempts": 9, "backoff": "10ms"}}
    ids = parcels(engine, 3000)
    engine.publish(definition)
    bulk = previewed(engine, event="label", filter={})
    process = start("--concurrency", "2")
    bulk.run("ann")
    eventually(lambda: bulk.get().data["tried"] > 0, "some are moved")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 0 < bulk.get().data["tried"] < 3000
    with Running(engine, discover()):
        eventually(lambda: bulk.get().state == "done", "another worker goes on")
    assert bulk.get().data["outcomes"]["done"] == 3000
    assert sent(engine, ids) == {1: 3000}


@pytest.mark.hostile
def test_ten_thousand_are_never_held_at_once(engine):
    """What a process holds is a few pages, however many are found: while they are frozen, moved and downloaded."""
    parcels(engine, 10_000)
    bulk = Bulk.start(engine, order())
    held = [peak(lambda: step(engine, "collect"))]
    work_off(engine)
    bulk.run("ann")
    held.append(peak(lambda: step(engine, "act")))
    work_off(engine)
    held.append(peak(lambda: [len(page) for page in bulk.pages()]))
    assert bulk.get().data["outcomes"]["done"] == 10_000
    assert max(held) < 3_000_000, held


def peak(call):
    """The most bytes that were held at a time during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
