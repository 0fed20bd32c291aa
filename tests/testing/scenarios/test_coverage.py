"""Coverage of transitions and guards: counted, added up over processes, stored for a definition, shown with traffic."""

from __future__ import annotations

import json

import pytest

from machines.catalog import coverage
from machines.catalog.coverage import Collector, Coverage, list_parts, percent, read
from machines.engine.definitions import compile_definition
from machines.models import StoredCoverage
from tests.cases import for_each
from tests.testing.projects import run, write

from .samples import LEDGER, ORDER
from .test_command import GOOD, command

pytest_plugins = ["pytester"]
CHAIN = {
    "id": "chain",
    "initial": "A",
    "context": {"n": 0},
    "states": {
        "A": {
            "on": {"go": [{"target": "B", "guard": "n > 5"}, {"target": "C", "guard": "n > 2"}]},
            "always": {"target": "B", "guard": "n > 9"},
        },
        "B": {"on": {"back": "A"}},
        "C": {},
    },
}


def list_covered(**counts: dict[str, int]) -> list[str]:
    compiled = compile_definition(CHAIN)
    coverage = Coverage.from_dict(
        {"machine": "chain", "digest": compiled.digest, "tests": 1, "taken": {}, "refused": {}} | counts
    )
    return [f"{part.transition.id} {part.outcome}" for part in list_parts(compiled.outline, coverage) if part.covered]


@pytest.mark.pure
def test_a_later_transition_and_a_refusal_show_a_false_guard():
    assert list_covered() == []
    assert list_covered(taken={"t1": 2}) == ["t1 taken"]
    assert list_covered(taken={"t2": 1}) == ["t1 guard false", "t2 taken"]
    assert list_covered(refused={"t1": 1, "t2": 1}) == ["t1 guard false", "t2 guard false"]


@pytest.mark.pure
def test_what_cannot_show_is_not_counted():
    compiled = compile_definition(CHAIN)
    parts = list_parts(compiled.outline, Coverage("chain", compiled.digest))
    assert [part.transition.id for part in parts if part.outcome != "taken"] == ["t1", "t2"]
    assert percent(parts) == 0
    assert percent([]) == 100


@pytest.mark.pure
@for_each("text", ["", "[]", "{}", '{"format": "signalbox-coverage", "machines": 3}', "[" * 100_000])
def test_a_file_that_is_no_coverage_is_refused(text):
    with pytest.raises(ValueError, match=r"this is no|is no list"):
        read(text)


@pytest.mark.pure
def test_entries_that_are_no_coverage_are_refused():
    wrong = {
        "format": coverage.FORMAT,
        "machines": [{"machine": "a", "digest": "b", "tests": 1, "taken": {"t1": "x"}}],
    }
    with pytest.raises(ValueError, match="this is no coverage of a machine"):
        read(json.dumps(wrong))


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, {"order.json": json.dumps(ORDER), "ledger.json": json.dumps(LEDGER), "tests/order.yaml": GOOD})
    return tmp_path


@pytest.mark.redis
def test_the_command_prints_what_is_not_covered_and_fails_for_less(folder, redis_url):
    words = ("test", str(folder), "--url", redis_url, "-q", "--coverage")
    out, err = command(*words, "--fail-under", "10")
    assert err == ""
    assert "order: 17 %, 1 of 6 transitions and false guards" in out
    assert "    not covered: New -> Paid (t1) never taken" in out
    assert "    not covered: New -> Paid (t1) with its guard false" in out
    out, err = command(*words, "--fail-under", "17")
    assert err == "the coverage is 16.7 %, less than 17 %"


@pytest.mark.redis
def test_options_of_coverage_go_together(folder):
    assert "go with --coverage" in command("test", str(folder), "--record")[1]
    assert "from 0 to 100" in command("test", str(folder), "--coverage", "--fail-under", "101")[1]
    assert "cannot be read" in command("test", str(folder), "--coverage", "--add", str(folder / "none.json"))[1]


@pytest.mark.redis
@pytest.mark.django_db
def test_coverage_is_stored_for_the_definition_that_was_tested(folder, redis_url):
    words = ("test", str(folder), "--url", redis_url, "--coverage", "--record")
    for _ in range(2):
        out, _ = command(*words)
    digest = compile_definition(ORDER).digest
    assert f"order: coverage recorded for definition {digest}" in out
    row = StoredCoverage.objects.get()
    assert StoredCoverage.find("order", digest) == row
    assert Coverage.from_dict(row.numbers).taken == {"t2": 1}
    assert StoredCoverage.find("order", "other") is None


@pytest.mark.faults
@pytest.mark.redis
def test_pytest_writes_what_fixture_and_scenarios_covered_over_processes(pytester, monkeypatch, redis_url):
    write(pytester.path, {"m/order.json": json.dumps(ORDER), "m/ledger.json": json.dumps(LEDGER)})
    write(pytester.path, {"m/tests/order.yaml": GOOD, "pytest.ini": "[pytest]\nsignalbox_definitions = m\n"})
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("n", range(4))
        def test_pay(signalbox, n):
            signalbox.create("order", "o", {"total": 20})
            signalbox.assert_refused("order", "o", "pay", {"amount": 1})
            signalbox.fire("order", "o", "pay", {"amount": 20})
            signalbox.complete_job("order", "ship", {"parcel": "P"})
            signalbox.assert_done("order", "o")
        """
    )
    result = run(pytester, monkeypatch, "-p", "no:django", "-n", "2", "--signalbox-coverage", "out.json")
    result.assert_outcomes(passed=5)
    found = {one.machine: one for one in read((pytester.path / "out.json").read_text())}
    assert found["order"].taken == {"t1": 4, "t2": 1, "t3": 4}
    assert found["order"].refused == {"t1": 4}
    assert found["order"].tests == 5
    out, _ = command(
        "test", str(pytester.path / "m"), "--url", redis_url, "--coverage", "--add", str(pytester.path / "out.json")
    )
    assert "order: 67 %, 4 of 6" in out


@pytest.mark.pure
def test_reports_of_several_runs_add_up():
    collector = Collector()
    for _ in range(2):
        collector.add(
            [Coverage.from_dict({"machine": "a", "digest": "b", "tests": 2, "taken": {"t1": 3}, "refused": {}})]
        )
    (one,) = read(collector.write())
    assert (one.tests, one.taken) == (4, {"t1": 6})
