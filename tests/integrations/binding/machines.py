"""The machines that the shop's rows show."""

from __future__ import annotations

from typing import Any

from machines.engine import Engine

ORDER: dict[str, Any] = {
    "id": "order",
    "initial": "new",
    "context": {"total": 0, "paid": 0},
    "events": {"pay": {"payload": {"amount": {"type": "integer"}}}, "note": {}},
    "approval": ["fire:refund"],
    "states": {
        "new": {
            "after": {"30d": "expired"},
            "on": {
                "pay": {
                    "target": "paid", "guard": "event.amount >= total"
                },
                "cancel": "cancelled",
                "note": {"actions": {"log": "'noted'"}},
                "waive": {"target": "paid", "allow": ["managers"]},
            },
        },
        "paid": {"on": {"ship": "shipping", "refund": "cancelled"}},
        "shipping": {
            "type": "parallel",
            "onDone": "done",
            "states": {
                "goods": {
                    "initial": "packing", "states": {"packing": {"on": {"packed": "sent"}}, "sent": {"type": "final"}}
                },
                "papers": {
                    "initial": "printing",
                    "states": {"printing": {"on": {"printed": "filed"}}, "filed": {"type": "final"}},
                },
            },
        },
        "done": {"type": "final"},
        "cancelled": {"type": "final"},
        "expired": {"type": "final"},
    },
}  # fmt: skip
PARCEL: dict[str, Any] = {
    "id": "parcel",
    "initial": "here",
    "states": {"here": {"on": {"move": "there"}}, "there": {"on": {"move": "here"}}},
}
BILL: dict[str, Any] = {
    "id": "bill",
    "initial": "open",
    "context": {
        "type": "object",
        "properties": {"total": {"type": "integer"}, "off": {"type": "number"}, "paid": {"type": "integer"}},
    },
    "index": ["total"],
    "events": {"pay": {"payload": {"amount": {"type": "integer"}}}, "ask": {}, "send": {}},
    "states": {
        "open": {
            "on": {
                "pay": {
                    "target": "paid",
                    "guard": "event.amount >= total",
                    "actions": {"set": {"paid": "event.amount"}},
                },
                "ask": {"target": "asked"},
            }
        },
        "asked": {"on": {"pay": {"target": "paid", "guard": "event.amount >= total"}}},
        "paid": {"on": {"send": "sent"}},
        "sent": {"type": "final"},
    },
}


def publish(engine: Engine) -> None:
    for definition in (ORDER, PARCEL, BILL):
        engine.publish(definition)
