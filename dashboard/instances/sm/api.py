"""State machines that programs keep under keys of their own with the SM commands."""

from django.http import HttpRequest
from pydantic import Field

from dashboard.api.framework.operation import Group, actor_of
from dashboard.api.framework.schemas import Body, Out, Reason, Why
from machines.instances import sm_keys
from machines.instances.sm_keys import StoredMachine

group = Group("keys", "State machines by key, as stored by the SM commands.", everywhere=True)
KEY = "/sm/{instance:key}"


class KeptOut(Out.derive(StoredMachine, "key current initial reason map onward")):
    """map: state -> the states it leads to
    onward: where it may go now
    """


class Moving(Body):
    state: str = Field(description="where it is to go")
    seen: str = Field(description="where the caller saw it stand: anywhere else answers 409")
    reason: Why = ""


class Forcing(Moving):
    reason: Reason


@group.get(KEY, right="view", answers=KeptOut)
def get_key(request: HttpRequest, key: str) -> StoredMachine:
    """Get a state machine by key.

    Return the key. Nobody can list such keys: they look like any other.
    """
    return sm_keys.get(actor_of(request), key)


@group.post(f"{KEY}/mutate", right="fire", answers=KeptOut)
def mutate_key(request: HttpRequest, key: str, body: Moving) -> StoredMachine:
    """Move to a state.

    Move the key along its map: where that does not lead there, 422.
    """
    sm_keys.mutate(actor_of(request), key, body.state, seen=body.seen, reason=body.reason)
    return sm_keys.get(actor_of(request), key)


@group.post(f"{KEY}/force", right="operate", answers=KeptOut)
def force_key(request: HttpRequest, key: str, body: Forcing) -> StoredMachine:
    """Force a state.

    Move the key into any state of its map.
    """
    sm_keys.force(actor_of(request), key, body.state, seen=body.seen, reason=body.reason)
    return sm_keys.get(actor_of(request), key)
