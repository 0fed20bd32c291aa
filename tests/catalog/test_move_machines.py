"""``manage.py machine export NAME FILE`` and ``import FILE``: machines with their instances, between installations."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from machines.catalog.publishing import publish
from machines.engine import Engine
from machines.models import AuditEntry, MachineVersion
from tests.conftest import remove

from .samples import door

MANAGE = Path(__file__).resolve().parents[2] / "manage.py"
pytestmark = pytest.mark.django_db


def run(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("machine", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.fixture
def file(engine, tmp_path: Path) -> Path:
    """An export of three doors."""
    publish(door())
    for number in range(3):
        engine.create("door", f"d{number}")
    run("export", "door", str(tmp_path / "door.sb"))
    return tmp_path / "door.sb"


def test_a_machine_comes_back_with_its_instances_after_redis_lost_everything(
    engine, file, cleaner, prefix, redis_url
) -> None:
    remove(cleaner, prefix)
    out, _ = run("import", str(file), "--partitions", "4")
    assert out == "door: 4 records written, 0 were there, 1 versions published\n"
    fresh = Engine.from_url(redis_url, prefix=prefix)
    assert sum(fresh.counts("door").values()) == 3
    assert MachineVersion.objects.get(machine__name="door").number == 1
    assert engine.client.hget(f"{prefix}machines", "door") == "4"


def test_both_stand_in_the_audit(engine, file) -> None:
    run("import", str(file))
    found = AuditEntry.objects.filter(action__startswith="machine.").order_by("pk")
    assert [(e.action, e.machine, e.target, e.outcome) for e in found] == [
        ("machine.export", "door", "door.sb", "done"),
        ("machine.import", "door", "door.sb", "done"),
    ]
    assert found[0].detail["instances"] == 3


def test_a_file_that_exists_is_not_written_over(file) -> None:
    with pytest.raises(CommandError, match="exists: remove it"):
        run("export", "door", str(file))


def test_a_damaged_file_is_refused_with_where(engine, file) -> None:
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(CommandError, match=r"SB461 .*cut in chunk 1, at byte 0; nothing of it was written"):
        run("import", str(file))


def test_records_that_are_not_written_are_named_and_the_exit_code_says_so(engine, file) -> None:
    engine.delete("door", "d1", actor="ann", reason="x")
    engine.create("door", "d1")
    with pytest.raises(CommandError, match="1 records were not written"):
        run("import", str(file))


def test_options_of_definitions_do_not_go_with_instances(file, tmp_path) -> None:
    with pytest.raises(CommandError, match="--version, --format and -o are for definitions"):
        run("export", "door", str(tmp_path / "x"), "--version", "1")
    with pytest.raises(CommandError, match="--id and --publish are for definitions"):
        run("import", str(file), "--publish")


def test_progress_is_shown_when_asked_for(engine, file, tmp_path) -> None:
    assert "exported 3 of 3 100 %" in run("export", "door", str(tmp_path / "again"), "--progress")[1]


@pytest.mark.faults
@pytest.mark.django_db(transaction=True)
def test_control_c_stops_and_the_same_command_writes_the_file(engine, prefix, redis_url, tmp_path: Path) -> None:
    engine.publish(door())
    with engine.client.pipeline(transaction=False) as pipeline:  # as one transaction it may take a busy server too long
        for number in range(20_000):
            pipeline.fcall("sb_create", 1, f"{prefix}{{door:0}}", f"d{number}", "")
        pipeline.execute()
    path = tmp_path / "door.sb"
    env = os.environ | {
        "REDIS_URL": redis_url, "SIGNALBOX_PREFIX": prefix, "SIGNALBOX_HOME": str(tmp_path), "PYTHONWARNINGS": "ignore",
    }  # fmt: skip
    words = [sys.executable, str(MANAGE), "machine", "export", "door", str(path), "--progress"]
    process = subprocess.Popen(words, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stderr.readline()  # the first line of progress
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if process.returncode == 130:  # else the file was whole before the signal came
        assert "run the same command again" in err
        assert not path.exists()
        assert "door with 20000 instances" in run("export", "door", str(path))[0]
    assert path.exists(), err


def test_repartition_says_what_it_moved_and_refuses_machines_of_the_product(engine, file, monkeypatch) -> None:
    from machines.engine.transfer import repartitioning

    monkeypatch.setattr(repartitioning.Repartition.__init__, "__kwdefaults__", {
        **repartitioning.Repartition.__init__.__kwdefaults__, "settle": 0,
    })  # fmt: skip
    out, _ = run("repartition", "door", "--to", "3")
    assert out.startswith("door: 1 -> 3 partitions, ")
    with pytest.raises(CommandError, match="grows to a multiple of them: 6, 9"):
        run("repartition", "door", "--to", "4")
    with pytest.raises(CommandError, match="bulk is a machine of the product"):
        run("repartition", "bulk", "--to", "4")
    with pytest.raises(CommandError, match="SB420"):
        run("repartition", "nothing", "--to", "4")


def test_a_repartition_that_was_stopped_exits_with_130(engine, file, monkeypatch) -> None:
    from machines.engine.transfer.repartitioning import Repartition, RepartitionReport

    monkeypatch.setattr(Repartition, "run", lambda self, progress: RepartitionReport(1, 4, moved=7))
    with pytest.raises(SystemExit) as caught:
        run("repartition", "door", "--to", "4")
    assert caught.value.code == 130
