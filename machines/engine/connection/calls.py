"""Calls of the functions library: loads the library when it is missing, turns every failure into an engine error."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NoReturn, TypeVar

from redis import exceptions

from machines.engine import data_layout
from machines.engine.errors import UNREADABLE, BadInput, EngineFault, EngineUnavailable, NotPermitted, SignalboxError
from machines.engine.keys import PREFIX, Keys, get_machine

from . import library, retries, routing, server_permissions, waiting
from .client import FAILURES, Client
from .cluster_routing import NODE
from .library_loader import MISSING, LibraryLoader, Visit
from .retries import is_refused, note_answers, note_change, writes

log = logging.getLogger(__name__)

FAULT, OK = "FAULT", "OK"  # first words of replies
PORTION = 12  # calls of a batch that are sent while the next are made
# Codes of server errors after which nothing has changed and the same call may succeed later.
NOT_NOW = frozenset(
    "OOM LOADING READONLY MISCONF CLUSTERDOWN TRYAGAIN MASTERDOWN BUSY NOREPLICAS MOVED ASK".split()  # noqa: SIM905
)
OTHER_KEYS = 8  # that are tried for a node which answers: they lie on three nodes nearly always
LAYOUT_EVERY = 5.0  # seconds between two tries to read the layout where a cluster's node that has it is away

Arg = str | int | bytes
Result = TypeVar("Result")


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
    safe = is_refused(error)
    node = getattr(error, NODE, "")
    if isinstance(error, exceptions.TimeoutError) and not safe:
        raise EngineUnavailable(
            f"Redis did not answer in time ({text}); the call may or may not have happened", node=node
        ) from error
    if code == "OOM":
        raise EngineUnavailable(
            "Redis is out of memory and takes no writes; nothing was changed", retry_safe=True
        ) from error
    known = "; nothing was changed, and the call can be repeated" if safe else "; the call may or may not have happened"
    raise EngineUnavailable(f"Redis cannot be used now: {text}{known}", retry_safe=safe, node=node) from error


def _build_words(function: str, root: str | tuple[str, ...], args: Sequence[Arg]) -> Sequence[Arg]:
    command = "FCALL_RO" if function in library.read_only() else "FCALL"
    roots = (root,) if isinstance(root, str) else root
    return (command, function, len(roots), *roots, *args)


def _writes_any(calls: Iterable[tuple[str, Any, Any]]) -> bool:
    reading = library.read_only()
    return any(function not in reading for function, _, _ in calls)


def keep_available(answers: Sequence[Any]) -> list[Any]:
    """Return answers with an EngineUnavailable in place of each that a server did not give. Raises any other error, and
    EngineUnavailable where no server answered."""
    require_any(answers)
    found: list[Any] = []
    for answer in answers:
        try:
            found.append(answer if not isinstance(answer, Exception) else translate(answer))
        except EngineUnavailable as error:
            found.append(error)
    return found


def require_any(answers: Sequence[Any]) -> None:
    """Raise EngineUnavailable where no server answered any of several calls; other errors count as answers."""
    unavailable = None
    for answer in answers:
        if not isinstance(answer, Exception):
            return
        try:
            translate(answer)
        except EngineUnavailable as error:
            unavailable = unavailable or error
        except SignalboxError:
            return
    if unavailable is not None:
        raise unavailable


class Caller:
    """Sends FCALL and FCALL_RO on one client. Safe to share between threads."""

    def __init__(self, client: Client, prefix: str = PREFIX) -> None:
        self.client = client
        self._keys = Keys(prefix)
        self._loader = LibraryLoader(client, self._keys, lambda: data_layout.claim(self.command, self._keys))
        self._loaded = False
        self._ensured_until = 0.0  # moment of the monotonic clock
        self._lock = waiting.Lock()

    def call(self, function: str, root: str, *args: Arg) -> list[Any]:
        """Call a function and return its reply. Raises EngineUnavailable, EngineFault, NotPermitted."""
        if not self._loaded:
            self.ensure()
        words = _build_words(function, root, args)
        try:
            reply = self._check_permitted(self._router.exchange(root, words))
            found: list[Any] = self._follow(function, root, args, reply) if retries.is_elsewhere(reply) else reply
        except FAILURES as error:
            if not isinstance(error, exceptions.ResponseError) or MISSING not in str(error):
                note_answers(writes(words), [error])
                translate(self._name_missing(error, root))
        else:
            if writes(words):
                note_answers(True, [found])
            return found
        self.load_missing()
        return self.raw(*words)  # type: ignore[no-any-return]

    def compute(self, function: str, root: str, *args: Arg) -> list[Any]:
        """Call a function that reads no key: on the server of ``root``, and of a cluster on another node where that
        one does not answer. Raises as ``call``."""
        machine, others = get_machine(root), OTHER_KEYS if self.spread else 0
        for number in range(others):
            with contextlib.suppress(EngineUnavailable):
                return self.call(function, self._keys.partition(machine, number).root, *args)
        return self.call(function, root, *args)

    def _follow(self, function: str, root: str, args: Sequence[Arg], reply: list[Any]) -> list[Any]:
        """Make the call where the instance is now."""
        id = args[{"sb_jobs": 2, "sb_migrate": 5}.get(function, 0)]
        return retries.follow(
            lambda there: self._check_permitted(self._router.exchange(there, _build_words(function, there, args))),
            lambda there: self._arrive(there, id),
            root,
            reply,
        )

    def _find(self, root: str, args: Sequence[Arg]) -> list[Any]:
        """Read an instance where it is now, to learn where that is."""
        return self.call("sb_get", root, args[0])

    def _arrive(self, root: str, id: Arg) -> None:
        """Bring an instance into force that has departed from its old partition. An account that may only read leaves
        it to others."""
        with contextlib.suppress(*FAILURES):
            self._router.exchange(root, _build_words("sb_arrive", root, ("", "", "arrive", id)))

    def command(self, *words: Arg) -> Any:
        """Send any other Redis command, with the same errors. On a cluster, one without a key goes to any primary."""
        with self._noting(writes(words)):
            return routing.execute(self.client, words)

    def everywhere(self, *words: Arg) -> list[Any]:
        """Send a command without a key to every primary; return the answers of those that can be reached."""
        with self._noting(writes(words)):
            return routing.send_everywhere(self.client, words)

    def read_clocks(self) -> list[int]:
        """Return the time of each primary that can be reached, in ms."""
        return [int(seconds) * 1000 + int(micros) // 1000 for seconds, micros in self.everywhere("TIME")]

    def call_and_wait(self, function: str, root: str, *args: Arg, replicas: int, timeout: int) -> tuple[list[Any], int]:
        """Call a function, and wait on the same connection until so many replicas have written its step, for
        ``timeout`` ms at most; return its reply, and the number of replicas that have. Raises as ``call``."""
        (reply,), (written,) = self.many_and_wait([(function, root, args)], replicas=replicas, timeout=timeout)
        if isinstance(reply, Exception):
            translate(reply)
        return reply, written

    def many_and_wait(
        self, calls: Sequence[tuple[str, str, Sequence[Arg]]], *, replicas: int, timeout: int
    ) -> tuple[list[Any], list[int]]:
        """Send several calls in one round trip, and wait on each connection as ``call_and_wait`` does; return, in
        order, each reply or its Redis error, and the number of replicas that have written its step."""
        if not self._loaded:
            self.ensure()
        sent = [(root, _build_words(function, root, args)) for function, root, args in calls]
        wait = ("WAIT", replicas, timeout)
        with self._noting(any(writes(words) for _, words in sent)) as noted:
            answers, written = self._router.send(sent, wait)
            again = [n for n, a in enumerate(answers) if isinstance(a, exceptions.ResponseError) and MISSING in str(a)]
            if again:
                self.load_missing()
                for n, answer, count in zip(again, *self._router.send([sent[n] for n in again], wait), strict=True):
                    answers[n], written[n] = answer, count
            noted += answers
        for n, answer in enumerate(answers):
            if retries.is_elsewhere(answer):
                function, root, args = calls[n]
                there = retries.get_root(self._find(root, args), root)
                if there != root:
                    call = (function, there, args)
                    (answers[n],), (written[n],) = self.many_and_wait([call], replicas=replicas, timeout=timeout)
        found = [self._read_reply(answer, call[1]) for answer, call in zip(answers, calls, strict=True)]
        return found, [0 if isinstance(count, Exception) else int(count) for count in written]

    def command_and_wait(self, key: str, words: Sequence[Arg], *, replicas: int, timeout: int) -> int:
        """Send another command, and wait as ``call_and_wait`` does; return the number of replicas that have it."""
        with self._noting(writes(words)) as answers:
            (answer,), (written,) = self._router.send([(key, words)], ("WAIT", replicas, timeout))
            answers.append(answer)
        if isinstance(answer, Exception):
            translate(answer)
        return 0 if isinstance(written, Exception) else int(written)

    def raw(self, *words: Arg) -> Any:
        """Send a command like a function call and return its answer without redis-py's response callbacks."""
        with self._noting(writes(words), key=str(words[3]) if len(words) > 3 else ""):
            return self._check_permitted(routing.exchange(self.client, words))

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
        if isinstance(reply, list) and reply and reply[0] == FAULT and server_permissions.is_denied(str(reply[-1])):
            raise exceptions.NoPermissionError(str(reply[-1]))
        return reply

    @contextlib.contextmanager
    def _noting(self, writing: bool, key: str = "") -> Iterator[list[Any]]:
        """Raise the engine error for an error of Redis, and note in the attempt whether what was sent, and writes, may
        have been carried out. Yields a list for the answers; where it stays empty the one answer was no error."""
        answers: list[Any] = []
        try:
            yield answers
        except FAILURES as error:
            note_answers(writing, [error])
            translate(self._name_missing(error, key) if key else error)
        note_answers(writing, answers or [None])

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
        answers = self._send(sent)
        for answer in answers:
            if isinstance(answer, Exception):
                translate(answer)
        return answers

    def commands_available(self, sent: Sequence[tuple[str, Sequence[Arg]]]) -> list[Any]:
        """Send other commands as ``commands`` does; return the answers as ``keep_available`` does."""
        return keep_available(self._send(sent))

    def _send(self, sent: Sequence[tuple[str, Sequence[Arg]]]) -> list[Any]:
        with self._noting(any(writes(words) for _, words in sent)) as answers:
            answers += routing.send(self.client, sent) if sent else []
        return answers

    @property
    def _router(self) -> routing.Router:
        return routing.get_router(self.client)

    @property
    def spread(self) -> bool:
        """Tell whether partitions live on several servers, so that a call may touch one of them only."""
        return self._router.spread

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
        with self._noting(_writes_any(calls)) as answers:
            replies, others = self._pipeline(calls, also)
            answers += self._complete(calls, replies) + others
        return answers

    def stream(self, calls: Iterable[tuple[str, str, Sequence[Arg]]]) -> Iterator[tuple[int, Any]]:
        """Send several calls in one round trip, each as soon as it is made; yield the place of each and its reply, or
        its Redis error: replies that say OK as they arrive, all others behind them. Raises as ``call``."""
        if not self._loaded:
            self.ensure()
        sent: list[tuple[str, str, Sequence[Arg]]] = []
        late: list[tuple[int, Any]] = []

        def make_portions() -> Iterator[list[tuple[str, Sequence[Arg]]]]:
            waiting_calls = iter(calls)
            while portion := list(islice(waiting_calls, PORTION)):
                sent.extend(portion)
                yield [(root, _build_words(function, root, args)) for function, root, args in portion]

        try:
            for place, reply in enumerate(self._router.stream(make_portions())):
                if type(reply) is list and reply and reply[0] == OK:
                    note_change()
                    yield place, reply
                else:
                    late.append((place, reply))
            if late:
                found = self._complete([sent[place] for place, _ in late], [reply for _, reply in late])
                note_answers(True, found)
                yield from zip([place for place, _ in late], found, strict=True)
        except FAILURES as error:
            note_answers(True, [error])
            translate(error)

    def _complete(
        self, calls: Sequence[tuple[str, str | tuple[str, ...], Sequence[Arg]]], replies: list[Any]
    ) -> list[Any]:
        """Make those calls again that met a server without the library or a partition that the instance has left;
        return the replies, or the Redis errors they stand for."""
        again = [i for i, r in enumerate(replies) if isinstance(r, exceptions.ResponseError) and MISSING in str(r)]
        if again:
            self.load_missing()
            for i, reply in zip(again, self._pipeline([calls[i] for i in again])[0], strict=True):
                replies[i] = reply
        for i, reply in enumerate(replies):
            if retries.is_elsewhere(reply):
                function, root, args = calls[i]
                try:
                    replies[i] = self._follow(function, str(root), args, reply)
                except FAILURES as error:  # of this call; the others have happened
                    replies[i] = error
        return [self._read_reply(reply, str(call[1])) for reply, call in zip(replies, calls, strict=True)]

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
        """Load the library unless the server holds this very one or a newer one. Refuse a data layout that this release
        cannot read before anything is loaded."""
        with self._lock:
            if self._loaded or time.monotonic() < self._ensured_until:
                return
            known = self._check_layout()
            self._run(self._loader.ensure)
            if not known:
                self._ensured_until = time.monotonic() + LAYOUT_EVERY
                return
            with contextlib.suppress(NotPermitted):  # an account that only reads: others note it
                data_layout.claim(self.command, self._keys)
            self._loaded = True

    def _check_layout(self) -> bool:
        """Refuse a data layout that this release cannot read; return whether it could be read. Calls go on where the
        node of a cluster that has it is away, and for an account that may use the keys of single machines only."""
        try:
            data_layout.check(self.command, self._keys)
        except EngineUnavailable:
            if not self.spread:
                raise
            return False
        except NotPermitted:
            log.info("the account may not read the number of the data layout: it is not checked")
        return True

    def require(self) -> None:
        """Refuse a data layout that this release cannot read; load this library where there is none or an older one."""
        self._check_layout()
        self._run(self._loader.require)

    def renew(self) -> None:
        """Look at the library anew: that of an older release has come in place of the one that was there."""
        self._loaded = False
        self.ensure()

    def read_histories(self, read: Callable[[], Result]) -> Result:
        """Read histories; where an entry cannot be read, once more with this release's library: an older one answers
        packed entries as they are."""
        try:
            return read()
        except EngineFault as error:
            if error.code != UNREADABLE:
                raise
        self.renew()
        return read()

    def load(self, *, again: bool = True) -> list[Visit]:
        """Load this library in place of the one the server has, on a cluster on every primary; a newer one stays.
        ``again``: also over this very one."""
        self._check_layout()
        return self._run(self._loader.replace if again else self._loader.ensure)

    def load_missing(self) -> None:
        """Load this library because the server lacks a function. Raises EngineFault where another library stays."""
        self._run(self._loader.load_missing)

    def _run(self, load: Callable[[], Result]) -> Result:
        try:
            return load()
        except exceptions.ResponseError as error:
            if "unknown command" in str(error).lower():
                raise EngineFault(
                    "this server has no FUNCTION command: Signalbox needs Redis 7 or later, or Valkey"
                ) from error
            translate(error)
        except FAILURES as error:
            translate(error)
