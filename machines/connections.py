"""The engine of this process, and the patterns on its connections.

Django's settings say where Redis is. A process without Django names one by ``use_engine``.
"""

import contextlib
import importlib
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar, cast

from redis import RedisCluster

from machines.conf import conf
from machines.conf.testing_keys import is_testing, own_prefix

from .engine import Engine
from .engine.connection.client import Client, connect
from .engine.instances.encryption import Codec

Made = TypeVar("Made")
Wanted = tuple[str, str, int, int, int, int, str]
"""The settings of an engine: URL, prefix, partitions, replicas, ms to wait for them, seconds to repeat calls for, and
the codec."""

_making = threading.Lock()
_made: tuple[Wanted, Engine] | None = None
_given: Engine | None = None

PATTERNS = "machines.patterns"
PARTITIONS_PER_PRIMARY = 4  # so that a cluster can grow to four times its size without moving instances


def get_engine() -> Engine:
    """Return one engine for each process, on ``REDIS_URL`` and ``SIGNALBOX_PREFIX``; other settings give another one.

    In Django's tests its keys begin with ``get_prefix()``. Makes no connection by itself, but for a cluster, so it
    succeeds when Redis is down. Safe to call from any thread.
    """
    global _made
    if _given is not None:
        return _given
    wanted = _read_settings()
    held = _made
    if held is not None and held[0] == wanted:
        return held[1]
    with _making:
        if _made is None or _made[0] != wanted:
            _made = (wanted, _make(*wanted))
            _pattern.cache_clear()  # they keep the connections of the engine before
        return _made[1]


def get_prefix() -> str:
    """Return the beginning of all keys of this process: ``SIGNALBOX_PREFIX``; in Django's tests one of this process
    alone, unless ``SIGNALBOX["TEST_PREFIX"]`` is "shared"."""
    if conf.TEST_PREFIX == "own" and is_testing():
        return own_prefix(conf.REDIS_URL, conf.PREFIX)
    return str(conf.PREFIX)


def _read_settings() -> Wanted:
    return (
        conf.REDIS_URL,
        get_prefix(),
        conf.PARTITIONS,
        conf.REPLICAS,
        conf.REPLICA_TIMEOUT,
        conf.RETRY_FOR,
        conf.CODEC,
    )


def _make(url: str, prefix: str, partitions: int, replicas: int, timeout: int, retry_for: int, codec: str) -> Engine:
    client = connect(url)
    if not partitions and isinstance(client, RedisCluster):
        partitions = PARTITIONS_PER_PRIMARY * len(client.get_primaries())
    return Engine(
        client,
        prefix=prefix,
        partitions=partitions or 1,
        replicas=replicas,
        replica_timeout=timeout,
        retry_for=retry_for,
        codec=load_codec(codec),
    )


def load_codec(name: str) -> Codec | None:
    """Return the codec that a dotted path names: an object, or a class that is made without arguments."""
    if not name:
        return None
    module, _, attribute = name.rpartition(".")
    found = getattr(importlib.import_module(module), attribute)
    return cast(Codec, found() if isinstance(found, type) else found)


def engine_at_hand() -> Engine | None:
    """Return the same where it is made already, else None: for those who must not wait, as making one for a cluster
    does."""
    if _given is not None:
        return _given
    held = _made
    return held[1] if held is not None and held[0] == _read_settings() else None


@contextlib.contextmanager
def use_engine(engine: Engine) -> Iterator[None]:
    """Have ``get_engine`` return this engine in all threads of the process, whatever the settings say.

    For tests, and for a worker without Django.
    """
    global _given
    before, _given = _given, engine
    try:
        yield
    finally:
        _given = before


def is_spread() -> bool:
    """Tell whether keys lie on several servers, so that some may answer while others do not."""
    return isinstance(get_engine().client, RedisCluster)


def get_pattern(kind: Callable[..., Made], *args: Any, copy: int = 0, **options: Any) -> Made:
    """Return a pattern of ``machines.patterns`` on the connections of the engine: ``get_pattern(Records, "notes")``.

    One for each process, class and options; all processes of this installation share what it keeps. ``copy``: another
    one of the same, as another process has it.
    """
    if not kind.__module__.startswith(PATTERNS):
        raise TypeError(f"{kind.__qualname__} is no pattern of {PATTERNS}: the client is for these alone")
    return cast(Made, _pattern(kind, get_engine(), copy, args, tuple(options.items())))


@lru_cache(maxsize=64)
def _pattern(
    kind: Callable[..., Any], engine: Engine, copy: int, args: tuple[Any, ...], options: tuple[tuple[str, Any], ...]
) -> Any:
    return kind(engine.client, *args, prefix=engine.keys.prefix, **dict(options))


def get_raw_client() -> Client:
    """Return the connections of the engine, for the page that shows what patterns keep in Redis, and nothing else."""
    return get_engine().client
