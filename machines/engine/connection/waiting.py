"""Waits of engine code: they hold the thread for ``Engine``, and for ``AsyncEngine`` only the task that waits.

The engine is written once, without ``await``. ``AsyncEngine`` runs each call in a greenlet; where the call has to wait,
``wait`` switches to the event loop and comes back with the result. So engine code never blocks by itself: it waits for
Redis through its connections, and for all else through ``pause`` and ``Lock``.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, TypeVar

try:
    import greenlet
except ImportError:  # only AsyncEngine needs it
    greenlet = None  # type: ignore[assignment]

Result = TypeVar("Result")
KEPT = 64  # idle greenlets of a thread: making one costs ten times what it costs to use one again

if greenlet is not None:

    class _Runner(greenlet.greenlet):
        """Runs calls of engine code, one after the other. ``caller``: the greenlet of the event loop."""

        caller: greenlet.greenlet
        value: Any = None
        failure: BaseException | None = None
        closing = False

        def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            while True:
                try:
                    self.value = function(*args, **kwargs)
                except greenlet.GreenletExit:
                    raise
                except BaseException as error:
                    self.failure = error
                del function, args, kwargs  # an idle greenlet holds nothing
                function, args, kwargs = self.caller.switch(_ENDED)


class _Idle(threading.local):
    """The idle greenlets of a thread, to which greenlets belong."""

    def __init__(self) -> None:
        self.runners: list[_Runner] = []


_ENDED: Any = object()  # what a runner switches with when its call has ended
_idle = _Idle()


def require_greenlet() -> None:
    """Raise ImportError, which says what to install, where greenlet is missing."""
    if greenlet is None:
        raise ImportError("AsyncEngine needs the package greenlet: pip install greenlet")


def in_loop() -> bool:
    """Tell whether this code runs for a coroutine, so that it must not block its thread."""
    return greenlet is not None and isinstance(greenlet.getcurrent(), _Runner)


async def run(function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
    """Run engine code for this coroutine; the event loop goes on while the code waits."""
    idle = _idle.runners
    runner = idle.pop() if idle else _Runner()
    runner.caller = caller = greenlet.getcurrent()
    runner.gr_context = caller.gr_context  # context variables of the task: log records carry them
    found = runner.switch(function, args, kwargs)
    while found is not _ENDED:
        try:
            value = await found
        except GeneratorExit as error:  # the coroutine is closed: nothing can be awaited any more
            runner.closing = True
            found = runner.throw(error)
        except BaseException as error:
            found = runner.throw(error)
        else:
            found = runner.switch(value)
    ended, failure = runner.value, runner.failure
    runner.value = runner.failure = runner.gr_context = None
    runner.closing = False
    if len(idle) < KEPT:
        idle.append(runner)
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # its traceback has this frame: no circle for the collector
    return ended  # type: ignore[no-any-return]


def wait(awaitable: Awaitable[Result]) -> Result:
    """Wait for an awaitable in code that ``run`` runs; raise what it raises, and CancelledError when the task is
    cancelled."""
    runner = greenlet.getcurrent()
    if not isinstance(runner, _Runner):
        raise RuntimeError("this client belongs to an AsyncEngine, whose methods are awaited; use Engine in threads")
    if runner.closing:
        raise RuntimeError("the coroutine was closed while it waited for Redis")
    return runner.caller.switch(awaitable)  # type: ignore[no-any-return]


def pause(seconds: float) -> None:
    """Wait for some seconds."""
    if in_loop():
        wait(asyncio.sleep(seconds))
    else:
        time.sleep(seconds)


def compute(function: Callable[..., Result], *args: Any) -> Result:
    """Run a function that computes for long: in a thread where it would hold up the event loop."""
    if in_loop():
        return wait(asyncio.to_thread(function, *args))
    return function(*args)


class Lock:
    """A lock that may be held over round trips. A coroutine that waits for it leaves the event loop free; threads may
    use the same lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[asyncio.Future[None]] = deque()

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock; without ``blocking`` return False where another caller holds it."""
        if self._lock.acquire(blocking=False):
            return True
        if not blocking:
            return False
        if not in_loop():
            return self._lock.acquire()
        while True:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            if self._lock.acquire(blocking=False):  # a thread released it between the two looks
                turn.cancel()
                return True
            try:
                wait(turn)
            except BaseException:
                self._wake_next()  # the turn may have been this call's
                raise
            if self._lock.acquire(blocking=False):
                return True

    def release(self) -> None:
        self._lock.release()
        self._wake_next()

    def _wake_next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            loop = turn.get_loop()
            if turn.done() or loop.is_closed():
                continue
            loop.call_soon_threadsafe(_wake, turn)
            return

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
