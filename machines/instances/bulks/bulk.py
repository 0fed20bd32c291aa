"""A bulk action as callers use it, from its order to its results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from machines.catalog import builtin_machines
from machines.engine import Engine, Instance, arguments
from machines.engine.errors import Conflict, InstanceExists, Refused
from machines.engine.versions.records import DryRun
from machines.people.transition_groups import Groups

from . import migration
from .errors import NotNow
from .order import BULK, MAX_RATE, MIGRATE, Order, encrypt_filter
from .store import PAGE, Row, Store

LIVE = ("collecting", "previewing", "previewed", "running", "paused", "failed")


class Bulk:
    """A bulk that is there. Calls raise UnknownInstance once it is removed, and NotNow in a state that is not for them.

    Callers check permissions: ``start`` and ``run`` move instances.
    """

    def __init__(self, engine: Engine, id: str) -> None:
        self.id = id
        self._engine = engine

    @classmethod
    def start(cls, engine: Engine, order: Order, *, id: str | None = None) -> Bulk:
        """Freeze what the order's filter finds and ask each what would come of it; nothing is moved before ``run``.

        The same ``id`` again is the same bulk, whatever else is said. Raises BadInput, BadPayload, UnknownMachine.
        """
        order.check(engine)
        order = replace(
            order,
            payload=engine.encrypt(order.machine, order.payload),
            changes=engine.encrypt(order.machine, order.changes),
            filter=encrypt_filter(engine, order.machine, order.filter),
            result=engine.encrypt(order.machine, order.result),
        )
        builtin_machines.publish(engine, BULK)
        bulk = cls(engine, id or engine.new_id())
        bulk._store().put_order(order)
        order = bulk.order()
        with suppress(InstanceExists):
            engine.create(BULK, bulk.id, order.facts(), actor=order.actor, reason=order.reason)
        return bulk

    def get(self) -> Instance:
        return self._engine.get(BULK, self.id)

    def order(self) -> Order:
        return self._store().order()

    def rate(self) -> int:
        """Return the rate: instances a second at most, 0 for as fast as it goes."""
        return self._store().rate()

    def set_rate(self, rate: int) -> None:
        """Set the rate from the next instances on, also while it runs. Raises BadInput, NotNow once there are no next
        ones."""
        arguments.check_between("rate", rate, 0, MAX_RATE)
        if (state := self.get().state) not in LIVE:
            raise NotNow(self.id, "slow down or speed up", state)
        self._store().put_rate(rate)

    def approve(self, second: str, seen: Instance) -> None:
        """Approve it. ``second``: the person who approved it; ``seen``: as it was then."""
        self._store().approve(second, seen.data["selection"])

    def is_approved(self) -> bool:
        """Tell whether it is approved: not any more once something else was frozen."""
        return bool(self._store().read_approver(self.get().data["selection"]))

    def run(self, actor: str, *, expect: int | None = None) -> Instance:
        """Let it go. Said twice, it runs once. ``expect``: the revision that was looked at, any other raises Conflict;
        so in ``resume`` and ``retry``."""
        self._release("previewed", actor, expect)
        return self._send("run", actor, key="run", expect=expect)

    def pause(self, actor: str) -> Instance:
        """Stop moving instances, except for the current batch (25 at most)."""
        after = self._send("pause", actor)
        self._store().revoke()
        return after

    def resume(self, actor: str, *, expect: int | None = None) -> Instance:
        self._release("paused", actor, expect)
        return self._send("resume", actor, expect=expect)

    def stop(self, actor: str) -> Instance:
        """Stop it for good, as ``pause`` does for a time."""
        after = self._send("stop", actor)
        self._store().revoke()
        return after

    def retry(self, actor: str, *, expect: int | None = None) -> Instance:
        """Go on where it broke."""
        if self.get().data["stage"] == "running":
            self._release("failed", actor, expect)
        return self._send("retry", actor, expect=expect)

    def again(
        self, actor: str, reason: str, *, id: str | None = None, person: bool = False, groups: Groups = None
    ) -> Bulk:
        """Make a new bulk of the same kind with those that were refused, changed or failed, as they are now.
        ``person``, ``groups``: of ``actor``, see ``Order``."""
        who: dict[str, Any] = {"actor": actor, "reason": reason, "person": person, "groups": groups}
        again = replace(self.order(), of=self.id, filter={}, **who)
        return self.start(self._engine, again, id=id)

    def remove(self, actor: str) -> Instance:
        """Have a worker remove it with its selection and results. It goes by itself thirty days after its end."""
        return self._send("remove", actor)

    def rows(self, start: int = 0, count: int = PAGE) -> list[Row]:
        """Return some of what it found, in the order in which they are moved."""
        return self._read_rows(self.get(), start, count)

    def pages(self) -> Iterator[list[Row]]:
        """Yield all of it, a page at a time."""
        bulk = self.get()
        for start in range(0, bulk.data["found"], PAGE):
            yield self._read_rows(bulk, start, PAGE)

    def _read_rows(self, bulk: Instance, start: int, count: int) -> list[Row]:
        stop = min(start + count, bulk.data["found"])
        if not 0 <= start < stop:
            return []
        store = self._store()
        items = store.items(bulk.data["selection"], start, stop)
        ids = [item.id for item in items]
        rows = [Row(*row) for row in zip(items, store.previews(ids), store.outcomes(ids), strict=True)]
        if bulk.data["action"] != MIGRATE:
            return rows
        return [migration.complete(row, at < bulk.data["tried"]) for at, row in enumerate(rows, start)]

    def dry_run(self) -> DryRun | None:
        """Return the classes of a migration of whole versions, as they were when it was collected; None of other
        actions."""
        return self._store().dry_run()

    def _store(self) -> Store:
        return Store(self._engine, self.id)

    def _release(self, state: str, actor: str, expect: int | None) -> None:
        """Let it be run by the event that leads out of ``state``; in any other, that event is refused."""
        now = self.get()
        if expect is not None and now.revision != expect:
            raise Conflict(BULK, self.id, expected=expect, actual=now.revision)
        if now.state == state:
            self._store().release(actor, now.data["selection"])

    def _send(self, event: str, actor: str, key: str | None = None, expect: int | None = None) -> Instance:
        try:
            return self._engine.fire(BULK, self.id, event, actor=actor, key=key, expect=expect)
        except Refused as refused:
            raise NotNow(self.id, event, refused.explanation.state) from refused
