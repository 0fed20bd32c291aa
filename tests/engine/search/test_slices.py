"""Calls that handle many things stop in time, and the engine goes on where they stopped: nothing is left out."""

import re

import pytest

from machines.engine import LeaseLost, tracing
from machines.engine.connection import library
from machines.engine.transfer.exporting import Export
from tests.engine.builders import NOW, errand
from tests.engine.test_tracing import Spans

COUNT = 60
DESK = {
    "id": "desk",
    "initial": "Open",
    "context": {"number": 0},
    "states": {"Open": {"on": {"count": {"actions": {"set": {"number": "number + 1"}}}}}},
}


@pytest.fixture
def hurried(engine):
    """The library with slices that are over at once, until the test ends."""
    text, found = re.subn(r"local SLICE_MS = \d+", "local SLICE_MS = -1", library.text())
    assert found == 1
    engine.load_library()
    engine.client.function_load(text, replace=True)
    yield engine
    engine.client.function_load(library.text(), replace=True)


@pytest.fixture
def desks(hurried):
    hurried.publish(DESK)
    for number in range(COUNT):
        hurried.create("desk", f"d{number:02}", {"number": number % 5}, now=NOW + number)
        hurried.fire("desk", f"d{number:02}", "count", now=NOW + 100 + number)
    return hurried


def count_calls(engine, call):
    def read():
        stats = engine.client.info("commandstats")
        return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("fcall", "fcall_ro"))

    before, found = read(), call()
    return found, read() - before


def test_an_index_is_filled_by_calls_that_each_take_some(desks):
    desks.publish(DESK | {"index": ["number"]})
    found, calls = count_calls(desks, lambda: desks.reindex("desk"))
    assert found == COUNT
    assert calls > COUNT  # at least one instance each
    for number in range(1, 6):
        page = desks.find("desk", where={"number": number}, limit=COUNT)
        assert len(page.instances) == COUNT / 5
        assert page.cursor is None


def test_a_page_is_whole_and_says_how_many_were_compared(desks):
    found, calls = count_calls(desks, lambda: desks.find("desk", state="Open", limit=50))
    assert [one.id for one in found] == [f"d{number:02}" for number in range(50)]
    assert calls > 2
    page = desks.find("desk", state="Open", where={"number": 9})
    assert (page.instances, page.cursor, page.looked) == ([], None, COUNT)


def test_every_step_is_replayed(desks):
    found, calls = count_calls(desks, lambda: desks.replay("desk", 1))
    assert (found.instances, found.steps, found.divergences) == (COUNT, 2 * COUNT, [])
    assert calls > 2 * COUNT  # histories and steps


def test_an_export_has_every_instance(desks, tmp_path):
    export = Export(desks.client, desks.keys, "desk", tmp_path / "desk")
    _, calls = count_calls(desks, export.run)
    assert (export.instances, calls > COUNT) == (COUNT, True)


def start_errands(engine):
    engine.publish(errand())
    for number in range(COUNT):
        engine.create("errand", f"e{number}", now=NOW)
        engine.fire("errand", f"e{number}", "start", now=NOW)


def test_a_take_goes_on_in_the_same_order_and_does_not_call_the_queue_empty(hurried):
    start_errands(hurried)
    first, calls = count_calls(hurried, lambda: hurried.take("errand", "work", "w", count=40, now=NOW))
    assert ([job.instance for job in first], first.hint, first.emptied) == ([f"e{n}" for n in range(40)], "", set())
    assert calls == 3  # sixteen jobs each
    rest = hurried.take("errand", "work", "w", count=COUNT, now=NOW)
    assert ([job.instance for job in rest], rest.hint, rest.emptied) == ([f"e{n}" for n in range(40, COUNT)], "", {0})


@pytest.mark.parametrize("is_traced", [False, True])
def test_each_job_is_completed_once_and_answers_are_in_order(hurried, monkeypatch, is_traced):
    start_errands(hurried)
    jobs = hurried.take("errand", "work", "w", count=COUNT, now=NOW)
    hurried.withdraw("errand", jobs[20], actor="ann", reason="test")
    spans = Spans()
    if is_traced:
        monkeypatch.setattr(tracing, "_tracer", spans.tracer)
    ended, calls = count_calls(
        hurried, lambda: hurried.complete_many([(job, None) for job in [*jobs, jobs[0]]], now=NOW)
    )
    assert calls == 4
    assert [place for place, one in enumerate(ended) if isinstance(one, LeaseLost)] == [20, COUNT]
    assert [bool(one.transitions) for one in ended if not isinstance(one, LeaseLost)] == [True] * (COUNT - 1)
    assert {hurried.get("errand", job.instance).revision for job in jobs} == {3}
    named = [span.attributes["signalbox.instance"] for span in spans.read()]
    assert named == ([job.instance for job in [*jobs, jobs[0]]] if is_traced else [])


def test_a_program_of_an_earlier_release_gets_all_jobs_and_all_answers(hurried):
    start_errands(hurried)
    root = hurried.keys.partition("errand").root
    taken = hurried.client.fcall("sb_take", 1, root, "work", "w", COUNT, "", NOW, "n1")
    assert (taken[1], len(taken[3:]) / 6) == ("", COUNT)
    words = [word for at in range(3, len(taken), 6) for word in (taken[at], taken[at + 2], "")]
    assert len(hurried.client.fcall("sb_complete", 1, root, NOW, "short", *words)) == 1 + COUNT


def test_a_take_that_stops_has_the_job_of_a_lower_priority(hurried):
    hurried.publish(errand())
    jobs = [{"machine": "errand", "src": "work", "priority": priority, "now": NOW} for priority in [9] * COUNT + [0]]
    (*_, low) = hurried.enqueue_many(jobs)
    reply = hurried.client.fcall("sb_take", 1, low.root, "work", "w", COUNT, "", NOW, "n1", "hears")
    assert (reply[1], len(reply[3:]) / 6, low.id in reply) == ("more", 16, True)


def test_one_sweep_takes_every_expired_lease_back(hurried):
    start_errands(hurried)
    assert len(hurried.take("errand", "work", "w", count=COUNT, lease=1000, now=NOW)) == COUNT
    found, calls = count_calls(hurried, lambda: hurried.sweep("errand", now=NOW + 60_000))
    assert (found, calls > COUNT) == (COUNT, True)
