"""The commands of the redis-state-machine module, ``SM.*``, on a server that has no such module.

    client = shim(redis.Redis())
    client.execute_command("SM.SET", "order:17", json, "paid")

goes to the function ``sm_set`` of our library, with the module's arguments and replies. The client stays the one it
was: its other commands, its pool and its settings are untouched. asyncio clients, clusters and pipelines learn it in
the same way, what ``client.client()`` makes of it does not. The library is loaded when the server says that it lacks
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import redis.asyncio
from redis import exceptions

from .connection import library
from .connection.calls import MISSING, Arg
from .connection.client import Client

COMMANDS = {
    "SM.TEMPLATE": "sm_template",
    "SM.CREATE": "sm_create",
    "SM.SET": "sm_set",
    "SM.GET": "sm_get",
    "SM.STATE": "sm_state",
    "SM.MUTATE": "sm_mutate",
    "SM.RESET": "sm_reset",
}
KEYLESS = frozenset(["SM.TEMPLATE"])
PROBE = ("FCALL_RO", COMMANDS["SM.TEMPLATE"], 0)
TAUGHT = "_speaks_sm"

AsyncClient = redis.asyncio.Redis | redis.asyncio.RedisCluster
AnyClient = TypeVar("AnyClient", bound=Client | AsyncClient)
Send = Callable[..., Any]


def build_fcall(*command: Any) -> tuple[Any, ...] | None:
    """The FCALL that does what an SM command says; None for any other command.

    How many arguments there may be is for the function to say: its errors are those of a command.
    """
    if not command or not isinstance(command[0], str | bytes):
        return None
    spoken = command[0].decode(errors="replace") if isinstance(command[0], bytes) else command[0]
    name, *more = spoken.split() or [""]  # as redis-py takes "CONFIG GET" for two words
    function = COMMANDS.get(name.upper())
    if function is None:
        return None
    arguments = (*more, *command[1:])
    keys = 1 if arguments and name.upper() not in KEYLESS else 0
    return ("FCALL_RO" if function in library.read_only() else "FCALL", function, keys, *arguments)


def call(client: Client, *command: Arg) -> Any:
    """One SM command on a client that was not taught, which it need not be. Raises what redis-py raises."""
    return _Commands(client).execute(*command)


def shim(client: AnyClient) -> AnyClient:
    """The same client, from now on with ``SM.*`` commands; a second time changes nothing."""
    if not hasattr(client, TAUGHT):
        is_async = isinstance(client, redis.asyncio.Redis | redis.asyncio.RedisCluster)
        taught = _AsyncCommands(client) if is_async else _Commands(client)
        client.execute_command = taught.execute  # type: ignore[method-assign]
        client.pipeline = taught.pipeline  # type: ignore[method-assign]
        setattr(client, TAUGHT, True)
    return client


class _Client:
    """What a client could do before it was taught."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._send: Send = client.execute_command
        self._pipeline: Send = client.pipeline

    def _probe(self) -> Any:
        """Asks for our library: of a cluster, every node that may be written to."""
        of_cluster = isinstance(self._client, redis.RedisCluster | redis.asyncio.RedisCluster)
        return self._send(*PROBE, **({"target_nodes": self._client.PRIMARIES} if of_cluster else {}))

    def _load(self) -> Any:
        return self._client.function_load(library.text(), replace=True)


class _Commands(_Client):
    """``execute_command`` and ``pipeline`` of a client that waits for its answers."""

    def execute(self, *command: Any, **options: Any) -> Any:
        ours = build_fcall(*command)
        if ours is None:
            return self._send(*command, **options)
        return self.with_library(lambda: self._send(*ours, **options))

    def pipeline(self, *arguments: Any, **options: Any) -> Any:
        pipeline = self._pipeline(*arguments, **options)
        execute, asked = pipeline.execute, _teach(pipeline, self.with_library)

        def ensured_first(*arguments: Any, **options: Any) -> Any:
            if asked:
                asked.clear()
                self.with_library(self._probe)
            return execute(*arguments, **options)

        pipeline.execute = ensured_first
        return pipeline

    def with_library(self, send: Send) -> Any:
        """Sends once more what the server could not do for lack of the library: it has changed nothing by then."""
        try:
            return send()
        except exceptions.ResponseError as error:
            if MISSING not in str(error):
                raise
        self._load()
        return send()


class _AsyncCommands(_Client):
    """The same for asyncio."""

    async def execute(self, *command: Any, **options: Any) -> Any:
        ours = build_fcall(*command)
        if ours is None:
            return await self._send(*command, **options)
        return await self.with_library(lambda: self._send(*ours, **options))

    def pipeline(self, *arguments: Any, **options: Any) -> Any:
        pipeline = self._pipeline(*arguments, **options)
        execute, asked = pipeline.execute, _teach(pipeline, self.with_library)

        async def ensured_first(*arguments: Any, **options: Any) -> Any:
            if asked:
                asked.clear()
                await self.with_library(self._probe)
            return await execute(*arguments, **options)

        pipeline.execute = ensured_first
        return pipeline

    async def with_library(self, send: Send) -> Any:
        try:
            return await send()
        except exceptions.ResponseError as error:
            if MISSING not in str(error):
                raise
        await self._load()
        return await send()


def _teach(pipeline: Any, with_library: Send) -> list[bool]:
    """Lets a pipeline take SM commands. The list it gives is not empty while some wait to be sent.

    Nothing that waits can be sent a second time, so the library has to be asked for before. What is sent at once,
    between WATCH and MULTI, is as any other command.
    """
    queue = pipeline.execute_command
    asked: list[bool] = []

    def execute_command(*command: Any, **options: Any) -> Any:
        ours = build_fcall(*command)
        if ours is None:
            return queue(*command, **options)
        if getattr(pipeline, "watching", False) and not getattr(pipeline, "explicit_transaction", False):
            return with_library(lambda: queue(*ours, **options))
        asked.append(True)
        return queue(*ours, **options)

    pipeline.execute_command = execute_command
    return asked
