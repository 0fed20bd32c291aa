"""Part three: eight processes on one instance, all at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection as Pipe

from machines.engine import Engine

from . import watch
from .children import ask_all, receive, run_children
from .report import Section
from .rounds import compare, interleave
from .stage import PREFIX, Stage
from .workloads import DAY, PAYLOAD, START, TOKEN

PROCESSES = 8
ID = "ATV-hot:NBCSports"
FCALL = "FCALL sb_fire, plain redis-py"
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


CONTENDERS: dict[str, Callable[[Engine, random.Random], int]] = {"WATCH": _watch, FCALL: _plain, "fire": _fire}


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
        with run_children(_serve, [(self._stage.url, seed) for seed in range(PROCESSES)]) as pipes:
            for pipe in pipes:
                receive(pipe)
            found = interleave(rounds, {name: partial(self._run, pipes, name) for name in CONTENDERS})
        rows = compare(found, {FCALL: ["WATCH"], "fire": ["WATCH"]}, {"WATCH": "WATCH, MULTI, EXEC in Python"})
        rows[0].note = f"{max(self._tries['WATCH']):.1f} tries each"
        return Section(f"{PROCESSES} processes on one instance", rows)

    def _run(self, pipes: list[Pipe], name: str) -> float:
        answers = ask_all(pipes, name, time.time() + 0.05, self._seconds)
        done = sum(number for number, _ in answers)
        self._tries[name].append(sum(tries for _, tries in answers) / max(done, 1))
        return done / self._seconds
