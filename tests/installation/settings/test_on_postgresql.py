"""Tests of the suite once more on PostgreSQL: writers at the same moment, and texts that it does not take."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.installation.processes import ROOT

RECORDING, FIRE = "tests/insight/statistics/test_recording.py", "tests/admin/test_fire.py"
TESTS = (
    f"{RECORDING}::test_two_workers_at_the_same_moment_measure_once",
    f"{RECORDING}::test_who_read_before_another_wrote_does_not_write_after_it",
    f"{RECORDING}::test_a_worker_that_is_killed_at_any_point_leaves_each_count_written_once",
    f"{RECORDING}::test_old_rows_go_some_at_a_time",
    "tests/insight/statistics/test_series.py",
    "tests/approvals/test_approvals.py",
    "tests/people/test_seen.py",
    f"{FIRE}::test_an_event_nobody_knows_is_refused_and_logged",
    f"{FIRE}::test_an_event_name_that_is_not_allowed_fires_nothing",
    "tests/audit/test_entries.py",
    "tests/audit/test_chain.py",
    "tests/instances/archive/test_sql.py",
    "tests/retention/test_duty.py",
    "tests/retention/test_erasure.py",
    "tests/insight/test_places.py",
    *(f"tests/integrations/binding/test_{name}.py" for name in ("outbox", "projection")),
    *(f"tests/integrations/attached/test_{name}.py" for name in ("calls", "recording", "reconcile")),
)


@pytest.mark.timeout(1800)  # a part of the suite within one test
def test_it_holds_on_postgresql_too(postgres_url, redis_url):
    name = f"again_{os.getpid()}"
    env = os.environ | {
        "DATABASE_URL_TEST": f"{postgres_url.rpartition('/')[0]}/{name}",
        "REDIS_URL_TEST": redis_url,
        "PYTEST_ADDOPTS": "",
    }
    for inherited in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"):
        env.pop(inherited, None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert "passed" in ran.stdout
    assert "skipped" not in ran.stdout
