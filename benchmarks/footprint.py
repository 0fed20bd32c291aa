"""What is paid once (publishing, the first step of a definition) and what is paid for each instance (memory)."""

from __future__ import annotations

import json
import time
from statistics import median
from typing import Any

from .report import Row, Section
from .stage import DEFINITION, Stage, call_many
from .workloads import PAYLOAD

INSTANCES = 100_000
TIMES = 7


def wide(states: int = 200) -> dict[str, Any]:
    """A chart of 200 states: twenty compound ones of nine leaves each, in a ring."""
    groups = states // 10
    found: dict[str, Any] = {}
    for group in range(groups):
        leaves = {
            f"s{group}-{leaf}": {"on": {"next": f"s{group}-{leaf + 1}" if leaf < 8 else f"#G{(group + 1) % groups}"}}
            for leaf in range(9)
        }
        found[f"G{group}"] = {"initial": f"s{group}-0", "states": leaves}
    return {"id": "wide", "initial": "G0", "states": found}


class Footprint:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._engine = stage.engine

    def sections(self) -> list[Section]:
        return [self._once(), self._memory()]

    def _once(self) -> Section:
        rows = []
        for title, definition in (("activation, 4 states", self._activation(100)), ("a chart of 200 states", wide())):
            published, first = [], []
            for number in range(TIMES):
                version = definition | {"id": f"{definition['id']}-{number}"}
                started = time.perf_counter()
                self._engine.publish(version)
                published.append(time.perf_counter() - started)
                started = time.perf_counter()
                self._engine.create(version["id"], "first")
                first.append(time.perf_counter() - started)
            rows.append(Row(f"publish: {title}", median(published) * 1000, unit="ms"))
            rows.append(Row(f"first instance: {title}", median(first) * 1000, unit="ms"))
        return Section("Publishing, and the first use of a definition", rows, "As one Python client waits for it.")

    def _activation(self, history: int) -> dict[str, Any]:
        definition: dict[str, Any] = json.loads(DEFINITION.read_text(encoding="utf-8"))
        return definition | {"history": history, "id": f"activation-{history}"}

    def _memory(self) -> Section:
        rows = [
            Row("without history", self._bytes(0, ()), unit="bytes"),
            Row("with three steps of history", self._bytes(100, ("activate", "entitle")), unit="bytes"),
        ]
        note = f"Of activation, over {INSTANCES:,} instances."
        return Section("Memory of an instance", rows, note)

    def _bytes(self, history: int, events: tuple[str, ...]) -> float:
        definition = self._activation(history)
        self._engine.publish(definition)
        root = self._engine.keys.partition(definition["id"]).root
        client = self._engine.client
        call_many(client, root, [("sb_create", "warm")])
        before = self._used()
        ids = [f"ATV-{number:07}" for number in range(INSTANCES)]
        call_many(client, root, (("sb_create", id) for id in ids))
        for event in events:
            call_many(client, root, (("sb_fire", id, event, PAYLOAD) for id in ids))
        taken = (self._used() - before) / INSTANCES
        call_many(client, root, (("sb_delete", id) for id in ids))
        return taken

    def _used(self) -> int:
        return int(self._engine.client.info("memory")["used_memory"])
