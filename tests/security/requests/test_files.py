"""What lies on the disk is its owner's alone, from its first byte; what was open is closed, and said."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.site import home, stores
from tests.installation.processes import ROOT

FILES = ("signalbox.sqlite3", "signalbox.sqlite3-wal", "signalbox.sqlite3-shm")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """As a process begins: nothing said, and the usual mask, which lets everybody read."""
    monkeypatch.setattr(home, "NOTICES", [])
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):o}"


def manage(home: Path, *words: str, **variables: str) -> str:
    """A management command in a process of its own; what it wrote to standard error."""
    environment = {"PATH": os.environ["PATH"], "SIGNALBOX_HOME": str(home), "REDIS_URL": "unix:///nonexistent.sock"}
    done = subprocess.run(
        [sys.executable, "manage.py", *words], cwd=ROOT, env=environment | variables, capture_output=True, text=True,
        timeout=100, check=False, umask=0o022,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def opened(path: Path) -> sqlite3.Connection:
    """A connection that writes ahead, so that all its files are there."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS t (n)")
    connection.commit()
    return connection


@pytest.mark.faults
def test_a_new_installation_is_its_owners_alone(tmp_path):
    home = tmp_path / "home"
    assert "mode" not in manage(home, "migrate", "--verbosity", "0")
    assert (mode(home), mode(home / "secret_key")) == ("700", "600")
    with opened(home / FILES[0]):
        assert [mode(home / name) for name in FILES] == ["600"] * 3


@pytest.mark.faults
def test_what_was_open_is_closed_and_said_once(tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    (home / "secret_key").write_text("k" * 50)
    connection = opened(home / FILES[0])
    owners = [(home / name).stat().st_uid for name in FILES]
    assert [mode(home / name) for name in FILES] == ["644"] * 3
    said = manage(home, "check", "--tag", "security")
    for name in ("", "secret_key", *FILES):
        assert f"{home / name} had mode {755 if not name else 644}, open to others" in said
    assert (mode(home), mode(home / "secret_key")) == ("700", "600")
    assert [mode(home / name) for name in FILES] == ["600"] * 3
    assert [(home / name).stat().st_uid for name in FILES] == owners
    connection.execute("INSERT INTO t VALUES (1)")
    connection.close()
    assert "mode" not in manage(home, "check", "--tag", "security")


def test_so_is_a_database_that_a_url_names_wherever_it_lies(tmp_path):
    path, folder = tmp_path / "db.sqlite3", mode(tmp_path)
    stores.database(f"sqlite:///{path}", tmp_path)
    assert mode(path) == "600"
    path.chmod(0o644)
    (tmp_path / "db.sqlite3-journal").touch(0o644)
    stores.database(f"sqlite:///{path}", tmp_path)
    assert (mode(path), mode(tmp_path / "db.sqlite3-journal")) == ("600", "600")
    assert len(home.NOTICES) == 2
    assert mode(tmp_path) == folder


@pytest.mark.parametrize(
    ("before", "after"),
    [(0o644, "600"), (0o640, "600"), (0o664, "660"), (0o660, "660"), (0o666, "660"), (0o600, "600"), (0o400, "400")],
)
def test_what_a_group_may_write_is_shared_on_purpose_and_stays_so(tmp_path, before, after):
    path = tmp_path / "file"
    path.touch()
    path.chmod(before)
    home.tighten(path)
    assert mode(path) == after
    assert bool(home.NOTICES) == (f"{before:o}" != after)


def test_a_folder_that_everybody_shares_is_left_alone(tmp_path):
    tmp_path.chmod(0o1777)
    home.tighten(tmp_path)
    assert (mode(tmp_path), home.NOTICES) == ("1777", [])


def test_what_belongs_to_another_account_is_said_and_not_touched(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.touch(0o644)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    home.tighten(path)
    assert mode(path) == "644"
    (said,) = home.NOTICES
    assert said == f"{path} has mode 644 and belongs to another account, who has to make it 600"


def test_a_database_that_cannot_be_made_is_left_to_sqlite_to_say(tmp_path):
    stores.database(f"sqlite:///{tmp_path}/missing/db.sqlite3", tmp_path)
    assert home.NOTICES == []
    assert stores.database("sqlite://:memory:", tmp_path)["NAME"] == ":memory:"
