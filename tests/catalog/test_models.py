"""Machine and MachineVersion: immutable, in document order, with the four rights."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.db.models import ProtectedError

from machines import diagrams
from machines.catalog.publishing import publish, redraw
from machines.engine import Engine
from machines.models import Machine, MachineVersion, VersionIsImmutable

from .samples import door

pytestmark = [pytest.mark.django_db, pytest.mark.redis]


@pytest.fixture
def version(engine: Engine) -> MachineVersion:
    return publish(door())


def test_a_published_version_cannot_be_saved_again(version: MachineVersion) -> None:
    version.notes = "changed my mind"
    with pytest.raises(VersionIsImmutable, match="door v1 is published"):
        version.save()


def test_a_published_version_cannot_be_updated_in_bulk(version: MachineVersion) -> None:
    with pytest.raises(VersionIsImmutable, match="definition"):
        MachineVersion.objects.update(definition={})
    version.notes = "x"
    with pytest.raises(VersionIsImmutable):
        MachineVersion.objects.bulk_update([version], ["notes"])


def test_a_published_version_and_its_machine_cannot_be_deleted(version: MachineVersion) -> None:
    with pytest.raises(VersionIsImmutable):
        version.delete()
    with pytest.raises(VersionIsImmutable):
        MachineVersion.objects.all().delete()
    with pytest.raises(ProtectedError):
        version.machine.delete()


def test_keys_keep_the_order_of_the_document(engine: Engine) -> None:
    states = {"b": {"on": {"z": "a", "y": "b"}}, "a": {"type": "final"}}
    publish(door(states=states, initial="b"))
    held = MachineVersion.objects.get().definition
    assert list(held["states"]) == ["b", "a"]
    assert list(held["states"]["b"]["on"]) == ["z", "y"]


def test_text_that_databases_refuse_is_kept(version: MachineVersion) -> None:
    odd = {"id": "door", "description": "NUL \u0000 and emoji 🚂"}
    MachineVersion.objects.create(machine=version.machine, number=7, definition=odd, digest="0" * 12)
    assert MachineVersion.objects.get(number=7).definition == odd


def test_the_diagram_is_laid_out_at_publishing_and_cached(version: MachineVersion, django_assert_num_queries) -> None:
    held = MachineVersion.objects.get()
    assert held.drawing_format == diagrams.DRAWING
    with django_assert_num_queries(0):
        assert held.svg.startswith("<svg ")
    assert 'id="state-1"' in held.svg


def test_a_drawing_of_an_older_release_is_drawn_again_and_kept_by_a_worker(version: MachineVersion) -> None:
    MachineVersion.objects.update(drawing="<svg>old</svg>", drawing_format=0)
    assert 'id="state-1"' in MachineVersion.objects.get().svg
    assert MachineVersion.objects.get().drawing_format == 0  # reading wrote nothing
    assert (redraw(), redraw()) == (1, 0)
    assert 'id="state-1"' in MachineVersion.objects.get().drawing
    assert MachineVersion.objects.get().drawing_format == diagrams.DRAWING


def test_the_rights_exist_and_no_others() -> None:
    found = Permission.objects.filter(content_type__app_label="machines").values_list("codename", flat=True)
    assert set(found) == {
        "view_machine", "fire_machine", "operate_machine", "reveal_machine", "publish_machine", "view_auditentry",
        "view_token", "revoke_token",
    }  # fmt: skip


def test_machines_are_listed_by_name(engine: Engine) -> None:
    publish(door(id="zebra"))
    publish(door(id="aardvark"))
    assert [str(machine) for machine in Machine.objects.all()] == ["aardvark", "zebra"]
