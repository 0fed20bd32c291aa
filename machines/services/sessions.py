"""Sessions of API tokens: a program creates them with its token; it or its owner ends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from machines.access import token_sessions
from machines.models import Token
from machines.patterns import Held, Session
from machines.patterns.sessions import HANDLE

from .actor import Actor
from .errors import TokenNeeded


def make(
    actor: Actor, token: Token | None, state: Mapping[str, Any], *, ttl: int = token_sessions.TTL
) -> tuple[Session, str]:
    """The session and its text, which is not kept. ``token``: what the program showed; None for anything else.

    Raises TokenNeeded: a session that could make another one would never end. Full, BadInput, EngineUnavailable.
    """
    with actor.records("session.make", target=token.handle if token else "") as deed:
        if token is None:
            raise TokenNeeded
        made, text = token_sessions.make(token, state, ttl=ttl)
        deed.name(target=made.handle)
        deed.note(token=token.handle, name=token.name, ttl=ttl)
    return made, text


def revoke(actor: Actor, tokens: Sequence[Token], handle: str) -> Held | None:
    """What ended; None, without an entry in the audit, where none of the tokens has such a session."""
    if not HANDLE.fullmatch(handle):
        return None
    found = next((one for one in token_sessions.of(tokens) if one.handle == handle), None)
    if found is None:
        return None
    (token,) = (one for one in tokens if one.handle == found.subject)
    with actor.records("session.revoke", target=handle) as deed:
        deed.note(token=token.handle, name=token.name, held=token_sessions.revoke(token, handle))
    return found


def revoke_all(actor: Actor, tokens: Sequence[Token]) -> int:
    """How many ended. One entry in the audit for each token that had any."""
    held = {one.subject for one in token_sessions.of(tokens)}
    count = 0
    for token in (one for one in tokens if one.handle in held):
        with actor.records("session.revoke", target=token.handle) as deed:
            ended = token_sessions.revoke_all(token)
            deed.note(token=token.handle, name=token.name, ended=ended)
        count += ended
    return count
