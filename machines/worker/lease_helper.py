"""Renews the leases of a worker process whose heartbeat cannot run: its child, ``python lease_helper.py WORKER LIMIT``.

WORKER is the process id of the worker. A single call into C that keeps the interpreter lock stops all of its threads,
the heartbeat too. LIMIT: seconds without a word from the worker for which its leases are renewed. On standard input
come lines of JSON:

- ``{"path": [...], "url": "...", "prefix": "..."}``, first of all: where modules and Redis are
- ``{"held": [[root, lease, [[job, token], ...]], ...], "whole": true, "beat": true}``: jobs in flight. ``whole``: they
  replace all that was sent before, else they are added; ``beat``: their leases have just been renewed

A lease that was not renewed for a third of its length, and some slack, is renewed here until a beat comes again. A job
that is over meanwhile is forgotten. Leases of a worker that is stopped (SIGSTOP), dead or silent for longer than LIMIT
are not renewed, and no lease is renewed beyond the deadline of its job.

This process ends with the worker: at the end of standard input, and because it looks every second who its parent is. A
fork of the worker may hold the pipe open, and the kernel's signal of a parent's death is one of the thread that started
this process; so neither is relied on alone. It keeps no other descriptor of the worker open: a program that awaits the
end of the worker's output would wait for this process.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

MOST_LINE = 1 << 20  # bytes
MOST = 1000  # leases of one call
SLACK = 1.0  # seconds, at most, that a beat may be late; never more than a sixth of the lease
LOOK = 1.0  # seconds between two looks at the parent
HASTE = 10.0  # seconds: for leases shorter than this the engine is imported before it is needed
GONE, STOPPED = ("", "Z", "X"), ("T", "t")  # letters of ``/proc/<pid>/stat``; with any other a process is alive
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGUSR1, signal.SIGUSR2)

Pair = tuple[str, str]  # a job's id and the token of its lease
Renew = Callable[[str, int, Sequence[Pair]], Sequence[str]]


class Group:
    """The jobs of one partition with one lease, and when to renew them."""

    def __init__(self, due: float) -> None:
        self.pairs: dict[Pair, None] = {}
        self.due = due


class LeaseHelper:
    """The leases of the worker. ``renew(root, lease in ms, pairs)`` answers for each pair '' when it is held, and
    raises OSError when it cannot be known; ``read_state()`` returns the worker's letter in ``/proc``, '' when it is
    gone."""

    def __init__(
        self, renew: Renew, read_state: Callable[[], str], limit: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._renew = renew
        self._read_state = read_state
        self._limit = limit
        self._clock = clock
        self._groups: dict[tuple[str, int], Group] = {}
        self._heard = clock()

    def hear(self, word: dict[str, Any]) -> None:
        """Take note of what the worker says about its jobs."""
        now = self._heard = self._clock()
        before = self._groups
        self._groups = {} if word["whole"] else before
        for root, lease, pairs in word["held"]:
            known = None if word["beat"] else before.get((root, lease))
            due = now + lease / 3000 + min(SLACK, lease / 6000) if known is None else known.due
            group = self._groups.setdefault((root, lease), Group(due))
            group.pairs.update(dict.fromkeys(map(tuple, pairs)))

    @property
    def shortest(self) -> float | None:
        """Seconds of the shortest lease; None without one."""
        return min((lease / 1000 for _, lease in self._groups), default=None)

    def pause(self) -> float:
        """Return seconds until there may be something to do."""
        due = min((group.due for group in self._groups.values()), default=None)
        return LOOK if due is None else min(LOOK, max(due - self._clock(), 0.0))

    def act(self) -> bool:
        """Renew what is overdue; return whether the worker still lives."""
        state = self._read_state()
        if state in GONE:
            return False
        if self._clock() - self._heard >= self._limit:
            self._groups.clear()
        for (root, lease), group in list(self._groups.items()):
            if group.due > self._clock():
                continue
            done = state not in STOPPED and self._renew_all(root, lease, group)
            group.due = self._clock() + lease / (3000 if done else 6000)
            if not group.pairs:
                del self._groups[root, lease]
        return True

    def _renew_all(self, root: str, lease: int, group: Group) -> bool:
        """Renew the leases of a group; return whether all of them were answered."""
        pairs = list(group.pairs)
        for start in range(0, len(pairs), MOST):
            part = pairs[start : start + MOST]
            try:
                answers = self._renew(root, lease, part)
            except OSError:
                return False
            for pair, why in zip(part, answers, strict=True):
                if why:
                    del group.pairs[pair]
        return True


class Leases:
    """Renews through the engine, which is imported once it is needed."""

    def __init__(self, reach: dict[str, Any]) -> None:
        self._reach = reach
        self._engine: Any = None
        sys.path += [place for place in reach["path"] if place not in sys.path]

    def prepare(self) -> None:
        """Import the engine: half a second of a core, and most of the memory of this process."""
        import machines.engine  # noqa: F401

    def renew(self, root: str, lease: int, pairs: Sequence[Pair]) -> list[str]:
        from machines.engine import Engine, Job, errors

        try:
            if self._engine is None:
                self._engine = Engine.from_url(self._reach["url"], prefix=self._reach["prefix"], retry_for=0)
            return list(self._engine.renew([_make_job(Job, root, lease, *pair) for pair in pairs], lease))
        except errors.SignalboxError as error:
            raise OSError(str(error)) from error


def _make_job(make: Callable[..., Any], root: str, lease: int, id: str, token: str) -> Any:
    """Make as much of a job as its renewal needs."""
    names = dict.fromkeys(("machine", "queue", "src", "instance", "invoke", "place"), "")
    numbers = dict.fromkeys(("attempt", "attempts", "lease_until", "created"), 0)
    return make(id=id, root=root, token=token, lease=lease, input=None, data={}, **names, **numbers)


class Lines:
    """Reads whole lines from a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._remaining = b""

    def read(self) -> list[bytes] | None:
        """Return the lines that are complete by now; None at the end, or for a line that has no end."""
        found = os.read(self._descriptor, 1 << 16)
        *lines, self._remaining = (self._remaining + found).split(b"\n")
        return lines if found and len(self._remaining) <= MOST_LINE else None


def read_state(pid: int) -> str:
    """Return the letter of a process in ``/proc``; '' when it is not there."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def is_possible() -> bool:
    """Tell whether this system shows if a process is stopped: leases of a stopped worker must end."""
    return read_state(os.getpid()) != ""


def main(argv: list[str]) -> int:
    worker, limit = int(argv[0]), float(argv[1])
    for number in IGNORED:  # signals to all of a group or a service are the worker's to obey: it may go on for a while
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(BrokenPipeError):
        return _serve(sys.stdin.fileno(), lambda: read_state(worker) if os.getppid() == worker else "", limit)
    return 0


def _serve(descriptor: int, state: Callable[[], str], limit: float) -> int:
    lines = Lines(descriptor)
    leases: Leases | None = None
    helper: LeaseHelper | None = None
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while True:
        ready = poll.poll(1000 * (LOOK if helper is None else helper.pause()))
        if ready:
            given = lines.read()
            if given is None:
                return 0
            if leases is None and given:
                leases = Leases(json.loads(given.pop(0)))
                helper = LeaseHelper(leases.renew, state, limit)
            for line in given:
                assert helper is not None
                helper.hear(json.loads(line))
            if leases and helper and (shortest := helper.shortest) is not None and shortest < HASTE:
                leases.prepare()
        if helper is None:
            if state() in GONE:
                return 0
        elif not helper.act():
            return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
