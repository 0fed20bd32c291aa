"""The engine as one person may see it: what a page may read of one machine, redacted.

Deny by default. A method of the engine does not exist here until it is written down, with what happens to its answer:

- ``live``, ``tally``, ``filling``, ``waits``, ``rollout`` and ``version_figures`` pass: counts, times, and names of
  states, queues, jobs and versions. These are no data. ``tally`` refuses to count by hidden fields. ``diff`` passes:
  people who see a machine see its definitions.
- Plans, dry runs and replays are not here: ``machines.versions`` reads and redacts them.
- ``inspect``, ``get``, ``history``, ``explain``, ``explain_all``, ``job`` and ``jobs`` go through the services and
  one redactor of the machine.
- ``find`` and ``troubles`` feed lists. Lists show no data, so everybody gets them without sensitive values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.http import HttpRequest

from machines.catalog.redaction import MASK, Redactor, strict_redactor
from machines.connections import get_engine
from machines.engine import (
    Engine,
    Explanation,
    IndexProgress,
    Inspection,
    Instance,
    Job,
    Live,
    Page,
    Problem,
    SignalboxError,
    Step,
    Tally,
    Wait,
)
from machines.engine.records import PartialList
from machines.engine.versions import DefinitionDiff, Rollout, VersionFigures
from machines.instances import actions as instances
from machines.instances.queries import demand_findable, explain_all, redactor_of, reveals
from machines.jobs import queries as job_queries
from machines.people.actor import Actor


class RedactedEngine:
    """Replaces the engine where a page reads one machine. Only the methods defined here exist."""

    def __init__(self, engine: Engine, actor: Actor, machine: str, redactor: Redactor | None = None) -> None:
        """``redactor``: made when it is first needed, unless one is given."""
        self._engine = engine
        self._actor = actor
        self._machine = machine
        self._redactor = redactor

    @property
    def redactor(self) -> Redactor:
        """What hides this machine's values from this person."""
        if self._redactor is None:
            self._redactor = redactor_of(self._actor, self._machine)
        return self._redactor

    def live(self, machine: str) -> Live:
        """Pass on counts, times and figures of queues."""
        return self._engine.live(machine)

    def tally(self, machine: str, **asked: Any) -> Tally:
        """Pass on counts, unless they are by a hidden field: counts of a filter reveal what it matched."""
        demand_findable(reveals(self._actor, machine), machine, asked)
        return self._engine.tally(machine, **asked)

    def index_progress(self, machine: str) -> IndexProgress | None:
        """Pass on the progress of an index."""
        return self._engine.index_progress(machine)

    def waits(self, machine: str, id: str) -> list[Wait]:
        """Pass on names of invokes, handlers, queues and jobs."""
        return self._engine.waits(machine, id)

    def diff(self, machine: str, a: int, b: int) -> DefinitionDiff:
        """Pass on the differences of two published versions."""
        return self._engine.diff(machine, a, b)

    def rollout(self, machine: str) -> Rollout | None:
        """Pass on versions, percentages and counts."""
        return self._engine.rollout(machine)

    def version_figures(self, machine: str, *, sample: int = 100) -> PartialList[VersionFigures]:
        """Pass on counts and times of each version."""
        return self._engine.version_figures(machine, sample=sample)

    def problems(self, machine: str, ids: Iterable[str]) -> dict[str, list[Problem]]:
        """Return the kind of each problem. Its text, which a handler may fill with anything, is always redacted."""
        found = self._engine.problems(machine, ids)
        return {id: [replace(one, text=MASK if one.text else "") for one in wrong] for id, wrong in found.items()}

    def inspect(self, machine: str, id: str, **asked: Any) -> Inspection:
        """Redacted part by part, by one redactor, which all further answers go through as well."""
        found, self._redactor = instances.inspect(self._actor, machine, id, **asked)
        return found

    def explain_all(self, machine: str, id: str, events: Iterable[str]) -> dict[str, Explanation | SignalboxError]:
        return explain_all(self._actor, machine, id, events, redactor=self.redactor)

    def get(self, machine: str, id: str) -> Instance:
        return instances.get(self._actor, machine, id, redactor=self.redactor)

    def history(self, machine: str, id: str, **asked: Any) -> list[Step]:
        return instances.history(self._actor, machine, id, redactor=self.redactor, **asked)

    def explain(self, machine: str, id: str, event: str, payload: Any = None) -> Explanation:
        return instances.explain(self._actor, machine, id, event, payload, redactor=self.redactor)

    def find(self, machine: str, **asked: Any) -> Page:
        return instances.find(self._actor, machine, redactor=strict_redactor(machine), **asked)

    def job(self, machine: str, id: str) -> Job:
        return job_queries.get(self._actor, machine, id, redactor=self.redactor)

    def jobs(self, machine: str, queue: str, **asked: Any) -> list[Job]:
        return job_queries.find(self._actor, machine, queue, redactor=self.redactor, brief=True, **asked)


def redacted_engine(request: HttpRequest, machine: str) -> RedactedEngine:
    """Return the engine as the person of this request may see it, for a page of one machine."""
    return RedactedEngine(get_engine(), Actor.of(request), machine)
