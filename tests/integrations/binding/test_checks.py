"""What does not fit is named before anything runs."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import models
from django.test import override_settings
from django.test.utils import isolate_apps

from machines.conf import project
from machines.fields import MachineField
from machines.integrations.binding import checks, registry
from tests.conftest import NOWHERE, configure

pytestmark = pytest.mark.django_db(transaction=True)


def ids(found) -> list[str]:
    return [one.id for one in found]


def messages(found) -> str:
    return " ".join(one.msg for one in found)


def test_the_shop_is_sound(machines_there):
    assert [field.label for field in registry.list_fields()] == [
        "shop.Order.status",
        "shop.Parcel.place",
        "shop.Bill.state",
    ]
    assert [one for field in registry.list_fields() for one in field.check() if one.id.startswith("signalbox")] == []
    assert checks.check_machines() == []


def test_two_fields_on_one_machine_are_an_error(monkeypatch):
    order, parcel, _ = registry.list_fields()
    monkeypatch.setattr(parcel, "machine", "order")
    found = order.check()
    assert ids(found) == ["signalbox.E045"]
    assert "shop.Order.status and shop.Parcel.place show one machine, 'order'" in messages(found)


def test_a_machine_that_is_not_published_is_named(engine):
    found = checks.check_machines()
    assert ids(found) == ["signalbox.W042"] * 3
    assert "shop.Order.status shows the machine 'order', which is not published" in messages(found)


def test_without_redis_one_warning_says_that_nobody_looked(settings):
    configure(settings, REDIS_URL=NOWHERE)
    (found,) = checks.check_machines()
    assert found.id == "signalbox.W041"
    assert "bill, order, parcel" in found.msg


def test_wrong_settings_are_said_by_their_own_check_and_ask_no_server(settings):
    settings.SIGNALBOX = {"REDIS_ULR": "redis://localhost"}
    assert checks.check_machines() == []
    (found,) = project.configuration(None)
    assert (found.id, "did you mean REDIS_URL?" in found.msg) == ("signalbox.E016", True)


@pytest.mark.parametrize("name", ["missing", "note"])
def test_ids_come_from_a_unique_column(name):
    with isolate_apps("tests.integrations.binding.shop"):

        class Thing(models.Model):
            note = models.CharField(max_length=9)
            state = MachineField("thing", id_from=name)

            class Meta:
                app_label = "shop"

            def __str__(self) -> str:
                return self.note

        assert ids(Thing._meta.get_field("state").check()) == ["signalbox.E044"]


def test_a_name_that_no_machine_can_have_is_an_error(monkeypatch):
    order, *_ = registry.list_fields()
    monkeypatch.setattr(order, "machine", "no such name")
    assert ids(order.check()) == ["signalbox.E043"]


class NoOutbox:
    """A router that keeps the product's tables elsewhere."""

    def allow_migrate(self, db: str, app_label: str, **_: object) -> bool | None:
        return False if app_label == "machines" else None


def test_a_database_without_the_outbox_is_an_error():
    order, *_ = registry.list_fields()
    with override_settings(DATABASE_ROUTERS=[NoOutbox()]):
        assert ids(order.check()) == ["signalbox.E046"]


@pytest.mark.parametrize(
    ("options", "told"), [({"on_delete": "cascade"}, "keep, delete"), ({"choices": []}, "choices")]
)
def test_options_that_do_not_fit_are_refused_at_once(options, told):
    with pytest.raises(TypeError, match=told):
        MachineField("order", **options)


def test_without_the_app_the_import_says_what_is_missing(monkeypatch):
    import importlib

    import machines.fields

    with (
        override_settings(INSTALLED_APPS=["django.contrib.contenttypes"]),
        pytest.raises(ImproperlyConfigured, match="INSTALLED_APPS"),
    ):
        importlib.reload(machines.fields)
