"""``manage.py machine``: what it prints, where, and how it exits."""

from __future__ import annotations

import getpass
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.core.management import CommandError, call_command

from machines.catalog.publishing import publish
from machines.engine import Engine
from machines.engine.definitions import schema
from machines.models import AuditEntry, MachineVersion
from tests.configuration import configure
from tests.conftest import remove

from .samples import BROKEN, EXAMPLES, door, wider_door

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
YAML = "id: door\ninitial: Shut\nstates:\n  Shut: {on: {open: Open}}\n  Open: {on: {shut: Shut}}\n"


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("machine", *arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


@pytest.fixture
def file(tmp_path: Path):
    def write(content: object, name: str = "door.json") -> str:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


@pytest.mark.parametrize("name", ["activation", "new_device"])
def test_the_examples_are_valid(name: str) -> None:
    assert run("validate", str(EXAMPLES / f"{name}.json")) == f"{name}: no findings\n"


def test_validate_prints_every_finding_and_fails(file) -> None:
    out = io.StringIO()
    with pytest.raises(CommandError, match="cannot be published"):
        call_command("machine", "validate", file(BROKEN), stdout=out)
    lines = out.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["SB101", "SB109", "door:"]
    assert lines[0] == 'SB101 states.Shut.on.open: no state "Opne"; did you mean "Open"?'
    assert lines[-1] == "door: 2 errors"


def test_warnings_do_not_fail(file) -> None:
    assert run("validate", file(door(states={"Shut": {}}))).endswith("door: 1 warning\n")


@pytest.mark.parametrize("name", ["door.yaml", "door.yml", "door"])
def test_yaml_is_read_by_its_ending_or_its_look(file, name: str) -> None:
    assert run("validate", file(YAML, name)) == "door: no findings\n"


def test_a_format_that_is_only_written_is_said_so(file) -> None:
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("machine", "validate", file("digraph door {}", "door.dot"), stdout=out)
    assert out.getvalue().startswith("SB130 definition: DOT cannot be read; use json, yaml")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match=r"nowhere\.json cannot be read: No such file"):
        run("validate", "nowhere.json")


def test_the_diagram_is_a_document_of_its_own_or_dot(file, tmp_path: Path) -> None:
    ElementTree.fromstring(run("diagram", file(door())).encode())
    assert run("diagram", file(door()), "--as", "dot").startswith("digraph door {")
    target = tmp_path / "door.svg"
    run("diagram", file(door()), "--output", str(target))
    assert "<svg " in target.read_text()


def test_the_schema_is_printed() -> None:
    assert json.loads(run("schema")) == schema()


@pytest.mark.django_db
def test_publish_says_what_is_current(engine: Engine, file) -> None:
    assert run("publish", file(door()), "--notes", "first").startswith("door v1 is current (")
    assert run("publish", file(wider_door())).startswith("door v2 is current (")
    assert MachineVersion.objects.get(number=1).notes == "first"


@pytest.mark.django_db
def test_publishing_stands_in_the_audit_with_the_name_of_the_system_account(engine: Engine, file) -> None:
    run("publish", file(door()), "--notes", "first")
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.actor_id, entry.source) == (getpass.getuser(), "", "command line")
    assert (entry.action, entry.machine, entry.target, entry.reason) == ("publish", "door", "v1", "first")
    with pytest.raises(CommandError):
        run("publish", file(BROKEN))
    assert AuditEntry.objects.count() == 1  # nothing was tried: the file was read and found wanting


@pytest.mark.django_db
def test_a_definition_with_errors_is_not_published(engine: Engine, file) -> None:
    with pytest.raises(CommandError, match="nothing was published: 2 errors"):
        run("publish", file(BROKEN))
    assert engine.machines() == {}


@pytest.mark.django_db
def test_the_list_holds_machines_of_both_sides(engine: Engine, prefix: str) -> None:
    publish(door(id="lost"))
    remove(engine.client, prefix)
    engine.publish(door())
    engine.create("door", "front")
    assert run("list").splitlines() == [
        "door    v1  instances: 1",
        "lost    v1  not in Redis: see `machine restore`",
    ]


@pytest.mark.django_db
def test_restore_publishes_what_redis_lost(engine: Engine, prefix: str) -> None:
    publish(door())
    remove(engine.client, prefix)
    assert run("restore") == "door v1 restored to Redis\n"
    assert run("restore") == "Redis has all versions\n"


@pytest.mark.django_db
def test_without_redis_publishing_says_so_with_a_code(settings, file) -> None:
    configure(settings, REDIS_URL="unix:///nonexistent/command.sock")
    with pytest.raises(CommandError, match="SB500"):
        run("publish", file(door()))


@pytest.mark.parametrize(("text", "code"), [(json.dumps(door()), 0), (json.dumps(BROKEN), 1), ("{", 1), ("\0", 1)])
@pytest.mark.faults
def test_as_a_process_it_reads_standard_input_and_exits_with_the_verdict(text: str, code: int, tmp_path: Path) -> None:
    """Neither Redis nor a database is there."""
    environment = os.environ | {"SIGNALBOX_HOME": str(tmp_path), "REDIS_URL": "unix:///nonexistent/command.sock"}
    command = [sys.executable, str(MANAGE), "machine", "validate", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
