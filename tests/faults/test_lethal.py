"""Work that kills its worker each time."""

import pytest

from tests.installation.processes import eventually

from .audit import audit
from .builders import begin, line
from .processes import LONG

pytestmark = pytest.mark.redis

ATTEMPTS = 3
LETHAL = 2
EACH = 60  # quick jobs between two lethal ones


def test_it_ends_dead_after_its_attempts_and_all_else_is_done(own_engine, workers):
    own_engine.publish(line("lethal", id="killer", lease=500, attempts=ATTEMPTS))
    own_engine.publish(line("quick", lease=500))
    begin(own_engine, ["k"], machine="killer")
    begin(own_engine, (f"i{number}" for number in range(50)))
    supervised = [workers.start()]
    ends = 0

    def over():
        nonlocal ends
        if not supervised[-1].alive:
            ends += 1
            supervised.append(workers.start())
        return own_engine.counts("killer")["failed"] and own_engine.counts("line")["done"] == 50

    eventually(over, "the lethal job is dead and all others are done", 2 * LONG)
    supervised[-1].finish()
    assert 0 < ends <= ATTEMPTS, "fewer where a lease ran out before its worker was dead"
    found = audit(own_engine, "killer")
    assert (found.places, found.states) == ({"handled": 1}, {"failed": 1})
    (dead,) = own_engine.jobs("killer", "jobs", place="handled")
    assert (dead.attempt, dead.kind) == (ATTEMPTS, "LeaseExpired")
    assert own_engine.get("killer", "k").data["why"] == "LeaseExpired"
    assert audit(own_engine, "line").states == {"done": 50}


def test_what_its_worker_had_only_taken_ahead_is_not_buried_with_it(own_engine, workers):
    """Dying costs all that is held an attempt; but a worker that has just begun takes nothing ahead, and none
    does while a job is at work that was tried before: nobody is held at every death."""
    quick, lethal = line("quick", lease=500, attempts=ATTEMPTS * LETHAL), line("lethal", lease=500, attempts=ATTEMPTS)
    own_engine.publish(quick)
    own_engine.publish(lethal)
    for number in range(LETHAL + EACH * (LETHAL + 1)):
        own_engine.create("line", f"i{number}", version=2 if number % (EACH + 1) == EACH else 1)
    supervised = [workers.start(concurrency=1)]

    def over():
        if not supervised[-1].alive:
            supervised.append(workers.start(concurrency=1))
        counts = own_engine.counts("line")
        return counts["failed"] >= LETHAL and not counts["step0"]

    eventually(over, "all jobs are done or dead", 3 * LONG)
    assert audit(own_engine, "line").states == {"failed": LETHAL, "done": EACH * (LETHAL + 1)}
