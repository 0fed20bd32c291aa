"""machines.connections.get_engine: one engine for a process, another one for other settings."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from machines.connections import get_engine, get_pattern
from machines.engine import Engine, EngineUnavailable
from machines.patterns import Throttle
from tests.configuration import configure


def test_it_is_the_same_engine_for_every_thread(settings) -> None:
    configure(settings, PREFIX="one:")
    with ThreadPoolExecutor(8) as pool:
        engines = list(pool.map(lambda _: get_engine(), range(32)))
    assert len({id(engine) for engine in engines}) == 1


def test_other_settings_give_another_engine(settings) -> None:
    configure(settings, PREFIX="one:")
    first = get_engine()
    configure(settings, PREFIX="two:")
    assert get_engine() is not first
    assert get_engine().keys.prefix == "two:"


def test_the_connections_before_are_let_go(prefix: str, settings) -> None:
    get_pattern(Throttle)
    before = weakref.ref(get_engine().client)
    configure(settings, PREFIX=f"o{prefix}")
    get_engine()
    gc.collect()
    assert before() is None


def test_only_patterns_get_the_client(prefix: str) -> None:
    assert get_pattern(Throttle) is get_pattern(Throttle)
    assert get_pattern(Throttle) is not get_pattern(Throttle, copy=1)
    with pytest.raises(TypeError, match=r"is no pattern of machines\.patterns: the client is for these alone"):
        get_pattern(lambda redis, prefix: redis)


def test_it_can_be_had_while_redis_is_down() -> None:
    engine = get_engine()
    with pytest.raises(EngineUnavailable):
        engine.ping()


def test_it_works_on_the_keys_the_settings_name(engine: Engine, prefix: str) -> None:
    get_engine().ping()
    assert get_engine().keys.prefix == prefix
