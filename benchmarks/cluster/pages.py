"""Answers of the site at very many machines, on one server and on a cluster."""

from __future__ import annotations

from benchmarks.report import Aim, Row, Section
from benchmarks.room import answers
from benchmarks.room.fleet import DEFINITIONS, KINDS
from benchmarks.site import Site
from machines.engine import Engine
from machines.engine.connection import routing

from .place import Place

MACHINES, PARTITIONS, EACH = 500, 12, 20
LIMIT = 200.0  # ms at p95


def measure(one: Place, many: Place) -> tuple[Section, list[Aim]]:
    rows: list[Row] = []
    aims: list[Aim] = []
    for place in (one, many):
        with place.engine(PARTITIONS) as engine:
            names = seed(engine, MACHINES, EACH)
            with Site(place.url, SIGNALBOX_SOCKETS="50") as site:
                found, more = measure_pages(site, engine, names)
        rows += [Row(f"{place.title}: {row.title}", row.rate, note=row.note, unit=row.unit) for row in found]
        aims += [Aim(f"{place.title}: {aim.what}", aim.bound, aim.reached, at_most=True) for aim in more]
    return Section(f"Pages at {MACHINES} machines of {PARTITIONS} partitions", rows), aims


class Servers:
    """The CPU that the servers of an engine used, in seconds."""

    def __init__(self, engine: Engine) -> None:
        self._nodes = routing.list_nodes(engine.client)

    def cpu(self) -> float:
        found = [node.info("cpu") for node in self._nodes]
        return sum(each["used_cpu_user"] + each["used_cpu_sys"] for each in found)


def publish_many(engine: Engine, machines: int) -> list[str]:
    """Publish machines of four kinds; return their names."""
    kinds = [KINDS[number % len(KINDS)] for number in range(machines)]
    return [engine.publish({"id": f"{kind}-{n}", **DEFINITIONS[kind]}).name for n, kind in enumerate(kinds)]


def seed(engine: Engine, machines: int, each: int) -> list[str]:
    """Publish the machines and create their instances; return the machines' names."""
    names = publish_many(engine, machines)
    for name in names:
        for number in range(each):
            engine.create(name, f"{name}-{number:04}", {"customer": f"c-{number}", "total": number}, actor="bench")
    return names


def measure_pages(site: Site, engine: Engine, names: list[str]) -> tuple[list[Row], list[Aim]]:
    pages = {
        "overview": "/",
        "live overview over HTTP": "/api/v1/live/?topic=overview",
        "machine": f"/machines/{names[0]}/",
        "instance": f"/machines/{names[0]}/instances/{names[0]}-0000/",
        "queues": "/queues/",
        "workers": "/workers/",
        "search by id": f"/search/?q={names[-1]}-0003",
        "search by name": "/search/?q=desk-1",
        "audit": "/audit/",
        "metrics": "/metrics",
        "healthz": "/healthz",
        "API: machines": "/api/v1/machines",
    }
    rows, aims = [], []
    for title, address in pages.items():
        try:
            found = answers.measured(site, Servers(engine), lambda n, address=address: address, times=20)
        except RuntimeError as error:
            rows.append(Row(title, 0, note=str(error)[:80], unit="ms"))
            continue
        note = f"p95 {found.p95:.0f} ms, cpu {found.cpu:.0f} + {found.server:.1f} ms, {found.size / 1000:.0f} kB"
        rows.append(Row(title, found.median, note=note, unit="ms"))
        aims.append(Aim(f"{title}, ms at p95", LIMIT, found.p95, at_most=True))
    return rows, aims
