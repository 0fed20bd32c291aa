"""What a script published becomes visible: read from Redis at once, and recorded by ``machines.catalog.publishing``."""

from __future__ import annotations

import pytest

from machines.catalog.publishing import adopt, adopt_published, publish
from machines.catalog.queries import get_version, read_current_row
from machines.engine import Engine, EngineUnavailable, UnknownMachine
from machines.models import Machine, MachineVersion
from tests.configuration import configure

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
    assert get_version("door", 2).definition == wider_door()
    assert Machine.objects.get().current == 1  # reading wrote nothing
    known: dict[str, str] = {}
    adopt_published(known)
    assert (machine.version(2).definition, Machine.objects.get().current) == (wider_door(), 2)
    assert known == engine.current_versions()


def test_adopting_twice_changes_nothing(engine: Engine) -> None:
    engine.publish(door())
    assert adopt("door") == adopt("door")
    assert MachineVersion.objects.count() == 1


def test_an_unknown_machine_is_not_adopted(engine: Engine) -> None:
    with pytest.raises(UnknownMachine):
        adopt("door")


def test_a_version_is_found_in_sql_then_in_redis_then_nowhere(engine: Engine) -> None:
    engine.publish(door())
    found = read_current_row("door")
    assert (found.machine.name, found.number, found.pk, Machine.objects.count()) == ("door", 1, None, 0)
    recorded = adopt("door").version()
    assert (found.digest, found.svg) == (recorded.digest, recorded.svg)
    assert read_current_row("door") == recorded
    with pytest.raises(UnknownMachine, match="gate"):
        read_current_row("gate")


def test_a_known_machine_is_found_while_redis_is_down(engine: Engine, settings) -> None:
    publish(door())
    configure(settings, REDIS_URL="unix:///nonexistent/catalog.sock")
    assert read_current_row("door").definition == door()
    with pytest.raises(EngineUnavailable):
        read_current_row("gate")


def test_a_version_nobody_has_does_not_exist(engine: Engine) -> None:
    machine = publish(door()).machine
    with pytest.raises(MachineVersion.DoesNotExist):
        machine.version(9)
