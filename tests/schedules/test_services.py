"""Rights, audit and bad input of schedules, through the services."""

from __future__ import annotations

import io

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command

from machines.alarms.alarm import Alarm
from machines.alarms.queries import detect_alarms
from machines.connections import get_engine
from machines.models import AuditEntry
from machines.people.actor import Actor
from machines.people.errors import Forbidden
from machines.people.permissions import EVERYTHING, Scope
from machines.schedules import AuthorLost, DeclaredSchedule, InvalidSchedule, Schedules, UnknownSchedule, queries
from machines.schedules import actions as schedules
from machines.schedules.errors import BackfillRefused
from tests.cases import for_each

from .clock import HOUR, WHAT

NIGHTLY = {"name": "nightly", "when": {"cron": "30 2 * * *"}, "zone": "Europe/Zurich", "what": WHAT}
FIRE = {"do": "fire", "machine": "report", "instance": "r-1", "event": "remind"}
ALL = {"do": "fire_all", "machine": "report", "event": "remind", "filter": {}}
DESK = Actor("desk", "command line")


@pytest.fixture
def person(db):
    """Makes an actor with roles."""

    def make(*roles: str) -> Actor:
        user = User.objects.create_user("-".join(roles) or "nobody")
        user.groups.set(Group.objects.filter(name__in=roles))
        return Actor(User.objects.get(pk=user.pk), "page 10.0.0.7")

    return make


def test_each_action_takes_its_rights_and_leaves_an_entry(clock, person):
    boss, viewer = person("supervisor"), person("viewer")
    made = schedules.put(boss, NIGHTLY, reason="reports are due at 7")
    assert (made.state, made.source, made.order.author) == ("active", "people", "supervisor")
    assert schedules.pause(boss, "nightly").state == "paused"
    assert schedules.resume(boss, "nightly", reason="again").state == "active"
    assert schedules.run(boss, "nightly", key="k").waiting == schedules.run(boss, "nightly", key="k").waiting == 1
    assert schedules.backfill(boss, "nightly", "2026-11-01", "2026-11-04") == 3
    assert [row.name for row in queries.list_schedules(viewer)] == ["nightly"]
    assert len(queries.list_next(viewer, "nightly")) == 5
    for call in (schedules.pause, schedules.resume, schedules.run, schedules.remove):
        with pytest.raises(Forbidden):
            call(viewer, "nightly")
    with pytest.raises(Forbidden):
        schedules.put(viewer, NIGHTLY)
    with pytest.raises(Forbidden):
        queries.get(person(), "nightly")
    schedules.remove(boss, "nightly")
    with pytest.raises(UnknownSchedule):
        queries.get(boss, "nightly")
    done = AuditEntry.objects.filter(outcome="done", action__startswith="schedule.").order_by("pk")
    assert list(done.values_list("action", "machine", "target")) == [
        (f"schedule.{verb}", "report", "nightly")
        for verb in ("put", "pause", "resume", "run", "run", "backfill", "remove")
    ]
    assert AuditEntry.objects.filter(outcome="refused", action__startswith="schedule.").count() == 5


def test_what_is_declared_elsewhere_is_not_changed_by_people(clock, db):
    Schedules(clock.engine).put(NIGHTLY, source="code")
    with pytest.raises(DeclaredSchedule, match=r"declared in code: change it there") as raised:
        schedules.put(DESK, NIGHTLY | {"jitter": 5})
    assert raised.value.code == "SB652"
    with pytest.raises(DeclaredSchedule):
        schedules.remove(DESK, "nightly")
    assert schedules.pause(DESK, "nightly").state == "paused"
    assert not queries.may(DESK, queries.get(DESK, "nightly"), "put")


@for_each("given, said", [
        ({"when": {"cron": "*/61 * * * *"}}, 'an interval is written {"every": "61m"}'),
        ({"when": {"cron": "0 0 30 2 *"}}, "never fires: no month of 2 has that day"),
        ({"when": {"cron": "0 0 * *"}}, "has 4 fields, not 5"),
        ({"when": {"cron": "0 24 * * *"}}, "hour is 0 to 23"),
        ({"when": {"every": "soon"}}, "a whole number and a unit"),
        ({"when": {"at": "2027-03-28T02:30"}}, "does not exist in Europe/Zurich"),
        ({"when": {"at": "2001-01-01T00:00"}}, "has no occurrence from now on"),
        ({"when": {"cron": "0 0 * * *", "every": "1h"}}, "one of"),
        ({"zone": "Mars/Olympus"}, "'Mars/Olympus' is no time zone"),
        ({"when": {"every": "1m"}, "jitter": "1m"}, "60 s is not shorter than the 60 s between two occurrences"),
        ({"overlap": "never"}, "allow, skip, queue"),
        ({"bound": 0}, "1 to 1000"),
        ({"color": "red"}, "color: is no key of a schedule"),
        ({"name": "no good"}, "name: 'no good' is no name"),
        ({"start": "2026-01-02", "end": "2026-01-01"}, "end: is not after start"),
        ({"what": {"do": "sing"}}, "what.do: does not say what to do"),
        ({"what": WHAT | {"machine": "raport"}}, "there is no machine 'raport' (did you mean report?)"),
        ({"what": WHAT | {"src": "make_raport"}}, "did you mean make_report?"),
        ({"what": WHAT | {"input": {"at": object()}}}, "is no JSON"),
        ({"what": WHAT | {"priority": 11}}, "priority"),
        ({"what": FIRE | {"event": "rmind"}}, "did you mean remind?"),
        ({"what": FIRE | {"payload": "[]"}}, "not a JSON"),
        ({"what": ALL | {"filter": {"stat": 1}}}, "unknown filter stat"),
        ({"what": ALL | {"filter": {"state": "x"}}}, "what.filter"),
    ])  # fmt: skip
