"""A guarded command never outlives the process that wanted it."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from machines.conf.server import GuardedProcess
from tests.installation.processes import alive, eventually

# Starts a guarded command that writes its process id, and then waits to be killed.
PARENT = """
import sys, time
from machines.conf.server import GuardedProcess
command = [sys.executable, "-uc", sys.argv[1]]
guarded = GuardedProcess(command, grace=float(sys.argv[2]))
print("guardian", guarded.pid, flush=True)
time.sleep(60)
"""
# Several processes write to one pipe: each writes its line at once.
CHILD = "import os, time; os.write(1, b'child %d\\n' % os.getpid()); time.sleep(60)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + CHILD
FORK = "import os\nif os.fork() == 0: os.write(1, b'fork %d\\n' % os.getpid())\ntime.sleep(60)"
POLITE = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); " + CHILD
# Ends by itself on TERM, but leaves a process of its own behind.
PARENT_OF_ANOTHER = (
    "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
    "import os; os.write(1, b'other %d\\n' % p.pid); " + CHILD
)


@pytest.fixture
def family(python):
    """A parent with a guarded command; gives the parent and the ids of the others."""

    def start(child: str, grace: float = 5, others: int = 2, code: str = PARENT):
        parent = python(code, child, grace)
        pids = dict(parent.stdout.readline().split() for _ in range(others))
        return parent, {name: int(pid) for name, pid in pids.items()}

    return start


def all_end(pids: dict[str, int]) -> None:
    eventually(lambda: not any(map(alive, pids.values())), f"all of {pids} end")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_command_ends_when_its_parent_is_killed(family, number):
    parent, pids = family(CHILD)
    parent.send_signal(number)
    parent.wait()
    all_end(pids)


def test_a_command_that_ignores_the_request_is_killed_after_its_grace(family):
    parent, pids = family(STUBBORN, grace=0.2)
    parent.kill()
    parent.wait()
    all_end(pids)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells a process that its parent died")
def test_the_command_ends_when_its_guardian_is_killed(family):
    parent, pids = family(CHILD)
    os.kill(pids["guardian"], signal.SIGKILL)
    eventually(lambda: not alive(pids["child"]), "the command ends with its guardian")
    parent.kill()
    parent.wait()


def test_what_the_command_started_ends_with_it(family):
    parent, pids = family(PARENT_OF_ANOTHER, others=3)
    parent.kill()
    parent.wait()
    all_end(pids)


def test_a_fork_of_the_parent_that_lives_on_does_not_keep_the_command_alive(family):
    forking = PARENT.replace("time.sleep(60)", FORK)
    parent, pids = family(CHILD, others=3, code=forking)
    parent.kill()
    parent.wait()
    fork = pids.pop("fork")
    all_end(pids)
    assert alive(fork), "the pipe was open all the time"
    os.kill(fork, signal.SIGKILL)


def test_a_thread_that_starts_a_command_may_end_before_it():
    started = []
    command = [sys.executable, "-c", CHILD]
    thread = threading.Thread(target=lambda: started.append(GuardedProcess(command, output=subprocess.PIPE)))
    thread.start()
    thread.join()
    [guarded] = started
    pid = int(guarded.output.readline().split()[1])
    # The guardian has by now been told that the thread is gone; had it taken that for the process, it would end.
    os.kill(guarded.pid, signal.SIGUSR1)
    assert guarded.poll() is None
    assert alive(pid)
    guarded.stop()
    assert not alive(pid)
    guarded.output.close()


def test_stop_returns_what_the_command_returned():
    guarded = GuardedProcess([sys.executable, "-c", POLITE], output=subprocess.PIPE)
    guarded.output.readline()
    assert guarded.stop() == 7
    assert guarded.stop() == 7, "stopping twice is fine"
    guarded.output.close()


def test_a_program_that_is_not_there_ends_at_once_and_says_so():
    guarded = GuardedProcess(["/no/such/program"], output=subprocess.PIPE)
    assert b"No such file" in guarded.output.read()
    assert guarded.stop() == 127
    guarded.output.close()


def test_a_ctrl_c_in_the_terminal_does_not_reach_the_command(family):
    parent, pids = family(CHILD)
    assert os.getsid(pids["child"]) != os.getsid(parent.pid)
    assert os.getpgid(pids["guardian"]) != os.getpgid(parent.pid)
    parent.kill()
    parent.wait()
