"""How long the site takes to answer, page by page: one person, one connection, a real session."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from urllib.parse import urlsplit

from benchmarks.process import read_cpu
from benchmarks.report import Aim, Row, Section
from benchmarks.site import Site
from benchmarks.stage import read_server_cpu
from machines.engine import Engine
from machines.engine.connection import routing

from .fleet import Member

WARM = 4  # answers before the clock counts: templates and outlines are read once in a process
TIMES = 50  # with those before, fewer than a person may ask the palette for in ten seconds
LIMIT = 60.0  # ms at p95
Address = Callable[[int], str]


@dataclass(frozen=True, slots=True)
class Times:
    """ms; ``cpu`` and ``server``: ms of CPU that the web process and Redis spent on each, on any machine;
    ``size``: bytes."""

    median: float
    p95: float
    cpu: float
    server: float
    size: int

    def row(self, title: str) -> Row:
        note = f"p95 {self.p95:.0f} ms, cpu {self.cpu:.0f} + {self.server:.1f} ms, {self.size / 1000:.0f} kB"
        return Row(title, self.median, note=note, unit="ms")


def pages(members: list[Member]) -> dict[str, Address]:
    """What is asked for, by what it is called; the n-th time with other terms where there are some."""
    desk = next(member for member in members if member.kind == "desk")
    order = next(member for member in members if member.kind == "order")
    work = next(member for member in members if member.kind == "work")
    here = f"/machines/{desk.name}/"

    def customer(number: int) -> str:
        return f"c-{number * 7919 % desk.size:07}"

    return {
        "overview": lambda n: "/",
        "machine, flat, the largest": lambda n: here,
        "machine, nested": lambda n: f"/machines/{order.name}/",
        "machine, nested, a state folded": lambda n: f"/machines/{order.name}/?fold=Parcel",
        "list of a state, newest first": lambda n: f"{here}?state=Open&order=newest",
        "list of those past their service level": lambda n: f"{here}?state=Open&older=15m",
        "find by an exact value": lambda n: f"{here}?by=customer&is={customer(n)}",
        "find by a prefix": lambda n: f"{here}?by=customer&is=c-00{n % 10}*",
        "find by a range, in a state, of an age": lambda n: f"{here}?by=total&is={n}..{n + 5}&state=Busy&older=1d",
        "the list alone, as the script asks for it": lambda n: f"{here}instances/?state=Open",
        "instance": lambda n: f"{here}instances/{desk.name}-{n * 37 % desk.size:07}/",
        "instance, nested": lambda n: f"/machines/{order.name}/instances/{order.name}-{n * 37 % order.size:07}/",
        "queues": lambda n: "/queues/",
        "queue": lambda n: f"/queues/{work.name}/work/",
        "queue, its dead jobs": lambda n: f"/queues/{work.name}/work/?place=dead",
        "audit": lambda n: "/audit/",
        "audit of a person and a machine": lambda n: f"/audit/?actor=user{n % 40}&machine=desk-1",
        "errors": lambda n: "/errors/",
        "alarms": lambda n: "/alarms/",
        "wall": lambda n: "/wall/",
        "suggestions of the palette": lambda n: f"/search.json?q={desk.name}-{n * 37 % desk.size:07}",
        "metrics": lambda n: "/metrics",
    }


def section(site: Site, engine: Engine, members: list[Member]) -> Section:
    rows, aims = [], []
    for title, address in pages(members).items():
        found = measured(site, engine, address)
        rows.append(found.row(title))
        aims.append(Aim(f"{title}, ms at p95", LIMIT, found.p95, at_most=True))
    note = f"Medians of {TIMES} answers over one connection; cpu: of the web process and of Redis for one answer."
    return Section("Answers of the site", rows, note, aims)


def measured(site: Site, engine: Engine, address: Address, times: int = TIMES) -> Times:
    asked, servers = _asked(site, map(address, count())), routing.list_nodes(engine.client)
    sizes = [next(asked)[1] for _ in range(WARM)]
    before, served = read_cpu(site.pid), read_server_cpu(*servers)
    found = sorted(next(asked)[0] for _ in range(times))
    cpu = (read_cpu(site.pid) - before) / times * 1000
    server = (read_server_cpu(*servers) - served) / times * 1000
    return Times(found[len(found) // 2], found[int(len(found) * 0.95)], cpu, server, sizes[-1])


def _asked(site: Site, addresses: Iterator[str]) -> Iterator[tuple[float, int]]:
    """ms and bytes of each answer; anything but a 200 ends it."""
    where = urlsplit(site.address)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    for address in addresses:
        started = time.perf_counter()
        connection.request("GET", address, headers={"Cookie": site.cookies[0], "Accept": "text/html"})
        answer = connection.getresponse()
        body = answer.read()
        took = (time.perf_counter() - started) * 1000
        if answer.status != 200:
            raise RuntimeError(f"{address}: {answer.status} {body[:300]!r}")
        yield took, len(body)
