"""``manage.py machine replay``."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.engine.builders import NOW, door


def run(*words):
    out = StringIO()
    call_command("machine", "replay", *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def doors(engine):
    engine.publish(door())
    for id in ("a", "b"):
        engine.create("door", id, now=NOW)
        engine.fire("door", id, "open", now=NOW)
    engine.publish({"id": "door", "initial": "Shut", "states": {"Shut": {"on": {"open": "Ajar"}}, "Ajar": {}}})
    return engine


def test_without_a_divergence_it_says_so(doors):
    assert run("door", "--version", "1") == (
        "door on version 1: 2 instances, 4 recorded steps, 4 replayed\nno divergence\n"
    )
    assert "no divergence" in run("door", "--version", "2", "--map", "Open=Ajar", "--fail-on", "untold")


def test_divergences_are_listed_by_class_and_may_fail_the_command(doors):
    out = run("door", "--version", "2")
    assert "2 of version 1, in Shut: open: configuration" in out
    assert "recorded: Open; by t1" in out
    assert "replayed: Ajar; by t1" in out
    with pytest.raises(CommandError, match="2 instances differ on version 2"):
        run("door", "--version", "2", "--fail-on", "divergence")


def test_json_has_all_of_it(doors):
    found = json.loads(run("door", "--version", "2", "--sample", "1", "--json"))
    assert (found["instances"], found["divergences"][0]["count"], found["recorded"]) == (1, 1, 2)


def test_mistakes_are_named(doors):
    with pytest.raises(CommandError, match="--map takes Old=New"):
        run("door", "--version", "2", "--map", "Open")
    with pytest.raises(CommandError, match="SB635"):
        run("door", "--version", "2", "--map", "Open=Nowhere")
    with pytest.raises(CommandError, match="version"):
        run("door", "--version", "9")


def test_moves_there_and_back_tell_how_states_correspond(doors):
    plan = doors.plan("door", 2, states={"Open": "Ajar"})
    doors.migrate(plan)
    doors.migrate(plan.inverse())
    for version in ("1", "2"):
        assert "no divergence" in run("door", "--version", version, "--fail-on", "untold")
