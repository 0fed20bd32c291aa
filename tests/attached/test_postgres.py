"""The same on PostgreSQL: the tests of this folder, in a process whose database is one."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys

import pytest

from tests.installation.processes import ROOT

pytestmark = pytest.mark.postgres

FILES = ("test_calls.py", "test_recording.py", "test_reconcile.py")


def test_recording_calls_and_reconcile_hold_on_postgresql(postgres_url):
    import psycopg

    name = f"signalbox_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        url = postgres_url.rpartition("/")[0] + f"/{name}"
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider",
                 *(f"tests/attached/{file}" for file in FILES)],
                cwd=ROOT, env=os.environ | {"DATABASE_URL_TEST": url}, capture_output=True, text=True, check=False,
            )  # fmt: skip
        finally:
            admin.execute(f"DROP DATABASE IF EXISTS test_{name} WITH (FORCE)")
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
