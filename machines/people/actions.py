"""API tokens and their sessions. People create and revoke their own; the permission ``revoke_token`` covers any.

A program creates sessions with its token; the program or the owner of the token ends them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.exceptions import PermissionDenied

from machines.patterns import Held, Session
from machines.patterns.sessions import HANDLE

from . import tokens
from .actor import Actor
from .errors import Forbidden, TokenNeeded
from .models import Token
from .permissions import RIGHTS
from .tokens import Unmakeable

REVOKE = "machines.revoke_token"


def make(
    actor: Actor, name: str, rights: Iterable[str], *, machines: Iterable[str] = (), days: int = 90
) -> tuple[Token, str]:
    """Create a token of the actor; return it and its text, which is not stored.

    Raise Forbidden for a right they hold nowhere, Unmakeable.
    """
    wanted = tuple(rights)
    with actor.records("token.make", refusals=(Unmakeable,), target=name) as entry:
        if not actor.is_person or actor.scopes is not None:  # else one that is about to end could prolong itself
            raise Unmakeable("name", "tokens can only be created by a person who is logged in")
        for right in wanted:
            if right in RIGHTS and not actor.anywhere(right):
                raise Forbidden(right)
        made, text = tokens.make(actor.user, name, wanted, machines=machines, days=days)
        entry.name(target=made.handle)
        entry.note(**made.facts)
    return made, text


def revoke(actor: Actor, token: Token) -> bool:
    """Revoke a token; return whether it was active. Raise PermissionDenied for the token of another person."""
    with actor.records("token.revoke", refusals=(PermissionDenied,), target=token.handle) as entry:
        if actor.is_person and token.owner != actor.user and not actor.user.has_perm(REVOKE):
            raise PermissionDenied("you cannot revoke tokens of other people")
        held = tokens.revoke(token)
        entry.note(name=token.name, owner=token.owner.get_username(), held=held)
    return held


def make_session(
    actor: Actor, token: Token | None, state: Mapping[str, Any], *, ttl: int = tokens.TTL
) -> tuple[Session, str]:
    """Create a session; return it and its text, which is not stored.

    ``token``: the token of the request, None for other credentials. Raise TokenNeeded without one, since a session that
    could create another one would never end; Full, BadInput, EngineUnavailable.
    """
    with actor.records("session.make", target=token.handle if token else "") as entry:
        if token is None:
            raise TokenNeeded
        made, text = tokens.make_session(token, state, ttl=ttl)
        entry.name(target=made.handle)
        entry.note(token=token.handle, name=token.name, ttl=ttl)
    return made, text


def revoke_session(actor: Actor, owned: Sequence[Token], handle: str) -> Held | None:
    """End a session and return it; None, without an audit entry, if none of the tokens has it."""
    if not HANDLE.fullmatch(handle):
        return None
    found = next((one for one in tokens.list_sessions(owned) if one.handle == handle), None)
    if found is None:
        return None
    (token,) = (one for one in owned if one.handle == found.subject)
    with actor.records("session.revoke", target=handle) as entry:
        entry.note(token=token.handle, name=token.name, held=tokens.get_sessions().revoke_handle(token.handle, handle))
    return found


def revoke_sessions(actor: Actor, owned: Sequence[Token]) -> int:
    """End all sessions of the tokens and return their number, with one audit entry for each token that had any."""
    held = {one.subject for one in tokens.list_sessions(owned)}
    count = 0
    for token in (one for one in owned if one.handle in held):
        with actor.records("session.revoke", target=token.handle) as entry:
            ended = tokens.get_sessions().revoke_all(token.handle)
            entry.note(token=token.handle, name=token.name, ended=ended)
        count += ended
    return count
