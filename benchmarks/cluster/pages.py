"""Answers of the site at very many machines, on one server and on a cluster."""

from __future__ import annotations

from benchmarks import many_machines
from benchmarks.report import Aim, Row, Section
from benchmarks.site import Site

from .place import Place


def measure(one: Place, many: Place) -> tuple[Section, list[Aim]]:
    rows: list[Row] = []
    aims: list[Aim] = []
    for place in (one, many):
        with place.engine(many_machines.PARTITIONS) as engine:
            names = many_machines.seed(engine, many_machines.MACHINES, many_machines.EACH)
            with Site(place.url, SIGNALBOX_SOCKETS="50") as site:
                found, more = many_machines.measure(site, engine, names)
        rows += [Row(f"{place.title}: {row.title}", row.rate, note=row.note, unit=row.unit) for row in found[0].rows]
        aims += [Aim(f"{place.title}: {aim.what}", aim.bound, aim.reached, at_most=True) for aim in more]
    title = f"Pages at {many_machines.MACHINES} machines of {many_machines.PARTITIONS} partitions"
    return Section(title, rows), aims
