"""Jobs leased to a worker that does not know of them."""

from __future__ import annotations

import pytest

from machines.engine import Engine, errors
from machines.worker.intake.poll_loop import Reclaim
from machines.worker.intake.served_queues import ServedQueue
from tests.installation.processes import eventually
from tests.worker import builders
from tests.worker.builders import Running, places, registry_of


class Mute(Engine):
    """The answer to the first take is lost."""

    mute = True

    def take(self, *given, **more):
        taken = super().take(*given, **more)
        if taken and self.mute:
            self.mute = False
            raise errors.EngineUnavailable("the answer was lost")
        return taken


def test_they_go_back_without_losing_an_attempt_and_running_ones_stay(engine, errand):
    for number in range(4):
        errand(f"e{number}")
    known = engine.take("errand", "errands", "alice", count=1)[0]
    engine.take("errand", "errands", "alice", count=2)
    engine.take("errand", "errands", "bob", count=1)
    reclaim = Reclaim(engine, "alice", lambda machine, id: id == known.id)
    assert reclaim.hand_back([ServedQueue("errand", "errands")]) == 2
    assert places(engine) == {"ready": 2, "leased": 2}
    assert {job.attempt for job in engine.jobs("errand", "errands")} == {0}
    assert engine.complete(known).state == "done"


@pytest.mark.parametrize("count", [1, 30])
def test_a_worker_does_them_before_their_leases_end(engine, errand, count):
    for number in range(count):
        errand(f"e{number}")
    attempts = []
    mute = Mute(engine.client, prefix=engine.keys.prefix)
    with Running(mute, registry_of(run=lambda job: attempts.append(job.attempt))):
        eventually(lambda: engine.counts("errand")["done"] == count, "all are done")
    assert attempts == [1] * count


def test_an_outage_while_a_worker_looks_for_them_ends_no_taking(engine, errand):
    """The look is behind a round that Redis answered: it may be away again by then."""

    class Away(Mute):
        away = True

        def jobs(self, *given, **more):
            if self.away:
                self.away = False
                raise errors.EngineUnavailable("busy running a script", retry_safe=True)
            return super().jobs(*given, **more)

    for number in range(3):
        errand(f"e{number}")
    attempts = []
    away = Away(engine.client, prefix=engine.keys.prefix)
    with Running(away, registry_of(run=lambda job: attempts.append(job.attempt))):
        eventually(lambda: engine.counts("errand")["done"] == 3, "all are done")
        assert not away.away
    assert attempts == [1] * 3


def test_a_partition_whose_answer_is_lost_behind_jobs_of_another_is_asked_for_them(redis_url, prefix):
    engine, mute = (Engine.from_url(redis_url, prefix=prefix, partitions=2) for _ in range(2))
    engine.publish(builders.errand())
    homes = {engine._catalog.partition("errand", f"e{number}").root: f"e{number}" for number in range(50)}
    for id in homes.values():
        engine.create("errand", id, {"what": "an errand"})
    call, gave = mute._caller.call, []

    def lose_second(function, root, *given):
        reply = call(function, root, *given)
        if function == "sb_take" and len(reply) > 3:
            gave.append(root)
            if len(gave) == 2:
                raise errors.EngineUnavailable("the answer was lost")
        return reply

    mute._caller.call = lose_second
    attempts = []
    with Running(mute, registry_of(run=lambda job: attempts.append(job.attempt)), concurrency=4):
        eventually(lambda: engine.counts("errand")["done"] == 2, "both are done")
    assert attempts == [1, 1]
    assert gave[1:] == [gave[1]] * 2, "the second is asked once more"
    for each in (engine, mute):
        each.client.close()


def test_an_answer_that_is_lost_is_said_also_where_another_partition_refuses(redis_url, prefix):
    engine = Engine.from_url(redis_url, prefix=prefix, partitions=2)
    engine.publish(builders.errand())
    damaged, other = engine._catalog.partitions("errand")
    engine.client.set(f"{damaged.root}:q:errands", "no sorted set")
    call = engine._caller.call

    def lose(function, root, *given):
        reply = call(function, root, *given)
        if (function, root) == ("sb_take", other.root):
            raise errors.EngineUnavailable("the answer was lost")
        return reply

    engine._caller.call = lose
    for _ in range(20):  # in any order of the partitions
        with pytest.raises(errors.EngineUnavailable):
            engine.take("errand", "errands", "w")
    engine.client.close()