def test_bad_input_says_what_and_what_would_be_right(clock, db, given, said):
    with pytest.raises(InvalidSchedule) as raised:
        schedules.put(DESK, NIGHTLY | given)
    assert raised.value.code == "SB650"
    assert said in str(raised.value)
    assert queries.list_schedules(DESK) == []


def test_all_findings_come_together(clock, db):
    with pytest.raises(InvalidSchedule) as raised:
        queries.preview(DESK, {"when": {"cron": "x"}, "zone": "?", "what": {}})
    assert [finding.path for finding in raised.value.findings] == ["name", "what.do", "zone", "when.cron"]


def test_a_backfill_is_bounded(clock, db):
    schedules.put(DESK, NIGHTLY | {"when": {"cron": "* * * * *"}})
    for start, end, said in (
        ("2020-01-01", "2022-01-01", "more than 10,000 occurrences"),
        ("2022-01-01", "2021-01-01", "ends after it starts"),
        ("2026-01-01", "2222-01-01", "for the past"),
        ("tomorrow", "2026-01-01", "ISO 8601"),
    ):
        with pytest.raises(BackfillRefused, match=said):
            schedules.backfill(DESK, "nightly", start, end)


def test_a_preview_lists_the_next_runs_and_stores_nothing(clock, db):
    schedule, times = queries.preview(DESK, NIGHTLY)
    assert (schedule.name, len(times), times == sorted(times)) == ("nightly", 5, True)
    assert queries.list_schedules(DESK) == []


# Whose right was lost

HOURLY = NIGHTLY | {"when": {"every": "1h"}}


def deactivate(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def take_roles(user: User) -> None:
    user.groups.clear()


LOSSES = {
    "deactivated": (deactivate, "the account supervisor is not active"),
    "without the right": (take_roles, "supervisor lost the right to operate on report"),
    "gone": (lambda user: user.delete(), "there is no account supervisor any more"),
}


def lose(clock, actor, loss: str) -> str:
    """A schedule of a person whose rights end before it is due; why it does not run."""
    act, why = LOSSES[loss]
    schedules.put(actor, HOURLY)
    clock.now = clock.schedules.get("nightly").next * 1000 - 1000
    act(actor.user)
    clock.run_until(clock.now + 3 * HOUR)
    return why


def alarms_of(scope=EVERYTHING) -> list[Alarm]:
    survey = get_engine().survey()
    return [alarm for alarm in detect_alarms(scope, survey.only(scope), {}) if alarm.kind == "schedule"]


@pytest.mark.parametrize("loss", LOSSES)
def test_a_schedule_whose_author_lost_the_right_pauses_with_an_alarm(clock, person, loss):
    why = lose(clock, person("supervisor"), loss)
    row = clock.schedules.get("nightly")
    assert (row.state, row.count) == ("paused", 1)
    assert (row.last["o"], row.last["e"]) == ("failed", f"not run: {why}")
    assert clock.engine.jobs("report", "make_report") == []
    (alarm,) = alarms_of()
    assert (alarm.key, alarm.machine, alarm.text) == (
        "schedule:report/nightly", "report", f"schedule nightly on report paused: {why}"
    )  # fmt: skip
    assert alarms_of(Scope(False, frozenset({"report"}))) == [alarm]
    assert alarms_of(Scope(False, frozenset({"other"}))) == []


def test_one_that_is_paused_by_hand_raises_none(clock, person):
    boss = person("supervisor")
    schedules.put(boss, NIGHTLY)
    schedules.pause(boss, "nightly")
    assert alarms_of() == []


def test_nobody_has_it_go_on_in_the_name_of_who_may_not(clock, person):
    lose(clock, person("supervisor"), "deactivated")
    for call in (schedules.resume, schedules.run):
        with pytest.raises(AuthorLost, match="the account supervisor is not active: take it over"):
            call(DESK, "nightly")
    with pytest.raises(AuthorLost):
        schedules.backfill(DESK, "nightly", "2026-11-01", "2026-11-04")
    refused = AuditEntry.objects.filter(outcome="refused", action__startswith="schedule.")
    assert [entry.detail["code"] for entry in refused] == ["SB654"] * 3


def test_it_is_taken_over_and_goes_on_in_another_name(clock, person):
    lose(clock, person("supervisor"), "deactivated")
    boss = Actor(User.objects.create_superuser("boss"), "page 10.0.0.7")
    taken = schedules.take_over(boss, "nightly", reason="still wanted")
    assert (taken.state, taken.order.author) == ("active", "boss")
    entry = AuditEntry.objects.get(action="schedule.take_over")
    assert (entry.actor, entry.outcome, entry.target, entry.reason) == ("boss", "done", "nightly", "still wanted")
    assert (entry.detail["was"], entry.detail["given"]) == ("supervisor", "boss")
    assert alarms_of() == []
    clock.schedules.run("nightly", by="boss")
    clock.now += HOUR
    clock.work()
    assert clock.schedules.get("nightly").last["o"] == "done"


def test_taking_over_takes_the_rights_to_make_it(clock, person):
    lose(clock, person("supervisor"), "deactivated")
    with pytest.raises(Forbidden):
        schedules.take_over(person("viewer"), "nightly")


def test_the_command_takes_one_over(clock, person):
    lose(clock, person("supervisor"), "without the right")
    call_command("schedule", "take-over", "nightly", reason="still wanted", stdout=io.StringIO())
    row = clock.schedules.get("nightly")
    assert (row.state, row.order.person) == ("active", False)
