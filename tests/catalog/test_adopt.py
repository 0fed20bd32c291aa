"""machines.catalog.publishing.adopt and Machine.objects.get_or_adopt: what a script published becomes visible."""

from __future__ import annotations

import pytest

from machines.catalog.publishing import adopt, publish
from machines.engine import Engine, EngineUnavailable, UnknownMachine
from machines.models import Machine, MachineVersion

from .samples import door, wider_door

pytestmark = [pytest.mark.django_db, pytest.mark.redis]


def test_all_versions_of_a_script_are_taken_in(engine: Engine) -> None:
    engine.publish(door())
    engine.publish(wider_door())
    machine = adopt("door")
    assert machine.adopted
    assert machine.current == 2
    assert [version.number for version in machine.versions.order_by("number")] == [1, 2]
    assert machine.version().definition == wider_door()


def test_a_script_that_publishes_after_us_is_noticed(engine: Engine) -> None:
    machine = publish(door()).machine
    engine.publish(wider_door())
    assert machine.version(2).definition == wider_door()
    assert Machine.objects.get().current == 2


def test_adopting_twice_changes_nothing(engine: Engine) -> None:
    engine.publish(door())
    assert adopt("door") == adopt("door")
    assert MachineVersion.objects.count() == 1


def test_an_unknown_machine_is_not_adopted(engine: Engine) -> None:
    with pytest.raises(UnknownMachine):
        adopt("door")


def test_get_or_adopt_finds_in_sql_then_in_redis_then_nowhere(engine: Engine) -> None:
    engine.publish(door())
    assert Machine.objects.get_or_adopt("door").name == "door"
    assert Machine.objects.get_or_adopt("door").pk == Machine.objects.get().pk
    with pytest.raises(Machine.DoesNotExist, match="gate"):
        Machine.objects.get_or_adopt("gate")


def test_a_known_machine_is_found_while_redis_is_down(engine: Engine, settings) -> None:
    publish(door())
    settings.REDIS_URL = "unix:///nonexistent/catalog.sock"
    assert Machine.objects.get_or_adopt("door").version().definition == door()
    with pytest.raises(EngineUnavailable):
        Machine.objects.get_or_adopt("gate")


def test_a_version_nobody_has_does_not_exist(engine: Engine) -> None:
    machine = publish(door()).machine
    with pytest.raises(MachineVersion.DoesNotExist):
        machine.version(9)
