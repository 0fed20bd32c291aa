"""The settings module, as a process sees it that starts with this environment and no other."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dashboard.site.environment import of_process
from tests.installation.processes import COMPILED, ROOT

pytestmark = pytest.mark.faults
SHOW = """
import json
from django.conf import settings
found = {name: str(getattr(settings, name)) for name in dir(settings) if name.isupper()}
print(json.dumps(found | {"SIGNALBOX": {name: str(value) for name, value in settings.SIGNALBOX.items()}}))
"""


@pytest.fixture
def start(tmp_path):
    """Runs Python with the given variables, and with nothing else of this environment that could matter."""

    def run(
        arguments: Sequence[str | Path] = ("-c", SHOW), *, home: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess:
        env = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "dashboard.settings", "PYTHONPATH": str(ROOT)}
        env |= COMPILED | {"SIGNALBOX_HOME": str(home or tmp_path / "home")} | variables
        return subprocess.run(
            [sys.executable, *arguments], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def settings_with(start):
    def read(**options) -> dict[str, Any]:
        done = start(**options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return read


def test_it_starts_with_no_environment_at_all(settings_with):
    found = settings_with()
    assert found["DEBUG"] == "False"
    assert found["SIGNALBOX"]["REDIS_URL"] == "redis://127.0.0.1:6379/0"
    assert found["SIGNALBOX"]["PREFIX"] == "sb:"
    assert "sqlite3" in found["DATABASES"]


def test_the_generated_secret_key_is_kept_for_its_owner_alone(settings_with, tmp_path):
    first = settings_with()["SECRET_KEY"]
    assert settings_with()["SECRET_KEY"] == first
    assert stat.S_IMODE((tmp_path / "home" / "secret_key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "home").stat().st_mode) == 0o700


def test_with_a_key_and_a_database_of_its_own_nothing_is_written_here(settings_with, tmp_path):
    found = settings_with(SECRET_KEY="given", DATABASE_URL="postgres://u:p@host/name")
    assert found["SECRET_KEY"] == "given"
    assert not (tmp_path / "home").exists()


BAD = [
    ({"DEBUG": "perhaps"}, "DEBUG='perhaps' is neither true nor false"),
    ({"REDIS_URL": "localhost"}, "REDIS_URL must start with redis:// or"),
    ({"DATABASE_URL": "mysql://x/y"}, "DATABASE_URL must start with sqlite:// or"),
    ({"DATABASE_URL": "postgres://host"}, "DATABASE_URL names no database"),
    ({"SIGNALBOX_PREFIX": "a b"}, "SIGNALBOX_PREFIX='a b' does not fit"),
    ({"SIGNALBOX_PREFIX": "{x}:"}, "SIGNALBOX_PREFIX='{x}:' does not fit"),
    ({"TIME_ZONE": "Mars/Olympus"}, "TIME_ZONE='Mars/Olympus' does not fit"),
    ({"LOG_LEVEL": "loud"}, "LOG_LEVEL='loud' is not one of"),
    ({"REDIS_URL": "redis+cluster://x:1,y:z"}, "REDIS_URL is not a Redis URL: a port is a number"),
    (
        {"CACHE_URL": "redis+sentinel://x"},
        "CACHE_URL is not a Redis URL: write redis+sentinel://host:26379,.../service",
    ),
    ({"SIGNALBOX_SESSIONS": "file"}, "SIGNALBOX_SESSIONS='file' is not one of"),
    ({"SECRET_KEY": "a", "SECRET_KEY_FILE": "/b"}, "SECRET_KEY and SECRET_KEY_FILE are both set"),
    ({"SIGNALBOX_METRICS": "public"}, "SIGNALBOX_METRICS='public' is not one of off, login, token, open"),
    ({"SIGNALBOX_METRICS": "token"}, "SIGNALBOX_METRICS_TOKEN has to hold one"),
    ({"SIGNALBOX_METRICS_TOKEN": "letmein"}, "SIGNALBOX_METRICS_TOKEN is too short"),
]
EACH = """
import json, os, sys
from django.core import management
from dashboard.serving.middleware import content_security_policy
from dashboard.site import environment
from machines import cli
for variables in json.loads(sys.argv[1]):
    if not (child := os.fork()):
        os.environ.update(variables)
        sys.exit(cli.run_management(["manage.py", "check"]))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "<end>", file=sys.stderr, flush=True)
