"""Sends commands to the server that holds their key: one round trip, on a cluster one for each node, all at once.

A command that may have happened is never sent again. On a cluster, ``cluster_routing`` repeats what a node refused for
certain.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import redis
from redis import exceptions

from .client import Client
from .cluster_routing import ClusterRouter
from .connection_cache import Word, get_cache

Command = Sequence[Word]

NAME = "signalbox_router"
CALLS = frozenset(["FCALL", "FCALL_RO", "EVALSHA", "EVALSHA_RO", "EVAL", "EVAL_RO"])
STREAMS = frozenset(["XREAD", "XREADGROUP"])
OF_TWO_WORDS = frozenset(["XINFO", "XGROUP", "OBJECT", "MEMORY"])
KEYLESS = frozenset(["TIME", "PING", "INFO", "FUNCTION", "SCRIPT", "CONFIG", "ACL", "CLIENT", "WAIT", "WAITAOF"])

_making = threading.Lock()


class ServerRouter:
    """Sends commands to one server, or to the master that Sentinels name. All users of a client, and their threads,
    share its router. ``spread``: keys lie on several servers."""

    spread = False

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    @property
    def callbacks(self) -> Mapping[str, Any]:
        """Return redis-py's conversions."""
        return self._client.response_callbacks

    def exchange(self, key: str, words: Command) -> Any:
        """Send one command and return its answer as it came. Raises one of ``FAILURES``."""
        return get_cache(self._client.connection_pool).exchange(words)

    def send(self, commands: Sequence[tuple[str, Command]], last: Command | None = None) -> tuple[list[Any], list[Any]]:
        """Send commands, each with the key that routes it. Return, in order, the answer of each as it came, or its
        error; and for each the answer to ``last``, a command that follows on the same connection."""
        sent = [words for _, words in commands] + ([] if last is None else [last])
        answers = get_cache(self._client.connection_pool).begin(sent).finish()
        if last is None:
            return answers, [None] * len(answers)
        return answers[:-1], answers[-1:] * len(commands)

    def stream(self, portions: Iterable[Sequence[tuple[str, Command]]]) -> Iterator[Any]:
        """Send portions of commands as ``send`` does, and yield the answers in order. One server gets the first portion
        before the next is made, and its answers are yielded as they arrive."""
        made = ([words for _, words in commands] for commands in portions)
        return get_cache(self._client.connection_pool).stream(made)

    def send_everywhere(self, words: Command) -> list[Any]:
        """Return the answer, or the error, of each server that takes writes."""
        return self.send([("", words)])[0]

    def list_nodes(self) -> list[redis.Redis]:
        """Return a client for each server that takes writes."""
        return [self._client]

    def name_node(self, key: str) -> str:
        """Return the node of a cluster that holds a key, ``host:port``; "" on a single server."""
        return ""

    def group(self, keys: Sequence[str]) -> list[list[str]]:
        """Group keys by the server that holds them."""
        return [list(keys)] if keys else []


Router = ServerRouter | ClusterRouter


def get_router(client: Client) -> Router:
    """Return the router of a client: the same for all its users, and gone with the client."""
    found: Router | None = client.__dict__.get(NAME)
    if found is None:
        with _making:
            found = client.__dict__.get(NAME)
            if found is None:
                made: Router = ClusterRouter(client) if isinstance(client, redis.RedisCluster) else ServerRouter(client)
                found = client.__dict__[NAME] = made
    return found


def find_key(words: Command) -> str | None:
    """Return the key of a command that decides where it goes; None for a command without one."""
    name = str(words[0]).upper()
    if name in CALLS:
        return str(words[3]) if int(words[2]) else None
    if name in STREAMS:
        return str(words[next(n for n, word in enumerate(words) if str(word).upper() == "STREAMS") + 1])
    if name in KEYLESS or len(words) < 2:
        return None
    return str(words[2 if name in OF_TWO_WORDS else 1])


def exchange(client: Client, words: Command) -> Any:
    """Send one command, as it is routed by its own key, and return its answer as it came."""
    key = find_key(words)
    if key is not None or not isinstance(client, redis.RedisCluster):
        return get_router(client).exchange(key or "", words)
    return send_everywhere(client, words)[0]


def execute(client: Client, words: Command) -> Any:
    """Send one command and return its answer as redis-py would give it."""
    router = get_router(client)
    return _convert(router, words, exchange(client, words))


def send(client: Client, commands: Sequence[tuple[str, Command]]) -> list[Any]:
    """Send commands, given as (key that routes it, words), and return their answers in order, as redis-py would give
    them.

    An answer is a reply or the error of the server. Raises where a single server is unavailable; on a cluster each call
    to a node that is gone has its error as answer, since the others may have happened.
    """
    router = get_router(client)
    answers, _ = router.send(commands)
    return [_convert(router, words, answer) for (_, words), answer in zip(commands, answers, strict=True)]


def send_everywhere(client: Client, words: Command) -> list[Any]:
    """Return the answers of the server, or of each primary of a cluster that can be reached. Raises the error of a
    server, and where none can be reached."""
    router = get_router(client)
    answers = router.send_everywhere(words)
    for answer in answers:
        if isinstance(answer, exceptions.ResponseError):
            raise answer
    found = [answer for answer in answers if not isinstance(answer, Exception)]
    if not found:
        raise answers[0] if answers else exceptions.ConnectionError("no primary of the cluster is known")
    return [_convert(router, words, answer) for answer in found]


def list_nodes(client: Client) -> list[redis.Redis]:
    """Return a client of the server, or of each primary of a cluster."""
    return get_router(client).list_nodes()


def get_address(node: redis.Redis) -> str:
    """Return the address of a server, ``host:port``."""
    given = node.connection_pool.connection_kwargs
    return f"{given.get('host')}:{given.get('port')}"


def group_by_node(client: Client, keys: Sequence[str]) -> list[list[str]]:
    """Group keys by the server that holds them; keys of slots without a server are a group."""
    return get_router(client).group(keys)


def name_nodes(client: Client, keys: Sequence[str]) -> list[str]:
    """List the nodes of a cluster that hold these keys, ``host:port``; none for a single server."""
    return sorted({name for key in keys if (name := get_router(client).name_node(key))})


def _convert(router: Router, words: Command, answer: Any) -> Any:
    """Convert an answer as redis-py does for this command."""
    callback = router.callbacks.get(str(words[0]))
    return answer if callback is None or isinstance(answer, Exception) else callback(answer)
