"""Each death counts once, whoever follows and however often; open is what is still dead."""

import json

import pytest
from django.db import connection

from machines.jobs.failures import duties, recording
from machines.jobs.failures.duties import FailureFollower
from machines.models import FailedJob, FailureGroup, FailureHour, FailurePart
from tests.engine.builders import errand
from tests.engine.instances.racing import in_threads

from .conftest import only_group, stuck


def test_failures_are_grouped_by_handler_exception_and_shape_across_machines(die, follow):
    die("a", "b", error="order 1 not found")
    die("c", error="order 2 not found", machine="errand2")
    die("d", error="order 2 not found", kind="KeyError")
    die("e", error="no stock")
    follow()
    groups = {(one.handler, one.kind, one.shape): one for one in FailureGroup.objects.all()}
    assert set(groups) == {
        ("work", "ValueError", "order <number> not found"),
        ("work", "KeyError", "order <number> not found"),
        ("work", "ValueError", "no stock"),
    }
    first = groups["work", "ValueError", "order <number> not found"]
    assert {part.machine: part.count for part in first.parts.all()} == {"errand": 2, "errand2": 1}
    part = first.parts.get(machine="errand")
    assert (part.versions, part.queues, part.attempts) == ([1], ["work"], 2)
    assert sum(FailureHour.objects.values_list("count", flat=True)) == 5


def test_each_death_counts_once_by_however_many_followers(die, follow, engine):
    die(*"abcdef")
    one = FailureFollower(engine)
    one.look(), one.look()
    in_threads([lambda: _followed(engine)] * 3)
    die("g")
    one.look(), follow()
    assert FailurePart.objects.get().count == 7
    assert FailedJob.objects.count() == 7


def _followed(engine):
    try:
        FailureFollower(engine).run_once()
    finally:
        connection.close()


def test_a_follower_that_is_killed_between_pages_counts_nothing_twice(die, engine, monkeypatch):
    die(*"abcdefg")
    monkeypatch.setattr(duties, "PAGE", 3)
    whole, pages = recording.record, []

    class Killed(BaseException):
        pass

    def record(*args, **options):
        if len(pages) == 1:
            with recording.transaction.atomic():
                whole(*args, **options)
                pages.append(0)
                raise Killed  # after its writes, before the commit
        pages.append(whole(*args, **options))
        return pages[-1]

    monkeypatch.setattr(recording, "record", record)
    with pytest.raises(Killed):
        FailureFollower(engine).look()
    assert FailurePart.objects.get().count == 3
    FailureFollower(engine).look()
    assert FailurePart.objects.get().count == 7 == FailedJob.objects.count()


def test_many_deaths_of_one_millisecond_are_all_counted(engine, transactional_db, monkeypatch):
    monkeypatch.setattr(duties, "PAGE", 3)
    engine.publish(stuck())
    for n in range(8):
        engine.create("errand", f"i{n}")
        engine.fire("errand", f"i{n}", "start")
    now = engine.emitted_logs().now()
    for job in engine.take("errand", "work", "w", count=8):
        engine.fail(job, "boom", retry=False, now=now)
    FailureFollower(engine).look()
    assert FailurePart.objects.get().count == 8


def test_open_jobs_are_those_still_dead_and_a_second_death_counts_again(die, follow, engine):
    die("a", "b")
    follow()
    assert FailedJob.objects.filter(open=True).count() == 2
    job = engine.jobs("errand", "work", place="dead")[0]
    engine.redrive("errand", "work", job, actor="ann", reason="fixed")
    follow()
    assert FailedJob.objects.filter(open=True).count() == 1
    (again,) = engine.take("errand", "work", "w")
    engine.fail(again, "boom 2", kind="ValueError", retry=False)
    follow()
    assert FailurePart.objects.get().count == 3
    assert FailedJob.objects.filter(open=True).count() == 2


def test_deaths_that_instances_handle_are_counted_and_are_not_open(die, follow, engine):
    engine.publish(errand())  # onError leads to Failed
    die("a", "b")
    assert len(engine.jobs("errand", "work", place="handled")) == 2
    follow()
    follow()
    assert (FailurePart.objects.get().count, FailedJob.objects.filter(open=True).count()) == (2, 0)
    engine.publish(stuck() | {"description": "second"})
    die("c", "d")
    follow()
    engine.fire("errand", "c", "abandon")
    follow()
    assert (FailurePart.objects.get().count, FailedJob.objects.filter(open=True).count()) == (4, 1)


def test_a_resolved_group_that_fails_again_is_a_regression_with_both_moments(die, follow, engine):
    die("a")
    follow()
    resolved = engine.emitted_logs().now()
    FailureGroup.objects.update(state="resolved", resolved_at=resolved)
    follow()
    assert only_group().state == "resolved"
    while engine.emitted_logs().now() <= resolved:
        pass
    die("b")
    follow()
    group = only_group()
    assert group.is_regression
    assert group.resolved_at == resolved < group.regressed_at


def test_a_muted_group_wakes_with_a_new_version(die, follow, engine):
    die("a")
    follow()
    FailureGroup.objects.update(state="muted", muted_versions={"errand": [1]})
    die("b")
    follow()
    assert only_group().state == "muted"
    engine.publish(stuck(timeout="5s"))
    die("c")
    follow()
    assert (only_group().state, only_group().unmuted_by) == ("open", "version 2 of errand")


def test_messages_of_a_machine_with_sensitive_fields_are_not_kept(engine, follow, transactional_db):
    context = {"type": "object", "properties": {"card": {"type": "string", "sensitive": True}}}
    engine.publish(stuck() | {"context": context})
    engine.create("errand", "a", data={"card": "visa gold"})
    engine.fire("errand", "a", "start")
    (job,) = engine.take("errand", "work", "w")
    engine.fail(job, "card visa gold refused", kind="Refused", trace="visa gold", retry=False)
    follow()
    assert (only_group().shape, only_group().kind) == ("", "Refused")
    kept = [list(model.objects.values()) for model in (FailureGroup, FailurePart, FailedJob, FailureHour)]
    assert "visa" not in json.dumps(kept)


@pytest.mark.parametrize("message", ["\0", "\u202e<script>", "🔥" * 500, "%s {} \\", "'; DROP TABLE"])
def test_hostile_messages_are_grouped_like_others(die, follow, message):
    die("a", error=message, kind="E\nvil")
    follow()
    assert FailurePart.objects.get().count == 1
    assert only_group().kind == "E vil"


def test_many_shapes_of_one_exception_share_a_group(die, follow, monkeypatch):
    monkeypatch.setattr(recording, "MAX_SHAPES", 2)
    for word in ("one", "two", "three", "four"):
        die(word, error=f"it is {word}")
    follow()
    assert sorted(FailureGroup.objects.values_list("shape", flat=True)) == [
        "(other messages)",
        "it is one",
        "it is two",
    ]
    assert FailurePart.objects.get(group__shape="(other messages)").count == 2
