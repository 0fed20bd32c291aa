"""What duties ask where nothing happens: no more of many machines than of few."""

import itertools

import pytest

from machines.duties import DUTIES, make_exclusive_duties, make_shared_duties
from machines.engine.jobs import wakeups
from machines.engine.search import survey
from machines.worker.duties import engine_duties
from machines.worker.options import Options
from tests.engine.builders import errand

FEW, MANY = 3, 20  # machines


@pytest.fixture
def count_commands(engine):
    """Commands that a call has the server run, those inside functions included."""

    def count(call):
        def read():
            stats = engine.client.info("commandstats")
            return sum(row["calls"] for name, row in stats.items() if name not in ("cmdstat_info", "cmdstat_ping"))

        before = read()
        call()
        return read() - before

    return count


def test_every_duty_is_among_them(engine):
    assert set(make_exclusive_duties(engine, Options())) == set(DUTIES)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", [*DUTIES, "reconcile", "row projection", "schedule declarations", "webhook pump"])
def test_a_duty_asks_no_more_of_many_idle_machines_than_of_few(engine, count_commands, monkeypatch, name):
    monkeypatch.setattr(wakeups, "SKEW_MS", 0)
    monkeypatch.setattr(survey, "SETTLED_MS", 0)
    monkeypatch.setattr(engine_duties, "REREAD", 0.0)
    numbers, asked = itertools.count(), {}
    for machines in (FEW, MANY):
        while len(engine.machines()) < machines:
            machine = f"errand-{next(numbers)}"
            engine.publish(errand() | {"id": machine})
            engine.create(machine, "one")
        duty = (make_exclusive_duties(engine, Options()) | make_shared_duties(engine))[name]
        roots = list(engine.wakeups.roots(engine.machines()))
        touched = engine.wakeups.memory.find_touched
        since = touched(roots, 0)[0]
        passes = 0
        while passes < 3 or touched(roots, since)[1]:
            since, passes = touched(roots, since)[0], passes + 1
            while duty.run_once():
                pass
        asked[machines] = count_commands(duty.run_once)
    assert asked[MANY] <= asked[FEW] + 2, asked  # a repeated reading of the clock, or of the list of growing machines
