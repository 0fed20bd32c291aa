"""The engine as one person sees it: what a page may read of one machine, redacted.

Deny by default. A method of the engine is not there until it is written down here, with what happens to its answer:

- ``live``, ``tally``, ``filling`` and ``waits`` pass: counts, times, and names of states, queues and jobs. That is no
  data. ``tally`` refuses to count by what is hidden.
- ``get``, ``history``, ``explain``, ``job`` and ``jobs`` go through the services and one redactor of the machine.
- ``find`` and ``troubles`` feed lists. Lists show no data, so everybody gets them with nothing sensitive in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.http import HttpRequest

from machines.access.redaction import MASK, Redactor, strict_redactor
from machines.connections import get_engine
from machines.engine import Engine, Explanation, IndexProgress, Instance, Job, Live, Page, Problem, Step, Tally, Wait
from machines.services import Actor, instances, jobs
from machines.services.reading import demand_findable, redactor_of, reveals


class RedactedEngine:
    """Stands in for the engine where a page reads one machine. What is not defined here cannot be asked."""

    def __init__(self, engine: Engine, actor: Actor, redactor: Redactor) -> None:
        self._engine = engine
        self._actor = actor
        self.redactor = redactor

    def live(self, machine: str) -> Live:
        """Passed on: counts, times and figures of queues."""
        return self._engine.live(machine)

    def tally(self, machine: str, **asked: Any) -> Tally:
        """Passed on, unless it would count by what is hidden: figures of a search tell what it found."""
        demand_findable(reveals(self._actor, machine), machine, asked)
        return self._engine.tally(machine, **asked)

    def filling(self, machine: str) -> IndexProgress | None:
        """Passed on: how far an index is."""
        return self._engine.filling(machine)

    def waits(self, machine: str, id: str) -> list[Wait]:
        """Passed on: names of invokes, handlers, queues and jobs."""
        return self._engine.waits(machine, id)

    def troubles(self, machine: str, ids: Iterable[str]) -> dict[str, list[Problem]]:
        """The kind of each; the text, which a handler may have filled with anything, is redacted for everybody."""
        found = self._engine.troubles(machine, ids)
        return {id: [replace(one, text=MASK if one.text else "") for one in wrong] for id, wrong in found.items()}

    def get(self, machine: str, id: str) -> Instance:
        return instances.get(self._actor, machine, id, redactor=self.redactor)

    def history(self, machine: str, id: str, **asked: Any) -> list[Step]:
        return instances.history(self._actor, machine, id, redactor=self.redactor, **asked)

    def explain(self, machine: str, id: str, event: str, payload: Any = None) -> Explanation:
        return instances.explain(self._actor, machine, id, event, payload, redactor=self.redactor)

    def find(self, machine: str, **asked: Any) -> Page:
        return instances.find(self._actor, machine, redactor=strict_redactor(machine), **asked)

    def job(self, machine: str, id: str) -> Job:
        return jobs.get(self._actor, machine, id, redactor=self.redactor)

    def jobs(self, machine: str, queue: str, **asked: Any) -> list[Job]:
        return jobs.listed(self._actor, machine, queue, redactor=self.redactor, brief=True, **asked)


def redacted_engine(request: HttpRequest, machine: str) -> RedactedEngine:
    """The engine as whoever sent this request may see it, for a page of one machine."""
    actor = Actor.of(request)
    return RedactedEngine(get_engine(), actor, redactor_of(actor, machine))
