"""Work that a test watches from outside: it says that it began, and goes on when it is told."""

from __future__ import annotations

import ctypes
import time
from concurrent.futures import ThreadPoolExecutor

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


@handler("hung")
def hung(job: Job) -> None:
    """Never ends, and leaves a thread of a pool behind for which Python would wait at its exit."""
    ThreadPoolExecutor(1).submit(time.sleep, 3600).result()


@handler("tiny")
async def tiny(job: Job) -> str:
    return "tiny"


@handler("blocking")
async def blocking(job: Job) -> str:
    """As ``gated``, but it waits without letting the event loop go."""
    engine = get_engine()
    engine.client.rpush(f"{engine.keys.prefix}begun", job.id)
    while engine.client.lpop(f"{engine.keys.prefix}go") is None:
        time.sleep(0.05)  # noqa: ASYNC251  what it is for
    return "let"
