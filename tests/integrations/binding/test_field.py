"""The value of the field: text that fires, and nothing else writes."""

from __future__ import annotations

import copy
import io
import json
import pickle

import pytest
from django.core import serializers
from django.core.management import call_command
from django.db import connection, models, transaction
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.state import ModelState, ProjectState
from django.forms import modelform_factory

from machines.engine import BadInput, EngineUnavailable, Refused
from machines.fields import MachineField, MirrorReadOnly, NotSaved
from tests.conftest import NOWHERE, configure

pytestmark = pytest.mark.django_db(transaction=True)


def order(**fields: object) -> models.Model:
    from .shop.models import Order

    return Order.objects.create(**fields)


def stored(row: models.Model) -> tuple[str, int]:
    found: tuple[str, int] = type(row).objects.values_list("status", "status_revision").get(pk=row.pk)
    return found


def test_a_new_row_has_an_instance_with_its_data_and_shows_its_state(machines_there):
    row = order(total=5)
    assert (row.status, row.status.revision) == ("new", 1)
    assert row.status.instance.data == {"total": 5, "paid": 0}
    assert stored(row) == ("new", 1)


def test_an_event_moves_the_instance_and_the_column_follows(machines_there):
    row = order(total=5)
    after = row.status.fire("pay", {"amount": 7}, actor="shop")
    assert (after.state, after.outcome is not None) == ("paid", True)
    assert (row.status, stored(row)) == ("paid", ("paid", 2))
    assert type(row).objects.filter(status="paid").get() == row
    assert [step.actor for step in row.status.history()] == ["shop", ""]


def test_the_text_of_several_active_states_is_that_of_the_instance(machines_there):
    row = order()
    row.status.fire("pay", {"amount": 1})
    after = row.status.fire("ship")
    assert row.status == after.state == "packing, printing"


def test_a_refused_event_changes_nothing_and_says_why(machines_there):
    row = order(total=5)
    with pytest.raises(Refused, match="amount"):
        row.status.fire("pay", {"amount": 1})
    assert stored(row) == ("new", 1)
    assert not row.status.explain("pay", {"amount": 1}).taken
    assert [event.name for event in row.status.available()] == ["pay", "cancel", "note", "waive"]


@pytest.mark.parametrize("how", ["assign", "update", "bulk_update", "constructor", "another row"])
def test_nothing_but_the_engine_writes_the_state(machines_there, how):
    row, other = order(), order()
    other.status.fire("cancel")
    attempts = {
        "assign": lambda: setattr(row, "status", "paid"),
        "update": lambda: type(row).objects.update(status="paid"),
        "bulk_update": lambda: type(row).objects.bulk_update([row], ["status"]),
        "constructor": lambda: order(status="paid"),
        "another row": lambda: setattr(row, "status", other.status),
    }
    with pytest.raises(MirrorReadOnly, match=r"row\.status\.fire\("):
        attempts[how]()
    assert stored(row) == ("new", 1)


def test_saving_a_row_that_was_read_earlier_does_not_bring_its_old_state_back(machines_there):
    row = order()
    old = type(row).objects.get(pk=row.pk)
    row.status.fire("pay", {"amount": 1})
    old.total = 9
    old.save()
    assert stored(row) == ("paid", 2)
    assert old.status == "new"
    old.refresh_from_db()
    assert (old.status, old.status_revision, old.total) == ("paid", 2, 9)


def test_a_row_can_be_read_without_its_state(machines_there):
    row = order()
    deferred = type(row).objects.only("total").get(pk=row.pk)
    with pytest.raises(MirrorReadOnly):
        deferred.status = "paid"
    assert deferred.status == "new"
    assert deferred.status.revision == 1


def test_refresh_reads_the_instance_and_mends_the_row(machines_there):
    row = order()
    machines_there.fire("order", str(row.pk), "cancel")
    assert row.status.refresh() == "cancelled"
    assert stored(row) == ("cancelled", 2)


def test_the_state_is_copied_and_pickled_as_text(machines_there):
    row = order()
    for copied in (copy.deepcopy(row.status), pickle.loads(pickle.dumps(row.status))):
        assert (type(copied), copied) == (str, "new")
    assert pickle.loads(pickle.dumps(row)).status.fire("cancel").state == "cancelled"
    assert json.dumps({"status": row.status}) == '{"status": "new"}'


def test_a_row_is_validated_with_its_state(machines_there):
    row = order(number="A-1")
    row.full_clean()
    assert row.status == "new"


