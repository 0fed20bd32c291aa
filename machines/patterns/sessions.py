"""Sessions: state under an unguessable token, so that the processes that serve a client keep no state of their own.

    sessions = Sessions(engine.client, "carts", prefix=engine.keys.prefix, ttl=3600, lifetime=86_400)
    made = sessions.create("user-7", {"items": []})  # made.token goes to the client, this once
    held = sessions.get(made.token)  # whose it is and what it holds; Gone if nothing
    sessions.put(made.token, {"items": ["tea"]}, expect=held.revision)  # Changed if another client wrote first
    made = sessions.rotate(made.token)  # another token, as after a change of rights
    sessions.revoke_all("user-7")  # the person's other browsers, too

A token has the form ``<part>.<handle>.<secret>``. Redis keeps only the SHA-256 of the secret, which is 256 random bits:
nobody can open a session with what they read in Redis, a backup or a log. The handle is public; lists name sessions by
it, and it stays when the token is rotated. The subject determines the part, so that all its sessions are in one slot of
a cluster.

Promised: each operation is one call; of several writers that expect the same revision one wins; of several that rotate
the same token one wins; after ``revoke`` or ``revoke_all`` a session no longer opens; everything has an expiry, and no
use extends a session beyond ``lifetime``. A token that never existed, has expired, was revoked or belongs to another
container is always ``Gone``.

Not promised: that a session survives a Redis that is wiped; that an acknowledged write survives a failover or the
return to an older file (this includes a revocation: such a session opens again until it expires); that the holder of a
token is the person that it was made for (send it only by TLS, never in a URL).

An expiry slides in hundredths of ``ttl``, so a busy session is written at most a hundred times in that time. A session
may end up to one hundredth of ``ttl`` earlier than its last use would allow.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from machines.engine.connection.calls import Arg
from machines.engine.connection.client import Client
from machines.engine.connection.replies import Status, read_whole
from machines.engine.errors import BadInput, EngineFault
from machines.engine.keys import PREFIX, choose_partition

from . import base
from .base import OK, Changed, Full, Gone, Pattern

MAX_TTL = 366 * 86_400  # seconds
MAX_GRACE = 3600  # seconds
MAX_PARTITIONS = 64
MAX_STATE = 2**20  # bytes
MAX_EACH = 1000  # sessions of one subject
REFUSALS = (Status.GONE, Status.CONFLICT)
TOKEN = re.compile(r"(\d{1,2})\.([0-9a-f]{16})\.([A-Za-z0-9_-]{43})", re.ASCII)
HANDLE = re.compile(r"[0-9a-f]{16}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Held:
    """One session as lists show it. ``handle``: its public name. ``created``, ``expires``: ms since the epoch."""

    handle: str
    subject: str
    state: dict[str, Any]
    revision: int
    created: int
    expires: int


@dataclass(frozen=True, slots=True)
class Session(Held):
    """A session with its ``token``, which Redis does not store and ``repr`` does not show."""

    token: str = field(repr=False)


class Sessions(Pattern):
    """One container. All processes that name it alike share it; give them the same options.

    ``ttl``: seconds a session holds; with ``sliding``, since its last use. ``lifetime``: seconds after which it ends
    however much it is used; None: never. ``max_bytes``: of a state as JSON. ``most``: sessions of one subject, and
    with ``drop`` the one that ends first goes for the next, where else that is refused. ``partitions``: over how many
    slots of a cluster subjects are spread; changing it ends the sessions of subjects that move.
    """

    def __init__(
        self, redis: Client, name: str, *, prefix: str = PREFIX, ttl: float = 3600.0, sliding: bool = True,
        lifetime: float | None = None, max_bytes: int = 16_384, most: int = 100, drop: bool = False,
        partitions: int = 1,
    ) -> None:  # fmt: skip
        super().__init__(redis, prefix)
        self.name = base.check_name(name)
        self._ttl = base.check_seconds(ttl, "ttl", most=MAX_TTL)
        self._lifetime = 0 if lifetime is None else base.check_seconds(lifetime, "lifetime", most=MAX_TTL)
        self._max_bytes = base.check_whole(max_bytes, "max_bytes", 2, MAX_STATE)
        self._most = base.check_whole(most, "most", 1, MAX_EACH)
        self._partitions = base.check_whole(partitions, "partitions", 1, MAX_PARTITIONS)
        self._roots = [self._keys.session(name, part).root for part in range(partitions)]
        self._slides, self._drops = (int(base.check_flag(sliding, "sliding")), int(base.check_flag(drop, "drop")))

    def create(
        self, subject: str, state: Mapping[str, Any] | None = None, *, ttl: float | None = None, now: int | None = None
    ) -> Session:
        """Create a session and return it with the only copy of its token. ``now``: ms, in place of the server's clock.

        Raises Full where the subject has ``most`` sessions and none may be dropped, BadInput, EngineUnavailable.
        """
        part = self._part(subject)
        text, at = self._text({} if state is None else state), base.check_now(now)
        held = self._ttl if ttl is None else base.check_seconds(ttl, "ttl", most=MAX_TTL)
        options = (held, self._slides, self._lifetime, self._most, self._drops, at)
        for _ in range(3):  # a handle is already taken once in a billion times
            handle, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
            words = (handle, _digest(secret), subject, text, *options)
            reply = self._ask("sb_session_create", self._root(part), *words, also=(Status.EXISTS, Status.FULL))
            if reply[0] == Status.OK:
                return _session(reply, f"{part}.{handle}.{secret}")
            if reply[0] == Status.FULL:
                raise Full(f"there are {int(reply[1])} sessions of {subject!r:.80}; {self._most} is the most")
        raise EngineFault("no handle for a session was free")

    def get(self, token: str, *, now: int | None = None) -> Session:
        """Return the session of a token; a use prolongs a sliding session. Raises Gone, EngineUnavailable."""
        return self._call_by_token("sb_session_get", token, base.check_now(now))

    def put(
        self, token: str, state: Mapping[str, Any], *, expect: int | None = None, now: int | None = None
    ) -> Session:
        """Replace the state of a session. ``expect``: the revision the caller saw; any other raises Changed.

        Raises Gone, Changed, BadInput, EngineUnavailable. Counts as a use.
        """
        text, at = self._text(state), base.check_now(now)
        seen = "" if expect is None else str(base.check_whole(expect, "expect", 0, base.MAX_EXACT - 1))
        return self._call_by_token("sb_session_put", token, text, seen, at, expect=expect)

    def rotate(self, token: str, *, grace: float = 0.0, now: int | None = None) -> Session:
        """Return the same session under a new token; for ``grace`` seconds the former token still opens it, but cannot
        rotate it.

        Of several that rotate one token, one gets a session, the others Gone.
        """
        parting, at, secret = _check_grace(grace), base.check_now(now), secrets.token_urlsafe(32)
        return self._call_by_token("sb_session_rotate", token, "", _digest(secret), parting, at, secret=secret)

    def rotate_handle(self, subject: str, handle: str, *, grace: float = 0.0, now: int | None = None) -> Session:
        """Rotate the token of a session by its handle, when the token is lost. Raises Gone where the subject has no
        such session."""
        part, parting, at, secret = (
            self._part(subject),
            _check_grace(grace),
            base.check_now(now),
            secrets.token_urlsafe(32),
        )
        words = (_handle(handle), "", subject, _digest(secret), parting, at)
        reply = self._ask("sb_session_rotate", self._root(part), *words, also=(Status.GONE,))
        if reply[0] == Status.GONE:
            raise _make_gone()
        return _session(reply, f"{part}.{handle}.{secret}")

    def revoke(self, token: str, *, now: int | None = None) -> bool:
        """End the session of a token; return whether it was valid until now."""
        part, at = self._parse_token(token), base.check_now(now)
        return part is not None and self._revoke(part[0], "one", part[1], part[2], "", at) == 1

    def revoke_handle(self, subject: str, handle: str, *, now: int | None = None) -> bool:
        """End a session by its handle; return False where the subject has no such session."""
        return self._revoke(self._part(subject), "one", _handle(handle), "", subject, base.check_now(now)) == 1

    def revoke_all(self, subject: str, *, but: str | None = None, now: int | None = None) -> int:
        """End all sessions of a subject; return how many. ``but``: the handle of one to keep, such as the caller's
        own."""
        spared = "" if but is None else _handle(but)
        return self._revoke(self._part(subject), "all", spared, "", subject, base.check_now(now))

    def of(self, subject: str, *, now: int | None = None) -> list[Held]:
        """List the sessions of a subject, the first to end in front. Prolongs nothing."""
        reply = self._ask("sb_session_list", self._root(self._part(subject)), subject, base.check_now(now))
        return _list_held(subject, reply)

    def of_each(self, subjects: Sequence[str], *, now: int | None = None) -> dict[str, list[Held]]:
        """List the sessions of several subjects, in one round trip."""
        if not isinstance(subjects, list | tuple):
            raise BadInput(f"subjects are a list of subjects, not {subjects!r:.80}", code="SB408")
        at = base.check_now(now)
        replies = self._ask_all([("sb_session_list", self._root(self._part(one)), (one, at)) for one in subjects])
        return {one: _list_held(one, reply) for one, reply in zip(subjects, replies, strict=True)}

    def _call_by_token(
        self, function: str, token: str, *args: Arg, expect: int | None = None, secret: str = ""
    ) -> Session:
        """Call a function for a token. ``args``: what follows handle and digest. ``secret``: the new one, if any."""
        found = self._parse_token(token)
        if found is None:
            raise _make_gone()
        part, handle, digest = found
        reply = self._ask(function, self._root(part), handle, digest, *args, also=REFUSALS)
        if reply[0] != OK:
            if reply[0] == Status.GONE:
                raise _make_gone()
            raise Changed(f"the session {handle}", expected=expect, actual=int(reply[1]))
        return _session(reply, f"{part}.{handle}.{secret}" if secret else token)

    def _parse_token(self, token: Any) -> tuple[int, str, str] | None:
        """Return part, handle and digest; None for a text that cannot be a token of this container."""
        found = TOKEN.fullmatch(token) if isinstance(token, str) else None
        if found is None or int(found[1]) >= self._partitions or str(int(found[1])) != found[1]:
            return None
        return int(found[1]), found[2], _digest(found[3])

    def _revoke(self, part: int, *words: Arg) -> int:
        return int(self._ask("sb_session_revoke", self._root(part), *words)[1])

    def _part(self, subject: str) -> int:
        return choose_partition(base.check_key(subject, "a subject"), self._partitions)

    def _root(self, part: int) -> str:
        return self._roots[part]

    def _text(self, state: Any) -> str:
        if not isinstance(state, Mapping):
            raise BadInput(f"state is a JSON object, not {state!r:.80}", code="SB408")
        return base.encode_document(dict(state), "state", most=self._max_bytes)


def _session(reply: Sequence[Any], token: str) -> Session:
    handle, subject, state, revision, created, expires = reply[1:7]
    return Session(
        str(handle), str(subject), _state(state), read_whole(revision), read_whole(created), read_whole(expires), token
    )  # fmt: skip


def _list_held(subject: str, reply: Sequence[Any]) -> list[Held]:
    return [
        Held(str(handle), subject, _state(state), read_whole(revision), read_whole(created), read_whole(expires))
        for handle, state, revision, created, expires in reply[1:]
    ]


def _state(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise EngineFault("the state of a session is damaged: another program wrote its key")
    return found


def _make_gone() -> Gone:
    return Gone("there is no such session (any more): it has expired, was revoked, or never was")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _handle(value: Any) -> str:
    if not isinstance(value, str) or not HANDLE.fullmatch(value):
        raise BadInput(f"a handle has 16 hexadecimal digits, not {value!r:.80}", code="SB401")
    return value


def _check_grace(grace: Any) -> int:
    return base.check_seconds(grace, "grace", least=0, most=MAX_GRACE)
