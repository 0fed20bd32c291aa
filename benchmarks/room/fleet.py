"""Twenty machines of four kinds, and what each of their instances went through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

KINDS = ("desk", "order", "work", "plan")
EACH = 5  # machines of a kind
LARGEST = 0.25  # of all instances stand in the first machine
CYCLE = 20  # instances go ways that repeat
SPREAD = 30 * 86_400_000  # ms over which they came

DESK: dict[str, Any] = {
    "initial": "Open",
    "index": ["customer", "total"],
    "context": {"customer": "", "total": 0, "asked": 0},
    "states": {
        "Open": {
            "sla": "15m",
            "on": {"take": "Busy", "ask": {"actions": {"set": {"asked": "asked + 1"}}}, "drop": "Closed"},
        },
        "Busy": {"sla": "1h", "on": {"hold": "Waiting", "close": "Closed"}},
        "Waiting": {"on": {"answer": "Busy"}},
        "Closed": {"on": {"reopen": "Open"}},
    },
}
ORDER: dict[str, Any] = {
    "initial": "Paying",
    "context": {"customer": "", "total": 0},
    "states": {
        "Paying": {"on": {"paid": "Fulfilling", "cancel": "Cancelled"}},
        "Fulfilling": {
            "type": "parallel",
            "on": {"cancel": "Cancelled"},
            "states": {
                "Parcel": {
                    "initial": "Packing",
                    "states": {"Packing": {"on": {"send": "Away"}}, "Away": {"on": {"arrive": "There"}}, "There": {}},
                },
                "Invoice": {
                    "initial": "Due",
                    "states": {"Due": {"sla": "1h", "on": {"settle": "Settled"}}, "Settled": {}},
                },
            },
        },
        "Cancelled": {},
    },
}
WORK: dict[str, Any] = {
    "initial": "Waiting",
    "context": {"customer": "", "total": 0},
    "states": {
        "Waiting": {"on": {"go": "Working"}},
        "Working": {
            "invoke": {"src": "work", "queue": "work", "retry": {"attempts": 2, "backoff": "10m"}, "onDone": "Done"}
        },
        "Done": {},
    },
}
PLAN: dict[str, Any] = {
    "initial": "Trial",
    "index": ["customer"],
    "context": {"customer": "", "total": 0},
    "states": {
        "Trial": {"after": {"400d": "Ended"}, "on": {"pay": "Running", "stop": "Ended"}},
        "Running": {"after": {"500d": "Ended"}, "on": {"stop": "Ended"}},
        "Ended": {"on": {"again": "Trial"}},
    },
}
DEFINITIONS = {"desk": DESK, "order": ORDER, "work": WORK, "plan": PLAN}
# What of twenty instances the n-th goes through; those that are not named stay where they begin.
WAYS: dict[str, dict[int, tuple[str, ...]]] = {
    "desk": {
        **dict.fromkeys(range(8), ("take", "close")),
        **dict.fromkeys(range(8, 12), ("take",)),
        **dict.fromkeys(range(12, 14), ("take", "hold")),
    },
    "order": {**dict.fromkeys(range(12), ("paid",)), **dict.fromkeys(range(12, 16), ("paid", "send"))},
    "work": dict.fromkeys(range(5), ("go",)),
    "plan": dict.fromkeys(range(10), ("pay",)),
}
DEAD, PUT_OFF = 0.02, 0.03  # of the jobs


@dataclass(frozen=True, slots=True)
class Member:
    """One machine and how many instances it gets."""

    name: str
    kind: str
    size: int

    @property
    def definition(self) -> dict[str, Any]:
        return {"id": self.name, **DEFINITIONS[self.kind]}

    def instances(self, now: int) -> Iterator[tuple[str, dict[str, Any], int, tuple[str, ...]]]:
        """Id, data, when it came (ms), and what happened to it; oldest first."""
        ways = WAYS[self.kind]
        for number in range(self.size):
            data = {"customer": f"c-{number * 7919 % self.size:07}", "total": number % 1000}
            came = now - SPREAD + number * SPREAD // max(1, self.size)
            yield f"{self.name}-{number:07}", data, came, ways.get(number % CYCLE, ())


def fleet(instances: int) -> list[Member]:
    """The first machine has a quarter of all instances, the others share the rest evenly."""
    names = [(kind, f"{kind}-{number}") for number in range(1, EACH + 1) for kind in KINDS]
    first = int(instances * LARGEST)
    rest = (instances - first) // (len(names) - 1)
    return [Member(name, kind, rest if place else first) for place, (kind, name) in enumerate(names)]
