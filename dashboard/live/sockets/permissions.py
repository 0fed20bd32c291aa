"""Reads which account a session belongs to and what that account may watch, afresh for each command, and again now and
then for open sockets; records which sensitive fields a socket shows."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Protocol

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model, load_backend
from django.utils.crypto import constant_time_compare

from dashboard.live.limits import Limits, limits
from dashboard.live.topics import PLAIN, REDACTED, RIGHTS, Topic
from dashboard.shared.concurrency_limits import PerLoop
from machines.audit import reveals
from machines.audit.request_context import run_in_own_context
from machines.audit.reveals import Viewer
from machines.people.permissions import EVERYTHING, NOTHING, Scope, scope_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rights:
    """``held``: by each right that a topic needs, the machines it is held on; ``reveal``: those seen without a mask."""

    held: Mapping[str, Scope]
    reveal: Scope = NOTHING

    @classmethod
    def of(cls, user: Any) -> Rights:
        return cls({right: scope_of(user, right) for right in set(RIGHTS.values())}, scope_of(user, "reveal"))

    def permit(self, topic: Topic) -> Topic | None:
        """Return the topic as it may be watched; None if it may not be watched at all."""
        scope = self.held[topic.right]
        if topic.kind in PLAIN:
            return replace(topic, scope=scope) if scope else None
        if topic.machine not in scope:
            return None
        kin = scope if topic.kind == "instance" else EVERYTHING
        return replace(topic, redacted=topic.kind in REDACTED and topic.machine not in self.reveal, scope=kin)


def least(topic: Topic) -> Topic:
    """Return the topic with the least that any account may watch: for an account whose permissions are unknown."""
    if topic.kind in (*PLAIN, "instance"):
        topic = replace(topic, scope=NOTHING)
    return replace(topic, redacted=topic.kind in REDACTED)


# Threads of their own: a session store that hangs must not hold up the rest of the site.
_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="live-rights")


class RightsUnknown(Exception):
    """The session store or the database did not answer; nobody may be shown anything on a guess."""


async def look(sessions: Sequence[str], *, deadline: float) -> Mapping[str, Rights | None]:
    """Look up the permissions of each session key; None if nobody is signed in (any more). Raises RightsUnknown."""
    ask = database_sync_to_async(_look, thread_sensitive=False, executor=_threads)
    try:
        async with asyncio.timeout(deadline):  # not wait_for, which loses a cancellation in Python 3.11
            return await ask(sessions)
    except Exception as error:
        raise RightsUnknown(repr(error)) from error


AT_ONCE, TOGETHER = 2, 50  # looks under way, and sessions in one


class Asking:
    """Looks up the rights of sessions in batches: all who ask before a look begins share its result, so that many
    commands of a person do not cost one look each."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Rights | None]] = {}
        self._looks: set[asyncio.Task[None]] = set()

    async def ask(self, session: str, *, deadline: float) -> Rights | None:
        """Look up the permissions of a session; None if nobody is signed in. Raises RightsUnknown."""
        found = self._waiting.get(session)
        if found is None:
            found = self._waiting[session] = asyncio.get_running_loop().create_future()
            if len(self._looks) < AT_ONCE:
                task = asyncio.create_task(self._run(deadline), name="live rights", context=run_in_own_context())
                self._looks.add(task)
                task.add_done_callback(self._looks.discard)
        return await asyncio.shield(found)

    async def _run(self, deadline: float) -> None:
        while self._waiting:
            batch = {key: self._waiting.pop(key) for key in list(self._waiting)[:TOGETHER]}
            try:
                rights = await look(list(batch), deadline=deadline)
            except RightsUnknown as error:
                for future in batch.values():
                    future.set_exception(error)
                    future.exception()  # who asked may be gone
            else:
                for session, future in batch.items():
                    future.set_result(rights[session])


asking = PerLoop(Asking)
"""Returns the ``Asking`` of the running event loop."""


def _look(sessions: Sequence[str]) -> dict[str, Rights | None]:
    found = {key: _find_user(key) for key in sessions}
    return {key: None if user is None else Rights.of(user) for key, user in found.items()}


def _find_user(key: str) -> Any:
    """Return the active user that a session belongs to, or None.

    It checks what ``django.contrib.auth.get_user`` checks. That function may also end or rename the session, which must
    not happen here, where no cookie can be set.
    """
    session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    try:
        pk = get_user_model()._meta.pk.to_python(session[SESSION_KEY])
        backend = session[BACKEND_SESSION_KEY]
    except KeyError:
        return None
    if backend not in settings.AUTHENTICATION_BACKENDS:
        return None
    user = load_backend(backend).get_user(pk)  # inactive users are not given out
    return user if user is not None and _is_theirs(session.get(HASH_SESSION_KEY, ""), user) else None


def _is_theirs(given: str, user: Any) -> bool:
    """Compare the session's hash with the user's; return False once the password was changed."""
    valid = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(given, hash) for hash in valid)


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


#: sessions looked at in one go, so that one pass never holds a thread for long
BATCH = 50
#: seconds to the next pass while some rights are unknown: their sockets get nothing until it succeeds
AFTER_DOUBT = 1.0


class WatchedTopics(Protocol):
    session: str

    def apply_rights(self, rights: Rights | None) -> None:
        """Receive what the session may do now; None: nobody is signed in."""

    def mute(self) -> None:
        """React to permissions that are unknown at present."""


class SessionMonitor:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._watched: set[WatchedTopics] = set()
        self._doubt = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def enter(self, socket: WatchedTopics) -> None:
        self._watched.add(socket)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="session monitor", context=run_in_own_context())

    def exit(self, socket: WatchedTopics) -> None:
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
    def _pass_on(sockets: Mapping[str, list[WatchedTopics]], rights: Mapping[str, Rights | None]) -> None:
        for session, held in rights.items():
            for socket in sockets[session]:
                socket.apply_rights(held)

    def _doubt_all(self, sockets: Mapping[str, list[WatchedTopics]], sessions: list[str]) -> None:
        self.hurry()
        for session in sessions:
            for socket in sockets[session]:
                socket.mute()


session_monitor = PerLoop(lambda: SessionMonitor(limits()))
"""Returns the monitor of the running event loop."""
