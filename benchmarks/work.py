"""The heaviest steps that are allowed: what they are charged, and how long they hold the server."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from machines.engine import Engine, Refused
from machines.server import Server

LIMIT_MS = 50.0
ROUNDS = 3
LONG = "x" * 60_000
ACCENTS = "é" * 30_000
PAIRS = {f"k{n}": n for n in range(5_000)}

Shape = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]  # definition, data, payload


def _context() -> dict[str, Any]:
    types = {"n": "integer", "i": "integer", "j": "integer", "s": "string", "t": "string", "l": "array", "o": "object"}
    return {"type": "object", "properties": {name: {"type": type} for name, type in types.items()}}


def _machine(states: dict[str, Any]) -> dict[str, Any]:
    return {"id": "heavy", "initial": next(iter(states)), "context": _context(), "states": states}


def _guarded(guard: str, copies: int = 1) -> dict[str, Any]:
    return _machine({"A": {"on": {"go": [{"guard": guard, "actions": [{"set": {"n": "1"}}]}] * copies}}})


def _acting(*actions: dict[str, Any]) -> dict[str, Any]:
    return _machine({"A": {"on": {"go": {"actions": list(actions)}}}})


def _loop(count: int, *actions: dict[str, Any], item: str = "i") -> dict[str, Any]:
    return {"foreach": {"in": f"range(0, {count})", "item": item, "do": list(actions)}}


def _spin(to: str) -> dict[str, Any]:
    return {"always": {"target": to, "guard": "len(instance.id) > 0"}}


def _either(part: str, count: int) -> str:
    return " or ".join([part] * count)


def _several(count: int) -> str:
    return "[" + ", ".join(f"s + '{n}'" for n in range(count)) + "]"


def shapes() -> dict[str, Shape]:
    note = {"event": "note", "to": {"machine": "other", "id": "'x'"}}
    twenty = [{"send": f"nothing{n}"} for n in range(20)]
    numbers, order = [0] * 30_000, [n * 7919 % 10_007 for n in range(9_000)]
    regions = {
        f"R{n}": {"initial": f"a{n}", "states": {f"a{n}": {"on": {"go": f"b{n}"}}, f"b{n}": {"on": {"go": f"a{n}"}}}}
        for n in range(160)
    }
    guards = {
        "sorting long texts": (_guarded(f"len(sorted({_several(100)})) == 0"), {"s": LONG}),
        "the largest of long texts": (_guarded(f"max({_several(40)}) == ''", 12), {"s": LONG}),
        "long lists read again": (_guarded(f"len([{', '.join(['l'] * 200)}]) == 0"), {"l": numbers}),
        "a long list read once": (_guarded("len(l) == 0"), {"l": numbers}),
        "sorting numbers": (_guarded(_either("len(sorted(l)) == 0", 3)), {"l": order}),
        "texts that nearly match": (
            _guarded(_either("index_of(repeated('a', 65000), repeated('a', 32000) + 'b') == 0", 9)),
            {},
        ),
        "splitting": (_guarded(_either("len(split(s, 'x')) == 0", 5)), {"s": LONG}),
        "replacing": (_guarded("replace(s, 'x', 'y') == ''"), {"s": LONG}),
        "lower case": (_guarded(_either("lower(s) == ''", 100)), {"s": LONG}),
        "lengths of accents": (_guarded(_either("len(s) == 0", 60)), {"s": ACCENTS}),
        "spaces": (_guarded(_either("strip(s) == ''", 20)), {"s": "x" + " " * 59_000}),
        "keys of an object": (_guarded(_either("len(keys(o)) == 0", 10)), {"o": PAIRS}),
        "objects as text": (_guarded(_either("str(o) == ''", 20)), {"o": PAIRS}),
        "a thousand guards": (_guarded("n == 1", 1_000), {}),
        "values in the explanation": (_guarded(_either("s == 'a'", 60), 50), {"s": LONG}),
    }
    actions = {
        "turns that set": (_acting(_loop(10, _loop(1_000, {"set": {"n": "n + 1"}}, item="j"))), {"n": 0}),
        "turns that append": (_acting(_loop(10, _loop(1_000, {"append": {"l": "j"}}, item="j"))), {}),
        "a text that grows": (_acting(_loop(1_000, {"set": {"t": "t + '" + "a" * 55 + "'"}})), {"t": ""}),
        "raised events": (_acting(_loop(990, {"raise": "tick"})), {}),
        "events sent to itself": (_acting(*twenty, {"send": "go"}), {}),
        "emitted messages": (_acting(_loop(1_000, {"emit": {"type": "m", "data": {"n": "i"}}})), {}),
        "jobs": (_acting(_loop(1_000, {"enqueue": {"src": "work", "input": {"n": "i"}}})), {}),
        "messages": (_acting(_loop(1_000, {"send": note | {"data": {"n": "i"}}})), {}),
        "long messages": (_acting(_loop(16, {"send": note | {"data": {"n": "s"}}})), {"s": LONG}),
        "timers": (_acting(_loop(1_000, {"send": {"event": "late", "delay": 100_000}})), {}),
        "microsteps": (_machine({"A": {"on": {"go": "S"}}, "S": _spin("T"), "T": _spin("S")}), {}),
        "regions": (_machine({"P": {"type": "parallel", "states": regions}}), {}),
    }
    payloads = {
        "a payload of numbers": {"a": [1] * 32_000},
        "a payload of fractions": {"a": [n / 7 for n in range(3_000)]},
        "a payload of fields": {"a": PAIRS},
        "a payload of empty lists": {"a": [[]] * 21_000},
    }
    found: dict[str, Shape] = {name: (*shape, {}) for name, shape in (guards | actions).items()}
    for name, payload in payloads.items():
        found[name] = (_guarded("event.a == 1"), {}, payload)
        found[f"{name}, kept"] = (_acting({"set": {"o": "event"}}), {}, payload)
    return found


class Watch:
    """What calls cost the server: CPU of its one thread, so that others on the machine weigh less on it."""

    def __init__(self, engine: Engine) -> None:
        pid = engine.client.info("server")["process_id"]
        self._account = Path(f"/proc/{pid}/task/{pid}/schedstat")

    def held(self, call: Callable[[], object]) -> float:
        """The ms of the call; one that is refused counts as well."""
        before = self._spent()
        with suppress(Refused):
            call()
        return (self._spent() - before) / 1e6

    def _spent(self) -> int:
        return int(self._account.read_text().split()[0])


def measure(engine: Engine, watch: Watch, name: str, shape: Shape) -> float:
    """Prints a line; the longest that a call of this shape held the server, in ms, at its best of three."""
    definition, data, payload = shape
    held = {"create": [], "explain": [], "fire": []}  # type: dict[str, list[float]]
    for turn in range(ROUNDS):
        machine = engine.publish(definition | {"id": f"heavy{abs(hash(name)) % 10**8}-{turn}"}).name
        held["create"].append(watch.held(lambda machine=machine: engine.create(machine, "x", data)))  # type: ignore[misc]
        held["explain"].append(watch.held(lambda machine=machine: engine.explain(machine, "x", "go", payload)))  # type: ignore[misc]
        work = engine.explain(machine, "x", "go", payload).work
        held["fire"].append(watch.held(lambda machine=machine: engine.fire(machine, "x", "go", payload)))  # type: ignore[misc]
    best = {call: min(times) for call, times in held.items()}
    rate = best["explain"] * 1000 / max(work, 1) * 100
    print(
        f"{name:32s} {work:8d} units   create {best['create']:6.1f}   explain {best['explain']:6.1f}   "
        f"fire {best['fire']:6.1f} ms   {rate:6.1f} µs for 100 units"
    )
    return max(best.values())


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.work", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="shapes whose name has one of these words")
    only = parser.parse_args(words).only
    with tempfile.TemporaryDirectory(prefix="signalbox-work-") as folder, Server(Path(folder), persistent=False) as own:
        engine = Engine.from_url(own.url)
        engine.load_library()
        watch = Watch(engine)
        chosen = {name: shape for name, shape in shapes().items() if not only or any(word in name for word in only)}
        longest = {name: measure(engine, watch, name, shape) for name, shape in chosen.items()}
    over = {name: ms for name, ms in longest.items() if ms > LIMIT_MS}
    print(f"{len(longest)} shapes; the longest held the server {max(longest.values(), default=0):.1f} ms")
    for name, ms in over.items():
        print(f"over {LIMIT_MS:.0f} ms: {name}, {ms:.1f} ms")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
