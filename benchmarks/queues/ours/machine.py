"""The machine whose every instance enters a state that invokes the handler, and goes on when that is done."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from machines.engine import Engine

NAME = "bench"
QUEUE = "work"
PREFIX = "bench:"
DONE = "Done"
BATCH = 1000

DEFINITION: dict[str, Any] = {
    "id": NAME,
    "initial": "Working",
    "context": {"sent": 0, "pause": 0},
    "states": {
        "Working": {
            "invoke": {"id": "work", "src": "noop", "queue": QUEUE, "onDone": DONE, "onError": "Failed"},
        },
        DONE: {"type": "final"},
        "Failed": {"type": "final"},
    },
}


@cache
def engine() -> Engine:
    """On the server that ``BENCH_URL`` names."""
    return Engine.from_url(os.environ["BENCH_URL"], prefix=PREFIX)
