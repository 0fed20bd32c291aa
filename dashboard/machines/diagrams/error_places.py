"""Counts the instances in error by state. In a parallel state, only the region that the error belongs to counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from dashboard.shared.diagrams.version_view import VersionView
from dashboard.shared.redacted_engine import RedactedEngine
from machines.engine import Instance, Problem
from machines.engine.definitions import Outline

MOST = 1000  # instances in error whose region is looked for; of more, every region counts


def count_errors(engine: RedactedEngine, view: VersionView, version: int | None = None) -> dict[str, int]:
    """Count the instances in error by state, leaf or not. ``version``: of this one alone.

    An instance of a machine with a parallel state is in several leaves. It counts in those of the region whose state
    invoked the dead job, or armed the timer that failed; where that is unknown, in all.
    """
    outline = view.outline
    leaves = {leaf: n for leaf, n in engine.tally(view.machine, error="any", version=version).counts.items() if n}
    if leaves and any(state.type == "parallel" for state in outline.states):
        found = engine.find(view.machine, error="any", version=version, limit=MOST)
        if found.cursor is None:
            return _count_by_region(engine, outline, list(found))
    return {state: count for state, count in (outline.sum_counts(leaves) | leaves).items() if count}


def _count_by_region(engine: RedactedEngine, outline: Outline, found: list[Instance]) -> dict[str, int]:
    machine = found[0].machine if found else ""
    problems = engine.problems(machine, [one.id for one in found]) if found else {}
    invokes = _read_invokes(engine, machine, outline, problems)
    counts: Counter[str] = Counter()
    for one in found:
        sources = [_find_source(outline, one, problem, invokes) for problem in problems.get(one.id, ())]
        failing = {leaf for source in sources for leaf in _list_below(outline, one.configuration, source)}
        hit = failing or one.configuration
        counts.update({above.name for leaf in hit for above in outline.lineage(leaf)} | set(hit))
    return dict(counts)


def _read_invokes(
    engine: RedactedEngine, machine: str, outline: Outline, problems: Mapping[str, Iterable[Problem]]
) -> dict[str, str]:
    """Return dead job -> the id of its invoke, of the newest dead jobs of each queue."""
    if not problems:
        return {}
    queues = {*outline.queues, *(name for name, held in engine.live(machine).queues.items() if held.get("dead"))}
    listed = [job for queue in sorted(queues) for job in engine.jobs(machine, queue, place="dead", limit=MOST)]
    return {job.id: job.invoke for job in listed}


def _find_source(outline: Outline, one: Instance, problem: Problem, invokes: Mapping[str, str]) -> str:
    """Return the state that the problem belongs to; "" if it is unknown."""
    if invoke := invokes.get(problem.cause):
        return next((state.name for state in outline.states if any(i.id == invoke for i in state.invokes)), "")
    number = "".join(part for part in problem.cause.partition(":")[0] if part.isdigit())
    return next((timer.state for timer in one.timers if timer.id.replace(".", "") == number), "")


def _list_below(outline: Outline, configuration: Collection[str], source: str) -> list[str]:
    """List the active leaves in a state; all if it is unknown, or not active any more."""
    below = [leaf for leaf in configuration if source in (above.name for above in outline.lineage(leaf))]
    return below or list(configuration)
