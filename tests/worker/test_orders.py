"""What an operator tells a worker."""

from __future__ import annotations

import threading
import time

import pytest

from machines.worker import lease_renewal
from machines.worker.intake import poll_loop
from machines.worker.intake.poll_loop import PollLoop
from tests.installation.processes import eventually

from .builders import Launcher, Running, options, places, registry_of


@pytest.fixture(autouse=True)
def _rows_are_written_often(monkeypatch):
    """And orders read as often."""
    monkeypatch.setattr(lease_renewal, "ROW_EVERY", 0.2)


def tell(engine, worker, order):
    engine.direct(worker, order, actor="alice", reason="a deploy")


def row(engine):
    eventually(engine.workers, "it has a row, which it may write after it took a job")
    (row,) = engine.workers()
    return row


def test_quiet_it_finishes_what_it_has_and_takes_no_more_until_it_is_to_work_again(engine, errand):
    let, begun = threading.Event(), threading.Event()

    def handler(job):
        begun.set()
        assert let.wait(60)

    errand("e1")
    with Running(engine, registry_of(run=handler), concurrency=1, id="w1"):
        assert begun.wait(60)
        tell(engine, "w1", "quiet")
        eventually(lambda: row(engine).status == "quiet", "its row says so")
        errand("e2")
        let.set()
        eventually(lambda: engine.counts("errand")["done"] == 1, "the first is done")
        eventually(lambda: row(engine).in_hand == 0, "its hand is empty")
        assert places(engine) == {"ready": 1}
        tell(engine, "w1", "work")
        eventually(lambda: engine.counts("errand")["done"] == 2, "the second is done as well")
        assert row(engine).status == "working"


def test_quiet_while_idle_it_leaves_what_comes_to_others(engine, errand):
    with Running(engine, registry_of(run=print), id="w1", block=30):
        tell(engine, row(engine).id, "quiet")
        eventually(lambda: row(engine).status == "quiet", "its row says so")
        errand("e1")
        with Running(engine, registry_of(run=print), id="w2"):
            eventually(lambda: engine.counts("errand")["done"] == 1, "the other one has done it")


def test_quiet_it_looks_only_now_and_then_whether_it_is_to_work(engine, monkeypatch):
    turn, turns = PollLoop._turn, []
    monkeypatch.setattr(PollLoop, "_turn", lambda loop: turns.append(time.monotonic()) or turn(loop))
    with Running(engine, registry_of(run=print), id="w1"):
        tell(engine, row(engine).id, "quiet")
        eventually(lambda: row(engine).status == "quiet", "its row says so")
        eventually(lambda: len(turns) > 1, "it has begun to wait")
        turns.clear()
        eventually(lambda: len(turns) >= 4, "it has looked again")
    assert turns[3] - turns[0] > 2 * poll_loop.ROOM


def test_told_to_stop_it_ends_as_after_a_term(engine, errand):
    launcher = Launcher(engine, registry_of(run=print), options(id="w1"))
    thread = threading.Thread(target=launcher.run)
    thread.start()
    eventually(engine.workers, "it is there")
    tell(engine, "w1", "stop")
    thread.join(60)
    assert not thread.is_alive()
    assert engine.workers() == []


def test_an_order_is_obeyed_once(engine, errand):
    with Running(engine, registry_of(run=print), id="w1") as worker:
        tell(engine, row(engine).id, "quiet")
        eventually(lambda: worker.status == "quiet", "it is quiet")
        worker.work()
        eventually(lambda: worker.status == "working", "and was told otherwise here")
        errand("e1")
        eventually(lambda: engine.counts("errand")["done"] == 1, "the old order does not come back")
        eventually(lambda: row(engine).done == 1, "which its row counts")
        assert worker.status == "working"


def test_the_row_says_what_is_at_work(engine, errand):
    let, begun = threading.Event(), threading.Event()

    def handler(job):
        begun.set()
        assert let.wait(60)

    errand("e1")
    with Running(engine, registry_of(run=handler), concurrency=3, id="w1"):
        assert begun.wait(60)
        eventually(lambda: row(engine).holding, "it says what it holds")
        held = row(engine)
        (job,) = held.holding
        assert (job["machine"], job["queue"], job["src"], job["instance"]) == ("errand", "errands", "run", "e1")
        assert (job["attempt"], held.concurrency, held.status) == (1, 3, "working")
        assert held.memory > 1_000_000
        assert abs(job["since"] - held.seen) < 60_000
        let.set()
