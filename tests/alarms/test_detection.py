"""Alarms: one line for one cause, the worst first, and for each machine the worst that affects it."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from machines.alarms.alarm import KINDS, Alarm, read_machine, sort_alarms, worst_by_machine
from machines.alarms.detection import Figures, StuckCount, raise_alarms
from machines.alarms.workers import QueueDepth
from machines.engine import Pause, QueueStats, WorkerInfo
from machines.engine.jobs.clock_jump import ClockJump

pytestmark = pytest.mark.pure
HOUR = 3_600_000
NOW = int(time.time() * 1000)


def worker(*queues: str, id: str = "w1", status: str = "working", seen: int = NOW + HOUR, **more) -> WorkerInfo:
    return WorkerInfo(id, "box", 7, list(queues), in_hand=0, started=NOW, seen=seen, status=status, **more)


def queues(count: int, machine: str = "order") -> list[QueueDepth]:
    return [QueueDepth(machine, f"q{number}", ready=number + 1) for number in range(count)]


def alarms_of(*figures, **more) -> list[Alarm]:
    return raise_alarms(Figures(*figures, **more))


def only(alarms: list[Alarm]) -> Alarm:
    (alarm,) = alarms
    return alarm


def test_a_quiet_worker_raises_one_alarm_that_names_the_queues_behind_it():
    depths = queues(5)
    alarm = only(alarms_of(depths, [worker(*(depth.route for depth in depths), status="quiet")]))
    assert alarm.text == "worker box 7 is quiet: 5 queues wait for it"
    assert alarm.causes[0] == "order/q0: 1 job ready"
    assert (len(alarm.causes), alarm.count, alarm.key, alarm.severity) == (5, 15, "quiet:w1", "warning")


def test_several_quiet_workers_of_the_same_queues_are_one_alarm():
    depths = queues(2)
    routes = [depth.route for depth in depths]
    both = [worker(*routes, id="w1", status="quiet"), worker(*routes, id="w2", status="quiet")]
    alarm = only(alarms_of(depths, both))
    assert alarm.text == "2 workers are quiet (box 7 and box 7): 2 queues wait for them"


def test_a_quiet_worker_raises_nothing_where_another_works():
    depths = queues(1)
    assert alarms_of(depths, [worker("order/q0", status="quiet"), worker("order/q0", id="w2")]) == []


@pytest.mark.parametrize(
    ("status", "what"),
    [
        ("exhausted", "hang past their deadlines; it takes no jobs and ends"),
        ("blocked", "keep its event loop from answering"),
    ],
)
def test_a_worker_whose_handlers_hang_raises_an_alarm_that_names_them(status, what):
    hanging = {"order/q0": ["charge", "ship"], "bill/q0": ["charge"]}
    alarm = only(alarms_of([], [worker("order/q0", status=status, hanging=hanging)]))
    assert alarm.text == f"worker box 7 is {status}: charge and ship {what}"
    assert (alarm.key, alarm.kind, alarm.severity, alarm.count) == (f"{status}:w1", status, "warning", 2)
    assert alarm.causes == ("order/q0: charge, ship", "bill/q0: charge")
    assert alarm.affected == ("order", "bill")


@pytest.mark.parametrize(
    ("by", "text"),
    [
        (HOUR, "the clock of the server one:1 jumped forward by 1 h: timers fired up to 1 h early"),
        (-HOUR, "the clock of the server one:1 jumped back by 1 h: timers that were set before fire up to 1 h late"),
    ],
)
def test_a_clock_that_was_set_raises_an_alarm_that_names_the_jump_until_it_is_over(by, text):
    jump = ClockJump("one:1", NOW, NOW + by, "w1")
    alarm = only(alarms_of([], [], jumps=[jump], now=NOW))
    assert (alarm.text, alarm.kind, alarm.severity, alarm.subject) == (text, "clock", "warning", "one:1")
    assert alarm.causes == ("noticed by w1",)
    for ended in (replace(jump, undone=True), replace(jump, acknowledged=True)):
        assert alarms_of([], [], jumps=[ended], now=NOW) == []
    assert alarms_of([], [], jumps=[jump], now=jump.over + 1) == []


def test_an_exhausted_worker_serves_nothing_and_a_blocked_one_does():
    depths = queues(1)
    assert [a.kind for a in alarms_of(depths, [worker("order/q0", status="exhausted")])] == ["exhausted", "unserved"]
    assert [a.kind for a in alarms_of(depths, [worker("order/q0", status="blocked")])] == ["blocked"]


def test_without_any_worker_one_alarm_names_all_that_waits():
    oldest = {"order/q0": NOW - HOUR, "bill/q0": NOW - 2 * HOUR}
    alarm = only(alarms_of([*queues(1), *queues(2, "bill")], [], {"order": 4, "parcel": 1, "idle": 0}, oldest=oldest))
    assert alarm.text == "no worker is running: 4 jobs ready on 3 queues, 5 timers of 2 machines overdue"
    assert alarm.causes == (
        "order/q0: 1 job ready",
        "bill/q0: 1 job ready",
        "bill/q1: 2 jobs ready",
        "order: 4 timers overdue",
        "parcel: 1 timer overdue",
    )
    assert (alarm.severity, alarm.since) == ("critical", NOW - 2 * HOUR)
    assert alarm.affected == ("order", "bill", "parcel")


def test_queues_of_a_machine_that_no_worker_serves_are_one_alarm():
    alarm = only(alarms_of(queues(3), [worker("other/q")]))
    assert alarm.text == "no worker serves 3 queues of order: 6 jobs ready"
    assert (alarm.key, alarm.machine) == ("unserved:order", "order")


def test_paused_queues_of_a_machine_are_one_alarm():
    stats = QueueStats(
        "q0", now=NOW, depth={}, oldest=None, enqueued=0, taken=0, completed=0, failed=0, lost=0, died=0, withdrawn=0,
        purged=0, waits={}, runs={}, paused=Pause(NOW - 2 * HOUR, "ann", "rates"),
    )  # fmt: skip
    both = [("order", stats), ("order", replace(stats, queue="q1", paused=Pause(NOW - 3 * HOUR, "bob", "")))]
    alarm = only(alarms_of([], [], paused=both, now=NOW))
    assert alarm.text == "2 queues of order paused for 3 h by ann and bob"
    assert (alarm.since, alarm.causes) == (NOW - 3 * HOUR, ("order/q0", "order/q1"))


def test_partitions_of_a_lost_node_are_one_alarm():
    alarm = only(alarms_of([], [], missing=["sb:{order:0}", "sb:{order:3}", "sb:{bill:1}"]))
    assert alarm.text == "3 partitions of 2 machines do not answer: a node of the cluster is away"
    assert alarm.causes == ("bill: 1 partition", "order: 2 partitions")
    assert worst_by_machine([alarm]) == {"bill": "critical", "order": "critical"}


@pytest.mark.parametrize(("count", "severity"), [(99, "warning"), (100, "critical")])
def test_many_dead_jobs_or_late_instances_are_critical(count, severity):
    raised = alarms_of([QueueDepth("m", "q", dead=count)], [worker()], stuck=[StuckCount("m", "Open", count, 60_000)])
    assert [alarm.severity for alarm in raised] == [severity, severity]


def test_the_worst_come_first_and_of_each_severity_the_oldest():
    made = [
        Alarm("a", "dead", "warning", "a", "m", since=5),
        Alarm("b", "approvals", "info", "b", since=1),
        Alarm("c", "dead", "warning", "c", "n"),
        Alarm("d", "dead", "warning", "d", "m", since=2),
        Alarm("e", "timers", "critical", "e", "m", since=9),
    ]
    assert [alarm.key for alarm in sort_alarms(made)] == ["e", "d", "a", "c", "b"]
    assert worst_by_machine(made) == {"m": "critical", "n": "warning"}


def test_the_documentation_lists_each_kind_with_its_severity():
    text = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (critical|warning|info)\b", text, re.MULTILINE))
    assert rows == {kind: about.severity for kind, about in KINDS.items()}


def test_a_key_names_the_machine_of_its_alarm():
    late = {"order": 2}
    raised = [
        *alarms_of([QueueDepth("order", "q", ready=1, dead=2)], [worker("x/y")], late=late, approvals=1),
        *alarms_of(queues(2), [], {"order": 1}, missing=["sb:{order:0}"]),
        *alarms_of(queues(1), [worker("order/q0", status="quiet")], stuck=[StuckCount("order", "a/b", 1, 60_000)]),
    ]
    assert [read_machine(alarm.key) for alarm in raised] == [alarm.machine for alarm in raised]
    assert {"order", ""} == {alarm.machine for alarm in raised}
    assert read_machine("nonsense:order") == ""
