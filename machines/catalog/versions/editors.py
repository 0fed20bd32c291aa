"""Who has the Studio of a machine open, and where in it. Each page says so now and then; a change wakes the live view,
and the other pages ask again. Redis holds only when that was, since it is seen by all who may view."""

import time
from contextlib import suppress
from datetime import timedelta

from django.utils import timezone

from machines.catalog.models import Editing
from machines.connections import get_engine
from machines.engine.base import PULSE_MS
from machines.engine.errors import EngineFault, EngineUnavailable
from machines.engine.storage import Storage
from machines.people.actor import Actor

SEEN = timedelta(seconds=45)  # without a word: then the page is closed, or cannot reach us
MOST_NAMED = 20  # people that are named


def note_editing(
    actor: Actor, machine: str, draft: int | None, line: int | None = None, state: str = ""
) -> list[Editing]:
    """Say that the actor is editing, and return the others who are. Raises Forbidden. ``line`` and ``state``: of the
    cursor."""
    actor.demand("publish", machine)
    now = timezone.now()
    place = {"draft": draft, "line": line, "state": state[: Editing.STATE]}
    held = Editing.objects.filter(machine=machine, who_id=actor.id, seen_at__gte=now - SEEN)
    is_new = not held.filter(**place).exists()
    Editing.objects.update_or_create(
        machine=machine, who_id=actor.id, defaults=place | {"who": actor.name, "seen_at": now}
    )
    Editing.objects.filter(machine=machine, seen_at__lt=now - 10 * SEEN).delete()
    if is_new:
        announce(machine)
    return list_editors(actor, machine)


def list_editors(actor: Actor, machine: str) -> list[Editing]:
    """List who else edits a machine, by name."""
    recent = Editing.objects.filter(machine=machine, seen_at__gte=timezone.now() - SEEN)
    return list(recent.exclude(who_id=actor.id).order_by("who")[:MOST_NAMED])


def end_editing(actor: Actor, machine: str) -> None:
    if Editing.objects.filter(machine=machine, who_id=actor.id).delete()[0]:
        announce(machine)


def announce(machine: str) -> None:
    """Wake the live view of the machine, where Redis answers: pages also ask by themselves."""
    engine = get_engine()
    partition = engine.keys.partition(machine, 0)
    with suppress(EngineUnavailable, EngineFault):
        Storage(engine.client).commands(
            [
                (
                    partition.edited,
                    ("SET", partition.edited, int(time.time() * 1000), "PX", SEEN // timedelta(milliseconds=1)),
                ),
                (partition.pulse, ("SET", partition.pulse, "1", "PX", PULSE_MS)),
            ]
        )