"""
"""Commands with what a process reads from its environment at its start; what they import is imported once."""


def test_a_bad_value_stops_manage_py_with_one_sentence(start):
    said = start(["-c", EACH, json.dumps([variables for variables, _ in BAD])]).stderr.split("<end>\n")
    for (variables, sentence), told in zip(BAD, said[:-1], strict=True):
        *lines, code = told.splitlines()
        assert code.split() == ["2"], (variables, told)
        assert lines[0].startswith("signalbox: "), (variables, told)
        assert sentence in told, (variables, told)
        assert "Traceback" not in told, (variables, told)
    done = start([ROOT / "manage.py", "check"], **BAD[0][0])
    assert (done.returncode, done.stderr) == (2, "\n".join(said[0].splitlines()[:-1]) + "\n")


def test_a_home_that_cannot_be_made_stops_the_start(start, tmp_path):
    (tmp_path / "file").touch()
    done = start(home=tmp_path / "file" / "home")
    assert "cannot be made (Not a directory); set SIGNALBOX_HOME" in done.stderr


def test_many_processes_that_start_at_once_agree_on_the_key(start, tmp_path):
    code = "import sys; from pathlib import Path; from dashboard.site import home"
    code += "; print(home.secret_key(Path(sys.argv[1])))"
    command = [sys.executable, "-c", code, str(tmp_path / "new")]
    racers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    assert len({racer.communicate()[0] for racer in racers}) == 1
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["secret_key"], "no drafts stay behind"


def test_on_a_cluster_the_cache_is_there_too_and_sessions_are_in_sql(settings_with):
    found = settings_with(REDIS_URL="redis+cluster://a:7000,b:7000")
    assert "redis+cluster://a:7000,b:7000" in found["CACHES"]
    assert found["SESSION_ENGINE"] == "django.contrib.sessions.backends.db"
    found = settings_with(REDIS_URL="redis+cluster://a:7000", CACHE_URL="redis://b")
    assert "redis://b" in found["CACHES"]
    assert found["SESSION_ENGINE"] == settings_with()["SESSION_ENGINE"] == "dashboard.serving.sessions"
    assert settings_with(SIGNALBOX_SESSIONS="sql")["SESSION_ENGINE"] == "django.contrib.sessions.backends.db"


def test_cache_and_sessions_have_a_prefix_beside_the_engines(settings_with):
    assert "'KEY_PREFIX': 'blue-web'" in settings_with(SIGNALBOX_PREFIX="blue:")["CACHES"]


def test_behind_tls_cookies_stay_on_tls(settings_with):
    assert settings_with()["SESSION_COOKIE_SECURE"] == "False"
    assert settings_with(BEHIND_TLS="1")["SESSION_COOKIE_SECURE"] == "True"


def test_the_examples_can_be_left_out(settings_with):
    assert "dashboard.demo.examples" in settings_with()["INSTALLED_APPS"]
    assert "dashboard.demo.examples" not in settings_with(SIGNALBOX_EXAMPLES="0")["INSTALLED_APPS"]


def test_a_server_that_runs_in_the_home_folder_is_found(settings_with, tmp_path):
    from machines.conf.server import Server

    with Server(tmp_path / "home" / "valkey") as server:
        assert settings_with()["SIGNALBOX"]["REDIS_URL"] == server.url
    assert settings_with()["SIGNALBOX"]["REDIS_URL"] == "redis://127.0.0.1:6379/0"


def test_every_setting_is_on_the_settings_page():
    page = (ROOT / "docs" / "settings.md").read_text()
    described = set(re.findall(r"`([A-Z][A-Z_]+)`", page))
    read = set(of_process().names) | {"SIGNALBOX_TEST_SERVER", "SIGNALBOX_TEST_ACCOUNT"}
    assert read - described == set(), "settings that docs/settings.md does not name"


def test_the_settings_page_invents_nothing():
    page = (ROOT / "docs" / "settings.md").read_text()
    rows = set(re.findall(r"^\| `([A-Z_]+)`", page, re.MULTILINE))
    for_tests = {name for name in rows if name.endswith("_TEST")} | {
        "CI",
        "SIGNALBOX_TEST_SERVER",
        "SIGNALBOX_TEST_ACCOUNT",
    }
    assert rows - set(of_process().names) - for_tests == set()


def test_no_variable_is_read_past_the_readers():
    """Only the settings and the test suite look at the environment."""
    allowed = {
        "dashboard/site/environment.py",
        "dashboard/serving/checks/system_checks.py",
        "dashboard/asgi.py",
        "machines/testing/fixtures.py",
        "machines/integrations/binding/bound_state.py",  # Django's own DJANGO_ALLOW_ASYNC_UNSAFE
    }
    reading = re.compile(r"os\.(environ(\.get\(|\[\")|getenv)")
    found = {
        str(path.relative_to(ROOT))
        for folder in ("dashboard", "machines")
        for path in (ROOT / folder).rglob("*.py")
        if reading.search(path.read_text())
    }
    assert {path for path in found - allowed if not path.startswith("dashboard/demo/")} == set()
