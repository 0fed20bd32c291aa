"""Part three: eight processes on one instance, all at once."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from typing import Any

from machines.engine import Engine

from . import watch
from .report import Row, Section
from .rounds import interleave
from .stage import PREFIX, Stage
from .workloads import DAY, PAYLOAD, START, TOKEN

PROCESSES = 8
ID = "ATV-hot:NBCSports"
KEY = f"{PREFIX}watch:hot"
SPREAD = 1_000_000  # days `now` is drawn from: about every second visit finds the account expired


def _now(chance: random.Random) -> int:
    return START + chance.randrange(SPREAD) * DAY


def _fire(engine: Engine, chance: random.Random) -> int:
    engine.fire("activation", ID, "entitle", {"token": TOKEN}, now=_now(chance))
    return 1


def _plain(engine: Engine, chance: random.Random) -> int:
    """The same function, called as any other client would: no checks in Python, the reply left as it is."""
    root = engine.keys.partition("activation").root
    reply = engine.client.execute_command(
        "FCALL", "sb_fire", 1, root, ID, "entitle", PAYLOAD, "", "", "", "", _now(chance)
    )
    if reply[0] != "OK":
        raise RuntimeError(f"sb_fire answered {reply}")
    return 1


def _watch(engine: Engine, chance: random.Random) -> int:
    return watch.entitle(engine.client, KEY, TOKEN, _now(chance) // 1000)


CONTENDERS: dict[str, Callable[[Engine, random.Random], int]] = {"fire": _fire, "plain": _plain, "watch": _watch}


def _serve(pipe: Pipe, url: str, seed: int) -> None:
    """One of the processes: told (contender, start, seconds), answers (transitions, tries)."""
    engine, chance = Engine.from_url(url, prefix=PREFIX), random.Random(seed)
    engine.get("activation", ID)
    pipe.send("ready")
    while (order := pipe.recv()) is not None:
        name, start, seconds = order
        call, done, tries = CONTENDERS[name], 0, 0
        time.sleep(max(start - time.time(), 0))
        while time.time() < start + seconds:
            tries += call(engine, chance)
            done += 1
        pipe.send((done, tries))


class Hot:
    """All processes start at the same moment; only transitions that went through count."""

    def __init__(self, stage: Stage, seconds: float) -> None:
        self._stage = stage
        self._seconds = seconds
        self._tries: dict[str, list[float]] = {name: [] for name in CONTENDERS}

    def section(self, rounds: int) -> Section:
        self._stage.enrol([ID])
        watch.enrol(self._stage.engine.client, KEY)
        pipes = self._start()
        found = interleave(rounds, {name: self._contender(pipes, name) for name in CONTENDERS})
        for pipe in pipes:
            pipe.send(None)
        tries = max(self._tries["watch"])
        return Section(
            f"{PROCESSES} processes on one instance",
            [
                Row("WATCH, MULTI, EXEC in Python", found["watch"].rate, note=f"{tries:.1f} tries each"),
                Row(
                    "FCALL sb_fire, plain redis-py",
                    found["plain"].rate,
                    {"WATCH": found["plain"].against(found["watch"])},
                ),
                Row("fire", found["fire"].rate, {"WATCH": found["fire"].against(found["watch"])}),
            ],
        )

    def _start(self) -> list[Pipe]:
        context, pipes = multiprocessing.get_context("spawn"), []
        for seed in range(PROCESSES):
            ours, theirs = context.Pipe()
            context.Process(target=_serve, args=(theirs, self._stage.url, seed), daemon=True).start()
            theirs.close()
            pipes.append(ours)
        for pipe in pipes:
            pipe.recv()
        return pipes

    def _contender(self, pipes: list[Pipe], name: str) -> Callable[[], float]:
        def run() -> float:
            answers = _ask(pipes, (name, time.time() + 0.05, self._seconds))
            done = sum(number for number, _ in answers)
            self._tries[name].append(sum(tries for _, tries in answers) / max(done, 1))
            return done / self._seconds

        return run


def _ask(pipes: list[Pipe], order: Any) -> list[Any]:
    for pipe in pipes:
        pipe.send(order)
    return [pipe.recv() for pipe in pipes]
