"""The way from one version to the next and back on a cluster: compare, plan, try, move, replay, figures, back."""

from __future__ import annotations

import secrets

import pytest

from machines.engine import Engine
from tests.engine.connection import clusters

FIRST = {
    "id": "versioned",
    "initial": "Open",
    "context": {"type": "object", "properties": {"total": {"type": "integer", "default": 2}}},
    "states": {
        "Open": {"on": {"pay": "Paying"}},
        "Paying": {"invoke": {"id": "charge", "src": "charge.versioned", "onDone": "Done"}, "after": {"1h": "Open"}},
        "Stuck": {},
        "Done": {"type": "final"},
    },
}
SECOND = FIRST | {
    "context": {
        "type": "object",
        "properties": {"total": {"type": "integer", "default": 2}, "cents": {"type": "integer"}},
    },
    "states": {
        "Open": {"on": {"pay": "Charging"}},
        "Charging": {"invoke": {"id": "charge", "src": "charge.versioned", "onDone": "Done"}, "after": {"1h": "Open"}},
        "Done": {"type": "final"},
    },
}
COUNT = 48


def read(engine, ids):
    return [(one.version, one.state, one.data, one.entered, one.jobs) for one in engine.get_many("versioned", ids)]


@pytest.fixture
def engine(nodes):
    engine = Engine.from_url(clusters.url_of(nodes), prefix=f"t{secrets.token_hex(4)}:", partitions=12)
    yield engine
    engine.client.close()


def test_a_fleet_in_many_partitions_goes_to_another_version_and_back(engine):
    engine.publish(FIRST)
    assert engine.count_partitions("versioned") == 12
    ids = [f"v:{number}" for number in range(COUNT)]
    for number, id in enumerate(ids):
        engine.create("versioned", id)
        if number % 2:
            engine.fire("versioned", id, "pay")
    engine.force("versioned", ids[0], "Stuck", actor="ann", reason="a test")
    assert len({engine._catalog.partition("versioned", id).root for id in ids}) > 6
    engine.publish(SECOND)
    assert [one.verb for one in engine.diff("versioned", 1, 2).changes if one.kind == "state"]
    plan = engine.plan("versioned", 2, states={"Paying": "Charging"}, data={"cents": "total * 100"})

    before = read(engine, ids)
    tried = engine.dry_run(plan, share=1)
    assert tried.total == sum(one.count for one in tried.classes) == COUNT
    assert [(one.id, one.code) for one in tried.refused] == [(ids[0], "SB610")]
    assert read(engine, ids) == before

    told = engine.replay("versioned", 2, states={"Paying": "Charging"})
    assert [(one.event, one.examples) for one in told.divergences] == [("(force)", (ids[0],))]
    assert told.steps == COUNT + COUNT // 2 + 1

    moved = engine.migrate(plan, actor="ann", reason="a test")
    assert (moved.moved, [one.id for one in moved.refused]) == (COUNT - 1, [ids[0]])
    assert [(one.version, one.instances) for one in engine.version_figures("versioned")] == [(1, 1), (2, COUNT - 1)]
    after = read(engine, ids[1:])
    assert {(number, state) for number, state, *_ in after} == {(2, "Open"), (2, "Charging")}
    assert {data["cents"] for _, _, data, *_ in after} == {200}
    assert [one[3:] for one in after] == [one[3:] for one in before[1:]]  # times of entry and jobs stay
    again = engine.migrate(plan, actor="ann", reason="a test")
    assert (again.moved, again.already) == (0, COUNT - 1)

    back = engine.migrate(plan.inverse(), actor="ann", reason="wrong")
    assert (back.moved, back.refused) == (COUNT - 1, [])
    assert read(engine, ids) == before
    assert [step.event for step in engine.history("versioned", ids[1])][:2] == ["(migrate)", "(migrate)"]
