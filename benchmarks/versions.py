"""``python -m benchmarks.versions``: what a dry run over a fleet costs, and the move of its instances, beside a load.

The fleet has one machine in two versions: a third of its instances has a timer, a sixth an open job, some are suspended
or finished, some stand in a state that the second version does not have. The load is another process that fires on
instances of the same machine, in pipelines, as fast as it can. Server time is the CPU of the server process that the
load does not explain by what an event takes alone; for a dry run INFO commandstats has the time of its calls by the
clock, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from machines.engine import Engine, Fire, MigrationPlan

from .stage import PREFIX, name_of, server

NAME = "delivery"
BATCH = 400  # calls in one pipeline while setting up
FIRED = 20  # events in one pipeline of the load
HOT = 500  # instances of the load
ALONE = 5.0  # seconds for which the load runs by itself, to compare with
KEPT = 200_000  # latencies that are kept
LIVES = [
    (), ("wait",), ("pack",), ("pack", "drive"), ("wait", "again"), ("pack", "drive", "arrive"), (), ("wait",),
    ("pack", "drive"), ("cancel",), ("pack", "drive"), ("wait", "back"),
]  # fmt: skip
HELD_EVERY = 500  # one in so many stands in the state that the second version does not have
SUSPENDED_EVERY = 1000


def definition(second: bool) -> dict[str, Any]:
    """The machine; in the second version a state has another name, one is missing, and a field is new."""
    at = "underway" if second else "driving"
    data = {"order": {"type": "string", "default": ""}, "weight": {"type": "number", "default": 1.5}}
    data |= {"tries": {"type": "integer", "default": 0}, "note": {"type": "string", "default": ""}}
    if second:
        data["carrier"] = {"type": "string", "default": "own"}
    states: dict[str, Any] = {
        "ordered": {"on": {"pack": "packing", "wait": "waiting", "cancel": "cancelled"}},
        "packing": {"invoke": {"src": "pack", "onDone": at}, "on": {"back": "ordered", "drive": at}},
        at: {"on": {"arrive": "delivered", "fail": "waiting"}, "after": {"30d": "lost"}},
        "waiting": {"on": {"again": {"target": at, "actions": {"set": {"tries": "tries + 1"}}}, "back": "ordered"}},
        "lost": {},
        "delivered": {"type": "final"},
        "cancelled": {"type": "final"},
    }
    if not second:
        states["ordered"]["on"]["hold"] = "held"
        states["held"] = {"on": {"back": "ordered"}}
    shown = {"type": "object", "properties": data}
    return {"id": NAME, "initial": "ordered", "history": 20, "context": shown, "states": states}


def main() -> None:
    given = _arguments()
    with server(given.url) as url:
        bench = Bench(Engine.from_url(url, prefix=PREFIX), url)
        print(f"{name_of(bench.engine.client)}, load of the machine {os.getloadavg()[0]:.1f}", flush=True)
        if "dry" in given.parts:
            bench.fill(given.instances)
            bench.dry_run(bench.plan(), given.share)
            if given.data:
                bench.dry_run(bench.plan(data={"note": "order + '!'"}), given.share)
        if "move" in given.parts:
            bench.fill(given.moved)
            bench.move()
        bench.clear()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    parser.add_argument("--url", help="a server to use instead of one of its own; only keys below bench: are touched")
    parser.add_argument("--parts", nargs="+", default=["dry", "move"], choices=["dry", "move"])
    parser.add_argument("--instances", type=int, default=1_000_000, help="of the dry run")
    parser.add_argument("--moved", type=int, default=100_000, help="instances of the move")
    parser.add_argument("--share", type=float, default=0.33)
    parser.add_argument("--data", action="store_true", help="one more dry run, of a plan that reads the data of each")
    return parser.parse_args()


@dataclass(frozen=True, slots=True)
class Used:
    """What a part took: seconds by the clock, of the server's CPU, and in calls that only read; events that the load
    fired, and the ms that its pipelines took, sorted."""

    wall: float
    server: float
    reads: float
    fired: int
    latencies: list[float]

    @property
    def rate(self) -> float:
        return self.fired / self.wall

    def latency(self, part: float) -> float:
        return self.latencies[int(part * (len(self.latencies) - 1))] if self.latencies else 0.0


class Load:
    """Another process that fires. ``count``: events so far; ``latencies``: ms of its pipelines, a ring."""

    def __init__(self, url: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.count = context.Value("q", 0, lock=False)
        self.latencies = context.Array("d", KEPT, lock=False)
        self.process = context.Process(target=_fire, args=(url, self.count, self.latencies), daemon=True)

    def begin(self) -> None:
        self.process.start()
        while self.count.value < 1000:
            time.sleep(0.05)

    def end(self) -> None:
        self.process.kill()
        self.process.join()

    def read(self, since: int) -> list[float]:
        """Return the ms of the pipelines since so many events, sorted."""
        first, last = since // FIRED, self.count.value // FIRED
        return sorted(self.latencies[n % KEPT] for n in range(max(first, last - KEPT), last))


class Bench:
    def __init__(self, engine: Engine, url: str) -> None:
        self.engine = engine
        self.client = engine.client
        self.url = url
        self.instances = 0

    def clear(self) -> None:
        batch: list[Any] = []
        for key in self.client.scan_iter(match=f"{PREFIX}*", count=1000):
            batch.append(key)
            if len(batch) == BATCH:
                self.client.unlink(*batch)
                batch = []
        if batch:
            self.client.unlink(*batch)

    def fill(self, count: int) -> None:
        """Make a fleet of the first version, then publish the second."""
        self.clear()
        self.engine.publish(definition(False))
        began = time.perf_counter()
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            half = count // 2
            pool.starmap(_fill, [(self.url, 0, half), (self.url, half, count)])
        for number in range(0, count, SUSPENDED_EVERY):
            self.engine.suspend(NAME, _id(number), actor="bench", reason="a part of the fleet")
        for number in range(HOT):
            self.engine.create(NAME, f"hot-{number}")
        self.engine.publish(definition(True))
        self.instances = count + HOT
        held = int(self.client.info("memory")["used_memory"]) / 2**20
        print(f"{self.instances:,} instances in {time.perf_counter() - began:.0f} s, {held:,.0f} MiB", flush=True)

    def plan(self, **given: Any) -> MigrationPlan:
        return self.engine.plan(NAME, 2, states={"driving": "underway"}, **given)

    def dry_run(self, plan: MigrationPlan, share: float) -> None:
        before = _own_memory()
        with self._load() as load:
            alone = self._measure(load, lambda: time.sleep(ALONE))
            used, run = self._measure_call(load, lambda: self.engine.dry_run(plan, share=share))
        print(f"dry run of {run.total:,}: {used.wall:.1f} s, {len(run.classes)} classes, {len(run.refused):,} refused")
        own = used.server - used.fired * alone.server / alone.fired
        print(f"  server: {own / used.wall:.0%} of a core, {1e6 * own / run.total:.1f} us an instance")
        print(f"  its calls by the clock, waits for a core included: {used.reads / used.wall:.0%} of the time")
        print(f"  this process: {_own_memory() - before:.0f} MiB more")
        _print_effect(alone, used)

    def move(self) -> None:
        plan = self.plan()
        for name, made in (("move", plan), ("way back", plan.inverse())):
            with self._load() as load:
                alone = self._measure(load, lambda: time.sleep(ALONE))
                used, moved = self._measure_call(
                    load, lambda made=made: self.engine.migrate(made, actor="bench", reason="a measurement")
                )
            own = used.server - used.fired * alone.server / alone.fired
            print(f"{name} of {moved.moved:,}: {used.wall:.1f} s, {moved.moved / used.wall:,.0f} a second")
            print(f"  refused {len(moved.refused):,}, kept {moved.kept:,}, already {moved.already:,}")
            print(f"  server: {own / used.wall:.0%} of a core, {1e6 * own / moved.moved:.0f} us an instance")
            _print_effect(alone, used)

    def _measure_call(self, load: Load, act: Callable[[], Any]) -> tuple[Used, Any]:
        found: list[Any] = []
        return self._measure(load, lambda: found.append(act())), found[0]

    def _measure(self, load: Load, act: Callable[[], Any]) -> Used:
        fired, cpu, reads, began = load.count.value, self._cpu(), self._reads(), time.perf_counter()
        act()
        wall = time.perf_counter() - began
        since = load.count.value - fired
        return Used(wall, self._cpu() - cpu, self._reads() - reads, since, load.read(fired))

    def _cpu(self) -> float:
        used = self.client.info("cpu")
        return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])

    def _reads(self) -> float:
        """Seconds in calls that only read: nothing but a dry run makes them here."""
        return float(self.client.info("commandstats").get("cmdstat_fcall_ro", {"usec": 0})["usec"]) / 1e6

    @contextlib.contextmanager
    def _load(self) -> Iterator[Load]:
        load = Load(self.url)
        load.begin()
        try:
            yield load
        finally:
            load.end()


def _own_memory() -> float:
    """MiB that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _print_effect(alone: Used, used: Used) -> None:
    print(f"  fire: {alone.rate:,.0f} a second alone, {used.rate:,.0f} beside it: x{used.rate / alone.rate:.2f}")
    for part in (0.5, 0.99):
        before, after = alone.latency(part), used.latency(part)
        print(f"  {FIRED} events in one pipeline, p{part * 100:.0f}: {before:.1f} ms alone, {after:.1f} ms beside it")
    print(end="", flush=True)


