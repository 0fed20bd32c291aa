"""machines.catalog.publishing.publish: one document, one version, on both sides."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from machines.catalog.publishing import publish
from machines.engine import DefinitionError, Engine, EngineUnavailable
from machines.models import Machine, MachineVersion
from tests.configuration import configure

from .samples import BROKEN, door, example, wider_door

pytestmark = [pytest.mark.django_db, pytest.mark.redis]


def test_a_published_definition_is_in_redis_and_in_sql(engine: Engine) -> None:
    version = publish(example("activation"), notes="first")
    assert engine.machines() == {"activation": 1}
    assert engine.definition("activation") == version.definition == example("activation")
    assert (version.machine.name, version.number, version.notes) == ("activation", 1, "first")
    assert version.machine.current == 1
    assert version.machine.description == example("activation")["description"]
    assert version.machine.adopted is False


def test_the_publisher_is_recorded_and_may_leave(engine: Engine) -> None:
    user = get_user_model().objects.create_user("paul")
    publish(door(), user=user)
    assert MachineVersion.objects.get().published_by == user
    user.delete()
    assert MachineVersion.objects.get().published_by is None


def test_the_same_document_again_is_the_same_version(engine: Engine) -> None:
    first, again = publish(door()), publish(door())
    assert first.pk == again.pk
    assert engine.versions("door") == [1]


def test_another_program_is_the_next_version_and_becomes_current(engine: Engine) -> None:
    publish(door())
    version = publish(wider_door())
    assert (version.number, version.machine.current, engine.machines()["door"]) == (2, 2, 2)
    assert [v.number for v in version.machine.versions.all()] == [2, 1]


def test_a_change_of_words_alone_is_a_new_version(engine: Engine) -> None:
    publish(door())
    version = publish(door(description="A better door."))
    assert version.number == 2
    assert Machine.objects.get().description == "A better door."
    assert engine.definition("door", 2)["description"] == "A better door."


def test_going_back_to_an_old_document_is_a_new_version(engine: Engine) -> None:
    publish(door())
    publish(wider_door())
    assert publish(door()).number == 3


def test_errors_are_all_reported_and_nothing_is_published(engine: Engine) -> None:
    with pytest.raises(DefinitionError) as caught:
        publish(BROKEN)
    assert len([finding for finding in caught.value.findings if finding.is_error]) == 2
    assert engine.machines() == {}
    assert not Machine.objects.exists()


@pytest.mark.parametrize("thing", [None, [], "door", 7, {}])
def test_what_is_no_definition_is_refused_with_findings(engine: Engine, thing: object) -> None:
    with pytest.raises(DefinitionError) as caught:
        publish(thing)
    assert caught.value.findings


def test_without_redis_nothing_is_recorded(settings) -> None:
    configure(settings, REDIS_URL="unix:///nonexistent/catalog.sock")
    with pytest.raises(EngineUnavailable):
        publish(door())
    assert not Machine.objects.exists()


def test_a_version_that_only_redis_got_is_recorded_by_publishing_again(engine: Engine) -> None:
    engine.publish(door())
    version = publish(door())
    assert (version.number, Machine.objects.get().current) == (1, 1)
