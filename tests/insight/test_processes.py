"""Facts in PostgreSQL while several hosts write, and while the server does not answer."""

from __future__ import annotations

import functools
import os
import secrets
import subprocess
import sys

import psycopg
import pytest

from tests.installation.processes import ROOT

HOSTS, BATCHES = 2, 10
WRITE = f"""
import django, sys
django.setup()
from machines.insight.errors import StoreUnavailable
from machines.insight.facts import Case
from machines.insight.store import get_store
store, done = get_store(), 0
while done < {BATCHES}:
    known = store.manifest("order")
    case = Case(known.number, f"{{sys.argv[1]}}-{{done}}", 1000, ended=True)
    steps = case.add([[1, 1000, "(create)", "New", "", 0]], 1, {{}})
    try:
        known = store.append("order", known, steps, [case.row()], number=known.number + 1)
        done += 1
        store.compact("order", known)
    except StoreUnavailable as fault:
        assert "another process changed" in str(fault), fault
"""
READ = """
import django
django.setup()
from machines.insight.store import get_store
print(get_store().ask("order", "SELECT count(*), count(DISTINCT i.instance), count(DISTINCT n), max(n) "
                      "FROM {steps} JOIN {instances} i USING (n)"))
"""
WAIT = """
import django
django.setup()
from machines.insight import places
places.STATEMENT_TIMEOUT = 200
from machines.insight.store import get_store
get_store().machines()
"""

AWAY = """
import django
django.setup()
from machines.connections import get_engine
from machines.insight.ingestion import InsightDuty
from machines.insight.store import get_store
engine = get_engine()
engine.publish({"id": "order", "initial": "New", "states": {"New": {}}})
engine.create("order", "a")
duty = InsightDuty(engine)
print(duty.run_once(), duty.run_once())
get_store().machines()
"""


@pytest.fixture(scope="module")
def database(postgres_url, redis_url, tmp_path_factory):
    name = f"signalbox_{secrets.token_hex(4)}"
    url = postgres_url.rpartition("/")[0] + f"/{name}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
        env = os.environ | {"DATABASE_URL": url, "REDIS_URL": redis_url,
                            "SIGNALBOX_HOME": str(tmp_path_factory.mktemp("home"))}  # fmt: skip
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=env, check=True)
        yield url
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def begin(redis_url, prefix, tmp_path):
    def run(database: str, host: str, *arguments: str) -> subprocess.Popen:
        env = os.environ | {
            "DATABASE_URL": database, "REDIS_URL": redis_url, "SIGNALBOX_PREFIX": prefix,
            "SIGNALBOX_HOME": str(tmp_path / host), "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            "SIGNALBOX_INSIGHT": "database:default",
        }  # fmt: skip
        command = [sys.executable, "-u", *arguments]  # what it prints and what it logs come in their order
        return subprocess.Popen(command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    return run


@pytest.fixture
def start(begin, database):
    return functools.partial(begin, database)


@pytest.mark.timeout(900)
def test_hosts_that_write_at_once_add_each_step_once(start):
    writers = [start(f"host{number}", "-c", WRITE, f"host{number}") for number in range(HOSTS)]
    assert [writer.communicate()[0] for writer in writers] == [""] * HOSTS
    whole = HOSTS * BATCHES
    assert start("reader", "-c", READ).communicate()[0] == f"[({whole}, {whole}, {whole}, {whole})]\n"


@pytest.mark.timeout(900)
def test_a_server_that_does_not_answer_is_not_waited_for(start, database):
    with psycopg.connect(database) as holder:
        holder.execute("LOCK TABLE machines_insightmanifest")
        said = start("host", "-c", WAIT).communicate()[0]
    assert said.splitlines()[-1].endswith("StoreUnavailable: the database default: canceling statement due to "
                                          "statement timeout")  # fmt: skip


def test_a_server_that_is_away_is_told_once_and_stops_nothing(begin):
    said = begin("postgres://signalbox@127.0.0.1:1/none", "host", "-c", AWAY).communicate()[0]
    assert "\nFalse False\n" in said
    assert said.count("insight of order waits, and goes on by itself: the database default: connection failed") == 1
    assert "StoreUnavailable: the database default: connection failed" in said.splitlines()[-1]
