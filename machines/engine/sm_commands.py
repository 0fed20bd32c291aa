"""The commands of the redis-state-machine module, ``SM.*``, on a server without that module.

    client = shim(redis.Redis())
    client.execute_command("SM.SET", "order:17", json, "paid")

The shim sends the command to the function ``sm_set`` of this library, with the module's arguments and replies. Other
commands, the pool and the settings of the client are untouched. asyncio clients, clusters and pipelines work in the
same way; a client made by ``client.client()`` has no shim. The library is loaded when the server reports that it is
missing.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import redis.asyncio
from redis import exceptions

from .connection import library, routing
from .connection.calls import Arg
from .connection.client import Client
from .connection.library_loader import COMMAND, MISSING, TAKEN, put, read_answer

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
RELEASE = ("FCALL_RO", "sb_library", 0, "release")
SHIMMED = "_speaks_sm"

AsyncClient = redis.asyncio.Redis | redis.asyncio.RedisCluster
AnyClient = TypeVar("AnyClient", bound=Client | AsyncClient)
Send = Callable[..., Any]


def build_fcall(*command: Any) -> tuple[Any, ...] | None:
    """Build the FCALL for an SM command; return None for any other command.

    The function itself checks the number of arguments: its errors are those of a command.
    """
    if not command or not isinstance(command[0], str | bytes):
        return None
    text = command[0].decode(errors="replace") if isinstance(command[0], bytes) else command[0]
    name, *more = text.split() or [""]  # as redis-py takes "CONFIG GET" for two words
    function = COMMANDS.get(name.upper())
    if function is None:
        return None
    arguments = (*more, *command[1:])
    keys = 1 if arguments and name.upper() not in KEYLESS else 0
    return ("FCALL_RO" if function in library.read_only() else "FCALL", function, keys, *arguments)


def call(client: Client, *command: Arg) -> Any:
    """Send one SM command on a client without the shim. Raises what redis-py raises."""
    return _Commands(client).execute(*command)


def shim(client: AnyClient) -> AnyClient:
    """Add the ``SM.*`` commands to a client and return it; a second call changes nothing."""
    if not hasattr(client, SHIMMED):
        is_async = isinstance(client, redis.asyncio.Redis | redis.asyncio.RedisCluster)
        shimmed = _AsyncCommands(client) if is_async else _Commands(client)
        client.execute_command = shimmed.execute  # type: ignore[method-assign]
        client.pipeline = shimmed.pipeline  # type: ignore[method-assign]
        setattr(client, SHIMMED, True)
    return client


class _Client:
    """The original methods of a client, before the shim replaced them."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._send: Send = client.execute_command
        self._pipeline: Send = client.pipeline

    def _ask(self, *command: Any) -> Any:
        """Send a command without a key; on a cluster, to every primary."""
        of_cluster = isinstance(self._client, redis.RedisCluster | redis.asyncio.RedisCluster)
        return self._send(*command, **({"target_nodes": self._client.PRIMARIES} if of_cluster else {}))


def _check_older(answer: Any) -> None:
    """Raise for the library of a newer release: it stays, and it is that one which lacks the function."""
    for held in answer.values() if isinstance(answer, dict) else [answer]:
        if (number := read_answer(held).number) > library.RELEASE:
            raise exceptions.ResponseError(f"the library of release {number} on the server lacks this function")


class _Commands(_Client):
    """``execute_command`` and ``pipeline`` of a synchronous client."""

    def execute(self, *command: Any, **options: Any) -> Any:
        ours = build_fcall(*command)
        if ours is None:
            return self._send(*command, **options)
        if isinstance(self._client, redis.RedisCluster) and not options:
            return self.with_library(lambda: routing.exchange(self._client, ours))
        return self.with_library(lambda: self._send(*ours, **options))

    def pipeline(self, *arguments: Any, **options: Any) -> Any:
        pipeline = self._pipeline(*arguments, **options)
        execute, asked = pipeline.execute, _teach(pipeline, self.with_library)

        def call_ensured(*arguments: Any, **options: Any) -> Any:
            if asked:
                asked.clear()
                self.with_library(lambda: self._ask(*PROBE))
            return execute(*arguments, **options)

        pipeline.execute = call_ensured
        return pipeline

    def with_library(self, send: Send) -> Any:
        """Send again a command that failed for lack of the library: it has changed nothing by then."""
        try:
            return send()
        except exceptions.ResponseError as error:
            if MISSING not in str(error):
                raise
        answer: Any = ""
        with contextlib.suppress(exceptions.ResponseError):  # no library at all, or one that cannot be asked
            answer = self._ask(*RELEASE)
        _check_older(answer)
        for node in routing.list_nodes(self._client):
            put(node)
        return send()


class _AsyncCommands(_Client):
    """``execute_command`` and ``pipeline`` of an asyncio client."""

    async def execute(self, *command: Any, **options: Any) -> Any:
        ours = build_fcall(*command)
        if ours is None:
            return await self._send(*command, **options)

        async def send() -> Any:
            return await self._send(*ours, **(options or await self._find_node(ours)))

        return await self.with_library(send)

    async def _find_node(self, words: Sequence[Any]) -> dict[str, Any]:
        """Name the node of the key: a cluster client would ask the default node for the keys of the call."""
        if not isinstance(self._client, redis.asyncio.RedisCluster) or not words[2]:
            return {}
        await self._client.initialize()
        return {"target_nodes": self._client.get_node_from_key(words[3])}

    def pipeline(self, *arguments: Any, **options: Any) -> Any:
        pipeline = self._pipeline(*arguments, **options)
        execute, asked = pipeline.execute, _teach(pipeline, self.with_library)

        async def call_ensured(*arguments: Any, **options: Any) -> Any:
            if asked:
                asked.clear()
                await self.with_library(lambda: self._ask(*PROBE))
            return await execute(*arguments, **options)

        pipeline.execute = call_ensured
        return pipeline

    async def with_library(self, send: Send) -> Any:
        try:
            return await send()
        except exceptions.ResponseError as error:
            if MISSING not in str(error):
                raise
        answer: Any = ""
        with contextlib.suppress(exceptions.ResponseError):
            answer = await self._ask(*RELEASE)
        _check_older(answer)
        await self._load()
        return await send()

    async def _load(self) -> None:
        try:
            await self._client.function_load(library.text(), replace=True)
        except exceptions.ResponseError as error:
            if TAKEN not in str(error):
                raise
            raise exceptions.ResponseError(
                f"the server holds the functions library of another release: run `{COMMAND}`"
            ) from error


def _teach(pipeline: Any, with_library: Send) -> list[bool]:
    """Let a pipeline take SM commands; return a list that is not empty while such commands wait to be sent.

    Queued commands cannot be sent twice, so the library is checked before they are sent. Commands between WATCH and
    MULTI are sent at once, like any other command.
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
