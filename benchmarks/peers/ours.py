"""`engine.fire` by the same loop as the peers.

Each line on stdin is `seconds id id ...`, each on stdout `steps seconds tries`.
"""

from __future__ import annotations

import os
import random
import sys
import time

from machines.engine import Engine

from ..stage import PREFIX
from ..workloads import PHASES, TOKEN


def main() -> None:
    engine = Engine.from_url(os.environ["BENCH_URL"], prefix=PREFIX)
    chance, payload = random.Random(os.getpid()), {"token": TOKEN}
    for line in sys.stdin:
        seconds, *ids = line.split()
        turns = [(id, now) for now in PHASES for id in ids]
        done, started = 0, time.perf_counter()
        while time.perf_counter() - started < float(seconds):
            id, now = turns[done % len(turns)] if len(ids) > 1 else (ids[0], chance.choice(PHASES))
            engine.fire("activation", id, "entitle", payload, now=now)
            done += 1
        print(done, time.perf_counter() - started, done, flush=True)


if __name__ == "__main__":
    main()
