"""Renews the leases of a worker process while that cannot: a child of it, ``python standin.py WORKER``.

WORKER is the process id of the worker, whose heartbeat waits when one call into C keeps the interpreter lock. On
standard input come lines of JSON, at most ``MOST_LINE`` bytes each:

- ``{"path": [...], "url": "...", "prefix": "...", "options": {...}}``: first of all, where modules and Redis are
- ``{"held": [[root, lease, [[job, token], ...]], ...], "whole": true, "beat": true}``: jobs in hand. ``whole``: they
  take the place of all that was told before, else they are added; ``beat``: their leases have just been renewed

What was not renewed for a third of its lease, and some slack, is renewed here, until a beat comes again. A job that is
over meanwhile answers "gone" and is forgotten. Not kept alive: what a worker holds that was stopped (SIGSTOP), is dead,
or has not said a word for ``SILENCE``. The end of standard input, or of the worker, ends this process at once.

Runs as a script, and imports the engine (by far the most of what it would take) when it sees that it may need it.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

log = logging.getLogger("machines.worker.standin")

MOST_LINE = 1 << 20  # bytes
MOST = 1000  # leases of one call
SLACK = 1.0  # seconds, at most, that a beat may be late; never more than a sixth of the lease
SILENCE = 600.0  # seconds without a word after which the worker counts as dead: it may hang for ever
HASTE = 10.0  # seconds: for leases shorter than this the engine is imported before it is needed
PR_SET_PDEATHSIG = 1
GONE, STOPPED = ("", "Z", "X"), ("T", "t")  # letters of ``/proc/<pid>/stat``; any other is alive
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGUSR2)

Pair = tuple[str, str]  # a job's id and the token of its lease
Renew = Callable[[str, int, Sequence[Pair]], Sequence[str]]


class Lot:
    """The jobs of one partition with one lease, and when to renew them."""

    def __init__(self, due: float) -> None:
        self.pairs: dict[Pair, None] = {}
        self.due = due


class StandIn:
    """What is known of the worker's jobs. ``renew(root, lease in ms, pairs)`` answers for each '' when it is held, and
    raises OSError when it cannot be known; ``state()`` is the worker's letter in ``/proc``, '' when it is gone.
    """

    def __init__(self, renew: Renew, state: Callable[[], str], clock: Callable[[], float] = time.monotonic) -> None:
        self._renew = renew
        self._state = state
        self._clock = clock
        self._lots: dict[tuple[str, int], Lot] = {}
        self._heard = clock()
        self._standing_in = False
        self._failing = False

    def hear(self, word: dict[str, Any]) -> None:
        now = self._heard = self._clock()
        before = self._lots
        self._lots = {} if word["whole"] else before
        for root, lease, pairs in word["held"]:
            known = None if word["beat"] else before.get((root, lease))
            due = now + lease / 3000 + min(SLACK, lease / 6000) if known is None else known.due
            lot = self._lots.setdefault((root, lease), Lot(due))
            lot.pairs.update(dict.fromkeys(map(tuple, pairs)))
        if word["beat"]:
            self._standing_in = self._failing = False

    @property
    def shortest(self) -> float | None:
        """Seconds of the shortest lease; None without one."""
        return min((lease / 1000 for _, lease in self._lots), default=None)

    def wait(self) -> float | None:
        """Seconds until there may be something to do; None when only a word can change that."""
        due = min((lot.due for lot in self._lots.values()), default=None)
        return None if due is None else max(due - self._clock(), 0.0)

    def act(self) -> bool:
        """Renews what is overdue; says whether there still is a worker to do it for."""
        for (root, lease), lot in list(self._lots.items()):
            if lot.due > self._clock():
                continue
            if self._clock() - self._heard >= SILENCE:
                log.warning("the worker has not said a word for %g s: its leases may end", SILENCE)
                self._lots.clear()
                return True
            done = self._renew_all(root, lease, lot)
            if done is None:
                return False
            lot.due = self._clock() + lease / (3000 if done else 6000)
            if not lot.pairs:
                del self._lots[root, lease]
        return True

    def _renew_all(self, root: str, lease: int, lot: Lot) -> bool | None:
        """Whether all of them could be renewed or found to be over; None when the worker is gone."""
        pairs = list(lot.pairs)
        for start in range(0, len(pairs), MOST):
            state = self._state()
            if state in GONE:
                return None
            if state in STOPPED or not self._extend(root, lease, lot, pairs[start : start + MOST]):
                return False
        return True

    def _extend(self, root: str, lease: int, lot: Lot, pairs: Sequence[Pair]) -> bool:
        if not self._standing_in:
            log.warning("the worker's heartbeat is late: its leases are renewed by its stand-in")
            self._standing_in = True
        try:
            answers = self._renew(root, lease, pairs)
        except OSError as error:
            if not self._failing:
                log.warning("renewing in the heartbeat's place did not work: %s; trying on", error)
            self._failing = True
            return False
        for pair, why in zip(pairs, answers, strict=True):
            if why:
                del lot.pairs[pair]
        return True


class Leases:
    """The engine, once it is needed."""

    def __init__(self, reach: dict[str, Any]) -> None:
        self._reach = reach
        self._engine: Any = None
        sys.path += [place for place in reach["path"] if place not in sys.path]

    def prepare(self) -> None:
        """Takes half a second of a core, and two thirds of the memory: not before it is likely to be needed."""
        import machines.engine  # noqa: F401

    def renew(self, root: str, lease: int, pairs: Sequence[Pair]) -> list[str]:
        from machines.engine import Engine, Job, errors

        try:
            if self._engine is None:
                reach = self._reach
                self._engine = Engine.from_url(reach["url"], prefix=reach["prefix"], **reach["options"])
            return list(self._engine.renew([_job(Job, root, lease, *pair) for pair in pairs], lease))
        except errors.SignalboxError as error:
            raise OSError(str(error)) from error


def _job(make: Callable[..., Any], root: str, lease: int, id: str, token: str) -> Any:
    """As much of a job as its renewal asks for."""
    names = dict.fromkeys(("machine", "queue", "src", "instance", "invoke", "place"), "")
    numbers = dict.fromkeys(("attempt", "attempts", "lease_until", "created"), 0)
    return make(id=id, root=root, token=token, lease=lease, input=None, data={}, **names, **numbers)


class Lines:
    """Whole lines out of what a pipe gives."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def read(self) -> list[bytes] | None:
        """Those that are complete by now; None at the end, or after a line that has none."""
        found = os.read(self._descriptor, 1 << 16)
        *lines, self._rest = (self._rest + found).split(b"\n")
        return lines if found and len(self._rest) <= MOST_LINE else None