def test_a_database_that_no_worker_looks_after_is_named(machines_there, monkeypatch):
    row = order()
    monkeypatch.setattr(row.status.field, "_databases", ("elsewhere",))
    with pytest.raises(BadInput, match="looks after the rows of elsewhere, and this one is in 'default'"):
        order()


def test_forms_leave_it_out(machines_there):
    row = order()
    assert "status" not in modelform_factory(type(row), fields="__all__").base_fields


def test_a_row_that_is_not_saved_has_no_instance(machines_there):
    from .shop.models import Order

    with pytest.raises(NotSaved, match="save it first"):
        Order().status.fire("pay")


def test_without_redis_the_row_stays_as_it_is(machines_there, settings):
    row = order()
    configure(settings, REDIS_URL=NOWHERE)
    with pytest.raises(EngineUnavailable):
        row.status.fire("cancel")
    assert (row.status, stored(row)) == ("new", ("new", 1))


def test_a_fixture_brings_the_columns_back_as_they_were(machines_there):
    row = order()
    row.status.fire("cancel")
    text = serializers.serialize("json", [row])
    type(row).objects.all().delete()
    for restored in serializers.deserialize("json", text):
        restored.save()
    assert stored(row) == ("cancelled", 2)


def test_a_child_of_a_model_shares_its_parents_columns(machines_there):
    from .shop.models import LargeParcel, Parcel

    large = LargeParcel.objects.create(number="P-1", weight=3)
    large.place.fire("move")
    assert Parcel.objects.get(number="P-1").place == "there"
    large.weight = 4
    large.save()
    assert LargeParcel.objects.get().place == "there"


def test_of_a_deleted_row_the_instance_is_kept_or_deleted(machines_there, caplog):
    from .shop.models import Parcel

    row, parcel = order(), Parcel.objects.create(number="P-2")
    id = str(row.pk)
    row.delete()
    assert machines_there.get("order", id).state == "new"
    assert "its instance order" in caplog.text
    parcel.delete()
    assert "P-2" not in [one.id for one in machines_there.find("parcel")]


# Migrations


def migrated(before: ProjectState, after: ProjectState) -> list:
    return MigrationAutodetector(before, after)._detect_changes().get("shop", [])


def test_a_migration_makes_both_columns_once():
    from .shop.models import Order

    state = ProjectState()
    state.add_model(ModelState.from_model(Order))
    (first,) = migrated(ProjectState(), state.clone())
    again = ProjectState()
    for operation in first.operations:
        operation.state_forwards("shop", again)
    assert migrated(again, state) == []
    made = dict(again.models["shop", "order"].fields)
    assert {"status", "status_revision"} <= made.keys()
    _name, path, args, options = made["status"].deconstruct()
    assert (path, list(args), options) == (
        "machines.fields.MachineField",
        ["order"],
        {"db_index": True, "max_length": 255},
    )


def test_a_data_migration_may_write_what_it_likes():
    from .shop.models import Order

    state = ProjectState()
    state.add_model(ModelState.from_model(Order))
    historical = state.apps.get_model("shop", "Order")
    made = historical.objects.create(status="shipped", status_revision=4)
    historical.objects.filter(pk=made.pk).update(status="moved")
    assert historical.objects.get(pk=made.pk).status == "moved"


def test_a_column_can_be_added_to_a_table_with_rows():
    field = MachineField("order")
    field.set_attributes_from_name("phase")

    class Old(models.Model):
        class Meta:
            app_label = "shop"
            db_table = "shop_old"

        def __str__(self) -> str:
            return str(self.pk)

    with connection.schema_editor() as editor:
        editor.create_model(Old)
    try:
        Old.objects.create()
        state = ProjectState()
        state.add_model(ModelState.from_model(Old))
        state.add_field("shop", "old", "phase", field, True)
        model = state.apps.get_model("shop", "Old")
        with connection.schema_editor() as editor:
            editor.add_field(model, model._meta.get_field("phase"))
        assert model.objects.get().phase == ""
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(Old)


def test_saving_in_a_transaction_that_is_rolled_back_makes_no_instance(machines_there):
    with transaction.atomic():
        row = order()
        transaction.set_rollback(True)
    assert machines_there.live("order").total == 0
    assert row.status == ""


def test_the_command_of_checks_is_quiet_about_a_sound_project(machines_there):
    out = io.StringIO()
    call_command("check", stdout=out, stderr=out)
    assert "machine" not in out.getvalue().lower() or "no issues" in out.getvalue()
