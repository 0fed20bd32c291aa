"""Walks over all snapshots that a machine can reach, by the interpreter in Redis."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status, refuse
from machines.engine.simulation.simulator import START, encode_program

from .alphabet import Alphabet

TOGETHER = 20  # snapshots of one call
ID = "verified"
FACTS = frozenset({"_version", "_def", "_created", "_entered", "_parent"})


@dataclass(slots=True)
class Edge:
    """What an input leads to. ``target``: number of the node, None where nothing changed."""

    input: Any
    event: str
    outcome: str
    transitions: tuple[str, ...]
    error: str = ""
    failing: Mapping[str, str] = field(default_factory=dict)
    target: int | None = None


@dataclass(slots=True)
class Node:
    """One snapshot. ``came``: number of the node before and the input; None for the first ones. ``data``: what was
    given at the creation. ``holds``: for each property true, false or why it fails."""

    number: int
    snapshot: Mapping[str, Any]
    active: frozenset[str]
    done: bool
    holds: Sequence[Any]
    came: tuple[int, Any] | None
    data: Mapping[str, Any]
    edges: list[Edge] = field(default_factory=list)
    expanded: bool = False


@dataclass(slots=True)
class FailedCreation:
    """An instance that could not begin."""

    data: Mapping[str, Any]
    error: str


class Walk:
    """The snapshots of a machine and how they follow each other. ``whole``: all were found, and the values that were
    tried stand for all others; ``doubts`` say why not."""

    def __init__(
        self, caller: Caller, root: str, program: Mapping[str, Any], alphabet: Alphabet, relevant: set[str],
        blurred: set[str], properties: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        self._caller, self._root, self._text = caller, root, encode_program(program)
        self._alphabet, self._properties = alphabet, list(properties)
        self._hidden = {row["name"] for row in program.get("data", ())} - relevant
        self._blurred = blurred
        self.nodes: list[Node] = []
        self.failed: list[FailedCreation] = []
        self.first: list[tuple[str, ...]] = []
        self.doubts: list[str] = []
        self.is_complete = self._is_cut = False
        self._numbers: dict[str, int] = {}

    @property
    def is_whole(self) -> bool:
        return self.is_complete and not self.doubts

    def explore(self, budget: int, seconds: float) -> None:
        """Walk breadth first over at most ``budget`` snapshots, for at most ``seconds``."""
        till = time.monotonic() + seconds
        for data in self._alphabet.creations:
            self._create(data)
        waiting = deque(node.number for node in self.nodes)
        while waiting and len(self.nodes) < budget and time.monotonic() < till:
            chosen = [self.nodes[waiting.popleft()] for _ in range(min(TOGETHER, len(waiting)))]
            first = 1
            while chosen and time.monotonic() < till:
                following, rows = self._expand(chosen, first)
                for node, row in zip(chosen, rows, strict=False):
                    waiting.extend(self._note(node, row))
                done = len(rows) - 1 if following else len(rows)
                chosen, first = chosen[done:], following or 1
            self._is_cut = self._is_cut or bool(chosen)
        self.is_complete = not waiting and not self._is_cut
        if not self.is_complete:
            self.doubts.append(f"only {len(self.nodes)} snapshots were tried within the budget")

    def _call(self, script: Mapping[str, Any]) -> list[Any]:
        text = json.dumps({"id": ID, "now": START, **script}, ensure_ascii=False, separators=(",", ":"))
        reply = self._caller.compute("sb_simulate", self._root, self._text, text)
        if reply[0] != Status.OK:
            refuse("sb_simulate", reply)
        return [json.loads(part) for part in reply[1:]]

    def _create(self, data: Mapping[str, Any]) -> None:
        head, record = self._call({"data": data, "inputs": []})
        if "snapshot" not in head:
            self.failed.append(FailedCreation(data, str(record.get("error", ""))))
            return
        self.first.append(tuple(record["transitions"]))
        (row,) = self._call({"expand": [head["snapshot"]], "properties": self._properties})[1:]
        self._add(row["is"], None, data)

    def _expand(self, nodes: Sequence[Node], first: int) -> tuple[int, list[Any]]:
        """Expand nodes, the first one from that input on; return the input with which the last one goes on, 0 where it
        is over, and the rows."""
        head, *rows = self._call(
            {
                "expand": [node.snapshot for node in nodes],
                "first": first,
                "alphabet": self._alphabet.events,
                "results": self._alphabet.results,
                "properties": self._properties,
            }
        )
        return int(head.get("following") or 0), rows

    def _note(self, node: Node, row: Mapping[str, Any]) -> list[int]:
        fresh = []
        node.expanded = True
        for found in row["edges"]:
            given = found["input"]
            given = self._alphabet.events[int(given) - 1] if isinstance(given, int | float) else given
            edge = Edge(
                given, str(found.get("event", "")), str(found.get("outcome", "")), tuple(found["transitions"]),
                str(found.get("error") or ""), found.get("failing") or {},
            )  # fmt: skip
            if "to" in found:
                known = len(self.nodes)
                edge.target = self._add(found["to"], (node.number, given), node.data)
                if edge.target == known:
                    fresh.append(known)
            node.edges.append(edge)
        return fresh

    def _add(self, row: Mapping[str, Any], came: tuple[int, Any] | None, data: Mapping[str, Any]) -> int:
        snapshot = row["snapshot"]
        key = self._make_key(snapshot, data)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.nodes)
            holds = row.get("holds") or []
            self.nodes.append(Node(number, snapshot, frozenset(row["active"]), bool(row["done"]), holds, came, data))
        return number

    def _make_key(self, snapshot: Mapping[str, Any], data: Mapping[str, Any]) -> str:
        raw = {name: value for name, value in snapshot["raw"].items() if name not in FACTS and name not in self._hidden}
        raw |= dict.fromkeys(self._blurred & raw.keys(), True)
        now = snapshot["now"]
        if "_timers" in raw:
            raw["_timers"] = self._normalize_timers(json.loads(raw["_timers"]), now)
        if "_children" in raw:
            raw["_children"] = sorted(json.loads(raw["_children"]))
        jobs = sorted(job["invoke"] for job in snapshot.get("jobs") or ())
        return json.dumps([raw, jobs], sort_keys=True)

    def _normalize_timers(self, timers: list[Any], now: int) -> list[Any]:
        found = sorted(timers, key=lambda timer: (timer[1], timer[0]))
        if len({str(timer[0]).partition(".")[0] for timer in found}) > 1:
            doubt = "timers that began at different times run side by side"
            if doubt not in self.doubts:
                self.doubts.append(doubt)
        return [[timer[1] - now, *timer[2:]] for timer in found]

    def list_run(self, number: int) -> list[Any]:
        """List the inputs that lead to a node."""
        found: list[Any] = []
        came = self.nodes[number].came
        while came is not None:
            number, given = came
            found.append(given)
            came = self.nodes[number].came
        return [simplify(one) for one in reversed(found)]


def simplify(given: Any) -> Any:
    """Write an input in its shortest form."""
    if isinstance(given, Mapping) and "event" in given and set(given) <= {"event", "payload"}:
        return (given["event"], dict(given["payload"])) if given.get("payload") else given["event"]
    return dict(given) if isinstance(given, Mapping) else given
