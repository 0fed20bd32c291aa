"""Who sits behind a session right now, and what they may watch: asked afresh, never remembered from the handshake."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model, load_backend
from django.utils.crypto import constant_time_compare

from dashboard.live.topics import PLAIN, RIGHTS, VEILED, Topic
from machines.access import EVERYTHING, NOTHING, Scope, scope_of


@dataclass(frozen=True, slots=True)
class Rights:
    """``held``: by each right that a topic needs, the machines it is held on; ``reveal``: those seen without a mask."""

    held: Mapping[str, Scope]
    reveal: Scope = NOTHING

    @classmethod
    def of(cls, user: Any) -> Rights:
        return cls({right: scope_of(user, right) for right in set(RIGHTS.values())}, scope_of(user, "reveal"))

    def sight(self, topic: Topic) -> Topic | None:
        """The topic as it may be watched; None where it may not be at all."""
        scope = self.held[topic.right]
        if topic.kind in PLAIN:
            return replace(topic, scope=scope) if scope else None
        if topic.machine not in scope:
            return None
        kin = scope if topic.kind == "instance" else EVERYTHING
        return replace(topic, veiled=topic.kind in VEILED and topic.machine not in self.reveal, scope=kin)


def least(topic: Topic) -> Topic:
    """The topic as anybody may watch it, of whom it is not known what they may."""
    if topic.kind in (*PLAIN, "instance"):
        topic = replace(topic, scope=NOTHING)
    return replace(topic, veiled=topic.kind in VEILED)


# Threads of their own: a session store that hangs must not hold up the rest of the site.
_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="live-rights")


class RightsUnknown(Exception):
    """The session store or the database did not answer; nobody may be shown anything on a guess."""


async def look(sessions: Sequence[str], *, deadline: float) -> Mapping[str, Rights | None]:
    """For each session key the rights behind it, None where nobody is signed in (any more). Raises RightsUnknown."""
    ask = database_sync_to_async(_look, thread_sensitive=False, executor=_threads)
    try:
        return await asyncio.wait_for(ask(sessions), deadline)
    except Exception as error:
        raise RightsUnknown(repr(error)) from error


def _look(sessions: Sequence[str]) -> dict[str, Rights | None]:
    found = {key: _user_of(key) for key in sessions}
    return {key: None if user is None else Rights.of(user) for key, user in found.items()}


def _user_of(key: str) -> Any:
    """The active user a session belongs to, or None.

    The same questions as ``django.contrib.auth.get_user``, which may also end or rename the session: that must not
    happen here, where no cookie can be set.
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
    """False once the password was changed."""
    valid = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(given, hash) for hash in valid)
