"""Reads which account a session belongs to and what that account may watch, afresh for each command."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model, load_backend
from django.utils.crypto import constant_time_compare

from dashboard.live.topics import PLAIN, REDACTED, RIGHTS, Topic
from machines.audit import reveals
from machines.audit.request_context import run_in_own_context
from machines.audit.reveals import Viewer
from machines.people.permissions import EVERYTHING, NOTHING, Scope, scope_of


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


_asking: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Asking] = weakref.WeakKeyDictionary()


def asking() -> Asking:
    """Return the ``Asking`` of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _asking:
        _asking[loop] = Asking()
    return _asking[loop]


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
