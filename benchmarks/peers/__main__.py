"""``python -m benchmarks.peers``: one transition by state machine libraries, each with its write to Redis.

python-statemachine, `transitions` and XState decide in the client and write by WATCH, MULTI, EXEC: the account alone,
no index, no history, no counters. A conflict is tried again until it goes through. Writes PEERS.md.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from .. import report
from ..queues import installed
from ..report import Aim, Row, Section
from ..rounds import interleave
from ..stage import PREFIX, Stage, name_of, server

HERE = Path(__file__).parent
PAGE = HERE.parent / "PEERS.md"
REQUIREMENTS = HERE / "requirements.txt"
ACCOUNTS = 100
PROCESSES = 8
FIRE, FCALL = "Signalbox, engine.fire", "Signalbox, FCALL sb_fire by ioredis"


class Contender:
    """A command that takes steps, with an account prefix and processes of its own."""

    def __init__(self, command: list[str | Path], prefix: str, url: str, folder: Path | None = None) -> None:
        self._command = [str(word) for word in command]
        self._prefix = prefix
        self._environment = {**os.environ, "BENCH_URL": url}
        self._folder = folder
        self._running: list[subprocess.Popen[str]] = []

    def start(self, stack: contextlib.ExitStack, processes: int) -> None:
        for _ in range(processes - len(self._running)):
            process = subprocess.Popen(
                self._command,
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            self._running.append(process)

    def run(self, processes: int, seconds: float, ids: list[str]) -> tuple[float, float]:
        """Steps a second of so many processes together, and the tries of a step."""
        chosen = self._running[:processes]
        line = " ".join([str(seconds), *[self._prefix + id for id in ids]])
        for process in chosen:
            print(line, file=process.stdin, flush=True)
        rate = steps = tries = 0.0
        for process in chosen:
            words = process.stdout.readline().split()
            if not words:
                raise RuntimeError(f"{self._command[1]} ended; its error stands above")
            done, took, tried = map(float, words)
            rate, steps, tries = rate + done / took, steps + done, tries + tried
        return rate, tries / max(steps, 1)


def _contenders(stage: Stage) -> dict[str, Contender]:
    python, url = installed.python(REQUIREMENTS), stage.url
    found = {
        "python-statemachine": Contender([python, HERE / "statemachine_peer.py"], f"{PREFIX}psm:", url),
        "transitions": Contender([python, HERE / "transitions_peer.py"], f"{PREFIX}trs:", url),
        FIRE: Contender([sys.executable, "-m", "benchmarks.peers.ours"], "", url, HERE.parent.parent),
    }
    try:
        folder = installed.node(HERE, "steps.js")
    except installed.Missing as why:
        print(f"without XState: {why}", flush=True)
        return found
    root = stage.engine.keys.partition("activation").root
    found["XState"] = Contender(["node", "steps.js", "xstate"], f"{PREFIX}xst:", url, folder)
    found[FCALL] = Contender(["node", "steps.js", "fcall", root], "", url, folder)
    return found


PEER_OF = {FIRE: ("python-statemachine", "transitions"), FCALL: ("XState",)}


def _measure(
    title: str,
    contenders: Mapping[str, Contender],
    processes: int,
    ids: list[str],
    given: argparse.Namespace,
    note: str,
) -> Section:
    tries: dict[str, float] = {}

    def timed(name: str) -> Callable[[], float]:
        def run() -> float:
            rate, tried = contenders[name].run(processes, given.seconds, ids)
            tries[name] = max(tried, tries.get(name, 0.0))
            return rate

        return run

    for contender in contenders.values():
        contender.run(processes, 0.2, ids)
    found = interleave(given.rounds, {name: timed(name) for name in contenders})
    rows, aims = [], []
    for name, measured in found.items():
        ratios = {peer: measured.against(found[peer]) for peer in PEER_OF.get(name, ()) if peer in found}
        rows.append(Row(name, measured.rate, ratios, f"{tries[name]:.1f} tries each" if processes > 1 else ""))
        aims += [Aim(f"{name} against {peer}, {title}", 1.0, ratio) for peer, ratio in ratios.items()]
    return Section(title, rows, note, aims)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--url", help="a server on a Unix socket to use instead of one of its own")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one measurement")
    parser.add_argument("--dry", action="store_true", help="leave PEERS.md as it is")
    given = parser.parse_args()
    started = time.monotonic()
    with server(given.url) as url, contextlib.ExitStack() as stack:
        stage = Stage(url)
        stage.set_up()
        ids = [f"ATV-peer-{number:03}:NBCSports" for number in range(ACCOUNTS)]
        stage.enrol(ids)
        contenders = _contenders(stage)
        for contender in contenders.values():
            contender.start(stack, PROCESSES)
        sections = [
            _measure("One process, a hundred instances", contenders, 1, ids, given, "One call at a time."),
            _measure(
                f"{PROCESSES} processes on one instance",
                contenders,
                PROCESSES,
                ids[:1],
                given,
                "A conflict is tried again at once.",
            ),
        ]
        print(report.text(sections))
        measured_on = name_of(stage.engine.client)
        stack.close()
        stage.clear()
    if given.dry:
        return
    report.write(
        sections,
        [aim for section in sections for aim in section.aims],
        measured_on,
        time.monotonic() - started,
        path=PAGE,
        command="python -m benchmarks.peers",
        notes=[
            "",
            f"Measured: {', '.join(installed.versions(REQUIREMENTS, HERE))}.",
            "The libraries decide in the client and write the account alone, by WATCH, MULTI, EXEC.",
            "Ours writes index, history and counters, too, in one call.",
        ],
    )


if __name__ == "__main__":
    main()
