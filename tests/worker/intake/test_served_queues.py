"""Which queues a worker serves."""

from __future__ import annotations

import logging

import pytest

from machines.engine import Engine, errors
from machines.worker.execution.in_flight import InFlightJobs
from machines.worker.intake.served_queues import ServedQueue, ServedQueues
from machines.worker.lease_renewal import InfoBuilder
from tests.worker.builders import errand, registry_of


def test_it_serves_the_queues_it_has_a_handler_for(engine):
    engine.publish(errand("one", src="known", queue="a"))
    engine.publish(errand("two", src="unknown", queue="b"))
    served_queues = ServedQueues(engine, registry_of(known=print))
    assert served_queues.refresh() is True
    assert served_queues.served == [ServedQueue("one", "a")]


def test_it_can_be_told_to_serve_some_queues_only(engine):
    for queue in ("a", "b", "c"):
        engine.publish(errand(f"on_{queue}", queue=queue))
    served_queues = ServedQueues(engine, registry_of(run=print), only=["a", "c"])
    served_queues.refresh()
    assert served_queues.served == [ServedQueue("on_a", "a"), ServedQueue("on_c", "c")]


def test_a_queue_that_nothing_feeds_is_pointed_out(engine, caplog):
    engine.publish(errand())
    ServedQueues(engine, registry_of(run=print), only=["erands"]).refresh()
    assert "no published machine feeds a queue called erands" in caplog.text


def test_a_machine_published_later_is_picked_up(engine):
    served_queues = ServedQueues(engine, registry_of(run=print))
    assert served_queues.refresh() is False
    engine.publish(errand())
    assert served_queues.refresh() is True
    assert served_queues.served == [ServedQueue("errand", "errands")]
    assert served_queues.refresh() is False


def test_the_queues_of_older_versions_are_still_served(engine):
    engine.publish(errand(queue="old"))
    engine.publish(errand(queue="new"))
    served_queues = ServedQueues(engine, registry_of(run=print))
    served_queues.refresh()
    assert served_queues.served == [ServedQueue("errand", "new"), ServedQueue("errand", "old")]


def test_a_machine_that_is_invoked_is_no_work_of_a_handler(engine):
    engine.publish({"id": "other", "initial": "A", "states": {"A": {}}})
    engine.publish({"id": "boss", "initial": "A", "states": {"A": {"invoke": {"src": "machine:other"}}}})
    served_queues = ServedQueues(engine, registry_of(run=print))
    served_queues.refresh()
    assert (served_queues.served, served_queues.machines) == ([], ["boss", "other"])


def test_actions_inside_others_feed_queues_too(engine):
    def work(queue):
        return {"enqueue": {"src": "run", "queue": queue}}

    loop = {"foreach": {"in": "[1]", "item": "n", "do": [{"if": [{"guard": "n > 0", "do": [work("looped")]}]}]}}
    inner = {
        "initial": {"target": "B", "actions": [work("begun")]},
        "states": {"B": {"entry": {"block": [work("blocked")]}}},
    }
    always = {"always": {"target": "A", "guard": "n > 5", "actions": work("always")}, "exit": work("left")}
    states = {"A": {"on": {"go": {"target": "C", "actions": loop}}}, "C": inner | always}
    engine.publish({"id": "deep", "initial": "A", "context": {"n": 0}, "states": states})
    served_queues = ServedQueues(engine, registry_of(run=print))
    served_queues.refresh()
    assert [route.queue for route in served_queues.served] == ["always", "begun", "blocked", "left", "looped"]


def test_queues_that_actions_feed_are_served_too(engine):
    definition = {
        "id": "fan",
        "initial": "todo",
        "states": {
            "todo": {"on": {"go": {"target": "out", "actions": {"enqueue": {"src": "offer", "queue": "offers"}}}}},
            "out": {"entry": {"enqueue": {"src": "tell"}}},
        },
    }
    engine.publish(definition)
    served_queues = ServedQueues(engine, registry_of(offer=print, tell=print))
    served_queues.refresh()
    assert served_queues.served == [ServedQueue("fan", "offers"), ServedQueue("fan", "tell")]


def test_a_handler_that_is_missing_here_is_reported_once(engine, caplog):
    engine.publish(errand(src="elsewhere"))
    served_queues = ServedQueues(engine, registry_of(run=print))
    with caplog.at_level(logging.WARNING):
        served_queues.refresh()
        engine.publish(errand("another"))
        served_queues.refresh()
    reports = [record.message for record in caplog.records if "elsewhere" in record.message]
    assert reports == ["no handler here for elsewhere on errand/errands: left for other workers"]


def test_the_workers_row_names_what_is_missing(engine):
    engine.publish(errand(src="elsewhere"))
    served_queues = ServedQueues(engine, registry_of(run=print))
    served_queues.refresh()
    row = InfoBuilder("w1", served_queues, InFlightJobs(1), version="").now()
    assert (row.note, row.lacking) == ("no handler here for elsewhere", {"errand/errands": ["elsewhere"]})


class Interrupted(Engine):
    """Redis goes away between the list of versions and the first definition."""

    away = True

    def definition(self, machine, version=None):
        if self.away:
            raise errors.EngineUnavailable("gone in this moment")
        return super().definition(machine, version)


def test_a_definition_that_an_outage_kept_from_being_read_is_read_later(engine):
    engine.publish(errand())
    interrupted = Interrupted(engine.client, prefix=engine.keys.prefix)
    served_queues = ServedQueues(interrupted, registry_of(run=print))
    with pytest.raises(errors.EngineUnavailable):
        served_queues.refresh()
    interrupted.away = False
    assert served_queues.refresh() is True
    assert served_queues.served == [ServedQueue("errand", "errands")]


def test_a_machine_wiped_and_published_anew_under_the_same_number_is_read_again(engine):
    engine.publish(errand(queue="old"))
    served_queues = ServedQueues(engine, registry_of(run=print))
    served_queues.refresh()
    for key in engine.client.scan_iter(match=f"{engine.keys.prefix}*"):
        engine.client.delete(key)
    engine.publish(errand(queue="new"))
    assert served_queues.refresh() is True
    assert served_queues.served == [ServedQueue("errand", "new")]
