"""The methods of the engine that compare versions, plan migrations, move instances and replay histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from machines.engine import arguments
from machines.engine.connection import waiting
from machines.engine.definitions import CompiledDefinition, Finding
from machines.engine.errors import LOST_VERSION, STALE_PLAN, PlanError, UnknownMachine

from .comparison.differ import compare_versions
from .content import VersionContent, read_content, read_draft
from .diff import DefinitionDiff
from .fleet_walk import FleetWalk
from .mover import MOST_RATE, Mover
from .planning.document import PlanOptions, make_plan_finding
from .planning.plan import MigrationPlan
from .planning.planner import check_plan, make_plan
from .records import DryRun, Migrated, MigrationClass, Replay
from .replay.replayer import Replayer
from .rollout.rollouts import RolloutMethods


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
        return Replayer(self._caller, self._catalog, arguments.check_machine(machine)).replay(version, sample, states)

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
