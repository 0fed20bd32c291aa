"""A server of this run's own, fresh for each input, that says how long each call held it."""

from __future__ import annotations

import contextlib
import itertools
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from machines.conf.server import Server
from machines.engine import Engine
from machines.engine.connection import client

from .site import PREFIX, Site

NOTED_FROM = 1_000  # us: what held the server for less is not noted
BUSY_FROM = 1_000  # ms after which the server answers others that it is busy
PATIENCE = 20.0  # seconds until a call is taken for endless
OBEYS = 3.0  # seconds in which it ends when it is told to
NOTED = 512  # calls


class Stage:
    """``fresh`` gives an empty server and an engine on keys nobody used before, or on those that the site uses where
    there is one. Not to be shared between threads."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.site: Site | None = None
        self._number = itertools.count(1)
        self._open()

    def _open(self) -> None:
        self._shared = client.connect(self.server.url)
        self.raw = redis.Redis.from_url(self.server.url, retry=Retry(NoBackoff(), 0), socket_timeout=5, protocol=2)
        for name, value in (
            ("slowlog-log-slower-than", NOTED_FROM),
            ("slowlog-max-len", NOTED),
            ("busy-reply-threshold", BUSY_FROM),
        ):
            self.raw.config_set(name, value)
        pid = self.raw.info("server")["process_id"]
        self._schedule = Path(f"/proc/{pid}/task/{pid}/schedstat")
        self._began = self._worked()

    def close(self) -> None:
        self._shared.close()
        self.raw.close()

    def fresh(self) -> Engine:
        self.raw.flushall()
        return Engine(self._shared, prefix=PREFIX if self.site else f"f{next(self._number)}:")

    def forget(self) -> None:
        """What is noted from now on belongs to the next input."""
        self.raw.execute_command("SLOWLOG", "RESET")
        self._began = self._worked()

    def _worked(self) -> float:
        """ms of processor time the server's main thread has taken; infinity where the system does not say."""
        try:
            return int(self._schedule.read_text().split()[0]) / 1e6
        except OSError:
            return math.inf

    def held(self) -> dict[str, float]:
        """Function -> ms its slowest call held the server, of those since ``forget`` that are worth a note. A machine
        that does other things as well makes calls take longer: none took more than all the processor time."""
        found: dict[str, float] = {}
        worked = self._worked() - self._began
        most = math.inf if math.isnan(worked) else worked
        for entry in self.raw.slowlog_get(NOTED):
            words = entry["command"].decode(errors="replace").split(" ", 2)
            if words[0].upper().startswith("FCALL") and len(words) > 1:
                found[words[1]] = max(found.get(words[1], 0.0), min(most, entry["duration"] / 1000))
        return found

    def settled(self) -> bool:
        """Waits until the server answers again; whether it did by itself. A call without end is ended, and a server
        that does not listen to that is started anew."""
        if self._answers(PATIENCE):
            return True
        with contextlib.suppress(redis.RedisError):
            self.raw.execute_command("FUNCTION", "KILL")
        if not self._answers(OBEYS):
            with contextlib.suppress(redis.RedisError):
                self.close()
            self.server.revive()
            self._open()
        return False

    def _answers(self, within: float) -> bool:
        deadline = time.monotonic() + within
        while True:
            try:
                return bool(self.raw.ping())
            except redis.RedisError:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.1)


@contextlib.contextmanager
def stage(program: str | None = None) -> Iterator[Stage]:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="signalbox-fuzz-"))
        server = stack.enter_context(Server(Path(folder) / "server", program=program, persistent=False))
        found = Stage(server)
        stack.callback(found.close)
        yield found
