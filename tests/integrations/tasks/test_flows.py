"""Chains, groups and chords of tasks are statecharts, and nothing else runs them."""

from __future__ import annotations

import json

import pytest
from django.db import transaction
from django.urls import reverse

from machines.catalog.builtin_machines import FLOW, find_reserved
from machines.engine.definitions import compile_definition
from machines.tasks import PREVIOUS, call, chain, chord, get_flow, group
from machines.testing.job_runner import JobRunner
from machines.worker.registry import ForeignJob, handlers
from tests.engine.builders import publish
from tests.installation.processes import eventually
from tests.integrations.tasks.framework import TaskResultDoesNotExist, TaskResultStatus
from tests.pages.reading import read


def finish(engine, flow):
    machine = flow.id.partition("/")[0]

    def is_finished():
        JobRunner(engine, None).run([machine], None, 100, False)
        flow.refresh()
        return flow.is_finished

    eventually(is_finished, "the flow has ended")
    return flow


def test_a_chain_passes_the_result_on_to_where_previous_stands(engine, tasks):
    flow = chain(call(tasks.add, 1, 2), call(tasks.echo, "x", PREVIOUS, by=PREVIOUS)).enqueue()
    assert flow.status == TaskResultStatus.READY
    with pytest.raises(ValueError, match="has no result: it is READY"):
        flow.return_value  # noqa: B018
    assert finish(engine, flow).return_value == [["x", 3], {"by": 3}]
    assert get_flow(flow.id).return_value == flow.return_value


def test_a_chord_calls_its_callback_with_the_results_in_order(engine, tasks):
    parts = group(
        call(tasks.add, 1), chain(call(tasks.add, 10), call(tasks.add, PREVIOUS, 10)), call(tasks.add_async, 2, 2)
    )
    flow = chain(chord(parts, call(tasks.echo, PREVIOUS)), call(tasks.echo, PREVIOUS, 0)).enqueue()
    assert finish(engine, flow).return_value == [[[[[2, 21, 4]], {}], 0], {}]


def test_a_group_alone_and_one_in_a_group_give_lists(engine, tasks):
    inner = group(call(tasks.add, PREVIOUS, 1), call(tasks.add, PREVIOUS, 2))
    flow = chain(call(tasks.add, 0, 0), group(inner, call(tasks.add, PREVIOUS))).enqueue()
    assert finish(engine, flow).return_value == [[1, 2], 1]
    assert finish(engine, group(call(tasks.add, 5)).enqueue()).return_value == [6]
    assert finish(engine, call(tasks.note, "alone").enqueue()).return_value is None


def test_flows_of_one_form_share_a_machine_whatever_their_arguments(engine, tasks):
    first, second = (chain(call(tasks.add, n, n), call(tasks.add, PREVIOUS)).enqueue() for n in (1, 2))
    other = chain(call(tasks.add, 1, 1), call(tasks.add, 1)).enqueue()
    machines = [flow.id.partition("/")[0] for flow in (first, second, other)]
    assert machines[0] == machines[1] != machines[2]
    assert engine.versions(machines[0]) == [1]
    assert finish(engine, second).return_value == 5
    assert list(engine.definition(machines[0])["states"]) == ["add", "add 2", "Done"]


def test_a_failed_task_leaves_the_flow_where_it_is_and_a_retry_goes_on(engine, tasks):
    flow = finish(engine, chain(call(tasks.fail.using(backend="once")), call(tasks.echo, PREVIOUS)).enqueue())
    assert (flow.status, [error.exception_class_path for error in flow.errors]) == (
        TaskResultStatus.FAILED, ["builtins.ValueError"],
    )  # fmt: skip
    machine, _, id = flow.id.partition("/")
    assert engine.get(machine, id).state == "fail"
    assert engine.redrive(machine, "default", actor="sue", reason="mended") == 1
    flow.refresh()
    assert (flow.status, flow.errors) == (TaskResultStatus.READY, [])


def test_repairs_versions_and_time_travel_work_on_flows(engine, tasks, admin_client):
    flow = finish(engine, chain(call(tasks.fail.using(backend="once")), call(tasks.echo, PREVIOUS)).enqueue())
    machine, _, id = flow.id.partition("/")
    publish(engine, engine.definition(machine) | {"description": "of the next version"})
    assert engine.migrate(engine.plan(machine, 2)).moved == 1
    engine.skip(machine, id, engine.waits(machine, id)[0].invoke, "by hand", actor="sue", reason="it was done by hand")
    assert finish(engine, flow).return_value == [["by hand"], {}]
    assert engine.get(machine, id).version == 2
    assert (found := engine.replay(machine, 2)).divergences == []
    assert found.steps > 0
    page = reverse("signalbox:instance", args=[machine, id])
    then, now = (admin_client.get(page, {"at": revision}) for revision in (1, engine.get(machine, id).revision))
    assert then.status_code == now.status_code == 200
    assert "Viewing a past revision: 1" in read(then).one("div", data_region="past").text
    assert [part["data-state"] for part in read(now).one("svg", class_="sb-diagram").all(class_="current")] == ["Done"]


