"""An SQLite database whose write lock another process holds: nothing ends, nothing is lost, and each answer says so."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from django.db.utils import ConnectionHandler

from machines.conf.project import _read_journal_mode, sqlite_options
from machines.conf.server.guarded import GuardedProcess
from tests.installation.processes import eventually

from .conftest import run

pytestmark = pytest.mark.faults  # real processes
SETTINGS = """
from shop.settings import *

INSTALLED_APPS = [*INSTALLED_APPS, "parcels"]
DATABASES["default"]["NAME"] = {database!r}
DATABASES["default"]["OPTIONS"]["timeout"] = 0.2  # seconds
"""
MODELS = """
from django.db import models

from machines.fields import MachineField


class Parcel(models.Model):
    state = MachineField("parcel")
"""
PREPARE = """
import os
import django
django.setup()
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from machines.connections import get_engine
from parcels.models import Parcel

call_command("migrate", run_syncdb=True, verbosity=0)
get_engine().publish({"id": "parcel", "initial": "packed", "states": {"packed": {"on": {"send": "sent"}}, "sent": {}}})
row = Parcel.objects.create()
client = Client(SERVER_NAME="localhost")
client.force_login(get_user_model().objects.get(username="boss"))
print("session", client.cookies["sessionid"].value, flush=True)
with transaction.atomic():
    transaction.on_commit(lambda: os._exit(0))  # dies before the event is sent
    row.state.fire("send")
"""
HOLD = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
database.execute("ROLLBACK")
"""
ASK = """
import json, sys
import django
django.setup()
from django.test import Client

client = Client(SERVER_NAME="localhost", raise_request_exception=False)
client.cookies["sessionid"] = sys.argv[1]
machines, drafts = "/ops/api/v1/machines/parcel/instances", "/ops/api/v1/machines/parcel/drafts"
answers = {
    "read": client.get("/ops/machines/parcel/"),
    "page": client.post("/ops/account/zone/", {"time_zone": "Europe/Paris"}),
    "api": client.post(drafts, json.dumps({"text": "{}", "note": "a try"}), content_type="application/json"),
    "step": client.post(machines, json.dumps({"id": sys.argv[2]}), content_type="application/json"),
}
found = {name: [one.status_code, one.headers.get("Retry-After"), one.content.decode()] for name, one in answers.items()}
print(json.dumps(found))
"""


@pytest.fixture
def locked(shop: dict[str, str], tmp_path: Path) -> tuple[dict[str, str], Path]:
    """The environment of the shop with a database of its own, and that database."""
    database = tmp_path / "locked.sqlite3"
    with sqlite3.connect(shop["SHOP_DATABASE"]) as there, sqlite3.connect(database) as here:
        there.backup(here)
    (tmp_path / "parcels").mkdir()
    (tmp_path / "parcels/__init__.py").touch()
    (tmp_path / "parcels/models.py").write_text(MODELS)
    (tmp_path / "locked_settings.py").write_text(SETTINGS.format(database=str(database)))
    path = f"{tmp_path}:{shop['PYTHONPATH']}"
    prefix = f"l{shop['SHOP_PREFIX']}"
    return shop | {"DJANGO_SETTINGS_MODULE": "locked_settings", "PYTHONPATH": path, "SHOP_PREFIX": prefix}, database


def test_duties_and_outbox_go_on_and_answers_say_503(locked: tuple[dict[str, str], Path], tmp_path: Path):
    environment, database = locked
    session = find_line("session ", run(environment, "-c", PREPARE)).split()[1]
    log = tmp_path / "worker"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with log.open("wb") as output:
            worker = GuardedProcess([sys.executable, "-m", "machines.cli", "worker"], output=output, env=environment)
        for said in ("events of rows wait", "versions cannot be recorded"):
            eventually(lambda said=said: said in log.read_text(), said)
        answers = json.loads(find_line('{"read"', run(environment, "-c", ASK, session, "made-meanwhile")))
        assert state_of(database) == "packed"
    finally:
        holder.communicate("")
    eventually(lambda: state_of(database) == "sent", "the event that waited is sent")
    worker.stop()
    assert "database is locked" in log.read_text()
    assert "Traceback" not in log.read_text(), log.read_text()
    assert answers["read"][0] == 200
    for name in ("page", "api"):
        status, again, text = answers[name]
        assert (status, again) == (503, "5"), text
        assert "Another process is writing to the database. It is unknown whether" in text
    assert json.loads(answers["api"][2])["code"] == "SB714"
    assert answers["step"][0] == 201, "the step is in Redis; the entry of the audit is in the log"


def find_line(start: str, said: str) -> str:
    return next(line for line in said.splitlines() if line.startswith(start))


def state_of(database: Path) -> str:
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as there:
        return there.execute("SELECT state FROM parcels_parcel").fetchone()[0]


def test_the_journal_of_a_file_is_read_whatever_its_name_has(tmp_path: Path):
    """%, # and ? mean something in the address that opens a file for reading alone."""
    database = tmp_path / "50% #1?.sqlite3"
    with contextlib.closing(sqlite3.connect(database)) as made:
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("CREATE TABLE a (b)")
    assert _read_journal_mode(str(database)) == "wal"


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, ['"transaction_mode": "IMMEDIATE"', '"init_command": "PRAGMA journal_mode=WAL']),
        ({"transaction_mode": "immediate"}, ['"init_command": "PRAGMA journal_mode=WAL']),
        ({"init_command": "PRAGMA journal_mode = wal"}, ['"transaction_mode": "IMMEDIATE"']),
        (
            {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA wal_autocheckpoint=9;"},
            ['"init_command": "PRAGMA wal_autocheckpoint=9; PRAGMA journal_mode=WAL'],
        ),
        (
            {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode='delete'"},
            ['"init_command": "PRAGMA journal_mode=\'delete\'; PRAGMA journal_mode=WAL'],
        ),
        ({"transaction_mode": "EXCLUSIVE", "init_command": "PRAGMA journal_mode=WAL"}, []),
    ],
)
def test_check_asks_for_what_lets_writers_wait(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: dict[str, str], asked: list[str]
):
    file = tmp_path / "new.sqlite3"
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(file), "OPTIONS": options}
    monkeypatch.setattr("django.db.connections", ConnectionHandler({"default": database}))
    said = " ".join(one.hint for one in sqlite_options(None))
    assert re.findall(r'"(?:transaction_mode|init_command)": "[^";]+(?:; PRAGMA journal_mode=WAL|")?', said) == asked
    assert not file.exists()
