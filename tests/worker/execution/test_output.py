"""What a handler logs and prints is kept with its job, and shown on its page while it runs and afterwards."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from types import SimpleNamespace

import pytest

from machines.engine.storage import Storage
from machines.worker.execution import output as module
from machines.worker.execution.executor import Executor
from machines.worker.execution.in_flight import InFlightJobs
from machines.worker.execution.output import DONE, FAILED, OutputKeeper, read_output
from machines.worker.job import Job
from tests.engine.builders import machine
from tests.installation.processes import eventually
from tests.pages.conftest import as_, user_of
from tests.pages.reading import read
from tests.worker.builders import Running, drain, registry_of

__all__ = ["as_", "user_of"]

log = logging.getLogger("shop.handlers")


def publish(engine, *, sensitive: bool = False, **retry) -> None:
    invoke = {"src": "run", "queue": "work", "retry": {"attempts": 1, "backoff": "1ms", "jitter": False} | retry}
    card = {"type": "string", "default": "", "sensitive": sensitive}
    context = {"type": "object", "properties": {"card": card}}
    engine.publish(machine("work", {"Busy": {"invoke": invoke}}, context=context))
    engine.create("work", "w-1", {"card": "4711"})


def output(engine) -> str:
    return read_output(Storage(engine.client), engine.keys, engine.keys.partition("work", 0).root, "0-1")


def speak(job):
    log.warning("charging %s", job.data["card"])
    print("attempt", job.attempt)
    raise OSError("the bank is closed")


async def speak_later(job):
    print("before")
    await asyncio.sleep(0)
    log.warning("after")


def test_what_a_handler_logs_and_prints_is_kept_over_all_attempts_and_shown(engine, db, as_):
    publish(engine, attempts=2)
    streams = sys.stdout, sys.stderr
    drain(engine, registry_of(run=speak), job_logs=64)
    first, second = output(engine).split("-- attempt 2 --\n")
    assert "WARNING shop.handlers: charging 4711\nattempt 1\n" in first
    assert second.endswith("attempt 2\n")
    assert 0 < engine.client.ttl(engine.keys.output(engine.keys.partition("work", 0).root, "0-1")) <= FAILED
    page = read(as_("supervisor").get("/jobs/work/0-1/"))
    assert "charging 4711" in page.one("section", data_region="output").text
    assert (sys.stdout, sys.stderr) == streams, "a worker that ends leaves the streams as they were"


def test_who_may_not_see_sensitive_values_sees_no_output_of_such_a_machine(engine, db, as_):
    publish(engine, sensitive=True)
    drain(engine, registry_of(run=speak), job_logs=64)
    page = read(as_("viewer").get("/jobs/work/0-1/"))
    assert "4711" not in page.text
    assert "•••" in page.one("section", data_region="output").text


def test_of_a_coroutine_too_and_after_success_it_goes_soon(engine):
    publish(engine)
    drain(engine, registry_of(run=speak_later), job_logs=64)
    assert output(engine).startswith("before\n")
    assert output(engine).endswith("WARNING shop.handlers: after\n")
    assert 0 < engine.client.ttl(engine.keys.output(engine.keys.partition("work", 0).root, "0-1")) <= DONE


def test_while_it_runs_it_is_there(engine):
    publish(engine)
    go = threading.Event()

    def wait(job):
        print("halfway")
        go.wait(60)

    with Running(engine, registry_of(run=wait), job_logs=64):
        eventually(lambda: output(engine) == "halfway\n", "the running handler is heard")
        go.set()


def test_without_the_setting_nothing_is_kept(engine):
    publish(engine)
    drain(engine, registry_of(run=speak))
    assert output(engine) == ""


def test_the_last_of_it_is_kept_and_others_are_not_heard(engine, errand):
    errand("e-1")
    (taken,) = engine.take("errand", "errands", "w")
    keeper, job = OutputKeeper(engine, 10), Job(taken)
    keeper.start()
    try:
        with keeper.collect(job):
            print("x" * 100 + "the end")
        print("somebody else")
    finally:
        keeper.stop()
    ((_, command),) = job.writes
    assert command[2] == "xxthe end\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_is_printed_is_still_printed(engine, errand, capsys, stream):
    errand("e-1")
    (taken,) = engine.take("errand", "errands", "w")
    keeper = OutputKeeper(engine, 100)
    keeper.start()
    try:
        with keeper.collect(Job(taken)):
            print("said", file=getattr(sys, stream))
    finally:
        keeper.stop()
    assert getattr(capsys.readouterr(), stream[3:]) == "said\n"


def test_a_name_that_is_no_utf_8_is_kept_and_fails_no_attempt(engine, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [logging.NullHandler()])  # no report can carry such a text
    publish(engine)
    launcher = drain(engine, registry_of(run=lambda job: log.warning("caf\udce9")), job_logs=64)
    assert str(launcher.counters) == "1 completed"
    assert output(engine).endswith("shop.handlers: caf\\udce9\n")


def test_what_cannot_be_written_ends_no_writing(engine, errand, monkeypatch):
    errand("e-1")
    (taken,) = engine.take("errand", "errands", "w")
    keeper, refused = OutputKeeper(engine, 100), threading.Event()
    write = keeper._storage.commands

    def refuse_first(commands):
        if refused.is_set():
            return write(commands)
        refused.set()
        raise ValueError("cannot be packed")

    monkeypatch.setattr(keeper._storage, "commands", refuse_first)
    monkeypatch.setattr(module, "PAUSE", 0.01)
    keeper.start()
    try:
        with keeper.collect(Job(taken)):
            print("first")
            assert refused.wait(60)
            print("second")
            kept = Storage(engine.client), engine.keys, taken.root, taken.id
            eventually(lambda: read_output(*kept) == "first\nsecond\n", "the thread goes on")
    finally:
        keeper.stop()


def test_an_attempt_whose_lease_was_lost_writes_no_more_over_the_one_that_has_the_job(engine, errand, monkeypatch):
    for id in ("e-1", "e-2"):
        errand(id)
    job, other = (Job(taken) for taken in engine.take("errand", "errands", "w", count=2))
    keeper, storage, keys = OutputKeeper(engine, 100), Storage(engine.client), engine.keys
    monkeypatch.setattr(module, "PAUSE", 0.01)
    keeper.start()
    try:
        with keeper.collect(job):
            print("first")
            eventually(lambda: read_output(storage, keys, job.taken.root, job.id) == "first\n", "its lease is held")
            job.abandon("taken by another worker")
            engine.client.set(keys.output(job.taken.root, job.id), "of the next attempt")
            print("second")
            with keeper.collect(other):
                print("a round later")
                eventually(lambda: read_output(storage, keys, other.taken.root, other.id), "the others are written")
            assert read_output(storage, keys, job.taken.root, job.id) == "of the next attempt"
    finally:
        keeper.stop()


@pytest.mark.parametrize(("handlers", "printed"), [([], "late\n"), ([logging.NullHandler()], "")])
def test_what_no_handler_of_the_project_takes_is_printed_as_it_would_be_without(
    engine, errand, monkeypatch, capsys, handlers, printed
):
    errand("e-1")
    (taken,) = engine.take("errand", "errands", "w")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging.getLogger("shop"), "handlers", handlers)
    keeper, job = OutputKeeper(engine, 100), Job(taken)
    keeper.start()
    try:
        with keeper.collect(job):
            log.warning("late")
    finally:
        keeper.stop()
    assert capsys.readouterr().err == printed
    ((_, command),) = job.writes
    assert command[2].count("late") == 1


def test_an_attempt_past_its_deadline_is_written_with_its_end_and_heard_no_more(engine, errand):
    errand("e-1")
    (taken,) = engine.take("errand", "errands", "w")
    keeper, job, in_flight, ends = OutputKeeper(engine, 100), Job(taken), InFlightJobs(1), []
    completer = SimpleNamespace(fail=lambda job, error: ends.append(list(job.writes)))
    executor = Executor(registry_of(), in_flight, completer, output=keeper)
    executor.start()
    keeper.start()
    try:
        with keeper.collect(job):
            in_flight.begin(job)
            print("so far")
            executor._end_overdue(job)
            print("too late")
            assert not keeper._held
    finally:
        keeper.stop()
        executor.stop()
    (((_, command),),) = ends
    assert tuple(command[2:]) == ("so far\n", "EX", FAILED)
    assert job.writes == ends[0], "the handler that ends later adds nothing"


def test_the_loop_does_not_wait_for_what_earlier_attempts_said(engine, monkeypatch):
    read_in = []

    def read_somewhere(*given):
        read_in.append(threading.current_thread().name)
        return read_output(*given)

    async def speak_in_vain(job):
        speak(job)

    publish(engine, attempts=2)
    monkeypatch.setattr(module, "read_output", read_somewhere)
    drain(engine, registry_of(run=speak_in_vain), job_logs=64)
    assert (len(read_in), "coroutines" in read_in) == (1, False)
    assert "attempt 1\n\n-- attempt 2 --\n" in output(engine)
