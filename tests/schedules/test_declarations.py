"""Schedules that apps declare, and the command."""

from __future__ import annotations

import json
import sys

import pytest
from django.core.management import CommandError, call_command

from machines.schedules import InvalidSchedule, declarations, declare
from machines.schedules.declarations import Declarations, sync_code

from .clock import WHAT

SOURCE = "tests.schedules.app.schedules"
WEEKDAYS = {"name": "weekdays", "when": {"cron": "0 8 * * MON-FRI"}, "what": WHAT}


@pytest.fixture
def app(settings, monkeypatch):
    monkeypatch.setattr(declarations, "_declared", {})
    monkeypatch.delitem(sys.modules, SOURCE, raising=False)
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "tests.schedules.app"]


def test_a_worker_makes_what_an_app_declares_and_removes_what_it_no_longer_does(clock, app, engine):
    duty = Declarations(engine)
    duty.run_once()
    assert [(row.name, row.source, row.state) for row in clock.schedules.find()] == [
        ("nightly", SOURCE, "active"), ("weekly", SOURCE, "active"),
    ]  # fmt: skip
    assert sync_code(engine).unchanged == ["nightly", "weekly"]
    clock.schedules.put(WEEKDAYS)
    del declarations._declared["weekly"]
    assert sync_code(engine).removed == ["weekly"]
    assert [row.name for row in clock.schedules.find()] == ["nightly", "weekdays"], "people's schedules stay"


def test_a_schedule_whose_machine_is_missing_is_tried_again(engine, app):
    duty = Declarations(engine)
    duty.run_once()
    assert duty.pause() == Declarations.AGAIN
    from .conftest import REPORT

    engine.publish(REPORT)
    duty.run_once()
    assert duty.pause() == Declarations.DONE


def test_a_name_is_declared_in_one_module(app):
    sync_modules = declarations.discover()
    assert [document["name"] for document in sync_modules[SOURCE]] == ["nightly", "weekly"]
    with pytest.raises(InvalidSchedule, match=f"is declared in {SOURCE} already"):
        declare(WEEKDAYS | {"name": "nightly"})


def run(capsys, *arguments) -> object:
    call_command("schedule", *arguments, "--json")
    return json.loads(capsys.readouterr().out)


@pytest.mark.django_db
def test_each_verb_of_the_command(clock, app, capsys, tmp_path):
    file = tmp_path / "weekdays.json"
    file.write_text(json.dumps([WEEKDAYS]), encoding="utf-8")
    assert len(run(capsys, "add", str(file), "--check")[0]["next"]) == 5
    assert run(capsys, "add", str(file))[0]["state"] == "active"
    assert run(capsys, "sync")["put"] == ["nightly", "weekly"]
    assert [row["name"] for row in run(capsys, "list", "--machine", "report")] == ["nightly", "weekdays", "weekly"]
    assert run(capsys, "take-over", "weekdays")["state"] == "active"
    assert run(capsys, "remove", "weekdays") == {"name": "weekdays"}
    with pytest.raises(CommandError, match=r"is declared in tests\.schedules\.app\.schedules: remove it there"):
        call_command("schedule", "remove", "weekly")
    call_command("schedule", "remove", "weekly", "--declared")
    capsys.readouterr()
    call_command("schedule", "list")
    assert capsys.readouterr().out.startswith("nightly: active, enqueue on report, next ")


def test_a_file_that_is_no_json_is_refused(clock, tmp_path):
    file = tmp_path / "broken.json"
    file.write_text("{", encoding="utf-8")
    with pytest.raises(CommandError, match="is no JSON"):
        call_command("schedule", "add", str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("schedule", "add", str(tmp_path / "missing.json"))
