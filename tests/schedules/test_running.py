"""Schedules in virtual time on a real server: what each kind does, and when."""

from __future__ import annotations

from .clock import DAY, HOUR, NOON


def jobs(engine, place="ready"):
    return engine.jobs("report", "make_report", place=place, limit=1000)


def test_a_job_is_enqueued_at_each_occurrence(clock):
    clock.put(
        when={"every": "1h"}, what={"do": "enqueue", "machine": "report", "src": "make_report", "input": {"n": 1}}
    )
    clock.run_until(NOON + 3 * HOUR)
    assert [job.input for job in jobs(clock.engine)] == [{"n": 1}] * 3
    assert [(run["p"] * 1000, run["o"], run["led"]["kind"]) for run in clock.schedules.history("nightly")] == [
        (NOON + 3 * HOUR, "done", "job"), (NOON + 2 * HOUR, "done", "job"), (NOON + HOUR, "done", "job"),
    ]  # fmt: skip
    row = clock.schedules.get("nightly")
    assert (row.state, row.next, row.count) == ("active", (NOON + 4 * HOUR) // 1000, 3)
    assert row.last["p"] == (NOON + 3 * HOUR) // 1000


def test_an_event_is_fired_at_one_instance(clock):
    clock.engine.create("report", "r-1")
    what = {"do": "fire", "machine": "report", "instance": "r-1", "event": "remind", "payload": {"text": "now"}}
    clock.put(when={"cron": "0 13 * * *"}, what=what)
    clock.run_until(NOON + 2 * DAY)
    assert clock.engine.get("report", "r-1").data["rounds"] == 2
    assert clock.engine.history("report", "r-1")[0].reason == "schedule nightly, planned for 2027-01-16T13:00:00+00:00"


def test_an_instance_is_made_with_the_name_and_the_time(clock):
    clock.put(when={"at": "2027-01-15T13:00"}, what={"do": "create", "machine": "report", "data": {"rounds": 7}})
    clock.run_until(NOON + DAY)
    assert clock.engine.get("report", "nightly-20270115T130000Z").data["rounds"] == 7
    assert clock.schedules.get("nightly").state == "ended"


def test_a_refused_event_is_told_and_the_schedule_goes_on(clock):
    clock.engine.create("report", "r-1")
    clock.engine.fire("report", "r-1", "close")
    clock.put(when={"every": "1h"}, what={"do": "fire", "machine": "report", "instance": "r-1", "event": "remind"})
    clock.run_until(NOON + 2 * HOUR)
    last, first = clock.schedules.history("nightly")
    assert (last["o"], first["o"]) == ("failed", "failed")
    assert "(SB430)" in last["e"]
