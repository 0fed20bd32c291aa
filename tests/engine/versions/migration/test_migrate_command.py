"""``machine migrate`` and ``machine plan --fail-on``: moves the fleet from the command line, and tries a plan in CI."""

from __future__ import annotations

import json
import re
from collections import Counter
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from machines.models import AuditEntry

from ..letters import LETTER, SECOND, letters, to_second


@pytest.fixture
def plan(engine, tmp_path, db):
    """Twelve letters of which two are kept, and the file of a plan."""
    ids = letters(engine, 12)
    for id in ids[:2]:
        engine.fire("letter", id, "keep")
    for id in ids[2:5]:
        engine.fire("letter", id, "post")
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(to_second(engine).as_dict()))
    return str(file)


def run(*words, **given):
    out = StringIO()
    call_command("machine", *words, stdout=out, stderr=StringIO(), **given)
    return out.getvalue()


def versions(engine):
    ids = [f"l{number:05}" for number in range(12)]
    return Counter(found.version for found in engine.get_many("letter", ids))


def test_a_dry_run_prints_the_classes_and_changes_nothing(engine, plan):
    text = run("migrate", "letter", "--plan", plan, "--dry-run")
    assert "v1 posted -> sent  moves" in text
    assert "instances: 12, refused: 2" in text
    assert "l00000: v1 in kept:" in text
    assert versions(engine) == {1: 12}


def test_it_moves_all_it_can_and_says_what_is_refused(engine, plan):
    with pytest.raises(CommandError, match="2 instances were refused"):
        run("migrate", "letter", "--plan", plan, "--reason", "new names", "--actor", "ann")
    assert versions(engine) == {2: 10, 1: 2}
    assert engine.get("letter", "l00002").state == "sent"
    step = engine.history("letter", "l00002")[0]
    assert (step.event, step.actor, step.reason) == ("(migrate)", "ann", "new names")
    entry = AuditEntry.objects.get(action="machine.migrate")
    assert (entry.machine, entry.source) == ("letter", "command line")
    for id in ("l00000", "l00001"):
        engine.fire("letter", id, "back")
    assert "instances: 12, moved: 2, already: 10, kept: 0, refused: 0" in run(
        "migrate", "letter", "--plan", plan, "--reason", "the rest", "--rate", "1000"
    )
    assert "moved: 12, already: 0, kept: 0, refused: 0" in run(
        "migrate", "letter", "--plan", plan, "--back", "--reason", "it was wrong"
    )
    assert versions(engine) == {1: 12}
    assert engine.get("letter", "l00002").state == "posted"


@pytest.fixture
def moved(engine, plan):
    """Twelve letters of which ten were moved, and three that were born in version 2; the file of the plan."""
    for id in ("l00000", "l00001"):
        engine.fire("letter", id, "back")
    run("migrate", "letter", "--plan", plan, "--reason", "new names")
    for number in range(3):
        engine.create("letter", f"new{number}")
    return plan


def test_the_way_back_leaves_what_was_born_in_the_new_version_and_says_so(engine, moved):
    text = run("migrate", "letter", "--plan", moved, "--back", "--dry-run")
    assert "kept: plan" in text
    text = run("migrate", "letter", "--plan", moved, "--back", "--reason", "it was wrong")
    assert "instances: 15, moved: 12, already: 0, kept: 3, refused: 0" in text
    assert re.search(r"3 stay in version 2: plan [0-9a-f]{12} did not bring it to version 2 \(SB634\)", text)
    assert "new instances do not get version 1: --make-current changes that" in text
    assert versions(engine) == {1: 12}
    assert {engine.get("letter", f"new{number}").version for number in range(3)} == {2}
    assert engine.create("letter", "later").version == 2


def test_the_way_back_makes_the_older_version_current_where_that_is_asked_for(engine, moved):
    back = ("migrate", "letter", "--plan", moved, "--back", "--make-current", "--reason", "it was wrong")
    text = run(*back)
    assert "version 1 is current and pinned" in text
    assert "--make-current" not in text
    assert engine.create("letter", "later").version == 1
    engine.publish(SECOND)  # a program that publishes at its start
    assert engine.create("letter", "last").version == 1
    entry = AuditEntry.objects.get(action="version.pin")
    assert (entry.machine, entry.target, entry.reason) == ("letter", "v1", "it was wrong")
    assert "moved: 0, already: 14, kept: 3" in run(*back)


def test_a_roll_out_of_the_newer_version_is_stopped_as_the_older_one_is_made_current(engine, moved):
    engine.pin("letter", 1)
    engine.pin("letter", None)
    engine.publish(LETTER | {"description": "a third"})
    engine.start_rollout("letter", 2, 50)
    run("migrate", "letter", "--plan", moved, "--back", "--make-current", "--reason", "it was wrong")
    assert not engine.rollout("letter").under_way
    assert engine.live("letter").version == 1


def test_only_the_way_back_makes_a_version_current(engine, plan):
    with pytest.raises(CommandError, match="--make-current goes with --back"):
        run("migrate", "letter", "--plan", plan, "--make-current", "--reason", "new names")
    assert versions(engine) == {1: 12}


@pytest.mark.parametrize("rate", ["-1", "1000001"])
def test_a_rate_out_of_bounds_changes_nothing(engine, moved, rate):
    with pytest.raises(CommandError, match="1,000,000 at most"):
        run("migrate", "letter", "--plan", moved, "--back", "--make-current", "--reason", "wrong", f"--rate={rate}")
    assert engine.live("letter").version == 2


def test_without_a_reason_nothing_moves(engine, plan):
    with pytest.raises(CommandError, match="--reason"):
        run("migrate", "letter", "--plan", plan)
    assert versions(engine) == {1: 12}


def test_a_negative_rate_is_refused(engine, plan):
    with pytest.raises(CommandError, match="--rate"):
        run("migrate", "letter", "--plan", plan, "--reason", "a test", "--rate", "-5")
    assert versions(engine) == {1: 12}


@pytest.mark.parametrize("text", [None, "no json", "{}", '{"machine": "other"}'])
def test_a_file_that_is_no_plan_is_refused(engine, plan, tmp_path, text):
    file = tmp_path / "other.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(CommandError):
        run("migrate", "letter", "--plan", str(file), "--reason", "a test")
    with pytest.raises(CommandError, match="a plan for the machine 'letter'"):
        run("migrate", "parcel", "--plan", plan, "--reason", "a test")
    assert versions(engine) == {1: 12}


def test_a_plan_that_refuses_instances_fails_where_that_is_asked_for(engine, plan):
    made = ("plan", "letter", "--to", "2", "--from", "1", "--map", "posted=sent")
    run(*made)
    with pytest.raises(CommandError, match="2 instances in 1 classes would be refused"):
        run(*made, "--fail-on", "refused")
    for id in ("l00000", "l00001"):
        engine.fire("letter", id, "back")
    assert "instances: 12, refused: 0" in run(*made, "--fail-on", "refused")
    assert versions(engine) == {1: 12}
