"""``machine test``, and scenario files as tests of pytest."""

from __future__ import annotations

import io
import json

import pytest
import yaml
from django.core.management import CommandError, call_command

from machines.catalog.editing.runs import decode
from tests.testing.projects import SETTINGS, run, write

from .samples import EXAMPLES, LEDGER, ORDER

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.redis

GOOD = """
machine: order
scenarios:
  - name: An order expires
    steps:
      - when: {after: 30d}
        then: {state: Expired}
"""
BAD = GOOD.replace("state: Expired", "state: Paid").replace("An order expires", "An order is paid")


def command(*words: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("machine", *words, stdout=out, stderr=err)
    except CommandError as error:
        return out.getvalue(), f"{err.getvalue()}{error}"
    return out.getvalue(), err.getvalue()


@pytest.fixture
def folder(tmp_path):
    """A folder of definitions with one scenario file."""
    write(tmp_path, {"order.json": json.dumps(ORDER), "ledger.yaml": yaml.safe_dump(LEDGER), "tests/order.yaml": GOOD})
    return tmp_path


def test_files_and_folders_are_run_with_the_definitions_beside_them(folder, redis_url):
    for name in (folder, folder / "tests", folder / "tests" / "order.yaml"):
        out, err = command("test", str(name), "--url", redis_url, "--junit", str(folder / "out.xml"))
        assert err == ""
        assert "1 scenario: 1 passed, 0 failed" in out
    assert 'name="An order expires"' in (folder / "out.xml").read_text()


def test_failures_and_findings_are_errors(folder, redis_url):
    write(folder, {"tests/bad.yaml": BAD})
    out, err = command("test", str(folder / "tests"), "--url", redis_url)
    assert err == "1 of 2 scenarios failed"
    assert "FAILED" in out
    assert "it is in Expired, not in Paid" in out
    (path,) = [line.partition("try it: ")[2] for line in out.splitlines() if "try it: " in line]
    address, _, packed = path.partition("?run=")
    assert address == "/machines/order/try/"
    assert decode(packed).steps == [{"advance": 30 * 24 * 3600 * 1000}], "the link plays the scenario that failed"
    write(folder, {"tests/bad.yaml": GOOD.replace("Expired", "Expird").replace("order", "order # it", 1)})
    out, err = command("test", str(folder / "tests"), "--url", redis_url)
    assert "bad.yaml:7: SB675" in err
    assert "did you mean 'Expired'?" in err
    assert "1 passed" in out


def test_a_machine_without_a_definition_is_named(folder, redis_url, db):
    write(folder, {"tests/bad.yaml": GOOD.replace("machine: order", "machine: parcel")})
    _, err = command("test", str(folder / "tests" / "bad.yaml"), "--url", redis_url)
    assert "no definition of 'parcel' can be used; those here: ledger, order" in err


def test_a_broken_definition_is_told_when_it_is_needed(folder, redis_url, db):
    write(folder, {"order.json": json.dumps({**ORDER, "initial": "Nwe"})})
    _, err = command("test", str(folder / "tests"), "--url", redis_url)
    assert "order.json:1: SB101 initial" in err


def test_names_that_nothing_has(folder):
    assert "no scenarios of 'parcel'" in command("test", "parcel")[1]
    assert "no app has scenarios" in command("test")[1]
    assert "a.yaml: SB670: the file cannot be read" in command("test", str(folder / "a.yaml"))[1]


def test_a_server_that_does_not_answer_is_one_line(folder):
    _, err = command("test", str(folder), "--url", "unix:///nonexistent/a.sock")
    assert err.startswith("--url names a server that cannot be used: ")


def test_a_server_is_started_where_none_is_named(folder, monkeypatch):
    monkeypatch.delenv("SIGNALBOX_TEST_URL", raising=False)
    assert "1 passed" in command("test", str(folder))[0]


def test_the_schema_is_printed():
    assert json.loads(command("schema", "--scenarios")[0])["title"] == "Signalbox scenarios"
    assert json.loads(command("schema")[0])["title"] != "Signalbox scenarios"


def test_pytest_collects_the_scenarios_of_an_app(pytester, monkeypatch):
    apps = {f"shop/statemachines/{one['id']}.json": json.dumps(one) for one in (ORDER, LEDGER)}
    ini = "[pytest]\nDJANGO_SETTINGS_MODULE = settings\n"
    write(pytester.path, {**apps, "settings.py": SETTINGS, "shop/__init__.py": "", "pytest.ini": ini})
    write(pytester.path, {"shop/statemachines/tests/order.yaml": GOOD, "shop/statemachines/tests/bad.yaml": BAD})
    write(pytester.path, {"other/tests/no.yaml": "a: 1", "shop/statemachines/tests/data.yaml": "a: 1"})
    result = run(pytester, monkeypatch, "-v")
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str()
    assert "shop/statemachines/tests/order.yaml::An order expires PASSED" in text
    assert "scenario An order is paid" in text
    assert "step 1 (line 6), after 30d: it is in Expired, not in Paid" in text
    assert "history, oldest first:" in text


@pytest.mark.faults
def test_pytest_collects_beside_named_definitions_and_named_files(pytester, monkeypatch):
    write(pytester.path, {"m/order.json": json.dumps(ORDER), "m/tests/order.yaml": GOOD, "else/a.yaml": GOOD})
    write(pytester.path, {"pytest.ini": "[pytest]\nsignalbox_definitions = m\n"})
    run(pytester, monkeypatch, "-p", "no:django").assert_outcomes(passed=1)
    run(pytester, monkeypatch, "-p", "no:django", "else/a.yaml").assert_outcomes(passed=1)
    write(pytester.path, {"m/tests/order.yaml": GOOD.replace("after", "aftr")})
    result = run(pytester, monkeypatch, "-p", "no:django")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*m/tests/order.yaml:6: SB671 *did you mean*"])


def test_scenarios_are_no_definitions(folder):
    from machines.catalog.definition_files import find_files

    assert [path.name for path in find_files(folder)] == ["ledger.yaml", "order.json"]
    assert (EXAMPLES / "tests").is_dir()
