"""Names of the product's handlers, queues and machines are not for other definitions, in whatever format they come."""

from __future__ import annotations

import copy
import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from machines import formats
from machines.catalog import builtin_machines
from machines.catalog.publishing import publish
from machines.catalog.submissions import Submission, read
from machines.engine.errors import DefinitionError
from machines.engine.transfer.exporting import Export
from machines.engine.transfer.importing import Import
from tests.cases import for_each

INTRUDER = {
    "id": "intruder",
    "initial": "a",
    "states": {"a": {"invoke": {"src": "bulk.remove", "onDone": "b"}}, "b": {"type": "final"}},
}
MESSAGE = {"send": {"event": "remove", "to": {"machine": "bulk", "id": "'b1'"}}}
JOB = {"enqueue": {"src": "map_reduce.remove"}}


def place(**state) -> dict:
    return {"id": "intruder", "initial": "a", "states": {"a": state}}


PLACES = [
    (place(invoke={"src": "bulk.remove"}), ["states.a.invoke.src"]),
    (place(invoke={"src": "mine", "queue": "bulk.remove"}), ["states.a.invoke.queue"]),
    (place(invoke=[{"src": "mine"}, {"src": "schedules.work"}]), ["states.a.invoke[1].src"]),
    (place(entry=JOB), ["states.a.entry.enqueue.src"]),
    (place(on={"go": {"actions": [JOB]}}), ["states.a.on.go.actions[0].enqueue.src"]),
    (place(entry={"if": [{"guard": "1 < 2", "do": [JOB]}]}), ["states.a.entry.if[0].do[0].enqueue.src"]),
    (place() | {"queues": {"bulk.act": {"concurrency": 1}}}, ['queues["bulk.act"]']),
    (place(invoke={"src": "machine:bulk"}), ["states.a.invoke.src"]),
    (place(entry=MESSAGE), ["states.a.entry.send.event"]),
    (place() | {"machines": {"inner": place(invoke={"src": "bulk.remove"}) | {"id": "inner"}}},
     ["machines.inner.states.a.invoke.src"]),
]  # fmt: skip


@for_each("definition, paths", PLACES)
def test_a_reserved_name_is_an_error_where_it_stands(definition, paths):
    if "machines" in definition:
        definition["machines"]["inner"].pop("id")
    found = [finding for finding in Submission.of(definition).errors if finding.code == "SB127"]
    assert [finding.path for finding in found] == paths


@for_each("name", ["bulk", "bulks.remove", "my.bulk.remove", "schedule", "map_reducer.map"])
def test_names_that_only_look_alike_are_free(name):
    definition = copy.deepcopy(INTRUDER)
    definition["states"]["a"]["invoke"]["src"] = name
    assert not Submission.of(definition).errors


def test_the_product_s_own_machines_name_them():
    assert not Submission.of(builtin_machines.definition("schedules")).errors


@for_each("format", [format for format in formats.WRITERS if format in formats.READERS])
def test_an_import_in_each_format_is_refused(format):
    text, _ = formats.dump(INTRUDER, format)
    found = read(text, format=format, id="intruder")
    work = (found.definition or {}).get("states", {}).get("a", {}).get("invoke")
    assert work or format == "mermaid", "it carries no invokes"
    assert not work or "SB127" in [finding.code for finding in found.errors]


def test_it_is_not_published(engine, db):
    with pytest.raises(DefinitionError, match=r"SB127 states\.a\.invoke\.src"):
        publish(INTRUDER)
    assert "intruder" not in engine.machines()


def test_an_export_of_such_a_machine_is_not_imported(engine, db, tmp_path: Path):
    engine.publish(INTRUDER | {"id": "moved"})
    Export(engine.client, engine.keys, "moved", tmp_path / "moved.sb").run()
    with pytest.raises((CommandError, DefinitionError), match="SB127"):
        call_command("machine", "import", str(tmp_path / "moved.sb"), stdout=io.StringIO(), stderr=io.StringIO())


def test_an_export_of_a_machine_of_the_product_is_not_imported(engine, db, tmp_path: Path):
    engine.publish(builtin_machines.definition("schedules"))
    Export(engine.client, engine.keys, "schedules", tmp_path / "own.sb").run()
    with pytest.raises(CommandError, match="a machine of the product"):
        call_command("machine", "import", str(tmp_path / "own.sb"), stdout=io.StringIO(), stderr=io.StringIO())


def test_an_import_that_nobody_checks_is_the_engine_s(engine, tmp_path: Path):
    engine.publish(INTRUDER)
    Export(engine.client, engine.keys, "intruder", tmp_path / "i.sb").run()
    assert Import(engine.client, engine.keys, tmp_path / "i.sb").run().machine == "intruder"
