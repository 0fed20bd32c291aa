"""Time and jobs of the test kit, in this process."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from machines.connections import get_engine
from machines.engine import Enqueue, Fire
from machines.testing.clock import read_duration, read_moment
from machines.testing.kit import open_kit
from tests.cases import for_each

pytestmark = pytest.mark.redis
HOUR, DAY = 3_600_000, 86_400_000
LADDER = {
    "id": "ladder",
    "initial": "A",
    "context": {"seen": []},
    "states": {
        "A": {"after": {"1d": "B"}},
        "B": {"entry": [{"append": {"seen": "now"}}], "after": {"2d": "C"}},
        "C": {"entry": [{"append": {"seen": "now"}}], "on": {"again": "A"}},
    },
}
WORK = {
    "id": "work",
    "initial": "Doing",
    "context": {"answer": None},
    "states": {
        "Doing": {
            "invoke": {
                "src": "do",
                "retry": {"attempts": 2, "backoff": "1m"},
                "onDone": {"target": "Done", "guard": "event.result != 13"},
                "onError": "Failed",
            }
        },
        "Done": {"type": "final"},
        "Failed": {},
    },
}


@pytest.fixture
def kit(redis_url, settings):
    with open_kit(redis_url, folders=[], base=Path(__file__).parent, root=Path(__file__).parents[2]) as kit:
        yield kit


@pytest.fixture
def work(kit):
    kit.publish(WORK)
    kit.create("work", "w")
    return kit


def test_each_timer_fires_at_its_own_moment(kit):
    kit.publish(LADDER)
    start = kit.now
    kit.create("ladder", "x")
    kit.advance("1h")
    kit.create("ladder", "y")
    assert kit.advance("30d") >= 4
    kit.assert_state("ladder", "x", "C")
    assert [step.at - start for step in kit.engine.history("ladder", "x")] == [3 * DAY, DAY, 0]
    assert [step.at - start for step in kit.engine.history("ladder", "y")] == [3 * DAY + HOUR, DAY + HOUR, HOUR]
    assert kit.now == start + HOUR + 30 * DAY
    assert "(create)" in kit.history("ladder", "x")


def test_calls_through_get_engine_and_of_many_happen_at_the_clock(kit):
    kit.publish(LADDER)
    kit.advance("400d")
    assert get_engine() is kit.engine
    get_engine().create("ladder", "x")
    kit.advance("3d")
    moved = kit.engine.fire_many([Fire("ladder", "x", "again"), ("ladder", "x", "again")])
    assert moved[0].entered == kit.now
    (job,) = kit.engine.enqueue_many([Enqueue("ladder", "do")])
    assert (job.created, kit.engine.enqueue("ladder", "do").created) == (kit.now, kit.now)
    assert kit.engine.find("ladder", state="A", older_than=1).instances == []
    kit.advance(5)
    assert len(kit.engine.find("ladder", state="A", older_than=1)) == 1


def test_a_delayed_message_arrives_at_its_own_time(kit):
    send = {"event": "hi", "to": "'#_scxml_ladder/x'", "delay": "10h"}
    kit.publish({**LADDER, "accepts": {"from": ["sender"]}, "states": {"A": {"on": {"hi": "B"}}, "B": {}}})
    kit.publish({"id": "sender", "initial": "S", "states": {"S": {"entry": [{"send": send}]}}})
    kit.create("ladder", "x")
    kit.create("sender", "s")
    sent = kit.now
    kit.advance("9h")
    kit.assert_state("ladder", "x", "A")
    kit.advance("9h")
    kit.assert_state("ladder", "x", "B")
    assert kit.engine.history("ladder", "x")[0].at == sent + 10 * HOUR


def test_the_limits_of_queues_follow_the_clock(kit):
    kit.publish(WORK)
    kit.engine.limit("work", "do", rate="1/s", actor="test", reason="slowly")
    for id in "abc":
        kit.create("work", id)
    for _ in range(3):
        assert len(kit.run_jobs({"do": lambda job: 1})) == 1
        kit.advance("1s")
    kit.assert_no_job("work")


def test_time_moves_to_a_moment_and_never_back(kit):
    moment = datetime.fromtimestamp(kit.now / 1000, UTC) + timedelta(days=2)
    kit.advance_to(moment)
    assert kit.now == round(moment.timestamp() * 1000)
    with pytest.raises(ValueError, match="only moves forward"):
        kit.advance_to(kit.now - 1)


@for_each(
    "given, ms", [("30d", 30 * DAY), ("1h 30m", HOUR * 3 // 2), (1.5, 1500), (timedelta(hours=1), HOUR), ("0s", 0)]
)
def test_durations(given, ms):
    assert read_duration(given) == ms


@for_each("given", ["", "30", "thirty days", None, True, float("nan")])
def test_what_is_no_duration_says_what_one_is(given):
    with pytest.raises(ValueError, match="is no duration; write a number and a unit"):
        read_duration(given)


def test_a_moment_has_a_time_zone():
    with pytest.raises(ValueError, match="has no time zone"):
        read_moment(datetime(2030, 1, 1))


def test_a_timer_whose_step_fails_stops_the_clock_with_the_reason(kit):
    kit.publish(
        {
            "id": "bad",
            "initial": "A",
            "context": {"n": 0},
            "states": {"A": {"after": {"1h": {"target": "B", "actions": [{"set": {"n": "1 / n"}}]}}}, "B": {}},
        }
    )
    kit.create("bad", "x")
    with pytest.raises(AssertionError, match=r"a timer cannot fire\n(.|\n)*problem: timer:"):
        kit.advance("1d")


def test_an_endless_timer_ends_with_a_clear_word(kit, monkeypatch):
    monkeypatch.setattr("machines.testing.kit.MOST_TIMES", 50)
    kit.publish({"id": "tick", "initial": "A", "states": {"A": {"after": {"1s": {"target": "A", "reenter": True}}}}})
    kit.create("tick", "x")
    with pytest.raises(AssertionError, match="passed 50 moments"):
        kit.advance("1d")


def test_a_lease_that_ends_returns_the_job(work):
    (job,) = work.engine.take("work", "do", "someone")
    work.advance("1h")
    assert work.assert_job("work", "do", place="ready").id == job.id


def test_plain_and_async_handlers_report_progress_and_complete(work):
    async def do(job):
        job.progress(1, 2, "half")
        assert work.engine.job("work", job.id).progress["note"] == "half"
        return {"ok": True}

    work.create("work", "v")
    assert [run.outcome for run in work.run_jobs({"do": do})] == ["completed", "completed"]
    work.assert_done("work", "w")
    work.assert_no_job("work")


async def test_jobs_run_in_a_test_that_is_a_coroutine(work):
    async def do(job):
        return job.attempt

    assert [run.result for run in work.run_jobs({"do": do})] == [1]


def test_a_failing_handler_is_tried_again_and_dies(work, capsys):
    def do(job):
        raise KeyError("nothing here")

    (run,) = work.run_jobs({"do": do})
    assert (run.outcome, type(run.error)) == ("delayed", KeyError)
    assert 'raise KeyError("nothing here")' in run.trace
    assert "job_runner" not in run.trace
    assert "KeyError" in capsys.readouterr().err
    assert work.run_jobs({"do": do}) == []
    work.advance("10m")
    with pytest.raises(KeyError, match="nothing here"):
        work.run_jobs({"do": do}, reraise=True)
    work.assert_job("work", "do", place="handled", count=1)
    work.assert_state("work", "w", "Failed")


def test_jobs_may_run_on_the_way(work):
    seen = []

    def do(job):
        seen.append(work.now)
        raise OSError("later")

    start = work.now
    work.advance("1d", run_jobs={"do": do})
    assert len(seen) == 2
    assert seen[0] == start < seen[1] < start + HOUR
    work.assert_state("work", "w", "Failed")


def test_a_job_that_is_lost_meanwhile_says_so(work):
    def do(job):
        work.engine.withdraw("work", job.id, actor="test", reason="changed")

    assert [run.outcome for run in work.run_jobs({"do": do})] == ["lost"]


def test_a_job_without_handler_stays_ready_and_names_the_nearest(work):
    with pytest.raises(AssertionError, match="no handler 'do' .* did you mean \"dot\"?"):
        work.run_jobs({"dot": print})
    assert work.assert_job("work", "do", place="ready").attempt == 0


def test_jobs_without_end_are_stopped(kit):
    kit.publish(LADDER)

    def do(job):
        kit.engine.enqueue("ladder", "do")

    kit.engine.enqueue("ladder", "do")
    with pytest.raises(AssertionError, match="ran 5 jobs and there are more"):
        kit.run_jobs({"do": do}, limit=5)


def test_assertions_name_what_differs(work):
    with pytest.raises(
        AssertionError, match=r"expected 2 jobs 'do' of work with place \"ready\", found 1\njobs of work"
    ):
        work.assert_job("work", "do", place="ready", count=2)
    with pytest.raises(AssertionError, match="expected no such job"):
        work.assert_no_job("work", "do")
    with pytest.raises(AssertionError, match=r"answer: expected 4, found null\n(.|\n)*nix: .*no such field"):
        work.assert_data("work", "w", {"answer": 4}, nix=1)
    with pytest.raises(AssertionError, match="which is not its end"):
        work.assert_done("work", "w")
    work.assert_refused("work", "w", "pay")
    with pytest.raises(AssertionError, match="refused, but not because of 'money'"):
        work.assert_refused("work", "w", "pay", because="money")


def test_a_misspelt_state_is_named_with_the_nearest(work):
    with pytest.raises(AssertionError, match="work has no state 'Faild', did you mean 'Failed'?"):
        work.assert_state("work", "w", "Faild")
    with pytest.raises(AssertionError) as raised:
        work.assert_state("work", "w", "Failed")
    assert "no state" not in str(raised.value)


def test_a_state_around_the_leaves_is_active(kit):
    kit.publish({"id": "work", "initial": "A", "states": {"A": {"initial": "B", "states": {"B": {}, "C": {}}}}})
    kit.create("work", "w")
    kit.assert_state("work", "w", "A", "B", "A.B")
    with pytest.raises(AssertionError, match="is in B, not in C"):
        kit.assert_state("work", "w", "C")


def test_the_clock_takes_weeks_and_refuses_to_go_back(kit):
    assert read_duration("3w") == read_duration("3 weeks") == 21 * DAY
    assert read_duration("1w 2d") == 9 * DAY
    for length in (-5, timedelta(days=-1)):
        with pytest.raises(ValueError, match="the clock only moves forward"):
            kit.advance(length)
