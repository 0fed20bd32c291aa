"""One helper process, as the parent process uses it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

from . import frames
from .errors import NoHelper, Overrun
from .tasks import Done

GOING = 0.2  # seconds until one that has closed its end is gone
START = 30.0  # seconds until it must be ready
SLACK = 8.0  # times the processor time that a task may take by the clock: others use this machine, too
MEMORY = 768 * 1024 * 1024  # bytes
MEMORY_SPENT = "it takes more memory than it may: make it smaller or simpler"
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "HOME", "LD_LIBRARY_PATH")  # of our environment; secrets stay here


class Helper:
    """For one thread at a time. ``memory``: bytes that it may hold. Raises NoHelper when it cannot be started."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._link, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        command = [sys.executable, "-m", "machines.catalog.offload.child", str(theirs.fileno()), str(memory)]
        try:
            with theirs:
                self._process = subprocess.Popen(
                    command,
                    pass_fds=(theirs.fileno(),),
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,  # a Ctrl-C in our terminal is not for it: it ends when we are gone
                )
        except OSError as error:
            self._link.close()
            raise NoHelper("no helper process can be started") from error
        try:
            frames.receive(self._link, time.monotonic() + START)
        except (OSError, frames.Closed) as error:
            self.end()
            raise NoHelper("no helper process can be started") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_fit(self) -> bool:
        return self._process.poll() is None

    def do(self, task: str, text: str | bytes, words: dict[str, Any], cpu: float) -> Done:
        """Have the process carry out a task, and return its answer. Raises Overrun; the process has then ended."""
        is_text, raw = frames.pack(text)
        until = time.monotonic() + cpu * SLACK
        try:
            self._link.settimeout(cpu * SLACK)
            frames.send(self._link, {"task": task, "words": words, "is_text": is_text, "cpu": cpu}, raw)
            head, answer = frames.receive(self._link, until)
        except TimeoutError:
            self.end()
            raise Overrun(cpu) from None
        except (OSError, frames.Closed):
            self.end()
            raise Overrun(cpu, "" if self._process.returncode == -signal.SIGPROF else MEMORY_SPENT) from None
        if head.get("failed") == "memory":
            self.end()
            raise Overrun(cpu, MEMORY_SPENT)
        if "failed" in head:
            raise RuntimeError(f"{task}: {head['failed']}")
        return Done(json.loads(answer), float(head["cpu"]))

    def end(self) -> None:
        """End the helper, which holds nothing that has to be put away."""
        self._link.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GOING)  # one that ended by itself says how
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(START)
