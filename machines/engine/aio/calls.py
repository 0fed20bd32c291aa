"""How ``AsyncEngine`` calls the engine: opens it in the event loop, and runs each of its methods for a coroutine.

There is no second engine. A method of ``AsyncEngine`` runs the method of ``Engine`` of the same name
(``connection.waiting``), on a client whose connections wait in the event loop (``loop_sockets``). The methods
themselves are generated from those of ``Engine``: ``tests/engine/aio/method_generator.py``.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from redis.utils import HIREDIS_AVAILABLE

from machines.engine.connection import client, library, waiting
from machines.engine.connection.client import Client
from machines.engine.connection.redis_url import check_scheme, read_url
from machines.engine.connection.retries import check_seconds
from machines.engine.engine import Engine
from machines.engine.instances.encryption import Codec
from machines.engine.keys import PREFIX, Keys

from . import loop_sockets

P = ParamSpec("P")
Result = TypeVar("Result")
Part = TypeVar("Part")

LEFT_OUT = {
    "at_once": "with retry_for(0) of machines.engine does the same",
    "client": "it is a client for threads: commands of your own are sent by a client of redis.asyncio",
    "clock_jumps": "they are what workers noticed: read them by Engine in a thread",
    "ids": "await new_id(), or create() without an id",
    "mending": "a worker does this; mend() does one round",
    "mover": "migrate() moves a fleet; to set the pace yourself, use Engine in a thread",
    "wakeups": "it is for workers: run `signalbox worker`, or Engine in a thread",
}
"""Attributes of ``Engine`` that ``AsyncEngine`` does not have, and what to do."""


class AsyncCalls:
    """The part of ``AsyncEngine`` that is not generated: opening, closing, and the event loop that it belongs to."""

    def __init__(self, connect: Callable[[], Client], *, prefix: str = PREFIX, **options: Any) -> None:
        if not callable(connect):
            raise TypeError("make an AsyncEngine with AsyncEngine.from_url(url)")
        self.keys = Keys(prefix)
        self._connect = connect
        self._options = {"prefix": prefix, **options}
        self._engine: Engine | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = waiting.Lock()
        self._closed = False

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        prefix: str = PREFIX,
        partitions: int = 1,
        replicas: int = 0,
        replica_timeout: int = 1000,
        retry_for: float | None = None,
        codec: Codec | None = None,
        **options: Any,
    ) -> Self:
        """Make an engine for asyncio. It connects with its first call, and belongs to the event loop of that call.

        URLs and arguments as of ``Engine.from_url``. Use it as ``async with AsyncEngine.from_url(...) as engine``, or
        call ``aclose`` at the end. Raises BadInput for a URL that cannot be read, ImportError without greenlet or
        hiredis.
        """
        waiting.require_greenlet()
        if not HIREDIS_AVAILABLE:
            raise ImportError("AsyncEngine needs the package hiredis: pip install hiredis")
        if check_scheme(url).endswith("+cluster"):
            read_url(url)  # the nodes are asked at the first call; a bad URL is refused now
        else:
            client.connect(url, **options).close()
        return cls(
            lambda: client.connect(url, **options),
            prefix=prefix,
            partitions=partitions,
            replicas=replicas,
            replica_timeout=replica_timeout,
            retry_for=None if retry_for is None else check_seconds(retry_for),
            codec=codec,
        )

    async def aclose(self) -> None:
        """Close the connections. Calls under way raise EngineUnavailable; later ones RuntimeError."""
        self._closed = True
        engine, self._engine = self._engine, None
        if engine is not None:
            self._check_loop()
            loop_sockets.close(engine.client)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __getattr__(self, name: str) -> Any:
        why = LEFT_OUT.get(name)
        if why is None and not name.startswith("_"):
            near = difflib.get_close_matches(name, dir(type(self)), n=1)
            why = f"did you mean {near[0]!r}?" if near else ""
        hint = f"; {why}" if why else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)

    # Internals

    def _call(
        self, method: Callable[Concatenate[Engine, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, Result]:
        """Run a method of ``Engine``."""
        engine = self._engine
        if engine is not None and self._loop is asyncio.get_running_loop():
            return waiting.run(method, engine, *args, **kwargs)
        return self._open_and_run(method, *args, **kwargs)

    async def _open_and_run(
        self, method: Callable[Concatenate[Engine, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        return await waiting.run(method, await waiting.run(self._open), *args, **kwargs)

    def _open(self) -> Engine:
        """Connect, unless that is done. Raises RuntimeError in another event loop and after ``aclose``."""
        self._check_loop()
        with self._opening:
            if self._closed:
                raise RuntimeError("this AsyncEngine is closed; make another one")
            if self._engine is None:
                made = waiting.compute(self._prepare)
                loop_sockets.move_to_loop(made)
                self._engine = Engine(made, **self._options)
            return self._engine

    def _prepare(self) -> Client:
        """Make the client, in a thread; compose the functions library, which takes some 50 ms once in a process."""
        library.text()
        library.read_only()
        return self._connect()

    def _check_loop(self) -> None:
        """Bind the engine to the running event loop; raise RuntimeError in any other."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        elif self._loop is not loop:
            raise RuntimeError(
                "this AsyncEngine belongs to another event loop: make one in each loop, and after a fork in the child"
            )


class AsyncPart(Generic[Part]):
    """What ``AsyncEngine`` returns where ``Engine`` returns an object with calls of its own."""

    def __init__(self, owner: AsyncCalls, make: Callable[[Engine], Part]) -> None:
        self._owner = owner
        self._make = make
        self._part: Part | None = None

    def _call(
        self, method: Callable[Concatenate[Part, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, Result]:
        def run(engine: Engine) -> Result:
            if self._part is None:
                self._part = self._make(engine)
            return method(self._part, *args, **kwargs)

        return self._owner._call(run)
