"""Overlaps, outages, pauses, runs by hand and changes, in virtual time on a real server."""

from __future__ import annotations

import pytest

from machines.engine import BadInput
from machines.instances.bulks import BULK, Bulk
from machines.schedules import SCHEDULES
from machines.testing.job_runner import JobRunner

from .clock import DAY, HOUR, MINUTE, NOON, SECOND, WHAT

CREATE = {"do": "create", "machine": "report"}


def told(clock, name="nightly"):
    """Outcome and planned hour after noon of the runs, oldest first."""
    runs = clock.schedules.history(name)[::-1]
    return [(run["o"], (run["p"] * 1000 - NOON) / HOUR, run["w"]) for run in runs]


@pytest.mark.parametrize(
    ("catch_up", "hours", "missed"),
    [("none", [1, 7], 5), ("last", [1, 6, 7], 4), ("all", [1, 4, 5, 6, 7], 2)],
)
def test_catch_up_after_an_outage(clock, catch_up, hours, missed):
    clock.put(when={"every": "1h"}, catch_up=catch_up, bound=3)
    clock.run_until(NOON + HOUR)
    clock.now = NOON + 6 * HOUR + 10 * MINUTE
    clock.run_until(NOON + 7 * HOUR)
    runs = told(clock)
    assert [hour for outcome, hour, _ in runs if outcome == "done"] == hours
    assert [run["n"] for run in clock.schedules.history("nightly") if run["o"] == "missed"] == [missed]
    assert clock.schedules.get("nightly").count == len(hours)


def test_a_long_outage_of_a_short_interval_is_counted_and_bounded(clock):
    clock.put(when={"every": "10s"}, catch_up="all", bound=30)
    clock.now = NOON + 365 * DAY
    clock.work()
    runs = clock.schedules.history("nightly", 1000)
    assert sum(run["o"] == "done" for run in runs) == 30 + 7, "those of the last minute are not missed"
    assert sum(run.get("n", 1) for run in runs) == 365 * DAY // (10 * SECOND)


