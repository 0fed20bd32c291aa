"""One connection that many calls of an event loop share: each is sent without waiting for the answers to those before.

Calls that are made in one turn of the loop are written together, and the answers that arrived are read together. Redis
answers in order, so the answer to a call that was cancelled is read and dropped, and the connection stays in order.
Commands that block their connection (WAIT, reads with BLOCK) get one of their own.
"""

import asyncio
import math
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from redis import exceptions
from redis._parsers.hiredis import NOT_ENOUGH_DATA

from machines.engine.connection import waiting
from machines.engine.connection.connection_cache import UNSENT, Connection, ConnectionCache, Exchange, Word

CHUNK = 65_536  # bytes read at a time
BLOCKING = frozenset(["WAIT", "WAITAOF", "BLPOP", "BRPOP", "BLMOVE", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "BZMPOP"])
OF_STREAMS = frozenset(["XREAD", "XREADGROUP"])
NOT_READY = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

Answer = asyncio.Future[Any]


def is_blocking(words: Sequence[Word]) -> bool:
    """Tell whether a command keeps its connection waiting."""
    name = words[0]
    return name in BLOCKING or (name in OF_STREAMS and "BLOCK" in words)


class SharedConnection:
    """Sends commands on a connection, and gives each its answer."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.error: Exception | None = None  # why it is closed
        self._parser: Any = connection._parser
        self._reader: Any = self._parser._reader
        self._sock: socket.socket = connection._sock.raw
        self._number = self._sock.fileno()
        self._timeout: float | None = connection.socket_timeout
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Answer] = deque()  # in the order of their commands
        self._out: list[bytes | memoryview] = []
        self._buffer = bytearray(CHUNK)
        self._unsent = 0  # how many of the last commands were not written yet
        self._heard = self._loop.time()  # when bytes came last, or a command was sent while none was under way
        self._watch: asyncio.TimerHandle | None = None
        self._more = False  # the socket takes no more for now
        self._give_back: Callable[[Connection], None] | None = None
        connection._sock.on_close = self._fail_calls
        self._loop.add_reader(self._number, self._read)

    def is_idle(self, seconds: float) -> bool:
        """Tell whether nothing was sent or heard for so long."""
        return not self._waiting and self._loop.time() > self._heard + seconds

    def send(self, packed: bytes, count: int) -> list[Answer]:
        """Send ``count`` packed commands, at the latest with the next turn of the loop; return the futures of their
        answers. An error of the server, or of the connection, is an answer."""
        idle = not self._waiting
        if idle:
            self._heard = self._loop.time()
            if self._watch is None:
                self._watch_answers()
        create = self._loop.create_future
        answers = [create() for _ in range(count)]
        self._waiting.extend(answers)
        waits_already = bool(self._out) or self._more
        self._out.append(packed)
        self._unsent += count
        if idle:
            self._flush()  # nobody else calls now: a call alone does not wait for the next turn
        elif not waits_already:
            self._loop.call_soon(self._flush)
        return answers

    def close(self, error: Exception) -> None:
        """Close the connection; every call under way fails with this error."""
        if self.error is None:
            self.error = error
            self.connection.disconnect()

    def retire(self, give_back: Callable[[Connection], None]) -> None:
        """Close the connection once the calls under way have their answers, and give it back to its pool."""
        self._give_back = give_back
        if not self._waiting:
            self.close(exceptions.ConnectionError("the connection was replaced"))
            self._leave()

    def _leave(self) -> None:
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back(self.connection)

    def _fail_calls(self) -> None:
        """Give the calls under way their error. The socket has left the loop."""
        self.error = self.error or exceptions.ConnectionError("the connection was closed")
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self._loop.is_closed():
            return
        first_unsent = len(self._waiting) - self._unsent
        for number, answer in enumerate(self._waiting):
            if not answer.done():
                error = type(self.error)(*self.error.args)  # each call raises its own
                if number >= first_unsent:
                    setattr(error, UNSENT, True)
                answer.set_result(error)
        self._waiting.clear()
        self._out.clear()
        self._unsent = 0
        self._leave()

    def _flush(self) -> None:
        """Write what was sent since the last turn."""
        if self.error is not None or not self._out:
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        try:
            written = self._sock.send(data)
        except NOT_READY:
            written = 0
        except OSError as error:
            self.close(exceptions.ConnectionError(f"writing to the server failed: {error}"))
            return
        if written == len(data):
            self._out.clear()
            self._unsent = 0
            if self._more:
                self._more = False
                self._loop.remove_writer(self._number)
            return
        self._out[:] = [memoryview(data)[written:]]
        if written:
            self._unsent = 0  # parts of any of them may have gone
        if not self._more:
            self._more = True
            self._loop.add_writer(self._number, self._flush)

    def _read(self) -> None:
        """Read what arrived, and give each answer to its call."""
        try:
            size = self._sock.recv_into(self._buffer)
            self._reader.feed(self._buffer, 0, size)
            while size and isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
                size = self._sock.recv_into(self._buffer)
                self._reader.feed(self._buffer, 0, size)
        except NOT_READY:
            return
        except OSError as error:
            self.close(exceptions.ConnectionError(f"reading from the server failed: {error}"))
            return
        if not size:
            self.close(exceptions.ConnectionError("the server closed the connection"))
            return
        self._heard = self._loop.time()
        try:
            self._hand_out()
        except Exception as error:
            self.close(exceptions.ConnectionError(f"the server's answer cannot be read: {error}"))

    def _hand_out(self) -> None:
        gets, calls = self._reader.gets, self._waiting
        pushed = getattr(self._parser, "_hiredis_PushNotificationType", None)
        while True:
            found = gets()
            if found is NOT_ENOUGH_DATA:
                break
            if pushed is not None and type(found) is pushed:
                self._parser.handle_push_response(found)
                continue
            answer = calls.popleft()
            if not answer.done():  # else its call was cancelled
                answer.set_result(found)
        if self._give_back is not None and not calls:
            self.close(exceptions.ConnectionError("the connection was replaced"))

    def _watch_answers(self) -> None:
        if self._timeout is not None:
            self._watch = self._loop.call_at(self._heard + self._timeout, self._check_silence, False)

    def _check_silence(self, late: bool) -> None:
        """Close the connection when calls wait and nothing has come for the time of a call."""
        self._watch = None
        if not self._waiting:
            return
        if self._timeout is not None and self._loop.time() < self._heard + self._timeout:
            self._watch_answers()
        elif not late:  # the loop itself may have been held up: let it read what is there
            self._watch = self._loop.call_later(0.01, self._check_silence, True)
        else:
            self.close(exceptions.TimeoutError(f"Timeout reading from {self.connection._host_error()}"))


class SharedCache(ConnectionCache):
    """The shared connection of one pool, and connections of their own for commands that block."""

    def __init__(self, pool: Any) -> None:
        super().__init__(pool)
        self._interval: float = pool.connection_kwargs.get("health_check_interval") or math.inf
        self._shared: SharedConnection | None = None
        self._opening = waiting.Lock()

    def exchange(self, words: Sequence[Word]) -> Any:
        if is_blocking(words):
            return super().exchange(words)
        shared = self._get_shared()
        found = waiting.wait(shared.send(self._pack(shared.connection, (words,)), 1)[0])
        if isinstance(found, Exception):
            raise self._read_error(shared, found)
        return found

    def begin(self, commands: Sequence[Sequence[Word]]) -> Exchange:
        if any(map(is_blocking, commands)):
            return super().begin(commands)
        shared = self._get_shared()
        return SharedExchange(self, shared, shared.send(self._pack(shared.connection, commands), len(commands)))

    def stream(self, portions: Iterable[Sequence[Sequence[Word]]]) -> Iterator[Any]:
        """Send all portions at once, and yield their answers: the event loop has other calls to make meanwhile."""
        yield from self.begin([words for commands in portions for words in commands]).finish()

    def forget(self) -> None:
        super().forget()
        self._shared = None
        self._opening = waiting.Lock()

    def _get_shared(self) -> SharedConnection:
        shared = self._shared
        if shared is not None and self._is_usable(shared) and not shared.is_idle(self._interval):
            return shared
        try:
            with self._opening:
                return self._open()
        except BaseException as error:
            setattr(error, UNSENT, True)
            raise

    def _is_usable(self, shared: SharedConnection) -> bool:
        connection = shared.connection
        return (
            shared.error is None
            and not connection.should_reconnect()
            and (not self._follows or self._leads_to_master(connection))
        )

    def _open(self) -> SharedConnection:
        """Return the shared connection; make a new one where there is none in order."""
        shared = self._shared
        if shared is not None and self._is_usable(shared) and self._answers(shared):
            return shared
        self._shared = None
        if shared is not None:
            shared.retire(self._pool.release)
        connection: Connection = self._pool.get_connection()
        try:
            self._shared = SharedConnection(connection)
        except BaseException:
            connection.disconnect()
            self._pool.release(connection)
            raise
        return self._shared

    def _answers(self, shared: SharedConnection) -> bool:
        """Try a connection that was idle for long: the server may be gone without a word."""
        if not shared.is_idle(self._interval):
            return True
        waiting.wait(shared.send(self._pack(shared.connection, (("PING",),)), 1)[0])
        return shared.error is None

    def _pack(self, connection: Connection, commands: Sequence[Sequence[Word]]) -> bytes:
        packed = self._pack_all(connection, commands)
        return packed[0] if len(packed) == 1 else b"".join(packed)

    def _read_error(self, shared: SharedConnection, error: Exception) -> Exception:
        """Return what redis-py makes of an error: a master that takes no writes any more is left."""
        if self._follows and isinstance(error, exceptions.ReadOnlyError):
            shared.connection.mark_for_reconnect()
            return exceptions.ConnectionError("The previous master is now a slave")
        return error


class SharedExchange(Exchange):
    """Commands that were sent together on a shared connection."""

    __slots__ = ("_answers", "_shared", "_shared_cache")

    def __init__(self, cache: SharedCache, shared: SharedConnection, answers: list[Answer]) -> None:
        super().__init__(cache, None, len(answers))
        self._shared_cache = cache
        self._shared = shared
        self._answers = answers

    def finish(self, deadline: float | None = None) -> list[Any]:
        answers, self._answers = self._answers, []
        if answers and not answers[-1].done():  # the last one that comes
            if deadline is None:
                waiting.wait(answers[-1])
            else:
                _wait_until(answers[-1], deadline)
        found = [answer.result() for answer in answers]
        for one in found:
            if isinstance(one, Exception) and not isinstance(one, exceptions.ResponseError):
                raise one
        return [
            self._shared_cache._read_error(self._shared, one) if isinstance(one, Exception) else one for one in found
        ]

    def abandon(self) -> None:
        answers, self._answers = self._answers, []
        for answer in answers:
            answer.cancel()


def _wait_until(answer: Answer, deadline: float) -> None:
    try:
        waiting.wait(asyncio.wait_for(answer, max(0.0, deadline - time.monotonic())))
    except TimeoutError:
        raise exceptions.TimeoutError("the server did not answer in time") from None
