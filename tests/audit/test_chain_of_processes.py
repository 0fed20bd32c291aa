"""The hash chain of the audit while several processes write at the same moment, on SQLite and PostgreSQL."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.installation.processes import ROOT

PROCESSES, ENTRIES = 4, 30
WRITE = f"""
import django, sys
django.setup()
from django.db import transaction
from machines.audit.entries import record
for number in range({ENTRIES}):
    if number % 3:
        assert record(sys.argv[1], "login")
    else:
        with transaction.atomic():
            assert record(sys.argv[1], "login")
            assert record(sys.argv[1], "logout")
"""


@pytest.fixture
def sqlite(tmp_path) -> str:
    return f"sqlite:///{tmp_path}/audit.sqlite3"


@pytest.fixture
def postgresql(postgres_url) -> Iterator[str]:
    name = f"signalbox_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        yield postgres_url.rpartition("/")[0] + f"/{name}"
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(params=["sqlite", "postgresql"])
def start(request, redis_url, prefix, tmp_path) -> Callable[..., subprocess.Popen]:
    env = os.environ | {
        "DATABASE_URL": request.getfixturevalue(request.param), "REDIS_URL": redis_url, "SIGNALBOX_PREFIX": prefix,
        "SIGNALBOX_HOME": str(tmp_path / "home"), "DJANGO_SETTINGS_MODULE": "dashboard.settings",
        "SIGNALBOX_AUDIT_HEADS": str(tmp_path / "heads"),
    }  # fmt: skip

    def run(*arguments: str) -> subprocess.Popen:
        with (tmp_path / "said").open("w") as said:
            return subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=env, stdout=said)

    return run


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_entries_follow_each_other_without_a_gap(start, tmp_path):
    assert start("manage.py", "migrate", "-v0").wait() == 0
    writers = [start("-c", WRITE, f"writer-{number}") for number in range(PROCESSES)]
    assert [writer.wait() for writer in writers] == [0] * PROCESSES
    assert start("manage.py", "audit", "verify").wait() == 0
    said = (tmp_path / "said").read_text()
    whole = PROCESSES * (ENTRIES + ENTRIES // 3)
    assert said.startswith(f"{whole} entries checked, 0 removed by retention, 0 not chained yet, "), said
    heads = [int(line.split()[0]) for line in (tmp_path / "heads").read_text().splitlines()]
    assert max(heads) == whole
    assert len(set(heads)) == len(heads)