def _id(number: int) -> str:
    return f"order-{number:09}"


def _fill(url: str, start: int, stop: int) -> None:
    engine = Engine.from_url(url, prefix=PREFIX)
    root = engine.keys.partition(NAME).root
    for at in range(start, stop, BATCH):
        pipeline = engine.client.pipeline(transaction=False)
        for number in range(at, min(at + BATCH, stop)):
            id, data = _id(number), json.dumps({"order": f"o{number}", "weight": number % 97 / 4})
            pipeline.fcall("sb_create", 1, root, id, data, "", "", "bench")
            life = ("hold",) if number % HELD_EVERY == 0 else LIVES[number % len(LIVES)]
            for event in life:
                pipeline.fcall("sb_fire", 1, root, id, event, "", "", "", "bench", "")
        if any(reply[0] != "OK" for reply in pipeline.execute()):
            raise RuntimeError("a step was refused")


def _fire(url: str, count: Any, latencies: Any) -> None:
    """Fire without end, back and forth between two states that both versions have."""
    engine = Engine.from_url(url, prefix=PREFIX)
    turn = 0
    while True:
        event = "wait" if turn // (HOT // FIRED) % 2 == 0 else "back"
        first = turn * FIRED % HOT
        began = time.perf_counter()
        engine.fire_many([Fire(NAME, f"hot-{first + n}", event) for n in range(FIRED)])
        latencies[turn % KEPT] = 1000 * (time.perf_counter() - began)
        turn += 1
        count.value = turn * FIRED


if __name__ == "__main__":
    main()
