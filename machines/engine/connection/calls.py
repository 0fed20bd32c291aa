"""Calls of the functions library: loads the library when it is missing, turns every failure into an engine error."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from redis import RedisCluster, exceptions

from machines.engine import layout
from machines.engine.errors import BadInput, EngineFault, EngineUnavailable, NotPermitted
from machines.engine.keys import PREFIX, Keys

from . import library, routing, server_permissions
from .client import FAILURES, Client
from .connection_cache import get_cache
from .library_loader import MISSING, LibraryLoader

FAULT = "FAULT"  # the first word of a reply about a fault
# Codes of server errors after which nothing has changed and the same call may succeed later.
NOT_NOW = frozenset(
    ["OOM", "LOADING", "READONLY", "MISCONF", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "BUSY", "NOREPLICAS"]
)

Arg = str | int | bytes


def _code(error: Exception) -> str:
    """Return the code that a server error begins with; redis-py removes it where it has a class for the error."""
    return getattr(error, "status_code", None) or str(error).partition(" ")[0]


def translate(error: Exception) -> NoReturn:
    """Raise the engine error for a Redis error."""
    text = str(error) or type(error).__name__
    code = _code(error)
    if isinstance(error, exceptions.DataError):
        raise BadInput(f"Redis cannot take an argument: {text}", code="SB408") from error
    if isinstance(error, exceptions.ResponseError) and server_permissions.is_denied(text):
        raise NotPermitted([named] if (named := server_permissions.find_missing(text)) else []) from error
    if isinstance(error, exceptions.ResponseError) and code not in NOT_NOW:
        raise EngineFault(f"Redis answered: {text}") from error
    if isinstance(error, exceptions.TimeoutError):
        raise EngineUnavailable(
            f"Redis did not answer in time ({text}); the call may or may not have happened"
        ) from error
    if code == "OOM":
        raise EngineUnavailable("Redis is out of memory and takes no writes; nothing was changed") from error
    raise EngineUnavailable(f"Redis cannot be used now: {text}") from error


def _build_words(function: str, root: str | tuple[str, ...], args: Sequence[Arg]) -> Sequence[Arg]:
    command = "FCALL_RO" if function in library.read_only() else "FCALL"
    roots = (root,) if isinstance(root, str) else root
    return (command, function, len(roots), *roots, *args)


class Caller:
    """Sends FCALL and FCALL_RO on one client. Safe to share between threads."""

    def __init__(self, client: Client, prefix: str = PREFIX) -> None:
        self.client = client
        self._keys = Keys(prefix)
        self._loader = LibraryLoader(client, self._keys)
        self._loaded = False
        self._lock = threading.Lock()

    def call(self, function: str, root: str, *args: Arg) -> list[Any]:
        """Call a function and return its reply. Raises EngineUnavailable, EngineFault, NotPermitted."""
        if not self._loaded:
            self.ensure()
        words = _build_words(function, root, args)
        try:
            reply: list[Any] = self._check_permitted(self._exchange(words))
            return reply
        except FAILURES as error:
            if not isinstance(error, exceptions.ResponseError) or MISSING not in str(error):
                translate(self._name_missing(error, root))
        self.load_missing()
        return self.raw(*words)  # type: ignore[no-any-return]

    def command(self, *words: Arg) -> Any:
        """Send any other Redis command, with the same errors."""
        try:
            return self._send(*words)
        except FAILURES as error:
            translate(error)

    def raw(self, *words: Arg) -> Any:
        """Send a command like a function call and return its answer without redis-py's response callbacks."""
        try:
            return self._check_permitted(self._exchange(words))
        except FAILURES as error:
            translate(self._name_missing(error, str(words[3]) if len(words) > 3 else ""))

    def missing_commands(self, key: str) -> list[str]:
        """List those commands of ``server_permissions.STEP`` that the account in use may not run on a key like this
        one."""
        try:
            answers = routing.send_everywhere(self.client, ("FCALL_RO", "sb_permitted", 0, key))
        except FAILURES as error:
            translate(error)
        return list(dict.fromkeys(str(name) for answer in answers for name in answer[1:]))

    def _check_permitted(self, reply: Any) -> Any:
        """Return a reply; raise where a function met a command that the account may not run."""
        if type(reply) is list and reply and reply[0] == FAULT and server_permissions.is_denied(str(reply[-1])):
            raise exceptions.NoPermissionError(str(reply[-1]))
        return reply

    def _name_missing(self, error: Exception, key: str) -> Exception:
        """Return the error with the missing command named, where the server does not name it."""
        text = str(error)
        if (
            not isinstance(error, exceptions.ResponseError)
            or not server_permissions.is_denied(text)
            or server_permissions.find_missing(text)
        ):
            return error
        try:
            missing = self.missing_commands(key)
        except (EngineFault, EngineUnavailable):
            return error
        return exceptions.NoPermissionError(f"no permissions to run the '{missing[0]}' command") if missing else error

    def commands(self, sent: Sequence[tuple[str, Sequence[Arg]]]) -> list[Any]:
        """Send other commands in one round trip, each with the key that routes it; raise for the first that failed."""
        try:
            answers = routing.send(self.client, sent) if sent else []
        except FAILURES as error:
            translate(error)
        for answer in answers:
            if isinstance(answer, Exception):
                translate(answer)
        return answers

    def _send(self, *words: Arg) -> Any:
        return self.client.execute_command(*words)  # type: ignore[no-untyped-call]

    def _exchange(self, words: Sequence[Arg]) -> list[Any]:
        """Send one function call once, without the callbacks, metrics and retries of the client's own way."""
        if isinstance(self.client, RedisCluster) or self.client.connection is not None:
            reply: list[Any] = self._send(*words)
            return reply
        answer: list[Any] = get_cache(self.client.connection_pool).exchange(words)
        return answer

    @property
    def spread(self) -> bool:
        """Tell whether partitions live on several servers, so that a call may touch one of them only."""
        return isinstance(self.client, RedisCluster)

    def many(
        self,
        calls: Sequence[tuple[str, str | tuple[str, ...], Sequence[Arg]]],
        also: Sequence[tuple[str, Sequence[Arg]]] = (),
    ) -> list[Any]:
        """Send several calls in one round trip; return, in order, each reply or its Redis error. ``also``: other
        commands, each with the key that routes it; their answers come last."""
        if not calls:
            return []
        if not self._loaded:
            self.ensure()
        try:
            replies, others = self._pipeline(calls, also)
            if any(isinstance(r, exceptions.ResponseError) and MISSING in str(r) for r in replies):
                self.load_missing()
                again = [i for i, r in enumerate(replies) if isinstance(r, Exception) and MISSING in str(r)]
                for i, reply in zip(again, self._pipeline([calls[i] for i in again])[0], strict=True):
                    replies[i] = reply
            return [self._read_reply(reply, str(call[1])) for reply, call in zip(replies, calls, strict=True)] + others
        except FAILURES as error:
            translate(error)

    def _read_reply(self, reply: Any, key: str) -> Any:
        """Return a reply, or the error it stands for."""
        try:
            return self._check_permitted(reply) if not isinstance(reply, Exception) else self._name_missing(reply, key)
        except exceptions.NoPermissionError as error:
            return self._name_missing(error, key)

    def _pipeline(
        self,
        calls: Sequence[tuple[str, str | tuple[str, ...], Sequence[Arg]]],
        also: Sequence[tuple[str, Sequence[Arg]]] = (),
    ) -> tuple[list[Any], list[Any]]:
        words = [_build_words(function, root, args) for function, root, args in calls]
        answers = routing.send(self.client, [*((str(each[3]), each) for each in words), *also])
        return answers[: len(words)], answers[len(words) :]

    def ensure(self) -> None:
        """Load the library unless the server holds this very one or a newer one; refuse a data layout that this release
        cannot read."""
        with self._lock:
            if self._loaded:
                return
            self._run(self._loader.ensure)
            layout.check(self.command("HGETALL", self._keys.layout))
            self._loaded = True

    def require(self) -> None:
        """Ask the server for a library of any release; load this one where there is none."""
        self._run(self._loader.require)

    def load(self) -> None:
        """Load this library in place of the one the server has, on a cluster on every primary; a newer one stays."""
        self._run(self._loader.replace)

    def load_missing(self) -> None:
        """Load this library because the server lacks a function. Raises EngineFault where another library stays."""
        self._run(self._loader.load_missing)

    def _run(self, load: Callable[[], None]) -> None:
        try:
            load()
        except exceptions.ResponseError as error:
            if "unknown command" in str(error).lower():
                raise EngineFault(
                    "this server has no FUNCTION command: Signalbox needs Redis 7 or later, or Valkey"
                ) from error
            translate(error)
        except FAILURES as error:
            translate(error)
