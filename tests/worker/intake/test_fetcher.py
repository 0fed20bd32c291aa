"""Which queues are asked, and when."""

from __future__ import annotations

import pytest

from machines.engine import Engine
from machines.worker.intake.bell_listener import BellListener
from machines.worker.intake.fetcher import BUSY_HOLD, NAMES, REFRESH, Fetcher, QueueWaiter
from machines.worker.intake.served_queues import ServedQueue, ServedQueues
from tests.installation.processes import eventually
from tests.worker import builders
from tests.worker.builders import Running, drain, registry_of


class Counting(Engine):
    """Notes which queues are taken from."""

    def __init__(self, engine):
        super().__init__(engine.client, prefix=engine.keys.prefix)
        self.asked = []

    def take(self, machine, queue, worker, **given):
        self.asked.append(queue)
        return super().take(machine, queue, worker, **given)


@pytest.fixture
def counting(engine):
    return Counting(engine)


@pytest.fixture
def fetcher(counting):
    """Makes a fetcher whose clock stands still until it is set."""

    listeners = []

    def make(registry, only=()):
        served_queues, clock = ServedQueues(counting, registry, only), [0.0]
        listeners.append(BellListener(counting))
        waiter = QueueWaiter(listeners[-1], 0.5)
        fetcher = Fetcher(counting, served_queues, waiter, "alice", rescan=60.0, clock=lambda: clock[0])
        fetcher.clock, fetcher.served_queues, fetcher.waiter = clock, served_queues, waiter
        fetcher.look()  # it gets to know the machines
        listeners[-1].start()
        eventually(lambda: waiter.hears, "it hears the bells")
        waiter.collect()  # what it was told of the time before
        fetcher.rescan()
        return fetcher

    yield make
    for listener in listeners:
        listener.stop()


def test_several_queues_share_the_room(engine, fetcher):
    for name in "abc":
        engine.publish(builders.errand(name, queue=name))
        for number in range(10):
            engine.create(name, f"{name}{number}")
    fetcher = fetcher(registry_of(run=print))
    fetcher.look()
    assert sorted(job.queue for job in fetcher.fetch(6)) == ["a", "a", "b", "b", "c", "c"]
    assert sorted(job.queue for job in fetcher.fetch(1) + fetcher.fetch(1) + fetcher.fetch(1)) == ["a", "b", "c"]


def test_an_empty_queue_is_not_asked_again_until_its_bell_rings(engine, errand, fetcher, counting):
    errand("e1")
    fetcher = fetcher(registry_of(run=print))
    fetcher.look()
    assert len(fetcher.fetch(4)) == 1
    asked = len(counting.asked)
    for _ in range(3):
        fetcher.wait()
        assert fetcher.fetch(4) == []
    assert len(counting.asked) == asked
    errand("e2")
    fetcher.wait()
    assert [job.instance for job in fetcher.fetch(4)] == ["e2"]


def test_a_queue_with_a_rate_is_asked_again_when_the_rate_allows_it(engine, errand, fetcher, counting):
    errand("e1")
    errand("e2")
    engine.limit("errand", "errands", rate="1/s", actor="alice", reason="gently")
    fetcher = fetcher(registry_of(run=print))
    fetcher.look()
    assert len(fetcher.fetch(4)) == 1
    counting.asked.clear()
    fetcher.look()
    assert (fetcher.fetch(4), counting.asked) == ([], [])
    fetcher.clock[0] += 1.1
    assert fetcher.look()
    fetcher.fetch(4)
    assert counting.asked == ["errands"]


def test_a_worker_keeps_to_a_rate_without_being_rung(engine, errand):
    for number in range(3):
        errand(f"e{number}")
    engine.limit("errand", "errands", rate="20/s", actor="alice", reason="gently")
    with Running(engine, registry_of(run=print), block=30, rescan=30):
        eventually(lambda: engine.counts("errand")["done"] == 3, "all are done, one after the other")


def test_a_paused_queue_is_left_alone_until_it_is_resumed(engine, errand, fetcher, counting):
    errand("e1")
    engine.pause("errand", "errands", actor="alice", reason="a fault")
    fetcher = fetcher(registry_of(run=print))
    fetcher.look()
    assert fetcher.fetch(4) == []
    counting.asked.clear()
    fetcher.clock[0] += 2 * BUSY_HOLD
    fetcher.wait()
    assert (fetcher.fetch(4), counting.asked) == ([], [])
    engine.resume_queue("errand", "errands", actor="alice", reason="it is mended")
    fetcher.wait()
    assert [job.instance for job in fetcher.fetch(4)] == ["e1"]


@pytest.mark.parametrize("only", ["a", "one/a"])
def test_it_can_be_told_a_queue_of_all_machines_or_of_one(engine, fetcher, only):
    for machine in ("one", "two"):
        for queue in ("a", "b"):
            engine.publish(builders.errand(machine, queue=queue))
    fetcher = fetcher(registry_of(run=print), only=[only])
    fetcher.look()
    expected = [ServedQueue("one", "a"), ServedQueue("two", "a")] if only == "a" else [ServedQueue("one", "a")]
    assert fetcher.served_queues.served == expected


