"""How long a diagram takes to draw: processor time of this process, and the instructions Graphviz used."""

from __future__ import annotations

import sys
import time
from statistics import median

from machines import diagrams
from machines.diagrams.layout.graphviz import graphviz_host
from machines.engine.definitions import Outline, outline

ROUNDS = 5
SIZES = (20, 100, 200, 500)


def chain(count: int) -> Outline:
    """States one after the other, and a way back from each."""
    states = {
        f"S{n}": {
            "on": {"next": f"S{(n + 1) % count}", "back": {"target": f"S{max(n - 1, 0)}", "guard": "event.n > 1"}}
        }
        for n in range(count)
    }
    return outline({"id": "chain", "initial": "S0", "states": states})


def draw(made: Outline) -> float:
    """The ms of one drawing."""
    begun = time.process_time()
    diagrams.draw(made)
    return (time.process_time() - begun) * 1000


def main() -> int:
    graphviz_host()
    for count in SIZES:
        made = chain(count)
        times = [draw(made) for _ in range(ROUNDS)]
        print(f"{count:4d} states   {median(times):8.1f} ms   {graphviz_host().used / 1e6:8.0f} million instructions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
