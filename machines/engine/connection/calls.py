"""Calling the functions library: loads it when it is missing, turns every failure into an engine error."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NoReturn

from redis import RedisCluster, exceptions

from machines.engine.errors import BadInput, EngineFault, EngineUnavailable, NotPermitted

from . import library, routing, server_permissions
from .client import FAILURES, Client
from .connection_cache import get_cache

MISSING = "Function not found"
FAULT = "FAULT"  # how a reply begins that says that something broke
# Codes of server errors that mean "not now", for calls that have changed nothing.
NOT_NOW = frozenset(
    ["OOM", "LOADING", "READONLY", "MISCONF", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "BUSY", "NOREPLICAS"]
)

Arg = str | int | bytes


def _code(error: Exception) -> str:
    """The code a server error begins with; redis-py cuts it off where it has a class of its own for it."""
    return getattr(error, "status_code", None) or str(error).partition(" ")[0]


def translate(error: Exception) -> NoReturn:
    """Raise the engine error that says what a Redis error means for the caller."""
    text = str(error) or type(error).__name__
    code = _code(error)
    if isinstance(error, exceptions.DataError):
        raise BadInput(f"an argument is nothing Redis can take: {text}", code="SB408") from error
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


def _words(function: str, root: str | tuple[str, ...], args: Sequence[Arg]) -> Sequence[Arg]:
    command = "FCALL_RO" if function in library.read_only() else "FCALL"
    roots = (root,) if isinstance(root, str) else root
    return (command, function, len(roots), *roots, *args)


class Caller:
    """FCALL and FCALL_RO on one client. Safe to share between threads."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._loaded = False
        self._lock = threading.Lock()

    def call(self, function: str, root: str, *args: Arg) -> list[Any]:
        """One function call; the reply as it came. Raises EngineUnavailable or EngineFault."""
        if not self._loaded:
            self.ensure()
        words = _words(function, root, args)
        try:
            reply: list[Any] = self._permitted(self._exchange(words))
            return reply
        except FAILURES as error:
            if not isinstance(error, exceptions.ResponseError) or MISSING not in str(error):
                translate(self._named(error, root))
        self.load()
        return self.raw(*words)  # type: ignore[no-any-return]

    def command(self, *words: Arg) -> Any:
        """Any other Redis command, with the same errors."""
        try:
            return self._send(*words)
        except FAILURES as error:
            translate(error)

    def raw(self, *words: Arg) -> Any:
        """The same on the way of a function call; its answer as it came, without what the client makes of some."""
        try:
            return self._permitted(self._exchange(words))
        except FAILURES as error:
            translate(self._named(error, str(words[3]) if len(words) > 3 else ""))

    def lacking(self, key: str) -> list[str]:
        """Of ``permissions.STEP`` those commands that the account in use may not run on a key like this one."""
        try:
            answers = routing.send_everywhere(self.client, ("FCALL_RO", "sb_permitted", 0, key))
        except FAILURES as error:
            translate(error)
        return list(dict.fromkeys(str(name) for answer in answers for name in answer[1:]))

    def _permitted(self, reply: Any) -> Any:
        """Raises where a function met a command that the account may not run."""
        if type(reply) is list and reply and reply[0] == FAULT and server_permissions.is_denied(str(reply[-1])):
            raise exceptions.NoPermissionError(str(reply[-1]))
        return reply

    def _named(self, error: Exception, key: str) -> Exception:
        """The same, with what is missing where the server does not say it."""
        text = str(error)
        if (
            not isinstance(error, exceptions.ResponseError)
            or not server_permissions.is_denied(text)
            or server_permissions.find_missing(text)
        ):
            return error
        try:
            missing = self.lacking(key)
        except (EngineFault, EngineUnavailable):
            return error
        return exceptions.NoPermissionError(f"no permissions to run the '{missing[0]}' command") if missing else error

    def commands(self, sent: Sequence[tuple[str, Sequence[Arg]]]) -> list[Any]:
        """Other commands in one round trip, each with the key that routes it; raises for the first that failed."""
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
        """One function call, sent once, past what the client's own way there also does: callbacks, metrics, retries."""
        if isinstance(self.client, RedisCluster) or self.client.connection is not None:
            reply: list[Any] = self._send(*words)
            return reply
        answer: list[Any] = get_cache(self.client.connection_pool).exchange(words)
        return answer

    @property
    def spread(self) -> bool:
        """Do partitions live on several servers? Then a call has to do with one of them only."""
        return isinstance(self.client, RedisCluster)

    def many(
        self,
        calls: Sequence[tuple[str, str | tuple[str, ...], Sequence[Arg]]],
        also: Sequence[tuple[str, Sequence[Arg]]] = (),
    ) -> list[Any]:
        """Several calls in one round trip; each answer is a reply or the Redis error in its place. ``also``: other
        commands, each with the key that routes it; their answers come last."""
        if not calls:
            return []
        if not self._loaded:
            self.ensure()
        try:
            replies, others = self._pipeline(calls, also)
            if any(isinstance(r, exceptions.ResponseError) and MISSING in str(r) for r in replies):
                self.load()
                again = [i for i, r in enumerate(replies) if isinstance(r, Exception) and MISSING in str(r)]
                for i, reply in zip(again, self._pipeline([calls[i] for i in again])[0], strict=True):
                    replies[i] = reply
            return [self._judged(reply, str(call[1])) for reply, call in zip(replies, calls, strict=True)] + others
        except FAILURES as error:
            translate(error)

    def _judged(self, reply: Any, key: str) -> Any:
        """A reply in its place, or the error that it stands for."""
        try:
            return self._permitted(reply) if not isinstance(reply, Exception) else self._named(reply, key)
        except exceptions.NoPermissionError as error:
            return self._named(error, key)

    def _pipeline(
        self,
        calls: Sequence[tuple[str, str | tuple[str, ...], Sequence[Arg]]],
        also: Sequence[tuple[str, Sequence[Arg]]] = (),
    ) -> tuple[list[Any], list[Any]]:
        words = [_words(function, root, args) for function, root, args in calls]
        answers = routing.send(self.client, [*((str(each[3]), each) for each in words), *also])
        return answers[: len(words)], answers[len(words) :]

    def ensure(self) -> None:
        """Load the library unless the server already holds this very one."""
        with self._lock:
            if self._loaded:
                return
            try:
                held = self._held()
            except FAILURES as error:
                translate(error)
            if held != {library.fingerprint()}:
                self.load()
            self._loaded = True

    def require(self) -> None:
        """Some release's library is there, asked anew; this one is loaded where none is."""
        try:
            held = self._held()
        except FAILURES as error:
            translate(error)
        if not held:
            self.load()

    def _held(self) -> set[str]:
        """The libraries that are there: of a cluster, those of all its primaries; none where one has none."""
        try:
            found = routing.send_everywhere(self.client, ("FCALL_RO", "sb_library", 0))
        except exceptions.ResponseError as error:
            if MISSING in str(error):
                return set()
            raise
        return {str(held) for held in found}

    def load(self) -> None:
        """FUNCTION LOAD REPLACE, on every primary of a cluster."""
        try:
            self.client.function_load(library.text(), replace=True)
        except exceptions.ResponseError as error:
            if "unknown command" in str(error).lower():
                raise EngineFault(
                    "this server has no FUNCTION command: Signalbox needs Redis 7 or later, or Valkey"
                ) from error
            translate(error)
        except FAILURES as error:
            translate(error)