def state_of(pid: int) -> str:
    """Its letter in ``/proc``; '' when it is not there."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def possible() -> bool:
    """Whether this system says of a process if it is stopped: what is not known of may not be kept alive."""
    return state_of(os.getpid()) != ""


def main(argv: list[str]) -> int:
    worker = int(argv[0])
    _live_and_die_with(worker)
    lines = Lines(sys.stdin.fileno())
    given: list[bytes] | None = []
    while not given:
        if (given := lines.read()) is None:
            return 0
    leases = Leases(json.loads(given.pop(0)))
    standing = StandIn(leases.renew, lambda: state_of(worker) if os.getppid() == worker else "")
    while given is not None:
        for line in given:
            standing.hear(json.loads(line))
        if (shortest := standing.shortest) is not None and shortest < HASTE:
            leases.prepare()
        ready, _, _ = select.select([sys.stdin], [], [], standing.wait())
        if ready:
            given = lines.read()
        else:
            given = []
            if not standing.act():
                return 0
    return 0


def _live_and_die_with(worker: int) -> None:
    """Signals for all of a group, or of a service, are the worker's to obey: it may well go on for a while. The signal
    of its death is one of a thread's, so it is a reason to look; the end of a pipe that a fork holds, too, never comes.
    """
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, lambda *_: None if os.getppid() == worker else os._exit(0))
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGUSR1), 0, 0, 0)
    if os.getppid() != worker:
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
