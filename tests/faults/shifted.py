"""A worker whose wall clock is wrong: ``python -m tests.faults.shifted SECONDS URL OPTIONS``.

SECONDS are added to the time of day; "jumping": a day is added, taken away and neither, each for a third of a second.
Only this process sees it. The monotonic clock stays what it is, as it does when somebody sets the time.
"""

from __future__ import annotations

import runpy
import sys
import time

DAY = 86_400.0

real, real_ns = time.time, time.time_ns


def offset(shift: str) -> float:
    if shift != "jumping":
        return float(shift)
    return (0.0, DAY, -DAY)[int(time.monotonic() * 3) % 3]


def install(shift: str) -> None:
    """Before anything else is imported that could hold on to the real functions."""
    time.time = lambda: real() + offset(shift)
    time.time_ns = lambda: real_ns() + int(offset(shift) * 1e9)


if __name__ == "__main__":
    install(sys.argv.pop(1))
    runpy.run_module("tests.faults.worker", run_name="__main__", alter_sys=True)
