"""Starts the processes of the demo, watches them, restarts them where that helps, and ends them together."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from machines.conf.server import GuardedProcess
from machines.worker.command.command_line import list_command

LARGEST = 1_000_000  # bytes; then the file becomes ``.1`` and a new one begins
LAST_LINES = 12
GRACE = 10.0  # seconds a process gets to end
LONGEST_PAUSE = 30.0  # seconds between two starts of one that keeps ending
STEADY = 60.0  # seconds of running after which earlier failures are forgotten


@dataclass
class Process:
    """One process. ``vital``: the demo ends when it does; the others are started again."""

    name: str
    command: Sequence[str]
    vital: bool = False
    keep: Sequence[int] = ()
    guarded: GuardedProcess | None = None
    output: Output | None = None
    failures: int = 0
    started: float = 0.0
    due: float = field(default=0.0, init=False)


class Processes:
    """``keep``: descriptors every member inherits, so that the folder's lock lasts as long as the last of them."""

    def __init__(self, logs: Path, *, keep: Sequence[int], say: Callable[[str], None]) -> None:
        self._logs = logs
        self._keep = list(keep)
        self._print = say
        self.members: list[Process] = []

    def start(self, name: str, *arguments: str, vital: bool = False, keep: Sequence[int] = ()) -> Process:
        """Run ``signalbox`` with these arguments."""
        member = Process(name, list_command(*arguments), vital, keep)
        self.members.append(member)
        self._begin(member)
        return member

    def look(self) -> None:
        """Make one pass over the processes: notice those that ended, restart those that are due."""
        now = time.monotonic()
        for member in self.members:
            if member.guarded is None:
                if now >= member.due:
                    self._begin(member)
            elif (code := member.guarded.poll()) is not None:
                self._schedule_restart(member, code, now)

    def stop(self) -> None:
        """Ask all processes to stop at once, then wait for each."""
        for member in self.members:
            if member.guarded:
                member.guarded.ask()
        for member in self.members:
            self._close(member)

    def _begin(self, member: Process) -> None:
        self._logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        member.started = time.monotonic()
        member.guarded = GuardedProcess(
            member.command,
            grace=GRACE,
            keep=[*self._keep, *member.keep],
            output=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        assert member.guarded.output is not None
        member.output = Output(member.guarded.output, self._logs / f"{member.name}.log")

    def _schedule_restart(self, member: Process, code: int, now: float) -> None:
        words = self._close(member)
        if member.vital:
            raise DemoFailed(f"the {member.name} ended by itself (code {code}); it said:\n{words}")
        member.failures = 1 if now - member.started > STEADY else member.failures + 1
        pause = min(2.0 ** (member.failures - 1), LONGEST_PAUSE)
        member.due = now + pause
        last = words.rpartition("\n")[2] or "nothing"
        self._print(f"  {member.name:<10} ended by itself (code {code}), last word: {last}; again in {pause:g} s")

    def _close(self, member: Process) -> str:
        """Close the member. Return its last words."""
        if member.guarded is None or member.output is None:
            return ""
        member.guarded.stop()
        member.output.close()
        words = member.output.last_words()
        member.guarded = member.output = None
        return words


class Output:
    """Copies lines from ``source`` to ``path`` in a thread of its own, until the source ends."""

    def __init__(self, source: IO[bytes], path: Path) -> None:
        self.path = path
        self._source = source
        self._last: deque[str] = deque(maxlen=LAST_LINES)
        self._thread = threading.Thread(target=self._copy, name=f"output-{path.stem}", daemon=True)
        self._thread.start()

    def last_words(self) -> str:
        """Return the last lines; all of them once the source has ended."""
        return "\n".join(self._last)

    def close(self) -> None:
        """Wait for what is still on its way. Call it when the process is gone."""
        self._thread.join(timeout=5)
        self._source.close()

    def _copy(self) -> None:
        file = self.path.open("ab")
        try:
            for line in self._source:
                self._last.append(line.decode(errors="replace").rstrip())
                if file.tell() > LARGEST:
                    file.close()
                    self.path.replace(self.path.with_suffix(".log.1"))
                    file = self.path.open("ab")
                file.write(line)
                file.flush()
        finally:
            file.close()


class DemoFailed(Exception):
    """The demo cannot go on; the text says why, to the person who typed the command."""
