"""Runs one command, and ends it when the process that started it is gone.

    python guardian.py LIFELINE PARENT GRACE COMMAND...

LIFELINE is the read end of a pipe whose only write end the parent holds, PARENT its process id, GRACE the
seconds between asking the command to end (SIGTERM) and ending it with everything it started (SIGKILL); a few at
most once the parent is gone.
This file runs as a script and imports nothing of the project: it must start in a blink and never fail.

What holds when the parent gets SIGKILL, and so cannot do anything any more:

- The kernel closes its end of the pipe: the guardian reads end-of-file. Works on every Unix. It fails only
  while a fork of the parent, which copied the descriptor, lives on.
- So the parent's death is also asked for as a signal (PR_SET_PDEATHSIG, Linux), and the parent id is looked at
  every second. The signal comes when the *thread* that started us ends, which may be long before its
  process does; so it is only a reason to look, never a reason to end.

And when the guardian itself gets SIGKILL: the command has PR_SET_PDEATHSIG as well, set between fork and exec,
and the guardian has one thread only, which lives as long as it does. On macOS, which has no such signal,
a command whose guardian is killed lives on; the folder's lock, which it inherits, keeps a second one away.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

PR_SET_PDEATHSIG = 1
ORPHAN_GRACE = 3.0  # seconds at most, when the parent is gone
LOOK_EVERY = 1.0  # seconds between two looks at the parent id, for systems that tell us nothing


def main(argv: list[str]) -> int:
    lifeline, parent, grace = int(argv[0]), int(argv[1]), float(argv[2])
    os.set_inheritable(lifeline, False)
    wake = _wake_on(signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    on_parent_death(signal.SIGUSR1)
    if os.getppid() != parent:
        return 1  # it died before we could ask for its signal
    child = start(argv[3:])
    status = _watch(child, lifeline, wake, parent)
    if status is None:
        status = end(child, grace, parent)
    _sweep_group(child)
    return exit_code(status)


def start(command: list[str]) -> int:
    """Return the process id of the command, which runs in a session of its own and dies with us."""
    me = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        on_parent_death(signal.SIGKILL)
        if os.getppid() != me:
            os._exit(1)
        for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _watch(child: int, lifeline: int, wake: int, parent: int) -> int | None:
    """Return the wait status of a command that ended by itself, or None when it is to be ended."""
    poll = select.poll()  # select() takes no descriptor past 1023, which a parent with many files open hands on
    poll.register(lifeline, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        ready = [number for number, _ in poll.poll(LOOK_EVERY * 1000)]
        if lifeline in ready or os.getppid() != parent or (wake in ready and _read_end_request(wake)):
            return None


def _read_end_request(wake: int) -> bool:
    """Tell whether one of the signals that woke us was meant for us, and not only news."""
    return any(number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) for number in os.read(wake, 512))


def end(child: int, grace: float, parent: int) -> int:
    """Ask, wait, and then insist. Returns the wait status. With the parent gone nobody waits for us: be quick."""
    _signal(os.kill, child, signal.SIGTERM)
    began = time.monotonic()
    while time.monotonic() - began < (grace if os.getppid() == parent else min(grace, ORPHAN_GRACE)):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    _sweep_group(child)
    _signal(os.kill, child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _sweep_group(child: int) -> None:
    """End whatever the command started and left behind."""
    _signal(os.killpg, child, signal.SIGKILL)


def _signal(send: Callable[[int, int], None], target: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS says "not permitted" of a group of zombies
        send(target, number)


def exit_code(status: int) -> int:
    """Return the exit code as a shell tells it: the code, or 128 and the number of the signal."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def on_parent_death(number: int) -> None:
    """Have the kernel send us a signal when the thread that started us ends. Linux only; elsewhere nothing."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def _wake_on(*numbers: int) -> int:
    """Return a descriptor that becomes readable, with the signal's number, when one of them arrives."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, _note)
    return read


def _note(number: int, frame: FrameType | None) -> None:
    """Do nothing: the wakeup descriptor carries the news, for which a handler has to be there."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
