"""Reconcile finds what no signal tells, and declarations that have changed."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from machines.integrations.attached import NotAttachable, attach, detach
from machines.integrations.attached import registry as state_names
from machines.integrations.attached.definition import build_definition
from machines.integrations.attached.reconcile import Reconcile
from tests.installation.processes import ROOT


def mirror_of(engine, mirrored) -> dict[str, str]:
    return {one.id: one.state for one in engine.find(mirrored.machine)}


def table() -> dict[str, str]:
    from .store.models import Purchase

    return {str(pk): state for pk, state in Purchase.objects.values_list("pk", "state")}


def test_bulk_writes_and_sql_are_found(engine, mirrored):
    from .store.models import Purchase

    rows = [Purchase.objects.create() for _ in range(3)]
    Purchase.objects.bulk_create([Purchase(state="confirmed") for _ in range(3)])
    Purchase.objects.filter(pk=rows[0].pk).update(state="canceled")
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM store_purchase WHERE id = %s", [rows[1].pk])
    engine.create(mirrored.machine, "no key")
    with pytest.raises(CommandError, match="6 differences are left"):
        call_command("machine", "reconcile", mirrored.machine, "--dry-run", stdout=io.StringIO())
    said = io.StringIO()
    call_command("machine", "reconcile", mirrored.machine, stdout=said)
    assert "6 of 6 differences mended" in said.getvalue()
    assert mirror_of(engine, mirrored) == table()
    assert Reconcile(engine, mirrored).run().differences == 0


def test_a_state_that_nothing_declares_is_named_and_others_are_mirrored(engine, mirrored):
    from .store.models import Purchase

    Purchase.objects.bulk_create([Purchase(state="lost"), Purchase(state="shipped")])
    said = io.StringIO()
    with pytest.raises(CommandError, match="1 differences are left"):
        call_command("machine", "reconcile", mirrored.machine, stdout=said)
    assert "'lost', which is in no choice" in said.getvalue()
    assert list(mirror_of(engine, mirrored).values()) == ["shipped"]


def test_instances_follow_declarations_that_change(engine, mirrored, monkeypatch):
    from .store.models import Purchase

    read = state_names.read_states

    def read_older(library):
        found = read(library)
        del found.names["canceled"]
        found.add("dropped")
        return found

    monkeypatch.setattr("machines.integrations.attached.registry.read_states", read_older)
    older = [Purchase.objects.create() for _ in range(2)]
    older[0].confirm()
    older[0].save()
    assert "dropped" in engine.definition(mirrored.machine)["states"]
    monkeypatch.undo()
    del mirrored.__dict__["states"]
    Purchase.objects.filter(pk=older[1].pk).update(state="canceled")
    assert Reconcile(engine, mirrored).run().left == 0
    assert mirror_of(engine, mirrored) == table()
    assert {one.version for one in engine.find(mirrored.machine)} == {2}


def test_the_definition_has_what_the_model_declares(mirrored):
    found = build_definition(mirrored)
    assert list(found["states"]) == ["new", "confirmed", "canceled", "shipped", "failed"]
    assert found["states"]["new"]["on"]["confirm"] == {
        "description": "if is_paid; permission auth.view_user", "target": "confirmed",
    }  # fmt: skip
    assert found["events"]["ship"] == {"description": "Ship it"}
    assert [one["target"] for one in found["states"]["new"]["on"]["ship"]] == ["shipped", "failed"]
    assert "cancel" not in found["states"]["canceled"]["on"]
    assert len(found["states"]["canceled"]["on"]["reopen"]) == 5
    assert "declares no states" in found["states"]["canceled"]["on"]["reopen"][0]["description"]


def test_apps_py_may_import_it_before_models_are_loaded():
    code = "from django.conf import settings; settings.configure(); from machines import attach; print(attach.__name__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "attach\n", done.stderr


@pytest.mark.parametrize(("field", "said"), [("paid", "has no FSM field 'paid'.*state, parcel"), ("nothing", "no FSM")])
def test_a_field_that_nothing_drives_is_refused(mirrored, field, said):
    from .store.models import Purchase

    with pytest.raises(NotAttachable, match=said):
        attach(Purchase, field)


def test_service_levels_are_those_that_the_project_gives(engine, mirrored):
    from .store.models import Purchase

    detach(mirrored)
    Purchase.objects.create()
    late = attach(Purchase, "state", sla={"new": "2h"})
    assert Reconcile(engine, late).run().left == 0
    assert engine.definition(late.machine)["states"]["new"]["sla"] == "2h"
    assert [one.version for one in engine.find(late.machine)] == [engine.live(late.machine).version]
    detach(late)
    with pytest.raises(NotAttachable, match="names lost; its states are new, confirmed"):
        Reconcile(engine, attach(Purchase, "state", sla={"lost": "2h"})).run()
