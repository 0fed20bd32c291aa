"""``manage.py machine import`` and ``export``: files of any format in, definitions and files of any format out."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.core.management import CommandError, call_command

from machines.catalog.publishing import adopt, publish
from machines.engine import Engine
from machines.formats import WRITERS, load
from machines.models import MachineVersion
from tests.conftest import remove

from .samples import BROKEN, door, wider_door

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
TEMPLATE = {"initial": "a", "map": {"a": ["b"], "b": ["a"]}, "current": "", "reason": ""}
XSTATE = {
    "id": "door",
    "initial": "Shut",
    "states": {
        "Shut": {"on": {"open": {"target": "Open", "actions": "ring"}}},
        "Open": {"on": {"shut": {"target": "Shut", "reenter": True}}},
    },
}
UNKNOWN_GUARD = {"id": "door", "initial": "Shut", "states": {"Shut": {"on": {"x": {"guard": {"type": "isOpen"}}}}}}


def run(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("machine", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.fixture
def file(tmp_path: Path):
    def write(content: object, name: str = "door.json") -> str:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def test_import_prints_the_definition_and_what_there_is_to_say_beside_it(file) -> None:
    out, err = run("import", file(XSTATE, "door.xstate.json"))
    assert json.loads(out)["states"]["Shut"]["on"]["open"]["actions"] == {"emit": {"type": "ring"}}
    assert err.startswith("SB220 states.Shut.on.open.actions: ")


@pytest.mark.parametrize(
    ("content", "name"), [(XSTATE, "door.json"), (f"export const m = createMachine({json.dumps(XSTATE)})", "door.ts")]
)
def test_the_format_is_guessed(file, content, name: str) -> None:
    assert json.loads(run("import", file(content, name))[0])["id"] == "door"


def test_a_template_gets_the_name_it_lacks(file) -> None:
    out, err = run("import", file(TEMPLATE, "order.sm"), "--id", "order")
    assert json.loads(out)["id"] == "order"
    assert err == ""
    out, err = run("import", file(TEMPLATE, "my order (2).sm.json"))
    assert json.loads(out)["id"] == "my-order-2"
    assert err == ""


def test_the_ending_of_the_output_tells_its_format(file, tmp_path: Path) -> None:
    target = tmp_path / "door.yaml"
    out, err = run("import", file(XSTATE, "door.xstate.json"), "-o", str(target))
    assert out == ""
    assert f"{target}: yaml, " in err
    assert yaml.safe_load(target.read_text())["id"] == "door"


def test_a_draft_is_written_and_the_command_fails(file, tmp_path: Path) -> None:
    target = tmp_path / "draft.json"
    with pytest.raises(CommandError, match="cannot be published: 1 error; what was written is a draft"):
        run("import", file(UNKNOWN_GUARD, "door.xstate.json"), "-o", str(target))
    assert json.loads(target.read_text())["states"]["Shut"]["on"]["x"]["guard"] == "isOpen"


def test_what_cannot_be_read_at_all_writes_nothing(file, tmp_path: Path) -> None:
    target = tmp_path / "draft.json"
    with pytest.raises(CommandError, match="nothing was read as xstate: 1 error"):
        run("import", file("{", "door.xstate.json"), "-o", str(target))
    assert not target.exists()


@pytest.mark.django_db
def test_import_publishes_when_asked_to(engine: Engine, file) -> None:
    out, _ = run("import", file(XSTATE, "door.xstate.json"), "--publish", "--notes", "from Stately")
    assert out.startswith("door v1 is current (")
    assert MachineVersion.objects.get().notes == "from Stately"
    assert engine.create("door", "front").state == "Shut"


@pytest.mark.django_db
def test_a_draft_is_never_published(engine: Engine, file) -> None:
    with pytest.raises(CommandError, match="cannot be published: 1 error$"):
        run("import", file(UNKNOWN_GUARD, "door.xstate.json"), "--publish")
    with pytest.raises(CommandError, match="cannot be published: 2 errors$"):
        run("import", file(BROKEN), "--publish")
    assert engine.machines() == {}


@pytest.mark.django_db
@pytest.mark.parametrize("format", sorted(WRITERS))
def test_a_published_version_is_exported_in_every_format(engine: Engine, format: str, tmp_path: Path) -> None:
    publish(door())
    publish(wider_door())
    assert "Off" in run("export", "door", "--format", format)[0]
    assert "Off" not in run("export", "door", "--format", format, "--version", "1")[0]


@pytest.mark.django_db
def test_export_writes_a_file_in_the_format_of_its_ending(engine: Engine, tmp_path: Path) -> None:
    publish(door())
    target = tmp_path / "door.mmd"
    _, err = run("export", "door", "-o", str(target))
    assert target.read_text().startswith("---\n")
    assert f"{target}: mermaid, " in err


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ["export", "import"])
@pytest.mark.parametrize("name", ["door.puml", "door.sm", "door.txt"])
def test_an_ending_that_no_written_format_has_is_refused_with_those_there_are(
    engine: Engine, tmp_path: Path, verb: str, name: str
) -> None:
    publish(door())
    source, target = tmp_path / "source.json", tmp_path / name
    source.write_text(json.dumps(door()))
    with pytest.raises(CommandError, match=r"no format that can be written has this ending; .*\.json, .*\.mmd, "):
        run(verb, "door" if verb == "export" else str(source), "-o", str(target))
    assert not target.exists()


@pytest.mark.django_db
def test_what_a_format_does_not_carry_goes_to_standard_error(engine: Engine) -> None:
    publish(door(context={"n": 0}))
    out, err = run("export", "door", "--format", "mermaid")
    assert out.startswith("---\n")
    assert err.startswith('SB222 context: a Mermaid diagram has no place for "context"\n')


@pytest.mark.django_db
def test_export_needs_no_redis_for_what_sql_has_and_no_sql_for_what_redis_has(engine: Engine, prefix: str) -> None:
    engine.publish(door())
    assert load(run("export", "door")[0]) == door()
    adopt("door")
    remove(engine.client, prefix)
    assert load(run("export", "door")[0]) == door()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "no machine 'nowhere' is published"),
        (["door", "--version", "7"], "no version 7 of a machine 'door' is published"),
        (["door", "-o", "/nowhere/door.json"], "cannot be written: No such file"),
    ],
)
def test_what_cannot_be_exported_is_said(engine: Engine, arguments: list[str], said: str) -> None:
    publish(door())
    with pytest.raises(CommandError, match=said):
        run("export", *arguments)


@pytest.mark.faults
def test_as_a_process_it_is_a_filter_that_exits_with_the_verdict(tmp_path: Path) -> None:
    """Neither Redis nor a database is there."""
    environment = os.environ | {"SIGNALBOX_HOME": str(tmp_path), "REDIS_URL": "unix:///nonexistent/command.sock"}
    command = [sys.executable, str(MANAGE), "machine", "import", "-"]
    for config, code in ((XSTATE, 0), (UNKNOWN_GUARD, 1)):
        text = json.dumps(config)
        done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == code, done.stderr
        assert json.loads(done.stdout)["id"] == "door"
        assert "Traceback" not in done.stderr
