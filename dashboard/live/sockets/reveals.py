"""Records in the audit which sensitive fields a socket shows: each name once while the socket is open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from channels.db import database_sync_to_async

from dashboard.live.topics import REDACTED, Topic
from machines.audit import reveals
from machines.audit.reveals import Viewer

log = logging.getLogger(__name__)


def viewer(user: Any, address: str | None) -> Viewer:
    """Return the viewer of a page. The page's sockets, and what it reads when it polls, count as the page."""
    return Viewer(user, f"page {address or ''}".strip())


class SocketDisclosures:
    def __init__(self, scope: dict[str, Any]) -> None:
        self._scope = scope
        self._noted: dict[Topic, frozenset[str]] = {}
        self._writing: set[asyncio.Task[None]] = set()

    def look(self, topics: Iterable[Topic], find_disclosed: Callable[[Topic], tuple[str, frozenset[str]]]) -> None:
        """Look for new disclosures after a frame went out. They are written in a task, so that no frame waits for the
        database."""
        for topic in topics:
            if topic.redacted or topic.kind not in REDACTED:
                continue
            instance, names = find_disclosed(topic)
            if names <= self._noted.get(topic, frozenset()):
                continue
            self._noted[topic] = names
            task = asyncio.create_task(self._write(topic.machine, instance, names), name="live disclosures")
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _write(self, machine: str, instance: str, names: frozenset[str]) -> None:
        client = self._scope.get("client")
        who = viewer(self._scope["user"], client[0] if client else "")
        try:
            await database_sync_to_async(reveals.note)(who, machine, {instance: names})
        except Exception:
            log.exception("what %s/%s showed could not be noted", machine, instance)
