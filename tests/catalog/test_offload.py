"""Helpers do what would hold up a web process, and no longer, and with no more memory, than they may."""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from machines import diagrams
from machines.catalog import offload, submissions
from machines.catalog.offload import AtOnce, Helper, NoHelper, Overrun, Pool
from machines.engine.definitions import outline

DOOR = {"id": "door", "initial": "shut", "states": {"shut": {"on": {"open": "ajar"}}, "ajar": {"type": "final"}}}
CPU = 10.0  # seconds: a hang guard


def long(guards: int) -> str:
    """A definition that takes about 3 ms for each guard."""
    guard = " and ".join(f"a > {number}" for number in range(160))
    chain = [{"target": "S1", "guard": guard} for _ in range(guards)]
    states = {"S0": {"on": {"e": chain}}, "S1": {"type": "final"}}
    return json.dumps({"id": "m", "initial": "S0", "context": {"a": 0}, "states": states})


def make_pool() -> Iterator[Pool]:
    made = Pool(1, waiting=1, max_wait=0.05)
    yield made
    made.end()


pool = pytest.fixture(make_pool)
used_pool = pytest.fixture(make_pool, scope="module")
"""For a test that does not mind what its helper did before."""


@pytest.mark.parametrize("text", ["id: door\nstates: {}", "{", '{"a": "\ud800"}', "\0", b"\xff", json.dumps(DOOR)])
def test_a_text_is_read_there_as_it_is_here(used_pool, text):
    done = used_pool.run("read", text, who="7", cpu=CPU, format="guess")
    assert offload.read_submission(done) == submissions.read(text)


def test_a_definition_is_checked_and_drawn_there_as_it_is_here(used_pool):
    text = json.dumps(DOOR)
    assert offload.read_submission(used_pool.run("check", text, who="7", cpu=CPU)).errors == []
    assert used_pool.run("draw", text, who="7", cpu=CPU).answer == diagrams.draw(outline(DOOR))


def test_what_can_do_without_waits_for_no_helper_and_no_turn(pool):
    text = json.dumps(DOOR)
    assert pool.run_if_free("draw", text, who="7", cpu=CPU) is None  # none is started
    drawn = pool.run("draw", text, who="7", cpu=CPU).answer
    with pool.turn("7"):
        assert pool.run_if_free("draw", text, who="7", cpu=CPU) is None
        assert pool.run_if_free("draw", text, who="8", cpu=CPU).answer == drawn
    with pool.helper():
        assert pool.run_if_free("draw", text, who="7", cpu=CPU) is None
    assert pool.run_if_free("draw", text, who="7", cpu=CPU).answer == drawn


def test_the_first_diagram_of_a_helper_is_not_charged_for_loading_what_draws(pool):
    with pool.helper() as held:
        done = held.do("draw", json.dumps(DOOR), {}, CPU)
        user, system = Path(f"/proc/{held.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    assert done.answer
    assert done.cpu < (int(user) + int(system)) / os.sysconf("SC_CLK_TCK") / 4  # of all that the process took


@pytest.mark.faults
def test_what_takes_longer_than_it_may_is_ended_and_the_next_gets_another_helper(pool):
    with pytest.raises(Overrun) as caught:
        pool.run("check", long(400), who="7", cpu=0.1)
    assert caught.value.facts()["seconds"] == 0.1
    done = pool.run("check", json.dumps(DOOR), who="7", cpu=CPU)
    assert done.answer["findings"] == []


@pytest.mark.faults
def test_what_takes_more_memory_than_it_may_is_ended(pool):
    text = json.dumps({"id": "m", "initial": "S0", "states": {"S0": {}}, "meta": [[]] * 200_000})
    with pool.helper() as held:
        needed = int(re.search(r"VmData:\s+(\d+) kB", Path(f"/proc/{held.process.pid}/status").read_text())[1]) << 10
    small = Pool(1, memory=needed + (8 << 20))
    with pytest.raises(Overrun, match="memory"):
        small.run("check", text, who="7", cpu=CPU)
    assert small.run("check", json.dumps(DOOR), who="7", cpu=CPU).answer["findings"] == []
    small.end()


def test_one_person_has_one_thing_under_way(used_pool):
    with used_pool.turn("7"):
        with pytest.raises(AtOnce) as caught:
            used_pool.run("check", "{}", who="7", cpu=CPU)
        assert caught.value.facts()["retry_after"] == 1
        assert used_pool.run("check", json.dumps(DOOR), who="8", cpu=CPU).answer["findings"] == []
    used_pool.run("check", "{}", who="7", cpu=CPU)


def test_one_more_of_a_person_waits_for_the_one_before_and_no_third():
    patient, order = Pool(1, max_wait=60), []

    def ask() -> None:
        with patient.turn("7"):
            order.append("second")

    with patient.turn("7"):
        thread = threading.Thread(target=ask)
        thread.start()
        while not patient._next:
            time.sleep(0.01)
        with pytest.raises(AtOnce):
            patient.run("check", "{}", who="7", cpu=CPU)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]


def test_when_all_helpers_are_busy_few_wait_and_not_for_long(used_pool):
    started, over = threading.Event(), []

    def occupy() -> None:
        with used_pool.helper():
            started.set()
            release.wait(60)

    release = threading.Event()
    thread = threading.Thread(target=occupy)
    thread.start()
    started.wait(60)
    for who in ("7", "8"):
        with pytest.raises(NoHelper) as caught:
            used_pool.run("check", "{}", who=who, cpu=CPU)
        over.append(caught.value.facts()["retry_after"])
    release.set()
    thread.join()
    assert over == [5, 5]
    used_pool.run("check", "{}", who="7", cpu=CPU)


@pytest.mark.faults
def test_a_helper_that_somebody_ended_is_replaced(pool):
    pool.run("check", "{}", who="7", cpu=CPU)
    with pool.helper() as held:
        os.kill(held.process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, held.process.pid, os.WEXITED | os.WNOWAIT)
    assert pool.run("check", json.dumps(DOOR), who="7", cpu=CPU).answer["findings"] == []


def test_a_task_that_fails_says_so_and_the_helper_goes_on(used_pool):
    with pytest.raises(RuntimeError, match="JSONDecodeError"):
        used_pool.run("check", "{", who="7", cpu=CPU)
    used_pool.run("check", "{}", who="7", cpu=CPU)


def test_a_helper_knows_no_secret_of_the_site(pool, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "not for helpers")
    monkeypatch.setenv("DATABASE_URL", "postgres://user:secret@host/db")
    with pool.helper() as held:
        environment = Path(f"/proc/{held.process.pid}/environ").read_bytes()
    assert b"SECRET_KEY" not in environment
    assert b"secret" not in environment


@pytest.mark.faults
def test_a_helper_ends_with_whoever_started_it():
    made = Helper()
    made._link.close()
    assert made.process.wait(90) == 0


def test_none_can_be_started_is_an_error_in_words(pool, monkeypatch):
    monkeypatch.setattr(offload.sys, "executable", "/nonexistent/python")
    with pytest.raises(NoHelper, match="started"):
        pool.run("check", "{}", who="7", cpu=CPU)


def test_limits_of_a_helper_are_set(used_pool):
    with used_pool.helper() as held:
        limits = Path(f"/proc/{held.process.pid}/limits").read_text()
    assert str(offload.MEMORY) in limits
    assert set(offload.TASKS) == {"check", "compare", "draw", "locate", "read", "study"}
