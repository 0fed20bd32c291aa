"""Roll-outs, pins and withdrawn versions: who may, what the audit and the database have, and drafts beside them."""

from __future__ import annotations

import json

import pytest

from machines.catalog import publishing
from machines.catalog.errors import DraftConflict
from machines.catalog.versions import drafts, rollouts
from machines.engine import Engine, VersionRefused
from machines.models import AuditEntry, Machine
from machines.people.errors import Forbidden
from tests.people.orders import ORDER

SECOND = ORDER | {"states": {**ORDER["states"], "Lost": {}}}
WHY = "first customers"


@pytest.fixture
def orders(order: Engine) -> Engine:
    """Version 2 is there, and 3, which is as 1 was, is current."""
    publishing.publish(SECOND)
    publishing.publish(ORDER)
    return order


def current(engine: Engine) -> tuple[int, int]:
    """By Redis and by SQL."""
    return engine.live("order").version, Machine.objects.get(name="order").current


def test_a_version_is_rolled_out_and_finished(orders, actor):
    ann = actor("ann", "view", "publish")
    assert current(orders) == (3, 3)
    rollouts.start(ann, "order", 2, 5, reason=WHY)
    found = rollouts.get(ann, "order")
    assert (found.current, found.rollout.version, found.rollout.percent, found.rollout.actor) == (3, 2, 5, "ann")
    rollouts.set_percent(ann, "order", 50, reason=WHY, expect=found.rollout.turn)
    with pytest.raises(VersionRefused):
        rollouts.set_percent(ann, "order", 60, reason=WHY, expect=found.rollout.turn)
    rollouts.stop(ann, "order", reason="too many refusals")
    assert not rollouts.get(ann, "order").rollout.under_way
    rollouts.set_percent(ann, "order", 50, reason=WHY)
    rollouts.finish(ann, "order", reason=WHY)
    assert current(orders) == (2, 2)
    entries = [(entry.action, entry.outcome) for entry in AuditEntry.objects.filter(machine="order").order_by("id")]
    assert entries == [
        ("rollout.set", "done"), ("rollout.set", "done"), ("rollout.set", "refused"), ("rollout.stop", "done"),
        ("rollout.set", "done"), ("rollout.finish", "done"),
    ]  # fmt: skip
    assert {one.version: one.role for one in rollouts.figures(ann, "order")} == {1: "", 2: "current", 3: ""}


def test_pins_and_withdrawn_versions(orders, actor):
    ann = actor("ann", "view", "publish", "operate")
    rollouts.pin(ann, "order", 1, reason="until the audit is over")
    publishing.publish(ORDER | {"description": "the fourth"})
    assert current(orders) == (1, 1)
    rollouts.pin(ann, "order", None, reason="it is over")
    assert current(orders) == (4, 4)
    rollouts.withdraw(ann, "order", 4, instead=2, reason="it charges twice")
    assert current(orders) == (2, 2)
    assert list(rollouts.get(ann, "order").withdrawn) == [4]
    rollouts.withdraw(ann, "order", 4, withdrawn=False, reason="it does not")
    assert rollouts.get(ann, "order").withdrawn == {}
    assert rollouts.pin_instance(ann, "order", "o-1", reason="a case before court").pinned
    assert not rollouts.pin_instance(ann, "order", "o-1", False, reason="it is closed").pinned
    assert orders.history("order", "o-1", limit=1)[0].actor == "ann"


def test_each_change_takes_its_right(orders, actor):
    vera, mover = actor("vera", "view", "fire"), actor("mover", "view", "operate")
    for one in (
        lambda who: rollouts.start(who, "order", 2, 5, reason=WHY),
        lambda who: rollouts.set_percent(who, "order", 5, reason=WHY),
        lambda who: rollouts.stop(who, "order", reason=WHY),
        lambda who: rollouts.finish(who, "order", reason=WHY),
        lambda who: rollouts.pin(who, "order", 1, reason=WHY),
        lambda who: rollouts.withdraw(who, "order", 2, reason=WHY),
    ):
        for who in (vera, mover):
            with pytest.raises(Forbidden):
                one(who)
    with pytest.raises(Forbidden):
        rollouts.pin_instance(vera, "order", "o-1", reason=WHY)
    assert rollouts.pin_instance(mover, "order", "o-1", reason=WHY).pinned
    assert rollouts.get(vera, "order").rollout is None
    assert AuditEntry.objects.filter(machine="order", outcome="refused").count() == 13


def test_a_draft_is_published_to_a_part_of_the_new_instances(order, actor):
    ann = actor("ann", "view", "publish")
    first, other = (drafts.save(ann, "order", json.dumps(SECOND | {"description": word})) for word in ("a", "b"))
    assert drafts.publish(ann, first.pk, rollout=5, reason=WHY).number == 2
    assert current(order) == (1, 1)
    assert order.rollout("order").percent == 5
    with pytest.raises(DraftConflict) as found:  # it would end a roll-out of which its author has not heard
        drafts.publish(ann, other.pk)
    assert (found.value.base, found.value.current) == (1, 2)
    rollouts.stop(ann, "order", reason="too many refusals")
    assert drafts.publish(ann, other.pk).number == 3
    assert current(order) == (3, 3)
