"""The migration that stands for those before it: a database that had all of them keeps its tables, one that had some is
told what to do."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

import machines.migrations

FIRST = "0001_squashed_0022"
JOINED = import_module(f"machines.migrations.{FIRST}").Migration.replaces
LATER = [
    ("machines", path.stem) for path in Path(machines.migrations.__file__).parent.glob("0*.py") if path.stem != FIRST
]


def record(*names: tuple[str, str]) -> MigrationRecorder:
    """Have the database say that of the app's migrations it had just these."""
    recorder = MigrationRecorder(connection)
    recorder.migration_qs.filter(app="machines").delete()
    for name in names:
        recorder.record_applied(*name)
    return recorder


def test_a_database_that_had_all_of_them_is_up_to_date(db):
    recorder = record(*JOINED, *LATER)
    executor = MigrationExecutor(connection)
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []
    call_command("migrate", verbosity=0, skip_checks=False)
    assert ("machines", FIRST) in recorder.applied_migrations()
    assert run_checks(tags=["database"], databases=["default"]) == []


@pytest.mark.parametrize("count", [1, len(JOINED) - 1])
def test_a_database_that_had_some_is_refused_with_the_way_on(db, count):
    record(*JOINED[:count])
    with pytest.raises(CommandError) as refused:
        call_command("migrate", verbosity=0, skip_checks=False)
    assert "signalbox.E049" in str(refused.value)
    assert f"are those of migration {JOINED[count - 1][1]}" in str(refused.value)
    assert "the file 0022_archived_version.py, run `migrate` there" in str(refused.value)
