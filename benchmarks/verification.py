"""``python -m benchmarks.verification``: how long ``verify`` takes for machines of 50, 200 and 499 states.

Each has four events a state with guards, a timer in each fifth and an invoke in each seventh; the walk is whole.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from machines.engine import Engine

from . import stage

PAGE = Path(__file__).with_name("VERIFICATION.md")
SIZES = (50, 200, 499)
ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verification", description=__doc__)
    parser.add_argument("--url", help="a server to use instead of one of its own; nothing is written there")
    parser.add_argument("--dry", action="store_true", help="leave VERIFICATION.md as it is")
    given = parser.parse_args()
    with stage.server(given.url) as url:
        engine = Engine.from_url(url, prefix="bench:")
        rows = [f"| {size} | {_measure(engine, size):.2f} |" for size in SIZES]
    text = "\n".join(
        [
            "# Verification",
            "",
            "`python -m benchmarks.verification`, 23 November 2026, two shared cores: seconds of the best of three",
            "calls of `engine.verify`, to the end of the walk.",
            "",
            "| states | seconds |",
            "|---|---|",
            *rows,
            "",
        ]
    )
    print(text)
    if not given.dry:
        PAGE.write_text(text, encoding="utf-8")


def _measure(engine: Engine, size: int) -> float:
    definition, best = make_machine(size), float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        findings = engine.verify(definition)
        best = min(best, time.perf_counter() - began)
        assert not any(one.verdict == "undecided" for one in findings)
    return best


def make_machine(size: int) -> dict[str, Any]:
    """Return a machine of so many states that all lead to each other, and an end."""
    states: dict[str, Any] = {}
    for i in range(size):
        events = {f"e{j}": {"target": f"S{(i * 7 + j * 13 + 1) % size}", "guard": f"n < {j + 2}"} for j in range(4)}
        states[f"S{i}"] = {"on": events}
        if i % 5 == 0:
            states[f"S{i}"]["after"] = {"5m": f"S{(i + 1) % size}"}
        if i % 7 == 0:
            end = {"onDone": f"S{(i + 3) % size}", "onError": f"S{(i + 2) % size}"}
            states[f"S{i}"]["invoke"] = {"src": "work", **end}
    states[f"S{size - 1}"]["on"]["end"] = "End"
    return {"id": "big", "initial": "S0", "context": {"n": 0}, "states": {**states, "End": {"type": "final"}}}


if __name__ == "__main__":
    main()
