"""Moves instances to another version by a plan: each in one atomic call, which decides by what the instance is now."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine import arguments
from machines.engine.connection import waiting
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status, require_ok
from machines.engine.errors import LOST_VERSION, EngineUnavailable, PlanError, UnknownMachine
from machines.engine.publishing.catalog import Catalog

from .fleet_walk import FleetWalk, IdSet
from .planning.plan import MigrationPlan
from .records import KEPT, MOVES, REFUSED, SUSPENDS, Migrated, RefusedInstance

BATCH = 100  # ids in one call
MOST_RATE = 1_000_000  # instances a second
FOREIGN = "SB618"  # the code of an instance of a version that the plan, or this part of it, is not for
MOVE, BACK, DRY = MODES = ("move", "back", "dry")
ALREADY = "already"
AGAIN = " again"  # of a mode: the call comes again, because its reply was lost
REPEATS = 12  # of a call whose reply was lost, before the run ends
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between them


@dataclass(frozen=True, slots=True)
class InstanceMove:
    """What became of one instance: ``outcome`` is "moves", "kept", "refused", "suspends", "already" (it had the version
    before) or "gone"; ``version`` and ``state`` (leaf states, joined by ", ") are those before."""

    id: str
    outcome: str
    version: int
    state: str
    code: str
    reason: str

    def as_refused(self) -> RefusedInstance:
        return RefusedInstance(self.id, self.version, self.state, self.code, self.reason)


class Mover:
    """Runs one plan. ``back``: restores by undo records where they still apply, as the way back of a plan does."""

    def __init__(
        self, caller: Caller, catalog: Catalog, plan: MigrationPlan, *, actor: str = "", reason: str = ""
    ) -> None:
        self._caller = caller
        self._catalog = catalog
        self._plan = plan
        self._machine = plan.machine
        self._mode = BACK if plan.inverse_of else MOVE
        self._words = (arguments.check_actor(actor), arguments.check_reason(reason))
        self._began: int | None = None
        self._programs = [
            json.dumps(program, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
            for program in plan.programs()
        ]

    def run(self, rate: int = 0) -> Migrated:
        """Move the whole fleet: each instance that exists when the walk ends was tried once, wherever it was before.
        ``rate``: instances a second at most, 0 for no limit.

        A call whose reply was lost is made again: an instance that it had moved counts as moved. Raises as ``move``,
        and EngineUnavailable where the server does not come back; then the run can be repeated.
        """
        self._began = self._read_clock()
        settled, refused, stays = IdSet(), list[RefusedInstance](), Counter[tuple[int, str]]()
        counts = dict.fromkeys((MOVES, KEPT, SUSPENDS, ALREADY), 0)
        for ids in self._pace(self._walk(), rate):
            for move in self.move(id for id in ids if id not in settled):
                if move.outcome == "gone":
                    continue
                settled.add(move.id)
                if move.outcome == REFUSED:
                    refused.append(move.as_refused())
                    continue
                counts[move.outcome] += 1
                if move.outcome == KEPT and move.code != FOREIGN:
                    stays[move.version, f"{move.reason} ({move.code})"] += 1
        return Migrated(counts[MOVES], refused, counts[KEPT] + counts[SUSPENDS], counts[ALREADY], dict(stays))

    @staticmethod
    def _pace(pages: Iterable[list[str]], rate: int) -> Iterator[list[str]]:
        """Yield the pages; with a rate smaller ones, with pauses between them."""
        began, tried = time.monotonic(), 0
        for page in pages:
            step = min(rate, BATCH) or max(1, len(page))
            for at in range(0, len(page), step):
                if rate:
                    waiting.pause(max(0.0, began + tried / rate - time.monotonic()))
                part = page[at : at + step]
                tried += len(part)
                yield part

    def _walk(self) -> Iterator[list[str]]:
        """Yield ids of all instances, page by page; from the beginning again where the server was away."""
        for attempt in _attempts():
            pages = FleetWalk(self._caller, self._catalog, self._plan, share=1).pages()
            while True:
                try:
                    page = next(pages)
                except StopIteration:
                    return
                except EngineUnavailable:
                    if attempt == REPEATS:
                        raise
                    break
                yield [id for _, ids in page for id in ids]

    def move(self, ids: Iterable[str], *, dry: bool = False, now: int | None = None) -> list[InstanceMove]:
        """Move these instances, and return what became of each, in their order. ``dry``: writes nothing. Repeating a
        call whose reply was lost is harmless. Raises PlanError (SB612) where a version of the plan is gone."""
        wanted = list(dict.fromkeys(ids))
        found: dict[str, InstanceMove] = {}
        for root, some in self._catalog.split(self._machine, wanted).items():
            left = some
            for program in self._programs:
                found |= self._move_in(root, program, left, DRY if dry else self._mode, now)
                left = [id for id in left if found[id].outcome == KEPT and found[id].code == FOREIGN]
                if not left:
                    break
        return [found[id] for id in wanted]

    def _move_in(
        self, root: str, program: str, ids: Sequence[str], mode: str, now: int | None
    ) -> dict[str, InstanceMove]:
        found: dict[str, InstanceMove] = {}
        stamp = arguments.encode_whole("now", now)
        at = 0
        while at < len(ids):
            batch = ids[at : at + BATCH]
            reply = self._call(root, program, mode, stamp, batch)
            if reply[0] == Status.STALE:
                self._catalog.copy_versions(self._machine)
                reply = self._call(root, program, mode, stamp, batch)
            if reply[0] == Status.NO_MACHINE:
                raise UnknownMachine(self._machine)
            if reply[0] == Status.STALE:
                raise PlanError(
                    f"the plan has gone stale: {reply[1]}; nothing was changed by this call", code=LOST_VERSION
                )
            require_ok("sb_migrate", reply)
            for place in range(int(reply[1])):
                outcome, version, states, code, reason = map(str, reply[2 + 5 * place : 7 + 5 * place])
                state = states.replace("\n", ", ")
                if outcome == ALREADY and self._began is not None and int(reason or 0) >= self._began:
                    outcome, reason = MOVES, ""
                found[batch[place]] = InstanceMove(batch[place], outcome, int(version or 0), state, code, reason)
            at += int(reply[1])
        return found

    def _call(self, root: str, program: str, mode: str, stamp: str, batch: Sequence[str]) -> list[Any]:
        """Make one call; during a run, again while the server is away."""
        for attempt in _attempts():
            try:
                words = mode if not attempt else mode + AGAIN
                return self._caller.call("sb_migrate", root, program, words, *self._words, stamp, *batch)
            except EngineUnavailable:
                if self._began is None or attempt == REPEATS or mode == DRY:
                    raise
        raise AssertionError("unreachable")

    def _read_clock(self) -> int:
        """Return the server's time in ms."""
        key = self._catalog.partitions(self._machine)[0].meta
        seconds, micros = self._caller.commands([(key, ("TIME",))])[0]
        return int(seconds) * 1000 + int(micros) // 1000


def _attempts() -> Iterator[int]:
    """Yield the number of each attempt, from 0; rest between two, longer each time."""
    yield 0
    for attempt in range(REPEATS):
        waiting.pause(min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE))
        yield attempt + 1
