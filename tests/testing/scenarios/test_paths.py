"""``machine paths``: runs that take every transition, found on a real engine, which pass when they are run again."""

from __future__ import annotations

import json

import pytest

from machines.testing.paths.generation import find_paths
from machines.testing.scenarios import document, files, runner
from tests.testing.projects import run, write

from .samples import EXAMPLES, LEDGER, ORDER, compile_all, read
from .test_command import command

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.redis


def load_examples():
    found = files.Collection()
    found.add_definitions(sorted(EXAMPLES.glob("*.json")))
    return found.definitions


def run_all(redis_url, definitions, paths) -> set[str]:
    """Run what was found, as a file of YAML; return the transitions that the scenarios name."""
    file = read(document.write_yaml(paths.machine, paths.scenarios, ["a note"]))
    failed = [one.failure.text for one in runner.run_files(redis_url, [file], definitions) if not one.passed]
    assert failed == []
    return {name for scenario in file.scenarios for step in scenario.steps for name in step.then["transitions"]}


@pytest.mark.hostile
@pytest.mark.parametrize(
    ("machine", "runs"), [("activation", 1), ("payment", 5), ("new_device", 4), ("service_activation", 3)]
)
def test_every_transition_of_the_samples_is_taken_by_few_runs(redis_url, machine, runs):
    definitions = load_examples()
    paths = find_paths(redis_url, definitions, machine)
    assert paths.missing == []
    assert len(paths.taken) == paths.total
    assert len(paths.scenarios) <= runs
    assert run_all(redis_url, definitions, paths)


@pytest.mark.hostile
def test_a_machine_with_regions_history_and_a_child(redis_url):
    definitions = load_examples()
    paths = find_paths(redis_url, definitions, "delivery", most_seconds=300, most_steps=600)
    assert [one.id for one in paths.missing] == ["t4"]
    assert paths.missing[0].reason == "the machine that Paying invokes never ended that way"
    assert paths.whole
    run_all(redis_url, definitions, paths)


@pytest.mark.hostile
def test_pairs_of_transitions_are_taken(redis_url):
    definitions = load_examples()
    paths = find_paths(redis_url, definitions, "activation", pairs=True)
    assert paths.whole
    wanted = {("t3", "t3"), ("t3", "t2"), ("t3", "t4"), ("t7", "t2"), ("t7", "t3"), ("t5", "t6"), ("t4", "t7")}
    assert wanted <= paths.pairs
    run_all(redis_url, definitions, paths)


def test_what_cannot_be_taken_is_told_with_the_reason(redis_url):
    go = [{"target": "B", "guard": "event.amount > 10"}, {"target": "C", "guard": "n > 3"}]
    definition = {
        "id": "order",
        "initial": "A",
        "context": {"n": 0},
        "states": {
            "A": {"entry": [{"set": {"n": "0"}}], "on": {"go": go, "stay": "B"}},
            "B": {"on": {"back": "A"}},
            "C": {"on": {"home": "A"}},
        },
    }
    paths = find_paths(redis_url, compile_all(definition), "order")
    assert paths.taken == {"t1", "t3", "t4"}
    selected, never = [str(one) for one in paths.missing]
    assert selected.startswith("A -> C (t2): its event was sent ")
    assert selected.endswith(" times in A, and it was not selected; its guard is n > 3")
    assert never == "C -> A (t5): C was never entered"
    assert paths.whole


def test_data_and_the_clock_are_chosen_for_guards(redis_url):
    definition = {
        "id": "order",
        "initial": "A",
        "context": {"limit": 5, "kind": "plain", "until": 0},
        "events": {"go": {"payload": {"amount": 0}}},
        "states": {
            "A": {
                "entry": [{"set": {"until": "now + 100"}}],
                "on": {
                    "go": {"target": "B", "guard": "event.amount == limit + 0 and kind == 'express'"},
                    "late": {"target": "B", "guard": "now > until"},
                },
            },
            "B": {"type": "final"},
        },
    }
    definitions = compile_all(definition)
    paths = find_paths(redis_url, definitions, "order")
    assert paths.missing == []
    run_all(redis_url, definitions, paths)


def test_the_command_writes_files_that_pass(redis_url, tmp_path):
    write(tmp_path, {"order.json": json.dumps(ORDER), "ledger.json": json.dumps(LEDGER)})
    target = tmp_path / "tests" / "paths.yaml"
    target.parent.mkdir()
    _, err = command("paths", str(tmp_path / "order.json"), "--url", redis_url, "-o", str(target))
    assert "order: 2 runs take 5 of 5 transitions" in err
    assert target.read_text().startswith("# order: 2 runs take 5 of 5 transitions\nmachine: order\n")
    assert "2 passed, 0 failed" in command("test", str(tmp_path), "--url", redis_url)[0]
    out, _ = command("paths", str(tmp_path / "order.json"), "--url", redis_url, "--pairs")
    assert "scenarios:" in out


@pytest.mark.faults
def test_the_command_writes_tests_for_pytest_that_pass(redis_url, pytester, monkeypatch):
    names = ("activation", "payment", "delivery")
    write(pytester.path, {f"m/{name}.json": (EXAMPLES / f"{name}.json").read_text() for name in names})
    write(pytester.path, {"pytest.ini": "[pytest]\nsignalbox_definitions = m\n"})
    for name in names:
        target = pytester.path / f"test_{name}.py"
        words = ("--url", redis_url, "--format", "pytest", "--seconds", "20", "-o", str(target))
        command("paths", str(pytester.path / "m" / f"{name}.json"), *words)
    result = run(pytester, monkeypatch, "-p", "no:django")
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] >= 8


def test_names_and_files_that_hold_no_machine(redis_url, tmp_path, db):
    assert "no machine 'parcel'" in command("paths", "parcel", "--url", redis_url)[1]
    write(tmp_path, {"bad.json": json.dumps({**ORDER, "initial": "Nwe"})})
    assert "bad.json:1: SB101 initial" in command("paths", str(tmp_path / "bad.json"), "--url", redis_url)[1]
