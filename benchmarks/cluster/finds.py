"""Pages of a list, by partitions."""

from __future__ import annotations

from benchmarks.report import Aim, Row, Section

from .place import Place, time_calls

INSTANCES, LIMIT, TIMES = 9600, 50, 60
DESK = {"id": "desk", "initial": "Open", "index": ["customer"], "context": {"customer": ""}, "states": {"Open": {}}}


def measure(one: Place, many: Place) -> Section:
    rows, aims = [], []
    for place in (one, many):
        found = {partitions: _measure(place, partitions) for partitions in (1, 12, 48)}
        for partitions, took in found.items():
            ratio = took / found[1]
            title = f"{partitions} partition{'s' * (partitions > 1)}: {place.title}"
            rows.append(Row(title, took * 1000, {"one partition": ratio}, unit="ms"))
        aims.append(Aim(f"find over 48 partitions, {place.title}, times one", 3.0, found[48] / found[1], at_most=True))
    return Section(f"find: {LIMIT} of {INSTANCES:,} instances of a state", rows, "Medians.", aims)


def _measure(place: Place, partitions: int) -> float:
    with place.engine(partitions) as engine:
        engine.publish(DESK)
        for number in range(INSTANCES):
            engine.create("desk", f"i{number:05}")
        assert len(engine.find("desk", state="Open", limit=LIMIT)) == LIMIT
        return time_calls(lambda n: engine.find("desk", state="Open", limit=LIMIT), TIMES)
