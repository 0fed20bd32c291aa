"""The demo's traffic: the same seed, the same story; forever, in bounded space."""

import json

import pytest

from dashboard.demo import traffic
from dashboard.demo.traffic import Traffic
from machines.engine.errors import EngineUnavailable
from tests.installation.processes import ROOT

pytestmark = pytest.mark.redis


@pytest.fixture
def machines(engine, monkeypatch):
    """Both sample machines, with few ids, so that a test sees each more than once."""
    monkeypatch.setattr(traffic, "ACTIVATIONS", 20)
    monkeypatch.setattr(traffic, "DEVICES", 6)
    for name in ("activation", "new_device"):
        engine.publish(json.loads((ROOT / "examples" / f"{name}.json").read_text()))
    return engine


def total(engine, machine: str) -> int:
    return sum(engine.counts(machine).values())


def work_off(engine) -> None:
    """What a worker would do, at once."""
    for queue in ("start", "todo", "provision", "entitlement"):
        for job in engine.take("new_device", queue, "test", count=100):
            engine.complete(job, {"token": "T"})


def test_the_page_is_not_empty_at_the_start(machines):
    assert Traffic(machines, 1).populate() == 20
    counts = machines.counts("activation")
    assert sum(counts.values()) == 20
    assert len([state for state, count in counts.items() if count]) > 1


def test_a_second_start_goes_on_with_what_is_there(machines):
    Traffic(machines, 1).populate()
    assert Traffic(machines, 1).populate() == 0


def test_it_never_makes_more_instances_than_it_has_ids(machines):
    story = Traffic(machines, 1)
    story.populate()
    for _ in range(300):
        story.beat()
        work_off(machines)
    assert total(machines, "activation") == 20
    assert total(machines, "new_device") == 6


def test_it_takes_every_transition_that_needs_no_month_to_pass(machines):
    story = Traffic(machines, 1)
    story.populate()
    for _ in range(400):
        story.beat()
        work_off(machines)
    taken = {key.split(":")[1] for key in machines.live("activation").flow}
    assert taken == {"t1", "t2", "t3", "t4", "t5", "t7"}, "t6 is an activation past its 28 days"
    assert machines.counts("new_device")["end"]


def test_the_same_seed_does_the_same(machines):
    def story(seed: int) -> list[str]:
        for page in machines.find("activation", limit=100).instances:
            machines.delete("activation", page.id)
        traffic_ = Traffic(machines, seed)
        traffic_.populate()
        return [machines.get("activation", traffic.activation_id(number)).state for number in range(20)]

    assert story(7) == story(7)
    assert story(7) != story(8)


def test_an_operator_who_is_quicker_does_not_stop_it(machines):
    story = Traffic(machines, 1)
    story.populate()
    for number in range(20):
        machines.force("activation", traffic.activation_id(number), "Suspended", actor="alice", reason="test")
    assert any(story.beat() for _ in range(20))
    machines.delete("activation", traffic.activation_id(3))
    for _ in range(200):
        story.beat()
    assert total(machines, "activation") == 20


def test_a_device_that_waits_for_a_worker_is_left_alone(machines):
    story = Traffic(machines, 1)
    for _ in range(200):
        story.beat()
    assert machines.counts("new_device")["start"] == 6
    assert {queue: depth["ready"] for queue, depth in machines.queues("new_device").items()}["start"] == 6


def test_redis_going_away_is_for_the_caller_to_wait_out(machines, monkeypatch):
    story = Traffic(machines, 1)

    def away(*_, **__):
        raise EngineUnavailable("away")

    monkeypatch.setattr(machines, "get", away)
    with pytest.raises(EngineUnavailable):
        story.beat()
