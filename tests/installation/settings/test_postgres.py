"""The SQL side on PostgreSQL: tables, sample machines, logins."""

import os
import secrets
import subprocess
import sys

import psycopg
import pytest

from tests.installation.processes import ROOT

# What `make demo` does with a DATABASE_URL, twice: the second time finds everything there.
PREPARE = """
import django, pathlib, sys
django.setup()
from dashboard.demo import demo, preparation
for _ in range(2):
    print(preparation.database())
    print(preparation.machines())
    print([login.password != "" for login in demo.prepare(pathlib.Path(sys.argv[1]))])
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
    flows = ["activation v1", "delivery v1", "new_device v1", "payment v1", "service_activation v1"]
    assert machines == ", ".join([*flows, "map_reduce v1", "map_reduce_chunk v1"])
    assert logins == "[True, True, True, True]"


def test_no_migration_is_missing(manage):
    assert "No changes detected" in manage("manage.py", "makemigrations", "--check", "--dry-run")


# What SQLite takes and PostgreSQL does not, and a page boundary among entries of one moment.
AUDIT = """
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from dashboard.audit.filter import AuditFilter, make_cursor, older_than
from machines.people.permissions import EVERYTHING
from machines.audit.entries import record
from machines.models import AuditEntry, AuditIsAppendOnly
print(record("alice", "fire", machine="m" * 99, instance="a\\0b\\ud800", detail={"said": "\\0\\ud800"}))
print(AuditEntry.objects.get().detail == {"said": "\\0\\\\ud800"})
try:
    AuditEntry.objects.all().delete()
except AuditIsAppendOnly as error:
    print(error)
first = AuditEntry.objects.get()
AuditEntry.objects.bulk_create(AuditEntry(at=first.at, actor="bob", action="fire", outcome="done") for _ in range(9))
terms = AuditFilter({"actor": "bob", "since": "2020-01-01", "outcome": "done"}, EVERYTHING)
assert terms.is_valid()
seen = list(terms.entries()[:4])
while more := list(older_than(terms.entries(), make_cursor(seen[-1]))[:4]):
    seen += more
print(len(seen), len({entry.pk for entry in seen}))
"""


def test_the_audit_is_kept_on_postgresql(manage):
    told = manage("-c", AUDIT).splitlines()
    assert told == ["True", "True", "audit entries cannot be deleted", "9 9"]
