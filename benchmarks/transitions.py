"""``python -m benchmarks.transitions``: what a step costs where a machine indexes ``instance.transition``.

Three machines that differ in their index alone take the same steps in interleaved rounds, back and forth. The figures
are the server's time for each call, of INFO commandstats, and the bytes of an instance with its entries.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from machines.engine import Engine

from . import report, rounds, stage

PAGE = Path(__file__).with_name("TRANSITIONS.md")
INDEXES: dict[str, list[str]] = {
    "none": [],
    "a data field that stays": ["n"],
    "instance.transition": ["instance.transition"],
}
INSTANCES = 500


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transitions", description=__doc__)
    parser.add_argument("--url", help="a server to use instead of one of its own; only keys below bench: are touched")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--dry", action="store_true", help="leave TRANSITIONS.md as it is")
    given = parser.parse_args()
    with stage.server(given.url) as url:
        text = _measure(url, given.rounds)
    print(text)
    if not given.dry:
        PAGE.write_text(text, encoding="utf-8")


def _measure(url: str, count: int) -> str:
    engine = Engine.from_url(url, prefix="bench:")
    contenders = {name: _make_round(engine, number, index) for number, (name, index) in enumerate(INDEXES.items())}
    found = rounds.interleave(count, contenders)
    base = found["none"]
    rows = [
        [name, f"{1e6 / each.rate:.1f}", f"{base.against(each):.2f}", f"{_weigh(engine, number):,.0f}"]
        for number, (name, each) in enumerate(found.items())
    ]
    head = ["index", "µs of the server a step", "ratio to none", "bytes an instance"]
    lines = ["# Steps of machines that index transitions", "", __doc__.split("\n\n")[1].strip(), ""]
    lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", f"{count} rounds of {2 * INSTANCES} steps. {report.describe_machine()}", ""])


def _make_round(engine: Engine, number: int, index: list[str]) -> Callable[[], float]:
    """Return a function that takes the steps and returns steps for each second of the server."""
    name = f"m{number}"
    states = {"A": {"on": {"go": "B"}}, "B": {"on": {"back": "A"}}}
    definition: dict[str, Any] = {"id": name, "initial": "A", "states": states, "context": {"n": 1}, "history": 0}
    engine.publish(definition | {"index": index})
    ids = [f"i{n}" for n in range(INSTANCES)]
    for id in ids:
        engine.create(name, id)

    def run() -> float:
        for event in ("go", "back"):
            _reset(engine.client)
            for id in ids:
                engine.fire(name, id, event)
            stats = engine.client.info("commandstats")["cmdstat_fcall"]
            spent.append(stats["usec_per_call"])
        return 2e6 / (spent[-1] + spent[-2])

    spent: list[float] = []
    return run


def _reset(client: redis.Redis) -> None:
    client.config_resetstat()


def _weigh(engine: Engine, number: int) -> float:
    """Return the bytes of an instance's hash and its share of the indexes by ``by:`` keys."""
    client, partition = engine.client, engine.keys.partition(f"m{number}")
    whole = client.memory_usage(partition.instance("i1"), samples=0) or 0
    shared = sum(client.memory_usage(key, samples=0) or 0 for key in client.scan_iter(f"*m{number}*:by:*"))
    return whole + shared / INSTANCES


if __name__ == "__main__":
    main()
