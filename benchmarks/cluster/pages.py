"""Answers of the site at very many machines, on one server and on a cluster."""

from __future__ import annotations

from benchmarks.report import Aim, Section
from benchmarks.room import answers
from benchmarks.room.fleet import DEFINITIONS, KINDS
from benchmarks.site import Site
from machines.engine import Engine

from .place import Place

MACHINES, PARTITIONS, EACH = 500, 12, 20
LIMIT = 200.0  # ms at p95


def measure(one: Place, many: Place) -> Section:
    found = Section(f"Pages at {MACHINES} machines of {PARTITIONS} partitions", [])
    for place in (one, many):
        with place.engine(PARTITIONS) as engine:
            names = seed(engine, MACHINES, EACH)
            with Site(place.url, SIGNALBOX_SOCKETS="50") as site:
                _measure(found, place, site, engine, names)
    return found


def seed(engine: Engine, machines: int, each: int) -> list[str]:
    """Publish machines of four kinds and create their instances; return the machines' names."""
    kinds = [KINDS[number % len(KINDS)] for number in range(machines)]
    names = [engine.publish({"id": f"{kind}-{n}", **DEFINITIONS[kind]}).name for n, kind in enumerate(kinds)]
    for name in names:
        for number in range(each):
            engine.create(name, f"{name}-{number:04}", {"customer": f"c-{number}", "total": number}, actor="bench")
    return names


def _measure(section: Section, place: Place, site: Site, engine: Engine, names: list[str]) -> None:
    pages = {
        "overview": "/",
        "live overview over HTTP": "/api/v1/live/?topic=overview",
        "machine": f"/machines/{names[0]}/",
        "instance": f"/machines/{names[0]}/instances/{names[0]}-0000/",
        "queues": "/queues/",
        "workers": "/workers/",
        "search": "/search/?q=desk-1",
        "audit": "/audit/",
        "metrics": "/metrics",
        "healthz": "/healthz",
        "API: machines": "/api/v1/machines",
    }
    for page, address in pages.items():
        title = f"{place.title}: {page}"
        found = answers.measured(site, engine, lambda n, address=address: address, times=20)
        section.rows.append(found.row(title))
        section.aims.append(Aim(f"{title}, ms at p95", LIMIT, found.p95, at_most=True))
