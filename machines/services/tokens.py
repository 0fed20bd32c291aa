"""API tokens: people create and revoke their own; the permission ``revoke_token`` allows to revoke any."""

from __future__ import annotations

from collections.abc import Iterable

from django.core.exceptions import PermissionDenied

from machines.access import tokens
from machines.access.permissions import RIGHTS
from machines.access.tokens import Unmakeable
from machines.models import Token

from .actor import Actor
from .errors import Forbidden

REVOKE = "machines.revoke_token"


def make(
    actor: Actor, name: str, rights: Iterable[str], *, machines: Iterable[str] = (), days: int = 90
) -> tuple[Token, str]:
    """The token, which is the actor's own, and its text, which is not kept. Raises Forbidden for a right they hold
    nowhere, Unmakeable."""
    wanted = tuple(rights)
    with actor.records("token.make", refusals=(Unmakeable,), target=name) as deed:
        if not actor.is_person or actor.scopes is not None:  # else one that is about to end could prolong itself
            raise Unmakeable("name", "tokens can only be created by a person who is logged in")
        for right in wanted:
            if right in RIGHTS and not actor.anywhere(right):
                raise Forbidden(right)
        made, text = tokens.make(actor.user, name, wanted, machines=machines, days=days)
        deed.name(target=made.handle)
        deed.note(**made.facts)
    return made, text


def revoke(actor: Actor, token: Token) -> bool:
    """Whether it held until now. Raises PermissionDenied for another person's token without the permission."""
    with actor.records("token.revoke", refusals=(PermissionDenied,), target=token.handle) as deed:
        if actor.is_person and token.owner != actor.user and not actor.user.has_perm(REVOKE):
            raise PermissionDenied("you cannot revoke tokens of other people")
        held = tokens.revoke(token)
        deed.note(name=token.name, owner=token.owner.get_username(), held=held)
    return held
