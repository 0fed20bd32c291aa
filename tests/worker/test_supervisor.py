"""Several worker processes as one."""

from __future__ import annotations

import os
import signal

import pytest

from tests.installation.processes import alive, descendants, eventually, python

from . import builders


def workers(engine):
    return {row.pid for row in engine.workers()}


def test_they_start_together_are_replaced_when_they_die_and_end_together(engine, start):
    engine.publish(builders.errand(src="quick"))
    supervisor = start("--processes", "2", "--concurrency", "1", "--prefetch", "3")
    eventually(lambda: len(workers(engine)) == 2, "both are there")
    first, second = workers(engine)
    assert {first, second} <= descendants(supervisor.pid)
    assert {row.concurrency for row in engine.workers()} == {1}
    os.kill(first, signal.SIGKILL)
    eventually(lambda: workers(engine) - {first, second}, "another takes its place")
    engine.create("errand", "e1")
    eventually(lambda: engine.get("errand", "e1").state == "done", "and works")
    supervisor.terminate()
    output, _ = supervisor.communicate(timeout=90)
    assert supervisor.returncode == 0, output
    assert not descendants(supervisor.pid)


def test_it_passes_signals_on_and_killed_takes_them_along(engine, start):
    supervisor = start("--processes", "2", "--grace", "1")
    eventually(lambda: len(workers(engine)) == 2, "both are there")
    supervisor.send_signal(signal.SIGUSR1)
    eventually(lambda: {row.status for row in engine.workers()} == {"quiet"}, "both are quiet")
    children = workers(engine)
    supervisor.kill()
    eventually(lambda: not any(map(alive, children)), "they have stopped")
    assert engine.workers() == []


SUPERVISE = """
import sys
from machines.worker.supervisor import Supervisor
sys.exit(Supervisor([sys.executable, "-S", "-c", sys.argv[1], sys.argv[2]], 2, grace=1).run(sys.stdout))
"""
FAILS_ONCE = """
import os, sys
try:
    os.mkdir(sys.argv[1])
except FileExistsError:
    sys.exit(0)
sys.exit(7)
"""


@pytest.mark.pure
def test_those_that_end_by_themselves_with_nothing_wrong_are_not_replaced(tmp_path):
    supervisor = python(SUPERVISE, "print('done')", tmp_path)
    output, _ = supervisor.communicate(timeout=90)
    assert (supervisor.returncode, output.count("done")) == (0, 2)


@pytest.mark.pure
def test_one_that_fails_is_tried_again(tmp_path):
    supervisor = python(SUPERVISE, FAILS_ONCE, tmp_path / "once")
    output, _ = supervisor.communicate(timeout=90)
    assert supervisor.returncode == 0
    assert "one of the workers ended with 7; another takes its place" in output


@pytest.mark.pure
def test_those_told_to_stop_before_they_listen_have_ended_in_order(tmp_path):
    supervisor = python(SUPERVISE, "import time; time.sleep(60)", tmp_path)
    eventually(lambda: len(descendants(supervisor.pid)) == 2, "both are there")
    supervisor.terminate()
    output, _ = supervisor.communicate(timeout=90)
    assert (supervisor.returncode, "ended with" in output) == (0, False), output
