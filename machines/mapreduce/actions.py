"""Actions on runs of map-reduce. They need ``operate`` on the machine of the runs."""

from machines.connections import get_engine
from machines.engine import BadInput, Instance
from machines.people.actor import Actor

from .store import RUN

ACTIONS = ("retry", "remove")


def list_actions(run: Instance) -> list[str]:
    """List what can be done with a run as it is now."""
    found = {"retry": run.state == "failed", "remove": run.state != "removing"}
    return [name for name in ACTIONS if found[name] and not run.suspended]


def act(actor: Actor, id: str, name: str) -> Instance:
    """Repeat the unfinished parts of a failed run, or have a worker remove it. Raises Forbidden, Refused, BadInput,
    UnknownInstance."""
    if name not in ACTIONS:
        raise BadInput(f"a run takes {' and '.join(ACTIONS)}, not {name!r}")
    with actor.records(f"run.{name}", machine=RUN, instance=id) as entry:
        actor.demand("operate", RUN)
        before = get_engine().get(RUN, id)
        after = get_engine().fire(RUN, id, name, actor=actor.name)
        entry.note_step(before.state, after)
    return after