def test_options_of_the_backend_hold_for_the_jobs_of_a_flow(engine, tasks):
    flow = call(tasks.note, "x").enqueue()
    machine = flow.id.partition("/")[0]
    (job,) = engine.take(machine, "mail", "w1")
    assert (job.attempts, job.priority, job.stop) == (2, 6, ("ResultRefused",))


def test_a_result_that_is_no_json_fails_at_once(engine, tasks):
    flow = finish(engine, call(tasks.return_set).enqueue())
    assert flow.status == TaskResultStatus.FAILED
    assert flow.errors[0].exception_class_path == "builtins.TypeError"


LOOP: list = []
LOOP.append(LOOP)


def make_cycle(make, part):
    made = make(part)
    object.__setattr__(made, "parts", (part, made))  # parts are frozen: no call of the interface makes a cycle
    return made


def nest(make, part, depth):
    for _ in range(depth):
        part = make(part)
    return part


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda t: chain(), Exception, "a chain has one part at least"),
        (lambda t: group(call(t.add, 1), t.add), Exception, r"part 2 of the group is .*: write call\(task"),
        (lambda t: call(t.helper), Exception, "call takes a task"),
        (lambda t: chord(call(t.add, 1), call(t.add, 1)), Exception, "chord takes a group and a call"),
        (lambda t: call(t.add, PREVIOUS).enqueue(), Exception, "PREVIOUS as an argument, and nothing is before it"),
        (lambda t: call(t.add, object()).enqueue(), TypeError, "argument 1 is no JSON"),
        (lambda t: call(t.add, LOOP).enqueue(), TypeError, "argument 1 is no JSON"),
        (lambda t: call(t.foreign).enqueue(), Exception, "is no backend of Signalbox"),
        (lambda t: group(*[call(t.add, 1)] * 101).enqueue(), Exception, "a flow has 100 calls at most"),
        (lambda t: nest(group, call(t.add, 1), 16).enqueue(), Exception, "lie 15 deep in one another at most"),
        (lambda t: nest(chain, call(t.add, 1), 5000).enqueue(), Exception, "lie 15 deep in one another at most"),
        (lambda t: make_cycle(chain, call(t.add, 1)).enqueue(), Exception, "15 deep in one another|100 calls at most"),
        (lambda t: make_cycle(group, call(t.add, 1)).enqueue(), Exception, "15 deep in one another|100 calls at most"),
    ],
)
def test_what_no_flow_can_be_is_refused_before_anything_is_written(engine, tasks, make, error, text):
    with pytest.raises(error, match=text):
        make(tasks)
    assert not [name for name in engine.machines() if name.startswith(FLOW)]


def test_a_hundred_calls_in_a_group_end_well(engine, tasks):
    flow = chord(group(*[call(tasks.add, n, 0) for n in range(99)]), call(tasks.echo, PREVIOUS)).enqueue()
    assert finish(engine, flow).return_value == [[list(range(99))], {}]


def test_a_flow_may_be_as_deep_as_a_machine(engine, tasks):
    flow = nest(group, call(tasks.add, 1, 2), 15).enqueue()
    assert json.dumps(finish(engine, flow).return_value) == "[" * 15 + "3" + "]" * 15


def test_a_flow_that_never_was_is_named(engine, tasks):
    for id in ("x", "orders/1", f"{FLOW}0/1"):
        with pytest.raises(TaskResultDoesNotExist):
            get_flow(id)


def test_nobody_else_publishes_under_the_name_of_a_flow(engine, tasks):
    definition = {
        "id": f"{FLOW}mine",
        "initial": "a",
        "states": {"a": {"invoke": {"src": "tests.integrations.tasks.app.tasks.note"}}},
    }
    assert [finding.code for finding in find_reserved(compile_definition(definition))] == ["SB127"]


def test_a_task_runs_for_flows_and_for_no_other_machine(engine, tasks):
    tasks.note.enqueue("a job that may run")
    note = "tests.integrations.tasks.app.tasks.note"
    publish(engine, {"id": "mine", "initial": "a", "states": {"a": {"invoke": {"src": note}}}}, "x")
    (job,) = engine.take("mine", note, "w1")
    with pytest.raises(ForeignJob, match="nothing was done"):
        handlers.get(job.src).check(job)


@pytest.mark.django_db(transaction=True)
def test_a_flow_waits_for_the_commit_where_its_first_task_does(engine, tasks):
    with transaction.atomic():
        flow = call(tasks.add.using(backend="committed"), 1).enqueue()
        assert flow.id == ""
    assert finish(engine, flow).return_value == 2


def test_a_worker_that_runs_finds_the_machine_of_a_new_flow(engine, tasks, start):
    start("worker")
    eventually(lambda: engine.workers(), "the worker has begun")
    flow = chord(group(call(tasks.add, 1), call(tasks.add_async, 1, 1)), call(tasks.echo, PREVIOUS)).enqueue()
    eventually(lambda: flow.refresh() or flow.is_finished, "the flow has ended", 90)
    assert json.dumps(flow.return_value) == "[[[2, 2]], {}]"
