"""The product's handlers work for the product's machines alone: each is tried from a foreign machine."""

from __future__ import annotations

import pytest

from machines.catalog import builtin_machines
from machines.engine.errors import LookupFailed
from machines.instances.bulks import BULK, Bulk
from machines.mapreduce import MapReduce
from machines.mapreduce.store import RUN
from machines.testing.job_runner import JobRunner
from machines.worker.registry import ForeignJob, Registry, discover
from tests.cases import for_each
from tests.installation.processes import eventually
from tests.instances.bulks.builders import parcels, previewed
from tests.worker.builders import Running

OWN = sorted(name for name in discover() if discover().get(name).where.startswith("machines."))
"""The handlers that the product registers."""


def intrude(engine, src: str, id: str, queue: str = "") -> None:
    """Create an instance of a foreign machine that invokes a handler of the product; its definition is published past
    the findings."""
    invoke = {"src": src, "queue": queue or src, "onError": "refused", "onDone": "done"}
    states = {"a": {"invoke": invoke}, "refused": {}, "done": {}}
    engine.publish({"id": "intruder", "initial": "a", "context": {"type": "object"}, "states": states})
    engine.create("intruder", id)


def test_the_handlers_of_the_product_are_found():
    assert {"bulk.remove", "map_reduce.remove", "schedules.work"} <= set(OWN)


@for_each("name", OWN)
def test_each_names_its_machine_and_its_name_is_reserved(name):
    assert discover().get(name).machine in builtin_machines.NAMES
    assert builtin_machines.is_reserved(name)


@pytest.mark.parametrize("name", OWN)
def test_none_takes_a_job_of_a_foreign_machine(engine, name):
    intrude(engine, name, "i-1")
    (ran,) = JobRunner(engine, None).run(["intruder"], None, 10, False)
    assert (ran.outcome, type(ran.error)) == ("dead", ForeignJob)
    assert engine.get("intruder", "i-1").state == "refused"


def test_a_worker_refuses_it_at_once(engine):
    """The job waits on a queue of a name of its own: the worker finds it by its definition."""
    intrude(engine, "schedules.work", "i-1", queue="mine")
    with Running(engine, discover()):
        eventually(lambda: engine.get("intruder", "i-1").state == "refused", "the job is refused")
    (job,) = engine.jobs("intruder", "mine", place="handled")
    assert (job.kind, job.attempt) == ("ForeignJob", 1)
    assert "takes jobs of the machine 'schedules' alone" in job.error


def test_a_bulk_is_not_removed_by_a_machine_that_calls_its_instance_like_it(engine):
    parcels(engine, 2)
    bulk = previewed(engine)
    intrude(engine, "bulk.remove", bulk.id)
    JobRunner(engine, None).run(["intruder"], None, 10, False)
    assert Bulk(engine, bulk.id).get().state == "previewed"
    assert len(Bulk(engine, bulk.id).rows()) == 2
    assert engine.get(BULK, bulk.id).revision == bulk.get().revision


def test_a_run_is_not_removed_by_a_machine_that_calls_its_instance_like_it(engine):
    run = MapReduce("totals", engine=engine, map_function="sum", reduce_function="sum")
    run.add_items([1, 2])
    intrude(engine, "map_reduce.remove", run.id)
    JobRunner(engine, None).run(["intruder"], None, 10, False)
    assert engine.get(RUN, run.id).state == "collecting"


def test_a_job_without_an_instance_is_refused_as_well(engine):
    engine.publish({"id": "intruder", "initial": "a", "states": {"a": {}}})
    engine.enqueue("intruder", "bulk.remove")
    with Running(engine, discover()):
        eventually(lambda: engine.jobs("intruder", "bulk.remove", place="dead"), "the job is refused")
    with pytest.raises(LookupFailed):
        engine.get(BULK, "x")


def test_queues_of_its_name_are_its_own_machine_s(engine):
    registry = Registry()
    registry.handler("own.work", machine="own")(print)
    assert registry.claims("own", "own.work")
    assert not registry.claims("other", "own.work")
    assert registry.list_queues(["own", "other"]) == {("own", "own.work")}
