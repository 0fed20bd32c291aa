"""The model field that shows a machine's state: ``status = MachineField("order")``. See ``docs/binding.md``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from machines.conf import extras

extras.require("machines.fields", "django")  # before what follows ends in the traceback of a missing module

from django.apps import apps  # noqa: E402
from django.core.exceptions import ImproperlyConfigured  # noqa: E402

from machines.integrations.binding.bound_state import BoundState  # noqa: E402
from machines.integrations.binding.errors import ColumnGone, CreationWaits, MirrorReadOnly, NotSaved  # noqa: E402
from machines.integrations.binding.field import MachineField, RevisionField  # noqa: E402

if TYPE_CHECKING:
    from machines.engine.definitions import EventOutline

__all__ = [
    "BoundState",
    "ColumnGone",
    "CreationWaits",
    "MachineField",
    "MirrorReadOnly",
    "NotSaved",
    "RevisionField",
    "available_events",
]

if not apps.is_installed("machines"):
    raise ImproperlyConfigured("a MachineField needs the app 'machines' in INSTALLED_APPS: it has the outbox's table")


def available_events(states: Iterable[BoundState], user: Any = None) -> list[list[EventOutline]]:
    """List, for the states of many rows and in their order, the events that each state accepts by the current version
    of its machine; for a ``user`` without the right to fire there are none.

    A few queries for each machine, however many rows, and no call of Redis: a list may use it. Guards are not asked.
    """
    from machines.integrations.binding import reading  # models of other apps are loaded by now

    return reading.available_events(states, user)
