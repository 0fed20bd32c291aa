"""Groups as a person sees them, and what operators do with one: right, rule, reason, audit."""

import pytest
from django.contrib.auth.models import Permission
from guardian.shortcuts import assign_perm

from machines.catalog import publishing
from machines.engine import BadInput, Miscounted
from machines.jobs import errors
from machines.jobs.failures import actions as failures
from machines.jobs.failures import queries
from machines.jobs.failures.actions import Selection
from machines.jobs.failures.dead_jobs import DeadJobs
from machines.jobs.failures.duties import PacedActions
from machines.models import AuditEntry, FailureAction, FailureGroup, Machine
from machines.people.actor import Actor
from machines.people.errors import Forbidden

from .conftest import only_group, stuck


@pytest.fixture
def boss(actor):
    return actor("boss")


@pytest.fixture
def seer(person):
    """Sees and operates ``errand`` alone."""

    def made(*rights):
        user = person("seer")
        for right in rights:
            row, _ = Machine.objects.get_or_create(name="errand", defaults={"current": 1})
            code = {"view": "view_machine", "operate": "operate_machine", "reveal": "reveal_machine"}[right]
            assert Permission.objects.filter(codename=code).exists()
            assign_perm(f"machines.{code}", user, row)
        return Actor(user, "test")

    return made


def test_a_person_sees_groups_and_counts_of_their_machines_alone(die, follow, seer, boss, transactional_db):
    die("a", error="lost 1")
    die("b", "c", error="lost 2", machine="errand2")
    die("d", error="only there", machine="errand2")
    follow()
    everything = {view.group.shape: view for view in queries.list_groups(boss).items}
    assert {shape: view.count for shape, view in everything.items()} == {"lost <number>": 3, "only there": 1}
    viewer = seer("view")
    (view,) = queries.list_groups(viewer).items
    assert (view.count, view.open, view.machines, sum(view.trend), view.recent) == (1, 1, ("errand",), 1, 1)
    assert not view.whole
    assert queries.list_groups(viewer).total == 1
    for unseen in (everything["only there"].group.pk, 7777):
        with pytest.raises(Forbidden, match="^you may not see"):
            queries.get(viewer, unseen)
    with pytest.raises(errors.UnknownFailureGroup):
        queries.get(boss, 7777)
    with pytest.raises(Forbidden):
        queries.list_groups(viewer, machine="errand2")
    assert len(queries.newest_jobs(viewer, view.group.pk)) == 1
    assert len(queries.newest_jobs(boss, view.group.pk)) == 3


def test_a_change_takes_the_right_on_every_machine_of_the_group_and_a_reason(die, follow, seer, boss):
    die("a"), die("b", machine="errand2")
    follow()
    group = only_group().pk
    one = seer("view", "operate")
    for change in (failures.mute, failures.resolve, failures.reopen):
        with pytest.raises(Forbidden) as refused:
            change(one, group, reason="mine")
        assert "errand2" not in str(refused.value)
        with pytest.raises(BadInput):
            change(boss, group, reason=" ")
    assert only_group().state == "open"
    assert failures.mute(boss, group, reason="known").group.state == "muted"
    assert only_group().muted_versions == {"errand": [1], "errand2": [1]}
    assert failures.resolve(boss, group, reason="fixed").group.resolved_at > 0
    assert failures.reopen(boss, group, reason="not so").group.state == "open"
    entries = AuditEntry.objects.filter(action__startswith="failure.").values_list("action", "outcome", "reason")
    assert set(entries) >= {("failure.mute", "done", "known"), ("failure.mute", "refused", "mine")}


def test_a_group_is_assigned_to_a_user_that_exists(die, follow, boss, person):
    die("a")
    follow()
    group = only_group().pk
    person("ann")
    assert failures.assign(boss, group, "ann").group.assignee == "ann"
    assert queries.list_groups(boss, assignee="ann").total == 1
    assert queries.list_groups(boss, assignee="none").total == 0
    for name in ("nobody here", "a\0b", "x" * 400):
        with pytest.raises(errors.BadFailureAction):
            failures.assign(boss, group, name)
    assert failures.assign(boss, group, "").group.assignee == ""


def test_regressions_stand_first_then_open_jobs_then_the_busiest(die, follow, boss, engine):
    die("a", error="old one")
    die("b", "c", error="busy one")
    follow()
    FailureGroup.objects.filter(shape="old one").update(resolved_at=1, regressed_at=2)
    assert [view.group.shape for view in queries.list_groups(boss).items] == ["old one", "busy one"]
    assert queries.list_groups(boss).items[0].is_regression
    assert [view.group.shape for view in queries.list_groups(boss, query="BUSY").items] == ["busy one"]


