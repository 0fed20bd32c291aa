"""machines.catalog.publishing.restore: an emptied Redis gets back the definitions that SQL knows."""

from __future__ import annotations

import logging

import pytest

from machines.catalog.publishing import Diverged, adopt, list_diverged, publish, restore
from machines.engine import Engine
from machines.models import Machine
from tests.conftest import remove

from .samples import door, example, wider_door

pytestmark = [pytest.mark.django_db, pytest.mark.redis]


@pytest.fixture
def emptied(engine: Engine, prefix: str):
    """Redis loses everything, as after a restart without persistence."""
    return lambda: remove(engine.client, prefix)


def test_every_version_comes_back_under_its_number(engine: Engine, emptied) -> None:
    publish(door())
    publish(wider_door())
    publish(example("new_device"))
    emptied()
    assert [str(version) for version in restore()] == ["door v1", "door v2", "new_device v1"]
    assert engine.machines() == {"door": 2, "new_device": 1}
    assert engine.definition("door", 1) == door()
    assert engine.create("door", "front").version == 2


def test_where_redis_has_everything_nothing_happens(engine: Engine) -> None:
    publish(door())
    assert restore() == []


def test_publishing_into_an_emptied_redis_continues_the_numbers(engine: Engine, emptied) -> None:
    publish(door())
    publish(wider_door())
    emptied()
    assert publish(door(description="new")).number == 3
    assert engine.versions("door") == [1, 2, 3]


def test_a_gap_is_filled_without_making_the_old_version_current(engine: Engine, emptied) -> None:
    publish(door())
    publish(wider_door())
    emptied()
    engine.publish(wider_door(), version=2)
    assert [version.number for version in restore("door")] == [1]
    assert engine.machines() == {"door": 2}


def test_a_machine_that_differs_on_both_sides_is_left_alone_and_logged(engine: Engine, emptied, caplog) -> None:
    publish(door())
    publish(door(description="words"))
    emptied()
    engine.publish(wider_door())
    with caplog.at_level(logging.WARNING):
        restore()
    assert "version 1 of 'door' is one definition in SQL and another one in Redis" in caplog.text
    assert engine.definition("door", 1) == wider_door()
    assert Machine.objects.get().version(1).definition == door()
    assert list_diverged(Machine.objects.get()) == [1]


def test_publishing_a_diverged_machine_still_works_and_gets_a_new_number(engine: Engine, emptied) -> None:
    publish(door())
    emptied()
    engine.publish(wider_door())
    assert publish(wider_door(description="mine")).number == 2
    assert adopt("door").current == 2


def test_a_number_that_is_taken_by_something_else_is_an_error_with_its_facts(engine: Engine, emptied) -> None:
    error = Diverged("door", 3)
    assert error.facts() == {"code": "SB460", "message": error.message, "machine": "door", "version": 3}
