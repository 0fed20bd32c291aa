"""What a moved instance is measured by, and what an export and an import keep of it."""

from __future__ import annotations

import time

from machines.engine import Engine
from machines.engine.transfer.exporting import Export
from machines.engine.transfer.importing import Import

from ..letters import letters, to_second

MINUTE = 60_000
DESK = {
    "id": "desk",
    "initial": "Open",
    "states": {"Open": {"on": {"take": "Taken"}}, "Taken": {"on": {"drop": "Open"}}},
}
SECOND = DESK | {
    "initial": "Waiting",
    "states": {"Waiting": {"sla": "15m", "on": {"take": "Taken"}}, "Taken": {"sla": "1h", "on": {"drop": "Waiting"}}},
}


def test_service_levels_count_from_the_time_of_entry_that_stays(engine):
    engine.publish(DESK)
    now = int(time.time() * 1000)
    for id, ago in (("old", 40), ("late", 20), ("new", 1)):
        engine.create("desk", id, now=now - ago * MINUTE)
    engine.create("desk", "taken", now=now - 80 * MINUTE)
    engine.fire("desk", "taken", "take", now=now - 50 * MINUTE)
    assert not any(engine.live("desk").breaches.values())
    engine.publish(SECOND)
    plan = engine.plan("desk", 2, states={"Open": "Waiting"})
    assert engine.migrate(plan, actor="ann", reason="a test").moved == 4
    breaches = engine.live("desk").breaches
    assert (breaches["Waiting"], breaches.get("Taken", 0)) == (2, 0)
    assert engine.survey().lives["desk"].breaches == breaches
    engine.fire("desk", "old", "take")
    assert engine.live("desk").breaches["Waiting"] == 1
    engine.migrate(plan.inverse(), actor="ann", reason="a test")
    assert {one.id: one.entered for one in engine.get_many("desk", ["late", "new"])} == {
        "late": now - 20 * MINUTE,
        "new": now - MINUTE,
    }


def test_an_export_keeps_version_and_history_and_the_import_can_go_back(engine, redis_url, prefix, tmp_path):
    ids = letters(engine, 20)
    for id in ids[:8]:
        engine.fire("letter", id, "post")
    plan = to_second(engine)
    assert engine.migrate(plan, actor="ann", reason="a test").moved == 20
    Export(engine.client, engine.keys, "letter", tmp_path / "letters").run()
    other = Engine.from_url(redis_url, prefix=f"{prefix}b")
    try:
        Import(other.client, other.keys, tmp_path / "letters", partitions=3).run()
        there = Engine.from_url(redis_url, prefix=f"{prefix}b")
        for id in ids:
            assert there.get("letter", id).version == 2
            assert there.history("letter", id) == engine.history("letter", id)
        assert there.history("letter", ids[0])[0].payload == {"from": 1, "to": 2, "plan": plan.id}
        assert [(one.version, one.instances) for one in there.version_figures("letter", sample=0)] == [(1, 0), (2, 20)]
        back = there.migrate(plan.inverse(), actor="ann", reason="wrong")
        assert (back.moved, back.refused) == (20, [])
        assert {one.state for one in there.get_many("letter", ids[:8])} == {"posted"}
        there.client.close()
    finally:
        other.client.close()