def test_a_redrive_moves_the_open_jobs_at_its_rate_and_each_once(die, follow, boss, engine):
    die(*(f"i{n}" for n in range(12)))
    follow()
    group = only_group().pk
    gone = engine.jobs("errand", "work", place="dead")[0]
    engine.redrive("errand", "work", gone, actor="x", reason="y")
    assert len(failures.list_open(boss, Selection(group))) == 11
    with pytest.raises(Miscounted):
        failures.redrive(boss, group, reason="fixed", expect=12)
    action = failures.redrive(boss, group, reason="fixed", rate=5, expect=11)
    with pytest.raises(errors.BadFailureAction):
        failures.redrive(boss, group, reason="again")
    duty = PacedActions(engine)
    moments = [duty.look(action.started + ms) for ms in (0, 100, 1000, 1000)]
    assert moments == [5, 0, 5, 0]
    duty.look(action.started + 2000)
    action.refresh_from_db()
    assert (action.state, action.position, action.done, action.passed) == ("done", 11, 11, 0)
    assert engine.stats("errand")["work"].depth["dead"] == 0
    assert engine.stats("errand")["work"].depth["ready"] == 12
    follow()
    assert queries.get(boss, group).open == 0


def test_an_action_that_a_kill_repeats_moves_nothing_twice(die, follow, boss, engine):
    die("a", "b")
    follow()
    action = failures.redrive(boss, only_group().pk, reason="fixed")
    PacedActions(engine).look(action.started + 1000)
    again = {"position": 0, "done": 0, "passed": 0, "updated": action.updated, "jobs": action.jobs}
    FailureAction.objects.update(state="running", **again)
    PacedActions(engine).look(action.started + 1000)
    action.refresh_from_db()
    assert (action.done, action.passed) == (0, 2)
    assert engine.stats("errand")["work"].depth["ready"] == 2


def test_a_job_that_dies_anew_in_a_pass_is_passed_over(die, follow, boss, engine, monkeypatch):
    die("a")
    follow()
    action, find_open = failures.redrive(boss, only_group().pk, reason="fixed"), DeadJobs.find_open

    def die_anew(jobs, refs):
        still = find_open(jobs, refs)
        engine.redrive("errand", "work", actor="x", reason="y")
        (job,) = engine.take("errand", "work", "w", now=action.started + 1000)
        engine.fail(job, "boom", retry=False, now=action.started + 1000)
        return still

    monkeypatch.setattr(DeadJobs, "find_open", die_anew)
    PacedActions(engine).look(action.started + 1000)
    action.refresh_from_db()
    assert (action.done, action.passed, engine.stats("errand")["work"].depth["dead"]) == (0, 1, 1)


def test_a_skip_moves_the_instances_as_if_the_jobs_had_ended(die, follow, boss, engine):
    die("a", "b")
    follow()
    action = failures.skip(boss, only_group().pk, reason="by hand", result={"ok": True})
    PacedActions(engine).look(action.started + 1000)
    action.refresh_from_db()
    assert (action.done, action.error) == (2, "")
    assert {engine.get("errand", name).state for name in "ab"} == {"Done"}
    with pytest.raises(errors.BadFailureAction):
        failures.skip(boss, only_group().pk, reason="by hand", result=float("nan"))


def test_an_action_is_stopped_and_stays_so(die, follow, boss, engine):
    die("a", "b", "c")
    follow()
    action = failures.redrive(boss, only_group().pk, reason="fixed", rate=1)
    PacedActions(engine).look(action.started)
    assert failures.stop(boss, only_group().pk, reason="worse").state == "stopped"
    assert PacedActions(engine).look(action.started + 5000) == 0
    assert engine.stats("errand")["work"].depth["dead"] == 2
    assert failures.stop(boss, only_group().pk, reason="twice") is None


def test_an_action_reaches_only_machines_on_which_the_person_may_operate(die, follow, seer, boss, engine):
    die("a"), die("b", machine="errand2")
    follow()
    group = only_group().pk
    one = seer("view", "operate")
    assert len(failures.list_open(one, Selection(group))) == 1
    action = failures.redrive(one, group, reason="mine")
    assert action.machines == ["errand"]
    assert [each.pk for each in queries.running_actions(boss, group)] == [action.pk]
    with pytest.raises(Forbidden):
        failures.redrive(one, group, reason="theirs", machine="errand2")


def test_a_viewer_moves_nothing_and_is_in_the_audit(die, follow, seer):
    die("a")
    follow()
    viewer = seer("view")
    for act in (failures.redrive, failures.skip, failures.stop):
        with pytest.raises(Forbidden):
            act(viewer, only_group().pk, reason="no")
    assert AuditEntry.objects.filter(action="failure.redrive", outcome="refused").exists()
    assert not FailureAction.objects.exists()


