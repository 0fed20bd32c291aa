"""An ``AsyncEngine`` that tests of ``Engine`` can call: each method runs on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from machines.engine import AsyncEngine, Engine
from machines.engine.aio.calls import AsyncPart


class AwaitedEngine:
    """Has the methods of ``Engine``; what ``AsyncEngine`` leaves out (the client, wake-ups) is that of ``plain``."""

    def __init__(self, url: str, plain: Engine, **options: Any) -> None:
        self.plain = plain
        self.used: set[str] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="event loop of a test")
        self._thread.start()
        self.awaited = AsyncEngine.from_url(url, **options)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        self.run(self.awaited.aclose())
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __getattr__(self, name: str) -> Any:
        if not hasattr(AsyncEngine, name):
            return getattr(self.plain, name)
        self.used.add(name)
        return self._wrap(getattr(self.awaited, name))

    def _wrap(self, method: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(method):
            return lambda *args, **kwargs: self.run(method(*args, **kwargs))

        def make(*args: Any, **kwargs: Any) -> Any:
            made = method(*args, **kwargs)
            return AwaitedPart(self, made) if isinstance(made, AsyncPart) else made

        return make


class AwaitedPart:
    """The same for an object that a method returns."""

    def __init__(self, engine: AwaitedEngine, part: AsyncPart[Any]) -> None:
        self._engine = engine
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return self._engine._wrap(getattr(self._part, name))
