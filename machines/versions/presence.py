"""Who has a machine's definition open in the editor, as their browsers say it every few seconds."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from machines.catalog.models.draft import Editing
from machines.people.actor import Actor

SEEN = timedelta(seconds=45)  # without a word: then the page is closed, or cannot reach us
MOST = 20  # people that are named


def note(actor: Actor, machine: str, draft: int | None) -> list[Editing]:
    """Say that the actor is editing, and return the others who are. Raises Forbidden."""
    actor.demand("publish", machine)
    now = timezone.now()
    Editing.objects.update_or_create(
        machine=machine, who_id=actor.id, defaults={"draft": draft, "who": actor.name, "seen_at": now}
    )
    Editing.objects.filter(machine=machine, seen_at__lt=now - 10 * SEEN).delete()
    return others(actor, machine)


def others(actor: Actor, machine: str) -> list[Editing]:
    """List who else edits a machine, by name."""
    recent = Editing.objects.filter(machine=machine, seen_at__gte=timezone.now() - SEEN)
    return list(recent.exclude(who_id=actor.id).order_by("who")[:MOST])


def leave(actor: Actor, machine: str) -> None:
    Editing.objects.filter(machine=machine, who_id=actor.id).delete()