def test_a_backfill_runs_its_begin_and_not_its_end(clock):
    clock.put(when={"every": "1h"}, catch_up="none")
    clock.now = NOON + 6 * HOUR
    clock.work()
    count = clock.schedules.backfill("nightly", NOON // 1000 + 3600, NOON // 1000 + 3 * 3600)
    clock.work()
    runs = [run for run in told(clock) if run[2] == "backfill"]
    assert (count, runs) == (2, [("done", 1, "backfill"), ("done", 2, "backfill")])


def test_skip_leaves_out_what_overlaps_with_an_open_job(clock):
    clock.put(when={"every": "1h"}, overlap="skip")
    clock.run_until(NOON + 2 * HOUR)
    assert told(clock) == [("done", 1, "due"), ("skipped", 2, "due")]
    assert "is still running" in clock.schedules.history("nightly")[0]["e"]
    (job,) = clock.engine.take("report", "make_report", "w", now=clock.now)
    clock.engine.complete(job, now=clock.now)
    clock.run_until(NOON + 3 * HOUR)
    assert told(clock)[-1] == ("done", 3, "due")


def test_queue_holds_what_overlaps_with_an_instance_until_it_is_final(clock):
    clock.put(when={"every": "1m"}, overlap="queue", what=CREATE, end="2027-01-15T12:03:30")
    clock.run_until(NOON + 5 * MINUTE)
    assert [run["p"] * 1000 for run in clock.schedules.history("nightly")] == [NOON + MINUTE]
    assert clock.schedules.get("nightly").waiting == 2
    revision = clock.schedules.get("nightly").revision
    clock.run_until(NOON + 6 * MINUTE)
    assert clock.schedules.get("nightly").revision == revision, "a look is no step"
    for minute in (2, 3):
        clock.engine.fire("report", f"nightly-20270115T120{minute - 1}00Z", "close", now=clock.now)
        clock.run_until(clock.now + 10 * SECOND)
        assert clock.schedules.history("nightly")[0]["p"] * 1000 == NOON + minute * MINUTE
    assert (clock.schedules.get("nightly").waiting, clock.schedules.get("nightly").state) == (0, "ended")


def test_a_paused_schedule_is_run_by_hand_and_resumes_from_now(clock):
    clock.put(when={"every": "1h"})
    clock.schedules.pause("nightly", by="ann")
    clock.run_until(NOON + 150 * MINUTE)
    row = clock.schedules.run("nightly", by="ann", key="k")
    clock.schedules.run("nightly", by="ann", key="k")
    clock.work()
    assert (row.state, row.next, clock.schedules.get("nightly").state) == ("paused", None, "paused")
    assert told(clock) == [("done", 2.5, "run")]
    assert clock.schedules.history("nightly")[0]["by"] == "ann"
    clock.schedules.resume("nightly")
    clock.run_until(NOON + 3 * HOUR)
    assert told(clock)[1:] == [("done", 3, "due")]


def test_a_change_takes_effect_at_once_and_the_same_again_changes_nothing(clock):
    clock.put(when={"every": "1h"})
    before = clock.schedules.get("nightly")
    clock.put(when={"every": "1h"})
    assert clock.schedules.get("nightly").revision == before.revision
    clock.put(when={"every": "20m"}, end="2027-01-15T13:00")
    clock.run_until(NOON + DAY)
    assert [hour for _, hour, _ in told(clock)] == pytest.approx([1 / 3, 2 / 3])
    assert clock.schedules.get("nightly").state == "ended"


def test_jitter_is_the_same_each_time_and_never_early(clock):
    clock.put(when={"every": "1h"}, jitter="30m", what=CREATE)
    schedule = clock.schedules.get("nightly").schedule
    delays = [schedule.due(at) - at for at in schedule.list_next(NOON // 1000, 50)]
    assert (min(delays) >= 0, max(delays) <= 1800, len(set(delays)) > 40) == (True, True, True)
    clock.run_until(NOON + 12 * HOUR)
    for run in clock.schedules.history("nightly"):
        assert run["at"] == schedule.due(run["p"]) * 1000


def test_a_claim_that_is_too_old_is_not_tried_again(clock):
    clock.put(when={"every": "1d"})
    clock.now += DAY
    clock.engine.tick(SCHEDULES, now=clock.now)
    (job,) = clock.engine.take(SCHEDULES, "work", "w", now=clock.now)
    clock.do(job, "claim")
    clock.now += 21 * HOUR
    clock.work()
    assert told(clock) == [("unknown", 24, "due")]
    assert clock.engine.jobs("report", "make_report") == []


def test_a_search_is_a_bulk_action_that_runs_by_itself(clock, settings):
    engine = clock.engine
    for n in range(3):
        engine.create("report", f"r-{n}")
    engine.fire("report", "r-2", "close")
    what = {"do": "fire_all", "machine": "report", "filter": {"state": "open"}, "event": "remind"}
    clock.schedules.put({"name": "all", "when": {"every": "1d"}, "what": what}, author="ann")
    clock.schedules.run("all", by="ann")
    JobRunner(engine, None).run([SCHEDULES, BULK], None, 100, False)
    assert [engine.get("report", f"r-{n}").data["rounds"] for n in range(3)] == [1, 1, 0]
    (run,) = clock.schedules.history("all")
    assert (run["o"], run["led"]["kind"], Bulk(engine, run["led"]["id"]).get().state) == ("done", "bulk", "done")


def test_an_instance_that_nobody_ordered_does_nothing_and_ends(clock):
    clock.put(when={"every": "1h"})
    data = {"pending": [{"k": "1", "p": NOON // 1000, "w": "due", "c": NOON}]}
    clock.engine.create(SCHEDULES, "forged", data)
    JobRunner(clock.engine, None).run([SCHEDULES], None, 100, False)
    clock.engine.tick()
    JobRunner(clock.engine, None).run([SCHEDULES], None, 100, False)
    forged = clock.engine.get(SCHEDULES, "forged")
    assert (forged.state, forged.data["error"]) == ("ended", "there is no schedule 'forged'")
    assert [row.name for row in clock.schedules.find()] == ["nightly"]
    assert clock.engine.jobs("report", "make_report") == []


def test_a_removed_schedule_is_gone_and_its_name_is_free(clock):
    clock.put(when={"every": "1h"})
    clock.schedules.remove("nightly")
    assert (clock.schedules.find(), clock.next_due()) == ([], None)
    clock.put(when={"every": "2h"}, what=WHAT)
    assert clock.schedules.history("nightly") == []


def test_runs_that_wait_are_bounded(clock):
    clock.put(when={"every": "1h"})
    for _ in range(51):
        clock.schedules.run("nightly")
    with pytest.raises(BadInput, match="wait already"):
        clock.schedules.run("nightly")
