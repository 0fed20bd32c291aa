"""Other processes of this machine, looked at from outside."""

from __future__ import annotations

import os
import time
from pathlib import Path


def list_family(pid: int) -> list[int]:
    """List a process and all that descend from it."""
    found = [pid]
    for each in found:
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def read_cpu(pid: int) -> float:
    """Return the seconds of CPU that a process and its descendants have used, threads that ended included.

    Each by the clock that clock_getcpuclockid(3) names: ticks of /proc miss what takes less than one.
    """
    return sum(time.clock_gettime(~each << 3 | 2) for each in list_family(pid))


def read_memory(pid: int) -> float:
    """Return the MB that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
