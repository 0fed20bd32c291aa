"""The value of a machine field: text, bound to its row."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from django.core.exceptions import SynchronousOnlyOperation
from django.db.models import Model

from .errors import CreationWaits

if TYPE_CHECKING:
    from machines.engine import Explanation, Instance, Step
    from machines.engine.definitions import EventOutline

    from .field import MachineField
    from .models import OutboxEntry

Answer = TypeVar("Answer")


class BoundState(str):
    """The state that the row's column has. Compares, filters and prints like text.

    ``row`` is the row in memory; copied or pickled, it is plain text.
    """

    row: Model
    field: MachineField

    def __new__(cls, text: str, row: Model, field: MachineField) -> BoundState:
        made = super().__new__(cls, text)
        made.row, made.field = row, field
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    @property
    def id(self) -> str:
        """Return the id of the row's instance. Raises NotSaved."""
        return self.field.instance_id(self.row)

    @property
    def revision(self) -> int:
        """Return the revision that this state belongs to; 0 where the row has no instance yet."""
        return int(getattr(self.row, self.field.revision_name))

    def fire(  # noqa: PLR0913
        self,
        event: str,
        payload: Mapping[str, Any] | None = None,
        *,
        user: Any = None,
        actor: str = "",
        expect: int | None = None,
        key: str | None = None,
        reason: str = "",
        check: bool = False,
    ) -> Instance | OutboxEntry:
        """Send an event to the instance and return it as it is afterwards; the row's columns follow.

        With a ``user`` their permissions, groups and approvals hold, and the audit has an entry. Without one it is a
        program, called ``actor``. Inside a transaction the event is kept in the outbox and sent after the commit: the
        entry is returned, and nothing is sent where the transaction is rolled back. With ``check`` the row is then
        locked, and what the event would meet at this moment is raised here, such as Refused. Raises what
        ``Engine.fire`` raises; with a user Forbidden, NotAllowed and ApprovalNeeded as well; NotSaved.
        """
        self._demand_thread("fire")
        from . import fire

        if user is not None and actor:
            raise TypeError("fire() takes a user or an actor: the audit and the history name one who fired")
        asked = fire.Event(event, dict(payload or {}), user, actor, expect, key, reason)
        return fire.fire(self.field, self.row, asked, check=check)

    def explain(self, event: str, payload: Mapping[str, Any] | None = None, *, user: Any = None) -> Explanation:
        """Compute what ``fire`` would do now, and why; change nothing. For a ``user``, without what is hidden from
        them."""
        self._demand_thread("explain")
        from . import reading

        return self._read(lambda id: reading.explain(self.field, id, event, payload, user))

    def available(self, user: Any = None) -> list[EventOutline]:
        """List the events that the instance takes now without a payload, or may take with one; of a ``user`` those
        they may fire. None where the creation waits for a commit. Two round trips; lists of rows use
        ``machines.fields.available_events``."""
        self._demand_thread("available")
        from . import reading

        try:
            return self._read(lambda id: reading.available(self.field, id, user))
        except CreationWaits:
            return []

    def history(self, *, limit: int = 100, before: int | None = None, user: Any = None) -> list[Step]:
        """Return the latest steps, newest first; ``before`` is a revision, for the next page."""
        self._demand_thread("history")
        from . import reading

        return self._read(lambda id: reading.history(self.field, id, limit, before, user))

    @property
    def instance(self) -> Instance:
        """Read the instance now. Raises CreationWaits, UnknownInstance, EngineUnavailable."""
        self._demand_thread("instance")
        from . import reading

        return self._read(lambda id: reading.get(self.field, id))

    def refresh(self) -> BoundState:
        """Read the instance now, write the columns where they say something else, and return the state."""
        self._demand_thread("refresh")
        from . import fire

        fire.refresh(self.field, self.row)
        found: BoundState = getattr(self.row, self.field.attname)
        return found

    def diagram(self) -> str:
        """Return the machine's diagram as SVG, safe to put into a page, with this state highlighted."""
        from . import reading

        return reading.diagram(self.field.machine, str(self))

    def _read(self, ask: Callable[[str], Answer]) -> Answer:
        from . import fire

        return fire.read(self.field, self.row, ask)

    def _demand_thread(self, name: str) -> None:
        """Raise SynchronousOnlyOperation in a task of asyncio: the instance would move, and then the database refuse to
        write the row."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        if not os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE"):
            called = f"row.{self.field.name}.{name}"
            thread = f"lambda: {called}" if name == "instance" else called
            raise SynchronousOnlyOperation(
                f"{called} uses the database, so it is not called in async code, and nothing was sent;"
                f" call it in a thread: await sync_to_async({thread})(...)"
            )
