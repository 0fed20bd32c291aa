"""The SQL side on PostgreSQL: tables, sample machines, logins."""

import os
import secrets
import subprocess
import sys

import psycopg
import pytest

from tests.stage.processes import ROOT

# What `make demo` does with a DATABASE_URL, twice: the second time finds everything there.
PREPARE = """
import django, pathlib, sys
django.setup()
from dashboard.demo import backdrop, logins
for _ in range(2):
    print(backdrop.database())
    print(backdrop.machines())
    print([login.password != "" for login in logins.prepare(pathlib.Path(sys.argv[1]))])
"""


@pytest.fixture
def database_url(postgres_url):
    """A database of this test's own."""
    name = f"signalbox_{secrets.token_hex(4)}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        yield postgres_url.rpartition("/")[0] + f"/{name}"
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def manage(database_url, redis_url, prefix, tmp_path):
    env = os.environ | {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "SIGNALBOX_PREFIX": prefix,
        "SIGNALBOX_HOME": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }

    def run(*arguments: object) -> str:
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout

    return run


def test_the_demo_prepares_itself_on_postgresql(manage, tmp_path):
    first, machines, logins, *second = manage("-c", PREPARE, tmp_path).splitlines()
    assert first.startswith("PostgreSQL, ")
    assert "migrations applied" in first
    assert second == ["PostgreSQL, up to date", machines, logins]
    assert machines == "activation v1, delivery v1, new_device v1, payment v1"
    assert logins == "[True, True, True]"


def test_no_migration_is_missing(manage):
    assert "No changes detected" in manage("manage.py", "makemigrations", "--check", "--dry-run")
