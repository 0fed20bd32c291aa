"""Handlers are found by name."""

from __future__ import annotations

import pytest

from machines.worker import HandlerError, handler
from machines.worker.registry import Registry, handlers
from tests.cases import for_each


def one(job):
    return 1


async def two(job):
    return 2


class Callable:
    async def __call__(self, job):
        return 3


def test_a_handler_is_found_by_the_name_it_was_registered_under():
    registry = Registry()
    registry.handler("work.of-mine_2")(one)
    assert registry.get("work.of-mine_2").function is one
    assert registry.get("other") is None


def test_the_decorator_leaves_the_function_as_it_is():
    assert Registry().handler("one")(one) is one


def test_it_knows_which_handlers_are_coroutines():
    registry = Registry()
    for name, function in {"one": one, "two": two, "three": Callable()}.items():
        registry.handler(name)(function)
    assert [registry.get(name).is_async for name in ("one", "two", "three")] == [False, True, True]


def test_two_functions_under_one_name_are_refused_with_both_places_named():
    registry = Registry()
    registry.handler("same")(one)
    with pytest.raises(HandlerError, match=r"test_registry\.one and .*test_registry\.two"):
        registry.handler("same")(two)


def test_importing_the_same_function_again_is_no_clash():
    registry = Registry()
    registry.handler("same")(one)
    registry.handler("same")(one)
    assert list(registry) == ["same"]


@for_each("name", ["", "two words", "1st", "a:b", "x" * 65, None, one])
def test_a_name_no_definition_could_say_is_refused(name):
    with pytest.raises(HandlerError, match="name"):
        Registry().handler(name)


def test_apps_register_with_the_one_decorator_of_the_process():
    assert handler == handlers.handler
