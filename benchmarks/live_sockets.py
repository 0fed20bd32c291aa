"""From a step to a thousand browsers: this checkout and an older one in turns, on one server.

``python -m benchmarks.live_sockets --before ../older-checkout``: the older one is a git worktree of the commit to
compare with; without it only this checkout is measured. Each round measures every site once, at each rate of steps;
every other round goes in reverse order. Figures and how to read them: LIVE.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from machines.engine import Engine

from .room import fleet, seeding, sockets
from .room.sockets import Watched
from .site import ROOT, Site
from .stage import PREFIX, Stage, server

Measured = dict[tuple[str, str], list[Watched]]


def main() -> None:
    given = _arguments()
    with ExitStack() as stack:
        url = stack.enter_context(server(given.url))
        Stage(url).set_up()
        member = fleet.fleet(given.instances * 4)[0]
        Engine.from_url(url, prefix=PREFIX).publish(member.definition)
        seeding.fill(url, member)
        sites = _open(stack, url, given)
        found: Measured = {}
        for number in range(given.rounds):
            for title, rate in list(sockets.RATES.items())[: given.rates]:
                for name in sorted(sites, reverse=bool(number % 2)):
                    one = sockets.watched(sites[name], url, member.name, given.clients, rate, given.seconds)
                    found.setdefault((title, name), []).append(one)
                    print(f"round {number + 1}, {title}, {name}: {_line([one])}", flush=True)
        for (title, name), runs in found.items():
            print(f"{title}, {name}: {_line(runs)}")
        Stage(url).clear()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_sockets", description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout, measured in turns with this one")
    parser.add_argument("--url", help="a server to use instead of one of its own; only keys below bench: are touched")
    parser.add_argument("--clients", type=int, default=sockets.CLIENTS)
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rates", type=int, default=len(sockets.RATES), help="how many of the rates of steps")
    parser.add_argument("--seconds", type=float, default=10.0)
    return parser.parse_args()


def _open(stack: ExitStack, url: str, given: argparse.Namespace) -> Mapping[str, Site]:
    home = stack.enter_context(tempfile.TemporaryDirectory(prefix="signalbox-bench-home-"))
    settings = {"SIGNALBOX_SOCKETS": str(given.clients), "SIGNALBOX_HOME": home}
    sites = {"after": stack.enter_context(Site(url, ROOT, **settings))}
    if given.before is not None:
        other = Site(url, given.before.resolve(), sites["after"].cookies, **settings)
        sites["before"] = stack.enter_context(other)
    return sites


def _line(runs: list[Watched]) -> str:
    """The medians of some runs."""

    def median(values: list[float]) -> float:
        return statistics.median(values)

    return (
        f"p50 {median([run.at(0.5) for run in runs]):.0f} ms, p99 {median([run.at(0.99) for run in runs]):.0f} ms, "
        f"{median([run.cpu for run in runs]):.2f} core, {median([run.frames for run in runs]):.1f} frames/s a client, "
        f"{median([run.steps for run in runs]):,.0f} steps/s, {sum(run.closed for run in runs)} closed, "
        f"load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
