"""Work that a test watches from outside: it says that it began, and goes on when it is told."""

from __future__ import annotations

import ctypes

from machines.connections import get_engine
from machines.worker import Job, handler


@handler("quick")
def quick(job: Job) -> str:
    return "quick"


@handler("gated")
def gated(job: Job) -> str:
    """Waits for an element of the list ``<prefix>go``, after it has left its instance on ``<prefix>begun``."""
    engine = get_engine()
    engine.client.rpush(f"{engine.keys.prefix}begun", job.instance)
    while engine.client.lpop(f"{engine.keys.prefix}go") is None:
        job.wait(0.05)
    return "let"


@handler("gripping")
def gripping(job: Job) -> str:
    """Leaves its instance on ``<prefix>begun``, then keeps the interpreter lock in one call for as many ms as that is
    called."""
    engine = get_engine()
    engine.client.rpush(f"{engine.keys.prefix}begun", job.instance)
    ctypes.PyDLL(None).usleep(int(job.instance) * 1000)
    return "let"
