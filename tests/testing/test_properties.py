"""Property tests: payloads that the engine takes, invariants that are held, and failures that shrink."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from machines.engine import Refused
from machines.engine.definitions import outline
from machines.testing.kit import open_kit

from .projects import run, write

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.redis
COUNTER = {
    "id": "counter",
    "initial": "On",
    "context": {"n": 0},
    "events": {
        "add": {"payload": {"by": {"type": "integer", "required": True}, "note": {"type": "string"}}},
        "reset": {"payload": {}},
    },
    "states": {
        "On": {"on": {"add": {"guard": "event.by < 100", "actions": [{"set": {"n": "n + event.by"}}]}, "reset": "Off"}},
        "Off": {"after": {"1h": "On"}},
    },
}
QUIET = settings(max_examples=25, database=None)


@pytest.fixture
def kit(redis_url):
    with open_kit(redis_url, folders=[], base=Path(__file__).parent, root=Path(__file__).parents[2]) as kit:
        kit.publish(COUNTER)
        yield kit


def test_payloads_fit_the_declared_types(kit):
    from machines.testing.properties import strategies

    kit.create("counter", "x")

    @QUIET
    @given(strategies(COUNTER))
    def check(step):
        event, payload = step
        assert event in ("add", "reset")
        assert event != "add" or isinstance(payload["by"], int)
        with contextlib.suppress(Refused):  # by a guard or the state; a payload that does not fit raises BadPayload
            kit.fire("counter", "x", event, payload)

    check()


def test_every_event_is_made():
    from machines.testing.properties import strategies

    for event in ("add", "reset"):
        assert find(strategies(outline(COUNTER)), lambda step, event=event: step[0] == event, settings=QUIET)
    with pytest.raises(ValueError, match="listens for no event"):
        strategies({"id": "still", "initial": "A", "states": {"A": {}}})


def test_an_invariant_that_holds_is_held(kit):
    from machines.testing.properties import check_run, runs

    @QUIET
    @given(runs(COUNTER))
    def check(steps):
        check_run(kit, "counter", steps, {"it is on or off": lambda one: one.state in ("On", "Off")})

    check()


def test_a_failure_shrinks_to_the_shortest_run(kit):
    from machines.testing.properties import check_run, runs

    def fails(steps) -> bool:
        try:
            check_run(kit, "counter", steps, {"n is small": lambda one: one.data["n"] <= 10})
        except AssertionError:
            return True
        return False

    wide = settings(max_examples=500, database=None)
    (step,) = find(runs(COUNTER), fails, settings=wide)
    assert step == ("add", {"by": 11})
    with pytest.raises(AssertionError, match=r"n is small: does not hold after step 1(.|\n)*history, oldest first"):
        check_run(kit, "counter", [step], {"n is small": lambda one: one.data["n"] <= 10})


def test_time_passes_in_runs(kit):
    from machines.testing.properties import check_run

    instance = check_run(kit, "counter", [("reset", {}), "1h", ("add", {"by": 1})], {})
    assert (instance.state, instance.data["n"]) == ("On", 1)


def test_without_hypothesis_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "machines.testing.properties", raising=False)
    with pytest.raises(ImportError, match="property tests need hypothesis: pip install hypothesis"):
        __import__("machines.testing.properties")


@pytest.mark.faults
def test_the_fixture_works_in_a_property_test(pytester, monkeypatch):
    write(pytester.path, {"counter.json": json.dumps(COUNTER)})
    pytester.makepyfile(
        """
        from hypothesis import HealthCheck, given, settings, strategies as st
        from machines.testing.properties import check_run, runs
        import json, pathlib

        COUNTER = json.loads(pathlib.Path(__file__).with_name("counter.json").read_text())

        def test_n(signalbox):
            signalbox.publish(COUNTER)

            @settings(max_examples=10, deadline=None)
            @given(runs(COUNTER))
            def check(run):
                check_run(signalbox, "counter", run, {"n is a number": lambda one: isinstance(one.data["n"], int)})

            check()
        """
    )
    run(pytester, monkeypatch, "-p", "no:django").assert_outcomes(passed=1)
    assert st is not None
