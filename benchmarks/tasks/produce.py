"""``python -m benchmarks.tasks.produce TASK``: enqueues BENCH_TASKS tasks, one by one.

Prints how many a second, and the id of the last; with an id, what that task returned.
"""

from __future__ import annotations

import sys
import time

import django

django.setup()

from benchmarks.tasks import tasks  # noqa: E402  needs the settings

task = getattr(tasks, sys.argv[1])
if len(sys.argv) > 2:
    print(task.get_result(sys.argv[2]).return_value)
else:
    task.enqueue(0)
    began = time.perf_counter()
    for number in range(1, tasks.TOTAL):
        result = task.enqueue(number)
    print((tasks.TOTAL - 1) / (time.perf_counter() - began), result.id)
