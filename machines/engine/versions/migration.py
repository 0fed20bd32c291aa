"""The methods of the engine that compare versions, plan migrations, move instances and replay histories; and
the mover of instances: each moves in one atomic call, which decides by what the instance is now."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machines.engine import arguments
from machines.engine.connection import waiting
from machines.engine.connection.calls import Caller
from machines.engine.connection.replies import Status, require_ok
from machines.engine.definitions import CompiledDefinition, Finding
from machines.engine.errors import LOST_VERSION, STALE_PLAN, EngineUnavailable, PlanError, UnknownMachine
from machines.engine.publishing.catalog import Catalog

from .comparison.differ import compare_versions
from .content import VersionContent, read_content, read_draft
from .fleet_walk import FleetWalk
from .planning.document import PlanOptions, make_plan_finding
from .planning.plan import MigrationPlan
from .planning.planner import check_plan, make_plan
from .records import (
    KEPT,
    MOVES,
    REFUSED,
    SUSPENDS,
    DefinitionDiff,
    DryRun,
    Migrated,
    MigrationClass,
    RefusedInstance,
    Replay,
)
from .replay.replayer import Replayer
from .rollout.rollouts import RolloutMethods

BATCH = 100  # ids in one call
MOST_RATE = 1_000_000  # instances a second
FOREIGN = "SB618"  # the code of an instance of a version that the plan, or this part of it, is not for
MOVE, BACK = "move", "back"
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
        settled, refused, stays = set[int](), list[RefusedInstance](), Counter[tuple[int, str]]()
        counts = dict.fromkeys((MOVES, KEPT, SUSPENDS, ALREADY), 0)
        for ids in self._pace(self._walk(), rate):
            for move in self.move(id for id in ids if hash(id) not in settled):
                if move.outcome == "gone":
                    continue
                settled.add(hash(move.id))
                if move.outcome == REFUSED:
                    refused.append(RefusedInstance(move.id, move.version, move.state, move.code, move.reason))
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

    def move(self, ids: Iterable[str], *, now: int | None = None) -> list[InstanceMove]:
        """Move these instances, and return what became of each, in their order. Repeating a call whose reply was lost
        is harmless. Raises PlanError (SB612) where a version of the plan is gone."""
        wanted = list(dict.fromkeys(ids))
        found: dict[str, InstanceMove] = {}
        for root, some in self._catalog.split(self._machine, wanted).items():
            left = some
            for program in self._programs:
                found |= self._move_in(root, program, left, now)
                left = [id for id in left if found[id].outcome == KEPT and found[id].code == FOREIGN]
                if not left:
                    break
        return [found[id] for id in wanted]

    def _move_in(self, root: str, program: str, ids: Sequence[str], now: int | None) -> dict[str, InstanceMove]:
        found: dict[str, InstanceMove] = {}
        stamp = arguments.encode_whole("now", now)
        at = 0
        while at < len(ids):
            batch = ids[at : at + BATCH]
            reply = self._call(root, program, stamp, batch)
            if reply[0] == Status.STALE:
                self._catalog.copy_versions(self._machine)
                reply = self._call(root, program, stamp, batch)
            if reply[0] == Status.STALE:
                raise PlanError(
                    f"the plan has gone stale: {reply[1]}; nothing was changed by this call", code=LOST_VERSION
                )
            require_ok("sb_migrate", reply, self._machine)
            for place in range(int(reply[1])):
                outcome, version, states, code, reason = map(str, reply[2 + 5 * place : 7 + 5 * place])
                state = states.replace("\n", ", ")
                if outcome == ALREADY and self._began is not None and int(reason or 0) >= self._began:
                    outcome, reason = MOVES, ""
                found[batch[place]] = InstanceMove(batch[place], outcome, int(version or 0), state, code, reason)
            at += int(reply[1])
        return found

    def _call(self, root: str, program: str, stamp: str, batch: Sequence[str]) -> list[Any]:
        """Make one call; during a run, again while the server is away."""
        for attempt in _attempts():
            try:
                words = self._mode if not attempt else self._mode + AGAIN
                return self._caller.call("sb_migrate", root, program, words, *self._words, stamp, *batch)
            except EngineUnavailable:
                if self._began is None or attempt == REPEATS:
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


class VersionMethods(RolloutMethods):
    """Versions of a machine: a part of ``Engine``."""

    def diff(
        self, machine: str, a: int | dict[str, Any] | CompiledDefinition, b: int | dict[str, Any] | CompiledDefinition
    ) -> DefinitionDiff:
        """Compare two versions of a machine: numbers of published ones, or definitions that are drafts. ``a`` is the
        old one. Raises UnknownMachine, DefinitionError for a draft with errors, BadInput for one of another machine."""
        numbers = [one for one in (a, b) if not isinstance(one, dict | CompiledDefinition)]
        check_versions(numbers)
        found = self._read_contents(machine, numbers, self._catalog.version_keys(machine) if numbers else {})
        sides = [
            waiting.compute(read_draft, machine, one) if isinstance(one, dict | CompiledDefinition) else found[one]
            for one in (a, b)
        ]
        return waiting.compute(compare_versions, machine, *sides)

    def plan(
        self,
        machine: str,
        to: int,
        *,
        from_versions: Iterable[int] | None = None,
        states: Mapping[str, str | Sequence[str] | None] | None = None,
        data: Mapping[str, Any] | None = None,
        unmapped: str = "refuse",
        timers: str = "entry",
        removed: str = "drop",
        suspended: str = "move",
        actions: Iterable[str] = (),
        keep_undo: str = "7d",
    ) -> MigrationPlan:
        """Plan how instances of other versions get the version ``to``. Reads definitions; looks at no instance.

        ``from_versions``: by default every other published version. ``states``: state of an old version -> its place in
        the new one, several for regions, None for no place; states that are not named keep their name or their path.
        ``data``: field -> expression over the old data. The policies stand in ``docs/versions.md``. Raises PlanError
        with all findings, UnknownMachine.
        """
        given = None if from_versions is None else _as_tuple(from_versions)
        check_versions([to, *(given or ())])
        if given == ():
            message = "from_versions is empty: name versions to move from, or leave it out for all others"
            raise PlanError("there is nothing to move", [make_plan_finding("SB601", "from_versions", message)])
        keys = self._catalog.version_keys(machine)
        wanted = [number for number in keys if number != to] if given is None else given
        found = self._read_contents(machine, [to, *wanted], keys)
        options = PlanOptions(timers, removed, suspended, _as_tuple(actions), keep_undo)
        self._refuse_withdrawn(machine, [to])
        sources = [found[number] for number in dict.fromkeys(wanted)]
        return waiting.compute(
            lambda: make_plan(machine, found[to], sources, states=states, data=data, unmapped=unmapped, options=options)
        )

    def check_plan(self, plan: MigrationPlan) -> list[Finding]:
        """Compare a stored plan with the versions that are published now, and return its warnings. Raises PlanError:
        with the code SB606 where a version is gone or has other content, SB612 where the new one was
        withdrawn, else SB600; UnknownMachine."""
        check_made(plan)
        keys = self._catalog.version_keys(plan.machine)
        numbers = {number for source in plan.sources for number in (source.version, source.to)}
        found = self._read_contents(plan.machine, sorted(numbers & keys.keys()), keys)
        findings = waiting.compute(check_plan, plan, found)
        # The way back restores by undo records; only an instance that took a step since needs the map, and is refused.
        errors = [one for one in findings if one.is_error and not (plan.inverse_of and one.code == "SB603")]
        if any(finding.code == STALE_PLAN for finding in errors):
            raise PlanError(f"{plan} has gone stale", findings, plan=plan, code=STALE_PLAN)
        if errors:
            raise PlanError(f"{plan} does not fit its versions", findings, plan=plan)
        if not plan.inverse_of:
            self._refuse_withdrawn(plan.machine, {source.to for source in plan.sources})
        return findings

    def _refuse_withdrawn(self, machine: str, targets: Iterable[int]) -> None:
        withdrawn = self.withdrawn_versions(machine)
        for number in targets:
            if number in withdrawn:
                raise PlanError(f"version {number} of {machine} is withdrawn: no instance gets it", code=LOST_VERSION)

    def migrate(self, plan: MigrationPlan, *, actor: str = "", reason: str = "", rate: int = 0) -> Migrated:
        """Move every instance that the plan is for, each in one atomic step, and return what became of them. ``rate``:
        instances a second at most, from 1 to 1,000,000; 0 for no limit.

        Each instance is judged by what it is at that moment. A plan made by ``inverse`` goes back: of the instances
        that the plan moved, one that took no step since is restored from its undo record; all others stay. The call may
        be repeated at any time: instances that have the version already are counted as ``already``. Raises PlanError
        where a version of the plan is gone (SB606, SB612), UnknownMachine, BadInput (SB402).
        """
        arguments.check_between("rate", rate, 0, MOST_RATE)
        self.check_plan(plan)
        return Mover(self._caller, self._catalog, plan, actor=actor, reason=reason).run(rate)

    def mover(self, plan: MigrationPlan, *, actor: str = "", reason: str = "") -> Mover:
        """Return what moves chosen instances by a plan, for callers that set the pace themselves."""
        check_made(plan)
        return Mover(self._caller, self._catalog, plan, actor=actor, reason=reason)

    def dry_run(
        self,
        plan: MigrationPlan,
        *,
        share: float = 0.33,
        each: Callable[[MigrationClass, Sequence[str]], None] | None = None,
    ) -> DryRun:
        """Compute what a plan would do with every instance of its machine; change nothing.

        Each instance counts once, in the class of what it was when the walk came to it; one that exists when the walk
        of its partition ends is counted in any case. ``share``: the part of the server's time that it takes at most.
        ``each`` is called with a class and the ids of its instances, page by page. Raises UnknownMachine, PlanError,
        BadInput, and EngineUnavailable where a partition does not answer, since a part of the fleet is no result.
        """
        check_made(plan)
        walk = FleetWalk(self._caller, self._catalog, plan, share)
        self.check_plan(plan)
        return walk.run(each)

    def classify(self, plan: MigrationPlan, ids: Iterable[str]) -> dict[str, MigrationClass]:
        """Compute what a plan would do with some instances; change nothing. Returns id -> its class, without those that
        do not exist. Raises as ``dry_run``."""
        check_made(plan)
        asked = [arguments.check_instance(id) for id in ids]
        return FleetWalk(self._caller, self._catalog, plan, 1).classify(asked)

    def replay(
        self,
        machine: str,
        version: int | Mapping[str, Any] | CompiledDefinition,
        sample: int | None = None,
        *,
        states: Mapping[str, str | Sequence[str]] | None = None,
    ) -> Replay:
        """Run recorded histories on a version, by the interpreter in Redis and without writing, and compare each step:
        configuration, transitions, and the data fields that both versions have.

        ``version``: a published one, or a definition that is not published. ``sample``: the number of instances, spread
        over partitions and states; None for all. Each history runs from its creation to its first difference.
        ``states``: state of a recorded version -> state, or states, of the replayed one, where names differ. It leaves
        the server half of its time. Raises BadInput, DefinitionError, UnknownMachine.
        """
        keys = self._catalog.version_keys(machine)
        recorded = self._read_contents(machine, keys, keys)
        if isinstance(version, bool) or not isinstance(version, int):
            replayed = waiting.compute(read_draft, machine, version)
        elif version in recorded:
            replayed = recorded[version]
        else:
            raise UnknownMachine(machine, version=version)
        return Replayer(self._caller, self._catalog, machine).replay(recorded, replayed, sample, states)

    def _read_contents(
        self, machine: str, numbers: Iterable[int], keys: Mapping[int, str]
    ) -> dict[int, VersionContent]:
        """Read and compile versions. Raises UnknownMachine for one that is not published."""
        found = {}
        for number in dict.fromkeys(numbers):
            arguments.encode_whole("version", number, least=1)
            if number not in keys:
                raise UnknownMachine(machine, version=number)
            source = self._catalog.definition(machine, number)
            found[number] = waiting.compute(read_content, number, keys[number], source)
        return found


def check_made(plan: object) -> None:
    """Refuse what is no plan, such as the JSON of one."""
    if not isinstance(plan, MigrationPlan):
        name = type(plan).__name__
        raise PlanError(f"a MigrationPlan is needed, not {name}; MigrationPlan.from_dict reads a stored one")


def check_versions(numbers: Iterable[object]) -> None:
    """Refuse what is no number of a version. None, which stands for no number elsewhere, is none here."""
    for number in numbers:
        arguments.encode_whole("version", "null" if number is None else number, least=1)


def _as_tuple(words: Any) -> tuple[Any, ...]:
    """Return several arguments; a single one stays whole, so that it is checked as such."""
    return tuple(words) if isinstance(words, Iterable) and not isinstance(words, str) else (words,)
