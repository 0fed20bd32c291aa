"""Timers of two regions that become one: the earlier one stays, and fires once."""

from __future__ import annotations

T0, MINUTE = 1_700_000_000_000, 60_000

APART = {
    "id": "watch",
    "initial": "Both",
    "states": {
        "Both": {
            "type": "parallel",
            "states": {
                "Left": {
                    "initial": "L",
                    "states": {"L": {"after": {"5m": "M"}, "on": {"left": {"target": "L", "reenter": True}}}, "M": {}},
                },
                "Right": {"initial": "R", "states": {"R": {"after": {"5m": "S"}}, "S": {}}},
            },
        },
    },
}
TOGETHER = {"id": "watch", "initial": "Waiting", "states": {"Waiting": {"after": {"5m": "Over"}}, "Over": {}}}


def test_of_two_timers_that_become_one_the_earlier_one_stays(engine):
    engine.publish(APART)
    engine.create("watch", "w", now=T0)
    engine.fire("watch", "w", "left", now=T0 + MINUTE)
    engine.publish(TOGETHER)
    names = {"L": "Waiting", "R": "Waiting", "M": "Over", "S": "Over"}
    plan = engine.plan("watch", 2, states=names)
    assert (moved := engine.migrate(plan)).moved == 1, moved
    assert [(timer.state, timer.due) for timer in engine.get("watch", "w").timers] == [("Waiting", T0 + 5 * MINUTE)]
    due = engine.client.zrange(engine.keys.partition("watch").timers, 0, -1, withscores=True)
    assert [score for _, score in due] == [T0 + 5 * MINUTE]
    engine.migrate(plan.inverse())
    assert sorted(timer.due for timer in engine.get("watch", "w").timers) == [T0 + 5 * MINUTE, T0 + 6 * MINUTE]
