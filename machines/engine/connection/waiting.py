"""Waits of engine code: they hold the thread for ``Engine``, and for ``AsyncEngine`` only the task that waits.

The engine is written once, without ``await``. ``AsyncEngine`` runs each call in a greenlet; where the call has to wait,
``wait`` switches to the event loop and comes back with the result. So engine code never blocks by itself: it waits for
Redis through its connections, and for all else through ``pause`` and ``Lock``.
"""

from __future__ import annotations

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

if greenlet is not None:

    class _Call(greenlet.greenlet):
        """Runs one call of engine code; its parent is the greenlet of the event loop."""

        def __init__(self, function: Callable[..., Any]) -> None:
            loop_greenlet = greenlet.getcurrent()
            super().__init__(function, loop_greenlet)
            self.gr_context = loop_greenlet.gr_context  # context variables of the task: log records carry them
            self.closing = False


def require_greenlet() -> None:
    """Raise ImportError, which says what to install, where greenlet is missing."""
    if greenlet is None:
        raise ImportError("AsyncEngine needs the package greenlet: pip install greenlet")


def in_loop() -> bool:
    """Tell whether this code runs for a coroutine, so that it must not block its thread."""
    return greenlet is not None and isinstance(greenlet.getcurrent(), _Call)


async def run(function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
    """Run engine code for this coroutine; the event loop goes on while the code waits."""
    call = _Call(function)
    found = call.switch(*args, **kwargs)
    while not call.dead:
        try:
            value = await found
        except GeneratorExit:  # the coroutine is closed: nothing can be awaited any more
            call.closing = True
            call.throw(GeneratorExit)
            raise
        except BaseException as error:
            found = call.throw(error)
        else:
            found = call.switch(value)
    return found  # type: ignore[no-any-return]


def wait(awaitable: Awaitable[Result]) -> Result:
    """Wait for an awaitable in code that ``run`` runs; raise what it raises, and CancelledError when the task is
    cancelled."""
    call = greenlet.getcurrent()
    if not isinstance(call, _Call):
        raise RuntimeError("this client belongs to an AsyncEngine, whose methods are awaited; use Engine in threads")
    if call.closing:
        raise RuntimeError("the coroutine was closed while it waited for Redis")
    return call.parent.switch(awaitable)  # type: ignore[no-any-return, union-attr]


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
        """Take the lock; without ``blocking`` return False where somebody holds it."""
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
