"""The main loop of a helper process: ``python -m machines.catalog.offload_child DESCRIPTOR MEMORY``.

It runs one task after the other, within ``MEMORY`` bytes.

It ends when that end is closed, when nobody asks for ``IDLE`` seconds, and at once when a task passes its limits: the
kernel ends it for the processor time, so that no loop in C can put it off.
"""

import contextlib
import json
import os
import resource
import signal
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

from . import offload

IDLE = 300.0  # seconds
NICE = 3  # others go first


def main(descriptor: int, memory: int) -> None:
    with contextlib.suppress(OSError, ValueError):
        os.nice(NICE)
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with Connection(descriptor) as link, contextlib.suppress(EOFError, OSError):
        offload.send(link, {"ready": True}, b"")
        while _serve(link):
            pass


def _serve(link: Connection) -> bool:
    """Run one task; tell whether this process is fit for another."""
    header, raw = offload.receive(link, IDLE)
    offload.prepare(header["task"])
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, header["cpu"])  # SIGPROF ends the process
    head: dict[str, Any] = {}
    answer = b""
    try:
        done = offload.TASKS[header["task"]](offload.unpack(header["is_text"], raw), **header["words"])
        answer = json.dumps(done, default=str).encode()
    except MemoryError:
        head = {"failed": "memory"}
    except Exception as error:
        head = {"failed": repr(error)[:500]}
    signal.setitimer(signal.ITIMER_PROF, 0)
    offload.send(link, head | {"cpu": time.process_time() - started}, answer)
    return head.get("failed") != "memory"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