def test_a_queue_called_like_a_handler_is_heard_though_nothing_feeds_it(engine, errand, fetcher):
    engine.publish(builders.errand())
    fetcher = fetcher(registry_of(run=print, tell=print))
    fetcher.look()
    assert fetcher.served_queues.served == [ServedQueue("errand", "errands")]
    engine.enqueue("errand", "tell", "something")
    fetcher.wait()
    assert [job.payload for job in fetcher.fetch(4)] == ["something"]
    fetcher.clock[0] += NAMES
    fetcher.look()
    assert ServedQueue("errand", "tell") in fetcher.served_queues.served


def test_a_queue_nothing_feeds_is_served_when_it_holds_a_job_for_a_handler_here(engine, errand, fetcher):
    engine.publish(builders.errand())
    engine.enqueue("errand", "run", "by hand", queue="strange")
    engine.enqueue("errand", "elsewhere", queue="stranger")
    fetcher = fetcher(registry_of(run=print))
    fetcher.look()
    assert fetcher.served_queues.served == [ServedQueue("errand", "errands"), ServedQueue("errand", "strange")]
    assert [job.payload for job in fetcher.fetch(4)] == ["by hand"]


def test_a_queue_that_is_named_is_served_whatever_it_holds(engine, errand):
    engine.publish(builders.errand())
    engine.enqueue("errand", "run", queue="strange")
    worker = drain(engine, registry_of(run=print), queues=("errand/strange",))
    assert worker.summary() == "1 completed"


def test_a_machine_published_later_is_rung_for(engine, fetcher):
    fetcher = fetcher(registry_of(run=print))
    fetcher.look()
    engine.publish(builders.errand())
    engine.create("errand", "e1")
    fetcher.wait()
    assert fetcher.look()
    assert [job.instance for job in fetcher.fetch(4)] == ["e1"]


def test_should_that_be_missed_it_is_found_a_little_later(engine, fetcher):
    fetcher = fetcher(registry_of(run=print))
    fetcher.look()
    engine.publish(builders.errand())
    engine.create("errand", "e1")
    fetcher.waiter.wait()
    fetcher.waiter.collect()
    assert not fetcher.look()
    fetcher.clock[0] += REFRESH
    assert fetcher.look()


def test_a_ring_reaches_each_worker_so_that_one_that_stops_need_not_pass_it_on(engine, errand, fetcher):
    one, other = fetcher(registry_of(run=print)), fetcher(registry_of(run=print))
    for each in (one, other):
        each.look()
    errand("e1")
    one.wait()
    one.pass_on()
    assert one.fetch(4) == []
    other.wait()
    assert other.look()
    assert [job.instance for job in other.fetch(4)] == ["e1"]


def test_only_the_partition_that_rang_is_asked(own_server):
    engine = Engine.from_url(own_server.url, partitions=8)
    engine.publish(builders.errand())
    listener = BellListener(engine)
    waiter = QueueWaiter(listener, 0.5)
    fetcher = Fetcher(engine, ServedQueues(engine, registry_of(run=print)), waiter, "alice", rescan=60.0)
    fetcher.look()
    listener.start()
    eventually(lambda: waiter.hears, "it hears the bells")
    fetcher.look()
    before = engine.client.info("commandstats")["cmdstat_fcall"]["calls"]
    engine.create("errand", "e1")
    fetcher.wait()
    assert fetcher.look()
    assert [job.instance for job in fetcher.fetch(4)] == ["e1"]
    assert engine.client.info("commandstats")["cmdstat_fcall"]["calls"] - before == 2, "a create and a take"
    listener.stop()
    engine.client.close()


def test_a_ring_that_was_missed_is_found_in_the_servers_memory(engine, errand, fetcher):
    fetcher = fetcher(registry_of(run=print))
    fetcher.look()
    errand("e1")
    fetcher.waiter.wait()
    fetcher.waiter.collect()  # nobody looks at it
    assert not fetcher.look()
    fetcher.clock[0] += 60.0
    assert fetcher.look()
    assert [job.instance for job in fetcher.fetch(4)] == ["e1"]


def test_a_cut_connection_is_a_gap_after_which_everything_is_looked_at(engine, errand, fetcher):
    fetcher = fetcher(registry_of(run=print))
    fetcher.look()
    (client,) = [row for row in engine.client.client_list() if int(row.get("ssub", 0)) > 0 and "P" in row["flags"]][-1:]
    engine.client.client_kill_filter(_id=client["id"])
    errand("e1")
    eventually(lambda: fetcher.look(), "it looks after the gap")
    assert [job.instance for job in fetcher.fetch(4)] == ["e1"]