def test_a_definition_that_asks_for_a_second_person_refuses_the_group(follow, boss, engine, transactional_db):
    publishing.publish(stuck() | {"approval": ["retry"]})
    engine.create("errand", "a")
    engine.fire("errand", "a", "start")
    (job,) = engine.take("errand", "work", "w")
    engine.fail(job, "boom", retry=False)
    follow()
    with pytest.raises(BadInput, match="approval"):
        failures.redrive(boss, only_group().pk, reason="fixed")


def test_the_sample_is_redacted_as_the_page_of_the_job(engine, follow, seer, boss, transactional_db):
    context = {"type": "object", "properties": {"card": {"type": "string", "sensitive": True}}}
    publishing.publish(stuck() | {"context": context})
    engine.create("errand", "a", data={"card": "visa gold"})
    engine.fire("errand", "a", "start")
    (job,) = engine.take("errand", "work", "w")
    engine.fail(job, "card visa gold refused", kind="Refused", trace="visa gold", retry=False)
    follow()
    (hidden,) = queries.newest_jobs(seer("view"), only_group().pk)
    assert "visa" not in hidden.error + hidden.trace
    (clear,) = queries.newest_jobs(boss, only_group().pk)
    assert "visa" in clear.error


def test_a_retry_of_any_group_takes_the_jobs_of_a_queue_or_a_machine_and_each_once(die, follow, boss, engine):
    die("a", "b", error="boom")
    die("c", kind="OSError", error="away")
    die("d", machine="errand2", error="boom")
    follow()
    assert len(failures.list_open(boss, Selection())) == 4
    assert len(failures.list_open(boss, Selection(queue="work", machine="errand2"))) == 1
    with pytest.raises(errors.BadFailureAction, match="no open jobs"):
        failures.redrive(boss, machine="errand", queue="other", reason="fixed")
    with pytest.raises(Miscounted):
        failures.redrive(boss, machine="errand", queue="work", reason="fixed", expect=2)
    retry = failures.redrive(boss, machine="errand", queue="work", reason="fixed", rate=2, expect=3)
    assert (retry.group, retry.terms, retry.machines) == (None, {"machine": "errand", "queue": "work"}, ["errand"])
    assert [row.machine for row in failures.list_open(boss, Selection())] == ["errand2"]
    assert failures.list_open(boss, Selection(queue="work", machine="errand")) == []
    with pytest.raises(errors.BadFailureAction, match="another action on these jobs"):
        failures.redrive(boss, machine="errand", reason="again")
    with pytest.raises(errors.BadFailureAction, match="another action on these jobs"):
        failures.redrive(boss, FailureGroup.objects.get(kind="OSError").pk, reason="this one")
    PacedActions(engine).look(retry.started)
    assert engine.stats("errand")["work"].depth["dead"] == 1
    assert failures.stop_retry(boss, retry.pk, reason="enough").position == 2
    assert failures.stop_retry(boss, retry.pk, reason="enough") is None
    PacedActions(engine).look(retry.started + 60_000)
    assert engine.stats("errand")["work"].depth["dead"] == 1
    assert engine.stats("errand2")["work"].depth["dead"] == 1
    entry = AuditEntry.objects.get(action="failure.redrive", outcome="done")
    assert (entry.machine, entry.queue, entry.detail["count"], entry.detail["groups"]) == ("errand", "work", 3, 2)
    rest = failures.redrive(boss, reason="all of them")
    assert (rest.total, rest.machines) == (2, ["errand", "errand2"])


def test_a_retry_of_any_group_leaves_out_the_jobs_of_a_running_one(die, follow, boss):
    die("a", error="boom")
    die("b", kind="OSError", error="away")
    follow()
    running = failures.redrive(boss, FailureGroup.objects.get(kind="OSError").pk, reason="first")
    assert [row.pk for row in failures.list_open(boss, Selection(running.group_id))] == []
    assert failures.redrive(boss, reason="all of them", expect=1).total == 1
    assert failures.list_open(boss, Selection()) == []


def test_a_retry_of_any_group_reaches_the_machines_of_the_right_alone(die, follow, actor, seer):
    die("a")
    die("b", machine="errand2")
    follow()
    one = seer("view", "operate")
    assert {row.machine for row in failures.list_open(one, Selection())} == {"errand"}
    assert failures.redrive(one, reason="mine").machines == ["errand"]
    with pytest.raises(Forbidden):
        failures.redrive(one, machine="errand2", reason="theirs")
    with pytest.raises(Forbidden):
        failures.redrive(actor("eve", "view"), reason="none")
