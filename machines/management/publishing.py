"""Publishes definitions for commands: as the command line, or in the name of an account."""

from __future__ import annotations

import json
from argparse import ArgumentParser

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from machines.approvals import actions as approvals
from machines.approvals.models import Approval
from machines.catalog.models.version import MachineVersion
from machines.engine.definitions import CompiledDefinition
from machines.people.actor import Actor
from machines.people.errors import ApprovalNeeded, DraftNeeded
from machines.versions import drafts
from machines.versions import publication as definitions


def add_user_argument(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--user",
        default="",
        metavar="NAME",
        help="publish with the rights of this account; where that takes a second person, ask for the approval",
    )


def find_actor(name: str) -> Actor:
    """Return the account of a name, the command line where none is given. Raises CommandError."""
    if not name:
        return Actor.console()
    model = get_user_model()
    user = model.objects.filter(**{model.USERNAME_FIELD: name}, is_active=True).first()
    if user is None:
        raise CommandError(f"--user: there is no active account {name!r}")
    return Actor(user, "command line")


def publish(
    actor: Actor, compiled: CompiledDefinition, reason: str, *, operation: str = "publish"
) -> MachineVersion | Approval:
    """Publish a definition. Where that takes a second person, an account asks for the approval of a draft; the command
    line has no account to ask with. Raises DraftNeeded, and what ``definitions.publish`` raises."""
    try:
        return definitions.publish(actor, compiled, reason=reason, operation=operation)
    except DraftNeeded as needed:
        named = compiled.source["id"]
        if not actor.is_person or needed.machine != named:
            raise
        draft = drafts.save(actor, named, json.dumps(compiled.source, indent=2, ensure_ascii=False), note=reason)
        try:
            return drafts.publish(actor, draft.pk)
        except ApprovalNeeded as asked:
            return approvals.ask(actor, asked, reason=reason or f"draft {draft.pk}")
