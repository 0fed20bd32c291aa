"""No door lets one person alone change which version counts, whatever asks for a second one: a table of operations,
rules and doors, made from the list of operations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import connections
from django.test import Client
from django.urls import get_resolver, reverse

import dashboard.api.v1  # noqa: F401  its operations
from dashboard.api.framework.operation import OPERATIONS as OPERATIONS_OF_API
from machines.approvals import actions as approvals
from machines.catalog import publishing
from machines.catalog.errors import ApprovalNeeded, DraftNeeded
from machines.catalog.version_rules import OPERATIONS, find_rule
from machines.catalog.versions import drafts, rollouts
from machines.catalog.versions import publication as definitions
from machines.engine import Engine, VersionRefused
from machines.instances import plans
from machines.instances.bulks import actions as bulks
from machines.instances.bulks.order import ACTIONS as BULKS
from machines.management.commands.machine import Command
from machines.models import Approval, AuditEntry, Machine
from machines.people.actor import Actor
from machines.schedules.document import DOES
from machines.worker.registry import discover
from tests.configuration import configure
from tests.instances.bulks.builders import work_off

from .version_doors import DOORS, TABLE, WHY, Try, arrange, definition

ROOT = Path(__file__).parents[2]
CASES = [(operation, door) for operation in OPERATIONS for door in TABLE[operation]]
VERSIONS = ("current", "target", "rollout", "behind")
OUTSIDE = ("APPROVAL", "VERSION_POLICY", "VERSION_POLICY of the machine", "room")
IMPOSSIBLE = {("version.unpin", "rollout"), *((name, "behind") for name in OPERATIONS if name.startswith("rollout."))}
"""A pin excludes roll-outs."""
WITHOUT_TARGET = {("version.policy", "target")}
"""No version begins to count by this."""


@pytest.mark.matrix
@pytest.mark.parametrize(("operation", "door"), CASES, ids=[" ".join(case) for case in CASES])
def test_one_person_alone_gets_past_no_rule(engine: Engine, db, person, settings, tmp_path, operation, door):
    discover()
    user = person("ann", boss=True)
    for source in (*VERSIONS, *OUTSIDE):
        if (operation, source) in IMPOSSIBLE:
            continue
        for action in ("publish", "migrate") if source in ("current", "room") else sorted(OPERATIONS[operation])[-1:]:
            case = f"{operation} {door} {source} {action}"
            machine = re.sub(r"\W", "_", case)[:60]
            arrange(engine, machine, operation, {source: (action,)} if source in VERSIONS else {})
            configure(settings, APPROVAL=[action] if source == "APPROVAL" else [])
            configure(settings, VERSION_POLICY=_policy(source, machine, action))
            if source == "room":
                Machine.objects.filter(name=machine).update(version_policy=[action])
            asks = action in OPERATIONS[operation] and (operation, source) not in WITHOUT_TARGET
            if operation == "migrate" and action == "publish" and source == "current":
                asks = True  # instances would leave the version that asks for more than the one they move to
            before = _state(engine, machine)
            one = Try(engine, user, machine, tmp_path / machine, (action,) if source == "target" else ())
            printed = _try(TABLE[operation][door], one)
            same = _state(engine, machine) == before
            assert same or not asks, case
            if source not in ("rollout", "behind", "target"):  # the engine may refuse what is asked for beside these
                assert not same or asks or operation == "import" or _is_same(operation, source), case
            _check_answer(machine, operation, door, asks, printed, case)


def _policy(source: str, machine: str, action: str) -> Any:
    if source == "VERSION_POLICY":
        return {"*": [action]}
    return {machine: [action], "other": ["publish", "migrate"]} if source == OUTSIDE[2] else {}


def _state(engine: Engine, machine: str) -> tuple[Any, ...]:
    choice = engine.version_choice(machine)
    row = Machine.objects.get(name=machine)
    moved = engine.get(machine, "one").version
    return choice, row.current, row.version_policy, moved


def _is_same(operation: str, source: str) -> bool:
    """Setting a policy to what it is changes nothing."""
    return operation == "version.policy" and source != "room"


def _try(attempt: Any, one: Try) -> str:
    one.folder.mkdir(parents=True, exist_ok=True)
    try:
        attempt(one)
    except CommandError as error:
        return str(error)
    return ""


def _check_answer(machine: str, operation: str, door: str, asks: bool, printed: str, case: str) -> None:
    """Where it takes a second person, a request is filed; who cannot ask is refused with the rule and what to do; and
    the audit has it."""
    filed = Approval.objects.filter(machine=machine)
    entries = AuditEntry.objects.filter(machine=machine)
    if not asks:
        assert (filed.count(), "second person" in printed) == (0, False), (case, printed)
    elif door == "command":
        refused = entries.filter(outcome="refused").last()
        assert filed.count() == 0, case
        assert refused.detail["code"] == "SB644", case
        assert "second person, by '" in refused.detail["error"], case
        assert "SB644" in printed, (case, printed)
        assert re.search(r"by '|\('", printed), (case, printed)
    else:
        request = filed.get()
        assert (request.name, request.right) == (operation, "operate" if operation == "migrate" else "publish"), case
        assert "'" in entries.get(action="approval.ask").detail["rule"], case


def test_the_table_has_each_operation_and_no_door_that_is_not_one():
    assert {door for doors in TABLE.values() for door in doors} <= set(DOORS)
    assert TABLE.keys() == OPERATIONS.keys()
    assert rollouts.CHANGES.keys() == {name for name in OPERATIONS if "." in name and OPERATIONS[name]}


# What can be done at each door, and the operation that it is; "" for what leaves alone which version counts.

READS = ""
API = {
    "publishMachine": "publish", "publishDraft": "publish", "startRollout": "rollout.start",
    "setRollout": "rollout.set", "stopRollout": "rollout.stop", "finishRollout": "rollout.finish",
    "pinVersion": "version.pin", "withdrawVersion": "version.withdraw",
    "setVersionPolicy": "version.policy", "runBulk": "migrate",
    "pinInstance": READS,  # the instance keeps the version, and the rules, that it has
    **dict.fromkeys(("saveDraft", "changeDraft", "checkDraft", "rebaseDraft", "discardDraft", "replayDraft"), READS),
    **dict.fromkeys(("makePlan", "storePlan", "tryPlan", "movePlan", "replayVersion"), READS),
    "movePlanBack": "version.pin",  # with `make_current`
}  # fmt: skip
PAGES = {
    "version-rollout": "rollout.set", "version-pin": "version.pin", "version-withdraw": "version.withdraw",
    "version-policy": "version.policy", "draft-publish": "publish",
    **dict.fromkeys(("versions", "version", "version-diff", "version-replay", "version-step"), READS),
    **dict.fromkeys(("draft", "draft-rebase", "draft-discard"), READS),
    **dict.fromkeys(("plan-new", "plan", "plan-dry-run", "plan-move", "plan-back", "plan-refused"), READS),
}  # fmt: skip
VERBS = {
    "publish": "publish", "import": "import", "sync": "sync", "migrate": "migrate",
    "restore": READS,  # makes current what SQL has as current
    **dict.fromkeys(("validate", "list", "diagram", "export", "diff", "plan", "schema", "test"), READS),
    "paths": READS,
    **dict.fromkeys(("verify", "accepts", "check", "repartition", "erase", "reconcile", "replay"), READS),
}  # fmt: skip
ENGINE = {
    "start": "rollout.start", "set": "rollout.set", "stop": "rollout.stop", "finish": "rollout.finish",
    "pin": "version.pin", "withdraw": "version.withdraw", "allow": "version.allow",
}  # fmt: skip


def test_what_is_new_at_a_door_is_decided_here():
    about = re.compile("/(versions?|version-policy|rollout|pin|drafts|plan|plans|replay)(/|$)")
    changes = {
        id
        for id, one in OPERATIONS_OF_API.items()
        if one.method != "GET" and (one.right == "publish" or about.search(one.path))
    }
    assert changes | {"runBulk"} == API.keys()
    pages = {name for name in _list_pages() if name.split("-")[0] in ("version", "versions", "draft", "plan")}
    assert pages == PAGES.keys()
    parser = Command().create_parser("manage.py", "machine")
    verbs = next(action.choices for action in parser._actions if action.dest == "verb")
    assert verbs.keys() == VERBS.keys()
    assert [name for name in BULKS if name in OPERATIONS] == ["migrate"]
    assert DOES.keys() == {"enqueue", "fire", "fire_all", "create"}  # no schedule changes versions
    lua = (ROOT / "machines/engine/lua/functions/versions/sb_rollout.lua").read_text()
    named = re.search(r"local ACTIONS = \{(.*?)\}", lua)
    assert named is not None
    assert set(re.findall(r"(\w+) = true", named[1])) == ENGINE.keys()
    for found in (API, PAGES, VERBS, ENGINE):
        assert set(found.values()) - {READS} <= OPERATIONS.keys()


def _list_pages() -> set[str]:
    return {name for name in get_resolver().namespace_dict["signalbox"][1].reverse_dict if isinstance(name, str)}


# The ways round that were found, each by one publisher alone.


@pytest.fixture
def guarded(engine: Engine, db) -> str:
    """A machine whose version 2, the current one, asks for a second person; version 1 does not."""
    arrange(engine, "door", "version.pin", {"current": ("publish",)})
    return "door"


def ask(actor: Actor, call: Any) -> Approval:
    with pytest.raises(ApprovalNeeded) as needed:
        call()
    return approvals.ask(actor, needed.value)


CHANGES = {
    "pin": lambda who: rollouts.pin(who, "door", 1, reason=WHY),
    "withdraw": lambda who: rollouts.withdraw(who, "door", 2, instead=1, reason=WHY),
    "roll out": lambda who: rollouts.start(who, "door", 1, 99, reason=WHY),
    "relax": lambda who: rollouts.set_policy(who, "door", [], reason=WHY),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_asked_for_is_done_once_another_person_approves(engine, guarded, actor, name):
    ann, bob = actor("ann", boss=True), actor("bob", "view", "publish")
    request = ask(ann, lambda: CHANGES[name](ann))
    assert engine.version_choice("door").turn == 0 or engine.version_choice("door").current == 2
    client = Client()
    client.force_login(bob.user)
    page = client.get(reverse("signalbox:approval", args=[request.pk])).content.decode()
    assert ("turn" in request.asked, '<th scope="row">turn</th>' in page) == (True, False)
    done = approvals.approve(bob, request.pk)
    assert (done.state, done.outcome) == ("done", "changed")
    entry = AuditEntry.objects.filter(machine="door", actor="ann", outcome="done").exclude(action="approval.ask").get()
    assert entry.detail["approved_by"] == "bob"
    choice = engine.version_choice("door")
    expected = {"pin": choice.pin and choice.pin.version == 1, "withdraw": 2 in choice.withdrawn}
    assert expected.get(name, choice.rollout is not None or name == "relax")


def test_the_rule_goes_only_with_a_version_that_two_people_published(engine, guarded, actor):
    ann, bob = actor("ann", boss=True), actor("bob", boss=True)
    with pytest.raises(DraftNeeded, match="version 2 of door"):
        definitions.publish(ann, definition("door", 5))
    draft = drafts.save(ann, "door", json.dumps(definition("door", 5)), note=WHY)
    approvals.approve(bob, ask(ann, lambda: drafts.publish(ann, draft.pk)).pk)
    assert rollouts.pin(ann, "door", 3, reason=WHY).version == 3  # nothing asks any more
    with pytest.raises(ApprovalNeeded, match="'publish' in version 2 of door"):
        rollouts.pin(ann, "door", 2, reason=WHY)


def test_a_version_that_asks_for_two_is_published_by_two(engine, db, actor):
    ann = actor("ann", boss=True)
    assert definitions.publish(ann, definition("gate", 1, "publish")).number == 1  # nothing counted before
    definitions.publish(ann, definition("shed", 1))
    with pytest.raises(DraftNeeded, match="that is to be published"):
        definitions.publish(ann, definition("shed", 2, "publish"))


def test_an_instance_is_not_moved_by_one_person_to_where_less_is_asked(engine, db, actor):
    arrange(engine, "door", "version.pin", {"current": ("delete", "fire:go.on")})
    assert "'delete' in version 2 of door, which version 1 does not ask for" in str(
        find_rule("migrate", "door", moves=[(2, 1)])
    )
    assert find_rule("migrate", "door", moves=[(1, 2)]) is None


def test_a_policy_is_set_by_one_person_and_relaxed_by_two(engine, db, actor):
    arrange(engine, "door", "version.pin", {})
    ann, bob = actor("ann", boss=True), actor("bob", boss=True)
    rollouts.set_policy(ann, "door", ["publish"], reason=WHY)
    relax = ask(ann, lambda: rollouts.set_policy(ann, "door", [], reason=WHY))
    stricter = ask(bob, lambda: rollouts.set_policy(bob, "door", ["publish", "migrate"], reason=WHY))
    assert approvals.approve(ann, stricter.pk).state == "done"
    stale = approvals.approve(bob, relax.pk)
    assert (stale.state, stale.code) == ("failed", "SB630")
    assert Machine.objects.get(name="door").version_policy == {"publish": {}, "migrate": {}}


@pytest.mark.parametrize("name", ["publish", *CHANGES])
@pytest.mark.parametrize("asked", ["pin", "publish", "migrate"])
def test_a_stale_approval_does_nothing_and_says_which_rule_asks_and_what_to_do(engine, guarded, actor, asked, name):
    discover()
    Machine.objects.filter(name="door").update(version_policy=["migrate"])
    ann, bob = actor("ann", boss=True), actor("bob", boss=True)
    if asked == "pin":
        request = ask(ann, lambda: rollouts.pin(ann, "door", 1, reason="it was seen before"))
    elif asked == "publish":
        draft = drafts.save(ann, "door", json.dumps(definition("door", 5)), note=WHY)
        request = ask(ann, lambda: drafts.publish(ann, draft.pk))
    else:
        row = plans.move(ann, plans.store(ann, engine.plan("door", 1, from_versions=[2])).pk, reason=WHY)
        work_off(engine)
        request = ask(ann, lambda: bulks.run(ann, row.bulk))
    if name == "publish":
        other = drafts.save(bob, "door", json.dumps(definition("door", 6, "publish")), note=WHY)
        between = ask(bob, lambda: drafts.publish(bob, other.pk))
    else:
        between = ask(bob, lambda: CHANGES[name](bob))
    assert approvals.approve(ann, between.pk).state == "done"
    before = engine.version_choice("door"), engine.versions("door"), engine.get("door", "one").version
    after = approvals.approve(bob, request.pk)
    if asked == "migrate":
        work_off(engine)
    if name == "relax":  # the policy names no version, and two people have looked at each
        assert after.state == "done"
        return
    assert after.state == "failed"
    assert after.code == "SB630"
    assert (engine.version_choice("door"), engine.versions("door"), engine.get("door", "one").version) == before
    assert "ask again" in after.outcome
    assert re.search(r"takes (a second person, by '\w+' in (version|the version policy)|no second)", after.outcome)
    action = {"pin": "version.pin", "publish": "publish", "migrate": "bulk.run"}[asked]
    entry = AuditEntry.objects.filter(machine="door", action=action, actor="ann", outcome="refused").last()
    assert entry.detail["code"] == after.code
    assert AuditEntry.objects.filter(action="approval.approve", actor="bob").last().detail["came"] == "failed"


@pytest.mark.django_db(transaction=True)
def test_of_twelve_at_once_none_gets_past_a_rule_that_one_of_them_makes(engine, person):
    """Eleven pin, unpin, roll out and withdraw while one publishes the version that takes two from then on."""
    arrange(engine, "door", "version.pin", {})
    people = [Actor(person(f"p{number}", boss=True), "test") for number in range(12)]
    together, came = Barrier(12), [""] * 12
    calls = [
        CHANGES["pin"],
        CHANGES["withdraw"],
        CHANGES["roll out"],
        lambda who: rollouts.pin(who, "door", None, reason=WHY),
    ]

    def act(number: int) -> None:
        who = people[number]
        together.wait()
        try:
            if number == 0:
                rollouts.set_policy(who, "door", ["publish"], reason=WHY)
            else:
                calls[number % len(calls)](who)
            came[number] = "done"
        except ApprovalNeeded as needed:
            approvals.ask(who, needed)
            came[number] = "asked"
        except VersionRefused as error:
            came[number] = error.code
        finally:
            connections.close_all()

    threads = [Thread(target=act, args=[number]) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert came[0] == "done"
    assert all(came), came
    entries = AuditEntry.objects.filter(machine="door").order_by("id")
    assert entries.count() == 12
    set_at = entries.get(action="version.policy").pk
    # After the policy was set nothing was done by one person; what was done before stands in the audit before it.
    assert not entries.filter(pk__gt=set_at, outcome="done").exclude(action="approval.ask").exists()
    assert Approval.objects.count() == came.count("asked") == entries.filter(action="approval.ask").count()
    assert entries.filter(outcome="refused").count() == len([one for one in came if one.startswith("SB")])
    assert engine.version_choice("door").current == Machine.objects.get(name="door").current


def test_a_change_of_a_program_in_between_is_a_conflict(engine, guarded, actor, monkeypatch):
    """The rules are those of the turn that was read: a program publishes right after that."""
    publishing.publish(definition("door", 5))  # a program is not asked; nothing asks for a second person now
    read = rollouts.rules.version_rules.find_rule

    def publish_then_read(*given: Any, **terms: Any) -> Any:
        rule = read(*given, **terms)
        engine.publish(definition("door", 6, "publish"))
        return rule

    monkeypatch.setattr(rollouts.rules.version_rules, "find_rule", publish_then_read)
    with pytest.raises(VersionRefused) as refused:
        rollouts.pin(actor("ann", boss=True), "door", 1, reason=WHY)
    assert refused.value.code == "SB630"
    assert engine.version_choice("door").pin is None


def test_a_command_with_an_account_asks_for_the_approval(engine, guarded, person, tmp_path):
    bob = Actor(person("bob", boss=True), "test")
    one = Try(engine, person("ann", boss=True), "door", tmp_path)
    file = one.write("next.json", definition("door", 5))
    with pytest.raises(
        CommandError, match="SB644 publish of 'door' needs the approval of a second person, by 'publish'"
    ):
        one.run("publish", file)
    assert "waits for a second person" in one.run("publish", file, "--user", "ann")
    assert engine.version_choice("door").current == 2
    assert approvals.approve(bob, Approval.objects.get().pk).state == "done"
    assert engine.version_choice("door").current == 3
    with pytest.raises(CommandError, match="no active account 'eve'"):
        one.run("publish", file, "--user", "eve")


@pytest.mark.parametrize("door", ["page", "api"])
def test_going_back_makes_no_version_current_alone(engine, guarded, person, tmp_path, door):
    discover()
    one = Try(engine, person("ann", boss=True), "door", tmp_path)
    row = plans.store(one.actor, engine.plan("door", 2, from_versions=[1]))
    bulk = plans.move(one.actor, row.pk, reason=WHY).bulk
    work_off(engine)
    bulks.run(one.actor, bulk)
    work_off(engine)
    if door == "page":
        one.post("plan-back", "door", row.pk, make_current="1")
    else:
        one.call(f"plans/{row.pk}/back", make_current=True)
    assert Approval.objects.get().action == "version.pin"
    assert engine.version_choice("door").pin is None


def test_a_restored_machine_has_the_current_version_that_it_had(engine, guarded, prefix):
    from tests.conftest import remove

    engine.pin("door", 1)
    publishing.adopt("door")
    remove(engine.client, prefix)
    publishing.restore("door")
    assert engine.version_choice("door").current == 1
