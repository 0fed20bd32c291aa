"""Checks the permissions behind each open socket every few seconds, and closes or mutes it when they are gone.

One look for each session, however many tabs it has open.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections import defaultdict
from collections.abc import Mapping
from typing import Protocol

from dashboard.live.limits import Limits, limits
from machines.audit.request_context import run_in_own_context

from .permissions import Rights, RightsUnknown, look

log = logging.getLogger(__name__)
#: sessions looked at in one go, so that one pass never holds a thread for long
BATCH = 50
#: seconds to the next pass while some rights are unknown: their sockets get nothing until it succeeds
AFTER_DOUBT = 1.0


class Watched(Protocol):
    session: str

    def apply_rights(self, rights: Rights | None) -> None:
        """Receive what the session may do now; None: nobody is signed in."""

    def mute(self) -> None:
        """React to permissions that are unknown at present."""


class SessionMonitor:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._watched: set[Watched] = set()
        self._doubt = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def enter(self, socket: Watched) -> None:
        self._watched.add(socket)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="session monitor", context=run_in_own_context())

    def exit(self, socket: Watched) -> None:
        self._watched.discard(socket)
        if not self._watched and self._task is not None:
            self._task.cancel()
            self._task = None

    def hurry(self) -> None:
        """Make the next pass come soon, because some permissions are unknown."""
        self._doubt.set()

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):  # and not wait_for, which loses a cancellation in Python 3.11
                async with asyncio.timeout(self._limits.recheck):
                    await self._doubt.wait()
                await asyncio.sleep(min(AFTER_DOUBT, self._limits.recheck))
            self._doubt.clear()
            await self.go_round()

    async def go_round(self) -> None:
        """Make one pass over all sockets."""
        sockets = defaultdict(list)
        for socket in self._watched:
            sockets[socket.session].append(socket)
        sessions = list(sockets)
        for start in range(0, len(sessions), BATCH):
            batch = sessions[start : start + BATCH]
            try:
                self._pass_on(sockets, await look(batch, deadline=self._limits.recheck_deadline))
            except RightsUnknown as error:
                log.warning("the rights of %d sessions are unknown: %s", len(batch), error)
                self._doubt_all(sockets, batch)

    @staticmethod
    def _pass_on(sockets: Mapping[str, list[Watched]], rights: Mapping[str, Rights | None]) -> None:
        for session, held in rights.items():
            for socket in sockets[session]:
                socket.apply_rights(held)

    def _doubt_all(self, sockets: Mapping[str, list[Watched]], sessions: list[str]) -> None:
        self.hurry()
        for session in sessions:
            for socket in sockets[session]:
                socket.mute()


_monitors: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, SessionMonitor] = weakref.WeakKeyDictionary()


def session_monitor() -> SessionMonitor:
    """Return the monitor of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _monitors.get(loop)
    if found is None:
        found = _monitors[loop] = SessionMonitor(limits())
    return found
