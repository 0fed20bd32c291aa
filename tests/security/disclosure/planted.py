"""A machine with one unmistakable text in every place where something sensitive can come to lie.

``PLANT`` stands in the values of fields that are marked, and is found by itself, as a beginning of a longer text and
as JSON writes it. No door may show it to who does not hold ``reveal``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from machines.engine import Engine, Refused
from machines.instances.bulks import Bulk
from machines.models import Webhook
from tests.instances.bulks.builders import order, work_off
from tests.schedules.clock import Clock

PLANT = "zq7PLANTED"
CARD = f'{PLANT}-"4111"-card'  # with quotes, which JSON writes in another way
PIN = f"{PLANT}-pin"
LONG = f"{PLANT}-{'x' * 400}"  # longer than any error shows of a value
CODE = 7707_7733
PLANTS = (PLANT, str(CODE))
NAME = "planted"
QUEUE = "deliver"

EVENTS = ("open", "wrap", "count", "shout", "judge", "look", "dig", "root", "part", "send")
"""Those whose guard or action fails with what it says of a value, in one way each."""

PLANTED: dict[str, Any] = {
    "id": NAME,
    "initial": "Shut",
    "index": ["owner"],
    "approval": ["fire:settle"],
    "context": {
        "type": "object",
        "properties": {
            "card": {"type": "string", "sensitive": True},
            "code": {"type": "integer", "sensitive": True},
            "copy": {"sensitive": True},
            "long": {"type": "string", "sensitive": True},
            "alias": {"type": "string"},
            "stretch": {"type": "string"},
            "size": {"type": "integer"},
            "owner": {"type": "string"},
        },
    },
    "events": {
        "open": {"payload": {"pin": {"type": "string", "sensitive": True, "required": True}}},
        "dig": {"payload": {"pin": {"type": "string", "sensitive": True}}},
        "settle": {"payload": {"pin": {"type": "string", "sensitive": True}}},
    },
    "states": {
        "Shut": {
            "on": {
                "open": {"target": "Open", "guard": "event.pin == card and code > 1"},
                "wrap": {"actions": {"set": {"size": "copy"}}},
                "count": {"actions": {"set": {"size": "int(copy)"}}},
                "shout": {"actions": {"set": {"owner": "fail('no ' + card)"}}},
                "judge": {"target": "Open", "guard": "int(alias) > 3"},
                "look": {"target": "Open", "guard": "int(stretch) > 3"},
                "dig": {"target": "Open", "guard": "int(event['p' + 'in']) > 3"},
                "root": {"actions": {"set": {"size": "sqrt(0 - code)"}}},
                "part": {"actions": {"set": {"size": "number(split(card, '-')[0])"}}},
                "settle": {"actions": {"set": {"copy": "event.pin"}}},
                "deliver": "Delivering",
                "wait": "Waiting",
                "ring": {"actions": {"emit": {"type": "rung", "data": {"card": "card", "said": "alias"}}}},
                "send": {
                    "actions": {
                        "send": {
                            "event": "late",
                            "to": {"machine": NAME, "id": "alias"},
                            "delay": "1h",
                            "id": {"expr": "alias"},
                        }
                    }
                },
            }
        },
        "Waiting": {"after": {"1s": {"target": "Shut", "actions": {"set": {"size": "int(copy)"}}}}},
        "Delivering": {"invoke": {"src": "deliver", "queue": QUEUE, "input": {"to": "card"}, "retry": {"attempts": 1}}},
        "Open": {"type": "final"},
    },
}
VALUES = {
    "card": CARD, "code": CODE, "copy": CARD, "long": LONG, "alias": CARD, "stretch": LONG, "owner": "ann",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Planted:
    """Ids: instances at rest, with a dead job, with one that is leased, with a timer that fails; two jobs; bulks."""

    shut: str
    charging: str
    leasing: str
    waiting: str
    dead: str
    leased: str
    bulks: tuple[str, ...]


def plant(engine: Engine) -> Planted:
    engine.publish(PLANTED)
    for id in ("p-1", "p-2", "p-3", "p-4"):
        engine.create(NAME, id, VALUES)
    engine.fire(NAME, "p-1", "send", {}, actor="ann", reason=f"it is {CARD} now")
    engine.fire(NAME, "p-1", "ring", {}, actor="ann")
    now = engine.live(NAME).now
    engine.fire(NAME, "p-4", "wait", {}, now=now - 5000)
    engine.tick()
    dead, leased = worked(engine)
    bulks = tuple(planned(engine, number, event) for number, event in enumerate(EVENTS))
    schedule(engine, now)
    return Planted("p-1", "p-2", "p-3", "p-4", dead, leased, bulks)


def schedule(engine: Engine, now: int) -> None:
    """A schedule that sends a sensitive value, and its run, which is refused."""
    clock = Clock(engine, now)
    what = {"do": "fire", "machine": NAME, "instance": "p-1", "event": "open", "payload": {"pin": PIN}}
    clock.put(when={"cron": "30 2 * * *"}, what=what)
    clock.schedules.run("nightly", by="ann")
    clock.work()


def worked(engine: Engine) -> tuple[str, str]:
    """A job that is dead, with all that a handler can say of it, and one that is under way and says it."""
    for id in ("p-2", "p-3"):
        engine.fire(NAME, id, "deliver", {})
    dead, leased = engine.take(NAME, QUEUE, "w-1", count=2)
    said = f"declined: {CARD} {CODE}"
    engine.progress(leased, 1, 3, said)
    engine.fail(dead, said, kind="Declined", trace=f"Traceback ...\nDeclined: {said}", retry=False)
    return dead.id, leased.id


def planned(engine: Engine, number: int, event: str) -> str:
    """A bulk whose dry run, and then its run, meets what the event says."""
    payload = {"pin": PIN} if event in ("open", "dig") else {}
    asked = order(machine=NAME, event=event, payload=payload, filter={"state": "Shut", "id_prefix": "p-1"})
    bulk = Bulk.start(engine, asked, id=f"b-{number}")
    work_off(engine)
    bulk.run("ann")
    work_off(engine)
    return bulk.id


def refused(engine: Engine, event: str) -> Refused:
    try:
        engine.fire(NAME, "p-1", event, {"pin": PIN} if event in ("open", "dig") else {})
    except Refused as error:
        return error
    raise AssertionError(f"{event} is taken")


def hook() -> Webhook:
    return Webhook.objects.create(name="out", url="https://hooks.example/", types=["*"], secret="whsec_" + "a" * 44)
