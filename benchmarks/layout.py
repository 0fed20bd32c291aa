"""``python -m benchmarks.layout [--before CHECKOUT]``: what it costs to draw a definition, new and changed.

Processor time of the drawing process, in milliseconds: ``new`` with an empty cache of answers, ``changed`` after the
same definition with one transition less was drawn, and Graphviz's part of ``changed``. With ``--before`` the same
definitions are drawn by the code of another checkout (``git worktree add PATH COMMIT``), in turns with this one, each
round in processes of its own. The least of all rounds counts.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
SIZES = (20, 100, 200, 500)
GROUP = 9  # states in a compound state or a region
ROUNDS = 3
REPEATED = 3  # drawings of one case in a round
COLUMNS = ("new", "changed", "graphviz")

Definition = dict[str, Any]


def chain(count: int, more: bool) -> Definition:
    """States one after the other, and a way back from each."""
    states = {f"S{n}": {"on": {"next": f"S{(n + 1) % count}", "back": _guarded(f"S{max(n - 1, 0)}")}}
              for n in range(count)}  # fmt: skip
    return _machine(states, f"S{count // 2}", f"S{count // 2}", more)


def web(count: int, more: bool) -> Definition:
    """A chain with ways back of different length from every second state, and ways ahead from every fifth."""
    chance = random.Random(1)
    states: dict[str, Any] = {}
    for n in range(count):
        on: dict[str, Any] = {"next": f"S{(n + 1) % count}"}
        if n % 2:
            on["back"] = _guarded(f"S{max(n - chance.randint(1, 5), 0)}")
        if n % 5 == 0:
            on["skip"] = f"S{min(n + chance.randint(2, 9), count - 1)}"
        states[f"S{n}"] = {"on": on}
    return _machine(states, f"S{count // 2}", f"S{count // 2 - 3}", more)


def compound(count: int, more: bool) -> Definition:
    """Ten states to a group: the state around, and a chain of nine, some of them with fewer lines back."""
    groups = count // 10
    states: dict[str, Any] = {}
    for g in range(groups):
        on = {"forward": f"G{(g + 1) % groups}", "reset": f"G{g}"}
        states[f"G{g}"] = {"initial": f"G{g}S0", "states": _group(f"G{g}S", g), "on": on}
    made = _machine(states, "", "", False)
    _add(states["G1"]["states"], "G1S4", "G1S1", more)
    return made


def parallel(count: int, more: bool) -> Definition:
    """One parallel state whose regions are chains of nine."""
    regions = {f"R{g}": {"initial": f"R{g}S0", "states": _group(f"R{g}S", g)} for g in range((count - 2) // 10)}
    _add(regions["R0"]["states"], "R0S4", "R0S1", more)
    around = {"type": "parallel", "states": regions, "on": {"finish": "Done"}}
    return _machine({"Working": around, "Done": {"type": "final"}}, "", "", False)


def _group(prefix: str, number: int) -> Definition:
    """Levels of one shape are laid out once: as in real definitions, few of these have the same."""
    chance = random.Random(number)
    states: dict[str, Any] = {}
    for n in range(GROUP):
        on: dict[str, Any] = {"next": f"{prefix}{(n + 1) % GROUP}"}
        if chance.random() < 0.7:
            on["back"] = _guarded(f"{prefix}{chance.randrange(n + 1)}")
        states[f"{prefix}{n}"] = {"on": on}
    return states


def _guarded(target: str) -> Definition:
    return {"target": target, "guard": "event.n > 1"}


def _machine(states: Definition, source: str, target: str, more: bool) -> Definition:
    _add(states, source, target, more)
    return {"id": "m", "initial": next(iter(states)), "states": states}


def _add(states: Definition, source: str, target: str, more: bool) -> None:
    if more:
        states[source]["on"]["changed"] = target


KINDS: dict[str, Callable[[int, bool], Definition]] = {
    "chain": chain, "web": web, "compound": compound, "parallel": parallel,
}  # fmt: skip


def measure() -> dict[str, dict[str, float]]:
    """Case -> column -> milliseconds, by the code that is imported."""
    from machines import diagrams
    from machines.diagrams.layout import levels
    from machines.diagrams.layout.graphviz import Graphviz, graphviz_host
    from machines.engine.definitions import outline

    inside = 0.0
    lay_out = Graphviz.lay_out

    def timed(host: Graphviz, *given: Any) -> bytes:
        nonlocal inside
        begun = time.process_time()
        try:
            return lay_out(host, *given)
        finally:
            inside += time.process_time() - begun

    Graphviz.lay_out = timed  # type: ignore[assignment, method-assign]
    graphviz_host()
    found: dict[str, dict[str, float]] = {}
    for kind, make in KINDS.items():
        for size in SIZES:
            before, after = outline(make(size, False)), outline(make(size, True))
            least = dict.fromkeys(COLUMNS, float("inf"))
            for _ in range(REPEATED):
                if (answers := getattr(levels, "ANSWERS", None)) is not None:
                    answers.clear()
                times = []
                for made in (before, after):
                    gc.collect()  # so that no case pays for the garbage of another
                    inside, begun = 0.0, time.process_time()
                    diagrams.draw(made)
                    times.append((time.process_time() - begun) * 1000)
                row = dict(zip(COLUMNS, (*times, inside * 1000), strict=True))
                least = {column: min(least[column], row[column]) for column in COLUMNS}
            found[f"{kind} {size}"] = least
    return found


def run(checkout: Path) -> dict[str, dict[str, float]]:
    """Measure the code of a checkout in a process of its own."""
    command = [sys.executable, "-P", str(HERE), "--worker"]
    told = subprocess.run(command, cwd=checkout, env=os.environ | {"PYTHONPATH": str(checkout)},
                          capture_output=True, text=True, check=True)  # fmt: skip
    answer: dict[str, dict[str, float]] = json.loads(told.stdout)
    return answer


def _least(rounds: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    return {case: {name: min(each[case][name] for each in rounds) for name in COLUMNS} for case in rounds[0]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout to compare with")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        print(json.dumps(measure()))
        return 0
    checkouts = [path.resolve() for path in (given.before, HERE.parents[1]) if path is not None]
    rounds: list[list[dict[str, dict[str, float]]]] = [[] for _ in checkouts]
    for _ in range(given.rounds):
        for place, checkout in enumerate(checkouts):
            rounds[place].append(run(checkout))
    now, before = _least(rounds[-1]), _least(rounds[0])
    print(f"load {os.getloadavg()[0]:.1f}; ms of CPU, least of {given.rounds} rounds")
    print("| states | " + " | ".join(f"{name} before | now | ratio" for name in COLUMNS) + " |")
    print("|---" * (1 + 3 * len(COLUMNS)) + "|")
    for case, row in now.items():
        cells = [(before[case][name], row[name]) for name in COLUMNS]
        texts = [f"{old:.1f} | {new:.1f} | {new / old if old else 0:.2f}" for old, new in cells]
        print(f"| {case} | " + " | ".join(texts) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
