"""A machine with a secret in every place where one can be: data, payloads, history, jobs, errors, bulks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from machines.engine import Engine
from machines.instances.bulks import Bulk

from .instances.bulks.builders import order, work_off

SECRET = "4111-7777-0042"
PIN = "pin-9182-geheim"
NAME = "vault"

VAULT: dict[str, Any] = {
    "id": NAME,
    "initial": "Shut",
    "index": ["card", "owner"],
    "approval": ["fire:settle"],
    "context": {
        "type": "object",
        "properties": {
            "card": {"type": "string", "sensitive": True},
            "code": {"type": "integer", "sensitive": True},
            "copy": {"sensitive": True},
            "size": {"type": "integer"},
            "owner": {"type": "string"},
            "label": {"type": "string"},
        },
    },
    "events": {
        "open": {
            "payload": {"pin": {"type": "string", "sensitive": True, "required": True}, "by": {"type": "string"}},
        },
        "fill": {"payload": {"card": {"type": "string", "sensitive": True}}},
        "charge": {},
        "wrap": {},
        "settle": {"payload": {"pin": {"type": "string", "sensitive": True}}},
    },
    "states": {
        "Shut": {
            "on": {
                "open": {"target": "Open", "guard": "event.pin == card"},
                "fill": {
                    "actions": {"set": {"card": "event.card", "copy": "event.card", "label": "'card ' + event.card"}}
                },
                "wrap": {"actions": {"set": {"size": "copy"}}},
                "charge": "Charging",
                "settle": {"actions": {"set": {"copy": "event.pin"}}},
            }
        },
        "Charging": {"invoke": {"src": "charge", "input": {"number": "card"}, "retry": {"attempts": 1}}},
        "Open": {"type": "final"},
    },
}


@dataclass(frozen=True, slots=True)
class Filled:
    """Ids of what is there: an instance at rest, one whose job is dead, the job, one that is leased, a bulk."""

    shut: str
    charging: str
    dead: str
    leased: str
    bulk: str


def fill(engine: Engine) -> Filled:
    engine.publish(VAULT)
    engine.create(NAME, "v-1", {"card": "old", "owner": "ann"})
    engine.fire(NAME, "v-1", "fill", {"card": SECRET}, actor="ann", reason=f"the card is {SECRET} now")
    for id in ("v-2", "v-3"):
        engine.create(NAME, id, {"card": SECRET, "owner": "bob", "label": f"of {SECRET}", "code": 90210_77})
        engine.fire(NAME, id, "charge", {})
    dead, leased = engine.take(NAME, "charge", "w-1", count=2)
    engine.progress(leased, 1, 3, f"charging {SECRET}")
    engine.fail(dead, f"declined: {SECRET}", kind="Declined", trace=f"Traceback ...\nDeclined: {SECRET}", retry=False)
    bulk = Bulk.start(
        engine, order(machine=NAME, event="open", payload={"pin": PIN}, filter={"state": "Shut"}), id="b-1"
    )
    work_off(engine)
    return Filled("v-1", dead.instance, dead.id, leased.id, bulk.id)
